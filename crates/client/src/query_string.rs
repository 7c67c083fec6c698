//! Query strings of requests.

use std::fmt::Write;

/// A path with query parameters, keys and values percent-encoded.
pub(crate) fn path_with(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut out = path.to_owned();
    for (at, (key, value)) in parameters.iter().enumerate() {
        out.push(if at == 0 { '?' } else { '&' });
        push_encoded(&mut out, key);
        out.push('=');
        push_encoded(&mut out, value);
    }
    out
}

/// A text as one segment of a path.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_encoded(&mut out, text);
    out
}

/// Appends `text`, every byte but RFC 3986's unreserved ones percent-encoded.
fn push_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").expect("a String takes everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_break_out_of_their_parameter() {
        let path = path_with("/x", &[("service_uri", "/a b?c&d=e"), ("name", "ü-1")]);
        assert_eq!(path, "/x?service_uri=%2Fa%20b%3Fc%26d%3De&name=%C3%BC-1");
        assert_eq!(path_with("/x", &[("payload.a/b", ">1")]), "/x?payload.a%2Fb=%3E1");
        assert_eq!((path_with("/x", &[]), encoded("a/../b")), ("/x".into(), "a%2F..%2Fb".into()));
    }
}
