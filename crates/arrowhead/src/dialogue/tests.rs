//! Who has called, and which words are whose.

use super::*;
use crate::{name::CloudName, record::Timestamps, snapshot::Change, utc::UtcTime};

fn world() -> Snapshot {
    let now = UtcTime::from_unix_seconds(0);
    let mut snapshot = Snapshot::default();
    for (id, name, secure, own_cloud, key) in [
        (1, "own", true, true, Some("own-key")),
        (2, "near", true, false, Some("near-key")),
        (3, "open", false, false, Some("k")),
        (4, "bare", true, false, None),
    ] {
        snapshot.apply(Change::Cloud(Arc::new(Cloud {
            id: CloudId(id),
            operator: CloudName::from_stored("o"),
            name: CloudName::from_stored(name),
            secure,
            neighbor: true,
            own_cloud,
            authentication_info: key.map(Arc::from),
            relays: Vec::new(),
            accepted_events: Default::default(),
            timestamps: Timestamps { created_at: now, updated_at: now },
        })));
    }
    snapshot
}

fn called(sender: &str, key: &str, recipient: &str) -> Result<CloudId, NotCalled> {
    let text = |text: &str| Some(text.to_owned());
    let call =
        Advertisement { sender_cn: text(sender), sender_public_key: text(key), recipient_cn: text(recipient), session_id: text("eyJ") };
    caller(&world(), &call, &SystemCommonName::parse("gatekeeper.own.o.arrowhead.eu").unwrap())
}

#[test]
fn only_a_known_gatekeeper_with_its_clouds_key_has_called() {
    const US: &str = "Gatekeeper.OWN.o.arrowhead.eu";
    const NEAR: &str = "gatekeeper.near.o.arrowhead.eu";
    assert_eq!(called(NEAR, " near-key ", US), Ok(CloudId(2)));
    assert_eq!(called(NEAR, "near-key", "gatekeeper.near.o.arrowhead.eu"), Err(NotCalled::Other));
    assert_eq!(called(NEAR, "own-key", US), Err(NotCalled::Forged(SystemCommonName::parse(NEAR).unwrap())));
    assert_eq!(called(NEAR, "", US), Err(NotCalled::Forged(SystemCommonName::parse(NEAR).unwrap())));
    for stranger in [
        "gateway.near.o.arrowhead.eu",
        "gatekeeper.unknown.o.arrowhead.eu",
        "gatekeeper.own.o.arrowhead.eu",
        "gatekeeper.open.o.arrowhead.eu",
        "gatekeeper.bare.o.arrowhead.eu",
        "near",
        "",
    ] {
        assert_eq!(called(stranger, "near-key", US), Err(NotCalled::Stranger(stranger.into())));
    }
}

#[test]
fn an_advertisement_is_written_and_read_as_java_gatekeepers_do() {
    let text = r#"{"senderCN":"a","senderPublicKey":"b","recipientCN":"c","sessionId":"d"}"#;
    let call: Advertisement = json::parse_object(text).unwrap();
    assert_eq!((call.sender_cn.as_deref(), call.recipient_cn.as_deref()), (Some("a"), Some("c")));
    assert_eq!(serde_json::to_string(&call).unwrap(), text);
}

#[test]
fn session_ids_name_queues() {
    let session = SessionId::from_random(std::array::from_fn(|index| index as u16 * 1000));
    assert_eq!(SessionId::parse(session.as_str()), Ok(session.clone()));
    let near = SystemCommonName::parse("gatekeeper.near.o.arrowhead.eu").unwrap();
    assert_eq!(session.request_queue(&near), format!("REQ-gatekeeper.near.o.arrowhead.eu-{session}"));
    assert_eq!(session.response_queue(&near), format!("RESP-gatekeeper.near.o.arrowhead.eu-{session}"));
    for text in ["", &"a".repeat(47), &"a".repeat(49), &"-".repeat(48), &"é".repeat(24)] {
        assert_eq!(SessionId::parse(text), Err(SessionIdError), "{text}");
    }
    assert!(!format!("{session:?}").contains(&session.as_str()[..12]));
}

#[test]
fn every_digit_is_drawn() {
    let drawn: std::collections::BTreeSet<char> = (0..2)
        .flat_map(|half| {
            SessionId::from_random(std::array::from_fn(|index| (half * 48 + index) as u16)).as_str().chars().collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(drawn.len(), 62);
}

#[test]
fn an_error_is_told_from_an_answer() {
    for text in ["{}", r#"{"providerCloud":null}"#, r#"{"serviceMetadata":{"errorCode":"7","exceptionType":"AUTH"}}"#, r#"{"errorCode":7}"#]
    {
        assert_eq!(answer(text), Ok(text));
    }
    let error = |text: &str| answer(text).unwrap_err();
    let auth = error(r#"{"errorMessage":"no","errorCode":401,"exceptionType":"AUTH","origin":null}"#);
    assert_eq!(auth, ArrowheadError::auth("no"));
    let odd = error(r#"{"errorMessage":"no","errorCode":200,"exceptionType":"SOMETHING"}"#);
    assert_eq!((odd.error_code, odd.exception_type), (500, crate::error::ExceptionType::Generic));
    // Words are passed on, and no flood of them.
    let flood =
        format!(r#"{{"errorMessage":"{0}","errorCode":401,"exceptionType":"AUTH","origin":"{0}"}}"#, "\u{e4}".repeat(WORDS_MAX + 1));
    let expected = format!("{}..", "\u{e4}".repeat(WORDS_MAX));
    let cut = error(&flood);
    assert_eq!((cut.error_message.as_str(), cut.origin.as_deref()), (expected.as_str(), Some(expected.as_str())));
    for text in ["", "[]", r#"{"errorCode":401,"exceptionType":"AUTH"}"#] {
        assert!(error(text).error_message.contains("no answer"), "{text}");
    }
}

#[test]
fn a_tunnels_id_says_whether_it_is_numbered() {
    let random = |from: u16| std::array::from_fn(|at| from.wrapping_mul(7919).wrapping_add(at as u16 * 31));
    for from in 0..200 {
        let (plain, numbered) = (SessionId::from_random(random(from)), SessionId::of_numbered_tunnel(random(from)));
        assert!(numbered.is_of_numbered_tunnel() && !plain.is_of_numbered_tunnel(), "{from}");
        assert_eq!(SessionId::parse(numbered.as_str()).as_ref(), Ok(&numbered));
        let in_bytes = SessionId::of_tunnel_in_bytes(random(from));
        assert!(in_bytes.is_of_tunnel_in_bytes() && in_bytes.is_of_numbered_tunnel(), "{from}");
        assert!(!numbered.is_of_tunnel_in_bytes() && !plain.is_of_tunnel_in_bytes(), "{from}");
        assert_eq!(SessionId::parse(in_bytes.as_str()).as_ref(), Ok(&in_bytes));
    }
    // So that no two versions mean different ids by it.
    let vectors: serde_json::Value = serde_json::from_str(include_str!("../../../../vectors/relay/tunnel.json")).unwrap();
    for (list, expected) in [("numbered", [true, false]), ("in_bytes", [true, true]), ("not", [false, false])] {
        for id in vectors["queue_ids"][list].as_array().unwrap() {
            let id = SessionId::parse(id.as_str().unwrap()).unwrap();
            assert_eq!([id.is_of_numbered_tunnel(), id.is_of_tunnel_in_bytes()], expected, "{}", id.as_str());
        }
    }
    assert_eq!(SessionId::of_tunnel_in_bytes([0; SESSION_ID_LENGTH]).as_str(), vectors["queue_ids"]["in_bytes"][0]);
    let id = SessionId::of_numbered_tunnel([0; SESSION_ID_LENGTH]);
    assert_eq!(id.as_str(), vectors["queue_ids"]["numbered"][0]);
}
