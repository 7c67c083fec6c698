//! What a client sends, written behind what is in the caller's buffer.

use std::io::Write;

use super::{headers::Headers, info::Connect, subject::Subject};

/// Who we are: the first that is sent.
pub fn connect(connect: &Connect<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"CONNECT ");
    serde_json::to_writer(&mut *out, connect).expect("texts and truths are JSON");
    out.extend_from_slice(b"\r\n");
}

/// A message, with headers or without any; `reply` is where its answer is to go.
pub fn publish(subject: &Subject, reply: Option<&Subject>, headers: &Headers, payload: &[u8], out: &mut Vec<u8>) {
    let mut block = Vec::new();
    let word = if headers.fields().next().is_none() {
        "PUB"
    } else {
        headers.write(&mut block);
        "HPUB"
    };
    say(out, format_args!("{word} {subject} "));
    if let Some(reply) = reply {
        say(out, format_args!("{reply} "));
    }
    if !block.is_empty() {
        say(out, format_args!("{} ", block.len()));
    }
    say(out, format_args!("{}\r\n", block.len() + payload.len()));
    out.extend_from_slice(&block);
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Listen to a subject; below it, too, if `below` is set. Messages will name the number.
pub fn subscribe(subject: &Subject, below: bool, number: u64, out: &mut Vec<u8>) {
    say(out, format_args!("SUB {subject}{} {number}\r\n", if below { ".*" } else { "" }));
}

/// Are you there?
pub fn ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PING\r\n");
}

/// We are here.
pub fn pong(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PONG\r\n");
}

fn say(out: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    out.write_fmt(words).expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::{
        super::info::{Credentials, Signer},
        *,
    };

    fn subject(name: &str) -> Subject {
        Subject::new(name).expect("a subject")
    }

    #[test]
    fn operations_have_the_documented_form() {
        let mut out = Vec::new();
        publish(&subject("a.b"), None, &Headers::default(), b"hello", &mut out);
        publish(&subject("a"), Some(&subject("_INBOX.1.2")), &Headers::default(), b"", &mut out);
        publish(&subject("a"), Some(&subject("r")), &Headers::default().with("N", 1), b"xy", &mut out);
        subscribe(&subject("_INBOX.1"), true, 1, &mut out);
        subscribe(&subject("x"), false, 2, &mut out);
        ping(&mut out);
        pong(&mut out);
        let expected = "PUB a.b 5\r\nhello\r\nPUB a _INBOX.1.2 0\r\n\r\nHPUB a r 18 20\r\nNATS/1.0\r\nN: 1\r\n\r\nxy\r\n\
                        SUB _INBOX.1.* 1\r\nSUB x 2\r\nPING\r\nPONG\r\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn who_we_are_is_json_without_what_is_not_there() {
        let credentials = Credentials::User { user: "edge".to_owned(), password: "a\"b".to_owned() };
        let mut out = Vec::new();
        connect(&Connect::new("edge-7", &credentials, None, false), &mut out);
        let text = String::from_utf8(out).expect("text");
        let json = text.strip_prefix("CONNECT ").and_then(|text| text.strip_suffix("\r\n")).expect("one line");
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!((&json["user"], &json["pass"]), (&"edge".into(), &"a\"b".into()));
        assert!(json.get("auth_token").is_none() && json["headers"] == true && json["verbose"] == false);
        let token = Credentials::Token("hidden".to_owned());
        let said = [&credentials, &token].map(|who| format!("{:?}", Connect::new("edge-7", who, None, false)));
        assert!(said[0].contains("edge") && !said[0].contains("a\\\"b") && !said[1].contains("hidden"), "{said:?}");
        assert!(!format!("{credentials:?} {token:?}").contains("a\\\"b"), "a log would have the password");
        assert!(!format!("{token:?}").contains("hidden"), "a log would have the token");
    }

    #[test]
    fn who_is_known_by_a_key_signs_what_the_server_has_drawn() {
        let signer = Signer::new(|nonce| [nonce, &[0xfb, 0xff]].concat());
        let credentials = Credentials::Key { public_key: "UABC".to_owned(), signer };
        let mut out = Vec::new();
        connect(&Connect::new("edge-7", &credentials, Some("drawn"), false), &mut out);
        let text = String::from_utf8(out).expect("text");
        // "drawn" and two bytes, in Base64 for URLs without padding.
        assert!(text.contains("\"nkey\":\"UABC\",\"sig\":\"ZHJhd277_w\"") && !text.contains("user"), "{text}");
        assert_eq!(format!("{credentials:?}"), "Key { public_key: \"UABC\" }");
    }
}
