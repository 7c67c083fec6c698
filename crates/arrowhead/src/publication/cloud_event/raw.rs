//! JSON that is passed on as its text, without a parser's numbers in between.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::publication::text::has_lone_surrogate;

/// Nesting of JSON data; many parsers accept no deeper one.
pub const DEPTH_MAX: usize = 127;

/// The members of a JSON object in their order, each with the text of its value.
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns a JSON text without the white space around it, if common parsers accept the text.
///
/// Returns `None` for a text that is no JSON, is nested deeper than [`DEPTH_MAX`], or has half a surrogate pair.
pub fn portable(text: &str) -> Option<&str> {
    let value = serde_json::from_str::<&RawValue>(text).ok()?.get();
    (!has_lone_surrogate(value) && depth(value) <= DEPTH_MAX).then_some(value)
}

/// Returns true if `text` is a JSON number or boolean, and nothing else.
pub fn is_literal(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | 't' | 'f'));
    begins && serde_json::from_str::<&RawValue>(text).is_ok_and(|value| value.get().len() == text.len())
}

/// Returns the deepest nesting of arrays and objects in a JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portable_json_keeps_its_text() {
        for same in [r#"{ "b":1, "a":123456789012345678901234567890 }"#, "1e400", "[]", r#""\ud83d\ude00""#, "null"] {
            assert_eq!(portable(&format!(" {same}\n")), Some(same));
        }
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(portable(&nested(DEPTH_MAX)).is_some());
        for refused in ["", "{", "1 2", r#""\ud83d""#, "nul", &nested(DEPTH_MAX + 1)] {
            assert_eq!(portable(refused), None, "{refused}");
        }
    }

    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert_eq!(depth(r#"["[[[", "\"[[", {"}": []}]"#), 3);
    }

    #[test]
    fn literal_is_one_number_or_boolean() {
        for literal in ["0", "-7", "1.50", "1e400", "true", "false", "18446744073709551616"] {
            assert!(is_literal(literal), "{literal}");
        }
        for other in ["", "null", "tru", " 7", "7 ", "7,8", "\"7\"", "{}", "[7]", "NaN", "07"] {
            assert!(!is_literal(other), "{other}");
        }
    }
}
