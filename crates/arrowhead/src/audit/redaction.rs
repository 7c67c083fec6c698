//! What an entry keeps of a request: its address and body without what is secret.

use serde_json::Value;

use super::cut_to;

/// Bytes of a body in an entry; a longer one is kept as the beginning of its text.
pub const BODY_BYTES_MAX: usize = 4096;

/// What stands in the place of a value that is not kept.
const LEFT_OUT: &str = "(left out)";
/// Members and parameters whose names contain one of these hold what is nobody else's business, or is long: keys, tokens, payloads.
const SECRETS: [&str; 8] = ["secret", "password", "passphrase", "token", "privatekey", "authenticationinfo", "payload", "csr"];

/// A path with its query's parameters, secrets left out.
pub fn what_was_asked(method: &str, path: &str, query: &[(String, String)]) -> String {
    let mut what = format!("{method} {path}");
    for (index, (name, value)) in query.iter().enumerate() {
        let value = if is_secret(name) { LEFT_OUT } else { value };
        what.extend([if index == 0 { "?" } else { "&" }, name, "=", value]);
    }
    what
}

/// A body as an entry keeps it; `None` where there is none.
pub fn body(bytes: &[u8]) -> Option<Value> {
    if bytes.is_empty() {
        return None;
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
        // Whatever it is, it may hold anything.
        return Some(format!("({} bytes that are no JSON)", bytes.len()).into());
    };
    leave_out(&mut value);
    let text = value.to_string();
    Some(if text.len() <= BODY_BYTES_MAX { value } else { cut_to(&text, BODY_BYTES_MAX).into() })
}

/// `serde_json` has read the value, so its depth is bounded.
fn leave_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if is_secret(name) {
                    *value = LEFT_OUT.into();
                } else {
                    leave_out(value);
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(leave_out),
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    SECRETS.iter().any(|secret| plain.contains(secret))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_left_out_at_any_depth_and_in_any_case() {
        let asked =
            json!({"systemName": "a", "authenticationInfo": "MII", "list": [{"Private-Key": "x", "keep": 1}], "api_token": {"a": 1}});
        let kept = json!({"systemName": "a", "authenticationInfo": LEFT_OUT, "list": [{"Private-Key": LEFT_OUT, "keep": 1}],
            "api_token": LEFT_OUT});
        assert_eq!(body(asked.to_string().as_bytes()), Some(kept));
    }

    #[test]
    fn a_body_is_bounded_and_what_is_no_json_is_not_kept() {
        assert_eq!(body(b""), None);
        assert_eq!(body(b"password=x"), Some(json!("(10 bytes that are no JSON)")));
        let long = body(json!({"name": "\u{e4}".repeat(BODY_BYTES_MAX)}).to_string().as_bytes()).unwrap();
        assert!(long.as_str().is_some_and(|text| text.len() <= BODY_BYTES_MAX && text.starts_with("{\"name\":\"\u{e4}")), "{long}");
    }

    #[test]
    fn a_query_is_told_without_its_secrets() {
        let query = [("id", "7"), ("Token", "abc"), ("x", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(what_was_asked("DELETE", "/a", &query), "DELETE /a?id=7&Token=(left out)&x=");
        assert_eq!(what_was_asked("GET", "/a", &[]), "GET /a");
    }
}
