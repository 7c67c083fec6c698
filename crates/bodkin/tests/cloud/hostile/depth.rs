//! Bombs in the body, thrown at every endpoint that takes one: nesting, length, counts, bytes that are no text.

use super::assert_all_live;
use crate::conformance::endpoint::{ENDPOINTS, Endpoint, Takes};
use crate::support::cloud::{Cloud, System};

/// Levels of nesting; a parser that calls itself for each would need megabytes of stack.
const LEVELS: usize = 100_000;
/// Levels that fit into the Event Handler's shorter bodies.
const LEVELS_OF_EVENTS: usize = 9_000;
/// The control plane's longest body, in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The Event Handler's longest body, in bytes.
const EVENT_BYTES_MAX: usize = 64 * 1024;

fn body_bytes_max(endpoint: &Endpoint) -> usize {
    if endpoint.system() == System::EventHandler { EVENT_BYTES_MAX } else { BODY_BYTES_MAX }
}

/// Sends every bomb to every endpoint with a body; each is refused with 400 and nothing suffers.
#[track_caller]
fn throw(bombs: impl Fn(&Endpoint) -> Vec<(&'static str, Vec<u8>)>) {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes != Takes::Nothing) {
        let target = endpoint.target("1");
        for (what, body) in bombs(endpoint) {
            assert!(body.len() <= body_bytes_max(endpoint), "{what} is refused for its length alone");
            let mut connection = cloud.connect(endpoint.system());
            let status =
                connection.request(endpoint.method, &target, &[("Content-Type", "application/json")], Some(&body)).map(|a| a.status);
            // Members that nobody knows are passed over, however deep; then a token is what insecure mode cannot make.
            let is_token = matches!(status, Ok(500)) && endpoint.path.starts_with("/authorization/token");
            if !is_token && !matches!(status, Ok(400)) {
                wrong.push(format!("{} {target} {what}: {status:?}", endpoint.method));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_all_live(&cloud);
}

/// `inner` in as many `open` and `close` as there are levels.
fn nested(levels: usize, open: &str, inner: &str, close: &str) -> Vec<u8> {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels)).into_bytes()
}

#[test]
fn json_nested_a_hundred_thousand_deep_is_refused_everywhere() {
    throw(|endpoint| {
        let levels = if endpoint.system() == System::EventHandler { LEVELS_OF_EVENTS } else { LEVELS };
        vec![
            ("lists", nested(levels, "[", "", "]")),
            ("objects", nested(levels, "{\"a\":", "1", "}")),
            ("lists that never end", nested(levels, "[", "", "")),
            ("objects that never end", nested(levels, "{\"a\":", "", "")),
            ("lists in objects", nested(levels / 2, "{\"a\":[", "", "]}")),
        ]
    });
}

#[test]
fn a_bomb_inside_a_member_that_matters_is_refused() {
    let members = [
        "providerSystem",
        "metadata",
        "systemName",
        "interfaces",
        "forms",
        "requestedService",
        "orchestrationFlags",
        "source",
        "payload",
        "metaData",
        "sources",
        "consumer",
        "providerIds",
        "priorityMap",
        "attribute",
    ];
    throw(|endpoint| {
        let levels = if endpoint.system() == System::EventHandler { LEVELS_OF_EVENTS } else { LEVELS };
        let inside = |member: &str| {
            let bomb = String::from_utf8(nested(levels, "[", "", "]")).expect("brackets");
            let object = format!("{{\"{member}\":{bomb}}}");
            if endpoint.takes == Takes::List { format!("[{object}]") } else { object }
        };
        members.iter().map(|member| (*member, inside(member).into_bytes())).collect()
    });
}

#[test]
fn a_body_of_the_greatest_length_that_says_nothing_is_refused() {
    throw(|endpoint| {
        let length = body_bytes_max(endpoint);
        let fill = |front: &str, filling: &str, back: &str| {
            let times = (length - front.len() - back.len()) / filling.len();
            format!("{front}{}{back}", filling.repeat(times)).into_bytes()
        };
        vec![
            ("blanks", fill("", " ", "")),
            ("one text without an end", fill("{\"systemName\":\"", "x", "")),
            ("one escape after another", fill("{\"systemName\":\"", "\\u0041", "")),
            ("one number without an end", fill("", "9", "")),
            ("zeros of a list of zeros", fill("[", "0,", "0")),
            ("minus signs", fill("", "-", "")),
            ("NUL bytes", fill("", "\0", "")),
        ]
    });
}

#[test]
fn bytes_that_are_no_utf8_are_refused_wherever_they_stand() {
    let sequences: [(&str, &[u8]); 6] = [
        ("a lone continuation byte", b"\x80"),
        ("a cut sequence", b"\xe2\x82"),
        ("an overlong slash", b"\xc0\xaf"),
        ("a surrogate", b"\xed\xa0\x80"),
        ("beyond the last character", b"\xf4\x90\x80\x80"),
        ("UTF-16", b"\xff\xfe{\0}\0"),
    ];
    throw(|endpoint| {
        let around = |front: &[u8], bytes: &[u8], back: &[u8]| {
            let (open, close): (&[u8], &[u8]) = if endpoint.takes == Takes::List { (b"[", b"]") } else { (b"", b"") };
            [open, front, bytes, back, close].concat()
        };
        let places = |(what, bytes): &(&'static str, &[u8])| {
            [
                (*what, around(b"{\"systemName\":\"", bytes, b"\"}")),
                (*what, around(b"{\"", bytes, b"\":1}")),
                (*what, around(b"{\"unknown\":[\"", bytes, b"\"]}")),
                (*what, around(bytes, b"", b"")),
            ]
        };
        sequences.iter().flat_map(places).collect()
    });
}

#[test]
fn a_hundred_thousand_members_or_elements_break_nothing() {
    let cloud = Cloud::shared();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes != Takes::Nothing) {
        // 11 bytes a member at the most.
        let count = body_bytes_max(endpoint) / 11 - 4;
        let members: String = (0..count).map(|number| format!("\"{number:x}\":0,")).collect();
        let object = format!("{{{}\"end\":0}}", &members);
        let body = if endpoint.takes == Takes::List { format!("[{}0]", "0,".repeat(count)) } else { object };
        let answer = cloud
            .connect(endpoint.system())
            .request(endpoint.method, &endpoint.target("999999999"), &[("Content-Type", "application/json")], Some(body.as_bytes()))
            .expect("an answer");
        assert!(matches!(answer.status, 200 | 400 | 500), "{} {}: {}", endpoint.method, endpoint.path, answer.status);
        // 500 is what needs keys, which there are none of.
        assert!(answer.status != 500 || endpoint.path.contains("/token"), "{} {}: {}", endpoint.method, endpoint.path, answer.text());
    }
    assert_all_live(&cloud);
}
