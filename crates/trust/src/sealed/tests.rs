//! What is taken, that it is taken once, and that nothing else is.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    key::KeySize,
    replay::{CLOCK_TOLERANCE, REMEMBERED_MAX},
};

/// Made by other programs (`vectors/relay/README.md`).
const VECTORS: &str = include_str!("../../../../vectors/relay/sealed.json");

struct Cast {
    ours: PrivateKey,
    sender: MessageSealer,
    signing: SigningKey,
    senders_key: VerifyingKey,
    sealing: SealingKey,
    other: PrivateKey,
}

static CAST: LazyLock<Cast> = LazyLock::new(|| {
    let key = || PrivateKey::generate(KeySize::Bits2048).unwrap();
    let (ours, theirs, other) = (key(), key(), key());
    Cast {
        sender: MessageSealer::new(&theirs).unwrap(),
        signing: SigningKey::new(&theirs).unwrap(),
        senders_key: VerifyingKey::new(&theirs.public_key_info()).unwrap(),
        sealing: SealingKey::new(&ours.public_key_info()).unwrap(),
        ours,
        other,
    }
});

fn now() -> UtcTime {
    UtcTime::from_unix_seconds(1_900_000_000)
}

fn session() -> SessionId {
    SessionId::parse(&"aB3".repeat(16)).unwrap()
}

fn opener() -> MessageOpener {
    MessageOpener::new(&CAST.ours).unwrap()
}

fn sealed(message: &RelayMessage) -> String {
    CAST.sender.seal(message, &CAST.sealing, now()).unwrap()
}

fn open(sealed: &str) -> Result<RelayMessage, MessageFault> {
    opener().open(sealed, ("neighbor", &CAST.senders_key), now())
}

#[test]
fn every_kind_of_message_comes_back() {
    let messages = [
        RelayMessage::Call(session()),
        RelayMessage::Tunnel { session: session(), bytes: vec![1, 2, 3] },
        RelayMessage::Unknown { subject: "GSD_POLL".into(), session: session(), json: "{}".into() },
        RelayMessage::Acknowledgement(session()),
        RelayMessage::Raw(b"GET / HTTP/1.1\r\n\r\n\0\xff".to_vec()),
        RelayMessage::Raw(Vec::new()),
    ];
    let dialogues =
        Subject::ALL.map(|subject| RelayMessage::Dialogue { subject, session: session(), json: "{\"a\":\"ő\"}".into(), cause: None });
    for message in messages.into_iter().chain(dialogues) {
        assert_eq!(open(&sealed(&message)), Ok(message));
    }
}

#[test]
fn absent_claims_are_absent() {
    let claims = |message: &RelayMessage| {
        let signed = jose::open(&sealed(message), &OpeningKey::new(&CAST.ours).unwrap()).unwrap();
        let claims = jose::verify(std::str::from_utf8(&signed).unwrap(), &CAST.senders_key).unwrap();
        let mut claims: Value = serde_json::from_slice(&claims).unwrap();
        let id = claims.as_object_mut().unwrap().remove("jti").unwrap();
        assert_eq!(base64::decode_url_safe(id.as_str().unwrap()).unwrap().len(), ID_BYTES);
        claims
    };
    let session = session();
    assert_eq!(claims(&RelayMessage::Call(session.clone())), json!({"iat": 1_900_000_000, "sid": session.as_str()}));
    assert_eq!(claims(&RelayMessage::Raw(b"foo".to_vec())), json!({"iat": 1_900_000_000, "mst": "raw", "pld": "Zm9v"}));
}

#[test]
fn a_message_is_opened_once_however_often_it_is_sealed() {
    let message = RelayMessage::Raw(b"once".to_vec());
    let text = sealed(&message);
    let opener = opener();
    assert_eq!(opener.open(&text, ("neighbor", &CAST.senders_key), now()), Ok(message.clone()));
    assert_eq!(opener.open(&text, ("neighbor", &CAST.senders_key), now()), Err(ReplayFault::Again.into()));
    let signed = jose::open(&text, &OpeningKey::new(&CAST.ours).unwrap()).unwrap();
    let again = jose::seal(&signed, &CAST.sealing).unwrap();
    assert_eq!(
        opener.open(&again, ("neighbor", &CAST.senders_key), now()),
        Err(ReplayFault::Again.into()),
        "sealed anew by who has read it"
    );
    // The same words once more are another message.
    assert_eq!(opener.open(&sealed(&message), ("neighbor", &CAST.senders_key), now()), Ok(message));
}

/// Parts of a text: the content key and the initialization vector.
fn key_and_vector(text: &str) -> (String, String) {
    let parts: Vec<&str> = text.split('.').collect();
    (parts[1].to_owned(), parts[2].to_owned())
}

#[test]
fn messages_of_a_minute_have_one_content_key_and_each_its_own_vector() {
    let sender = MessageSealer::new(&CAST.other).unwrap();
    let key = VerifyingKey::new(&CAST.other.public_key_info()).unwrap();
    let opener = opener();
    let texts = [0, 59, 60].map(|seconds| {
        let then = UtcTime::from_unix_seconds(1_900_000_000 + seconds);
        sender.seal(&RelayMessage::Call(session()), &CAST.sealing, then).unwrap()
    });
    let [first, second, third] = texts.each_ref().map(|text| key_and_vector(text));
    assert!(first.0 == second.0 && first.1 != second.1 && third.0 != second.0, "{first:?} {second:?} {third:?}");
    for text in &texts {
        assert_eq!(opener.open(text, ("neighbor", &key), now()), Ok(RelayMessage::Call(session())));
    }
    assert!(lock(&opener.content_keys).get(&first.0).is_some() && lock(&opener.content_keys).get(&third.0).is_some());
}

#[test]
fn a_content_key_that_is_kept_stands_for_no_signature() {
    let opener = opener();
    let text = sealed(&RelayMessage::Call(session()));
    opener.open(&text, ("neighbor", &CAST.senders_key), now()).unwrap();
    // Who knows the content key of a message, as its sender does, says something unsigned with it, or something that another one has signed.
    let (_, kept) = jose::open_by(&text, &OpeningKey::new(&CAST.ours).unwrap(), |_| None).unwrap();
    let other = SigningKey::new(&CAST.other).unwrap();
    let claims = json!({"jti": "a", "iat": 1_900_000_000_u64, "sid": session().as_str()}).to_string();
    for said in [claims.clone(), jose::sign(claims.as_bytes(), &other).unwrap()] {
        assert_eq!(
            opener.open(&jose::seal_by(said.as_bytes(), &kept), ("neighbor", &CAST.senders_key), now()),
            Err(MessageFault::Unreadable)
        );
    }
    let signed = jose::sign(claims.as_bytes(), &CAST.signing).unwrap();
    let opened = opener.open(&jose::seal_by(signed.as_bytes(), &kept), ("neighbor", &CAST.senders_key), now());
    assert_eq!(opened, Ok(RelayMessage::Call(session())), "what the sender has signed");
}

#[test]
fn a_content_key_of_who_is_refused_is_not_kept() {
    let opener = opener();
    let text = sealed(&RelayMessage::Call(session()));
    let other = VerifyingKey::new(&CAST.other.public_key_info()).unwrap();
    opener.open(&text, ("neighbor", &other), now()).unwrap_err();
    assert!(lock(&opener.content_keys).get(&key_and_vector(&text).0).is_none());
}

#[test]
fn a_message_of_another_time_is_refused() {
    let text = sealed(&RelayMessage::Call(session()));
    for (seconds, expected) in [(-301, Err(())), (-300, Ok(())), (300, Ok(())), (301, Err(()))] {
        let then = UtcTime::from_unix_seconds(1_900_000_000_u64.checked_add_signed(seconds).unwrap());
        let opened = opener().open(&text, ("neighbor", &CAST.senders_key), then);
        assert_eq!(opened.as_ref().map(drop).map_err(drop), expected, "{seconds}: {opened:?}");
    }
    assert_eq!(CLOCK_TOLERANCE.as_secs(), 300);
}

#[test]
fn another_recipient_and_another_sender_are_refused() {
    let text = sealed(&RelayMessage::Call(session()));
    let elsewhere = MessageOpener::new(&CAST.other).unwrap();
    assert_eq!(elsewhere.open(&text, ("neighbor", &CAST.senders_key), now()), Err(MessageFault::Unreadable));
    let other = VerifyingKey::new(&CAST.other.public_key_info()).unwrap();
    assert_eq!(opener().open(&text, ("neighbor", &other), now()), Err(MessageFault::Unreadable));
}

#[test]
fn what_is_refused_is_not_remembered() {
    let text = sealed(&RelayMessage::Call(session()));
    let opener = opener();
    let other = VerifyingKey::new(&CAST.other.public_key_info()).unwrap();
    assert_eq!(opener.open(&text, ("neighbor", &other), now()), Err(MessageFault::Unreadable));
    assert_eq!(opener.open(&text, ("neighbor", &CAST.senders_key), now()), Ok(RelayMessage::Call(session())));
}

#[test]
fn read_message_is_not_remembered_before_it_is_accepted() {
    let (text, opener) = (sealed(&RelayMessage::Call(session())), opener());
    let [first, second, third] = [(); 3].map(|()| opener.read(&text, &CAST.senders_key).unwrap());
    let useless: Result<ReadMessage<()>, ()> = first.select(|_| Err(()));
    assert!(useless.is_err());
    assert_eq!(opener.accept(second, "neighbor", now()), Ok(RelayMessage::Call(session())));
    assert_eq!(opener.accept(third, "other", now()), Err(ReplayFault::Again.into()));
}

#[test]
fn flood_of_one_neighbor_leaves_the_others_their_messages() {
    let opener = opener();
    let now_s = now().unix_seconds();
    // As the flood of a neighbor leaves the guard, without the two minutes of processor time that signing the messages takes.
    for number in 0..2 * REMEMBERED_MAX as u128 {
        let _ = lock(&opener.taken).take("flood", number.to_be_bytes(), now_s + 285, now());
    }
    let text = sealed(&RelayMessage::Call(session()));
    assert_eq!(opener.open(&text, ("neighbor", &CAST.senders_key), now()), Ok(RelayMessage::Call(session())));
    assert_eq!(
        opener.open(&sealed(&RelayMessage::Call(session())), ("flood", &CAST.senders_key), now()),
        Err(ReplayFault::Forgotten(0).into())
    );
}

#[test]
fn claims_that_are_no_message_are_refused() {
    let of = |claims: Value| open(&jose::seal_claims(&claims, &CAST.signing, &CAST.sealing).unwrap());
    let session = session();
    let (sid, iat) = (session.as_str(), 1_900_000_000_u64);
    assert_eq!(of(json!({"jti": "1", "iat": iat, "sid": sid, "exp": 1, "aud": "x"})), Ok(RelayMessage::Call(session.clone())));
    for (claims, why) in [
        (json!({"iat": iat, "sid": sid}), "it has no jti"),
        (json!({"jti": "1", "sid": sid}), "its claims are not those of a message"),
        (json!({"jti": "1", "iat": -1, "sid": sid}), "its claims are not those of a message"),
        (json!({"jti": "1", "iat": iat}), "it has no session id"),
        (json!({"jti": "1", "iat": iat, "mst": "ack"}), "it has no session id"),
        (json!({"jti": "1", "iat": iat, "sid": "a*"}), "its session id is not 48 letters and digits"),
        (json!({"jti": "1", "iat": iat, "mst": "raw"}), "it has no payload"),
        (json!({"jti": "1", "iat": iat, "mst": "raw", "pld": "?"}), "its bytes are not Base64"),
        (json!({"jti": "1", "iat": iat, "mst": "gsd_poll", "sid": sid}), "it has no payload"),
        (json!({"jti": "1", "iat": iat, "mst": "gsd_poll", "pld": "{}"}), "it has no session id"),
        (json!({"jti": "1", "iat": iat, "mst": "", "sid": sid, "pld": "{}"}), "its message type is none"),
        (json!({"jti": "1", "iat": iat, "mst": "x".repeat(65), "sid": sid, "pld": "{}"}), "its message type is none"),
        (json!({"jti": "1", "iat": iat, "mst": "GSD_POLL", "sid": sid}), "it has no payload"),
    ] {
        assert_eq!(of(claims.clone()), Err(MessageFault::Form(why)), "{claims}");
    }
}

#[test]
fn a_message_beyond_its_limit_is_neither_made_nor_read() {
    // Three times four thirds: Base64 of the bytes, of the signed text, and of what is sealed.
    let most = SEALED_BYTES_MAX / 64 * 27 - 1024;
    assert!(CAST.sender.seal(&RelayMessage::Raw(vec![0; most]), &CAST.sealing, now()).is_ok());
    let long = CAST.sender.seal(&RelayMessage::Raw(vec![0; most + 2048]), &CAST.sealing, now());
    assert!(matches!(long, Err(SealError::TooLong(bytes)) if bytes > SEALED_BYTES_MAX), "{long:?}");
    assert_eq!(open(&"a".repeat(SEALED_BYTES_MAX + 1)), Err(MessageFault::Unreadable));
}

#[test]
fn messages_of_other_implementations_are_opened() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let key = |name: &str| PrivateKey::from_pkcs8(&base64::decode(vectors[name].as_str().unwrap()).unwrap()).unwrap();
    let (sender, recipient) = (key("sender"), key("recipient"));
    let senders_key = VerifyingKey::new(&sender.public_key_info()).unwrap();
    let opener = MessageOpener::new(&recipient).unwrap();
    let messages = vectors["messages"].as_array().unwrap();
    assert!(messages.len() >= 10, "{}", messages.len());
    for message in messages {
        let opened = opener.open(message["sealed"].as_str().unwrap(), ("neighbor", &senders_key), now());
        assert_eq!(format!("{opened:?}"), message["means"].as_str().unwrap());
    }
}

proptest! {
    #[test]
    fn any_bytes_of_a_tunnel_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let message = RelayMessage::Raw(bytes);
        prop_assert_eq!(open(&sealed(&message)), Ok(message));
    }

    #[test]
    fn any_words_of_a_dialogue_come_back(json in "\\PC{0,100}", session in "[A-Za-z0-9]{48}") {
        let message = RelayMessage::Dialogue { subject: Subject::IcnProposal, session: SessionId::parse(&session).unwrap(), json, cause: None };
        prop_assert_eq!(open(&sealed(&message)), Ok(message));
    }

    #[test]
    fn a_changed_message_is_unreadable(place in any::<prop::sample::Index>(), digit in "[A-Za-z0-9_.-]") {
        let text = sealed(&RelayMessage::Raw(b"bytes".to_vec()));
        let place = place.index(text.len());
        let changed = format!("{}{digit}{}", &text[..place], &text[place + 1..]);
        prop_assume!(changed != text);
        prop_assert_eq!(open(&changed), Err(MessageFault::Unreadable));
    }
}
