//! A text of a publication: the JSON literal that it came as.

use std::{borrow::Cow, fmt::Write as _};

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use super::escape::first_escaped;

/// A JSON scalar used as a text: a string literal with its quotes, or a number or boolean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonText<'a>(pub(super) &'a str);

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let literal = <&RawValue>::deserialize(deserializer)?.get();
        match literal.as_bytes().first() {
            Some(b'{' | b'[' | b'n') | None => Err(de::Error::custom("expected a text")),
            // Subscribers get the literal as it is, and many a reader takes no half of a pair.
            Some(_) if has_lone_surrogate(literal) => Err(de::Error::custom("half a surrogate pair")),
            Some(_) => Ok(Self(literal)),
        }
    }
}

impl<'a> JsonText<'a> {
    /// A text that did not come as JSON: its literal is written into a buffer of the caller's, in place of what is there.
    pub fn write(text: &str, literal: &'a mut String) -> Self {
        literal.clear();
        literal.push('"');
        let mut rest = text;
        while let Some(at) = first_escaped(rest) {
            let (plain, special) = rest.split_at(at);
            literal.push_str(plain);
            match special.as_bytes()[0] {
                byte @ (b'"' | b'\\') => literal.extend(['\\', char::from(byte)]),
                control => write!(literal, "\\u{control:04x}").expect("a text takes everything"),
            }
            rest = &special[1..];
        }
        literal.push_str(rest);
        literal.push('"');
        Self(literal)
    }

    fn inner(self) -> &'a str {
        self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(self.0)
    }

    /// The text, if no escape has to be resolved.
    pub fn plain(self) -> Option<&'a str> {
        Some(self.inner()).filter(|text| !text.contains('\\'))
    }

    /// The text; allocates only where escapes have to be resolved.
    pub fn text(self) -> Cow<'a, str> {
        self.plain().map_or_else(
            || {
                let mut text = String::with_capacity(self.0.len());
                self.push_to(&mut text);
                Cow::Owned(text)
            },
            Cow::Borrowed,
        )
    }

    /// Appends the text with its escapes resolved.
    pub fn push_to(self, out: &mut String) {
        let mut rest = self.inner();
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = push_escape(&rest[at + 1..], out);
        }
        out.push_str(rest);
    }

    /// Appends the text as a JSON string literal.
    pub fn push_literal(self, out: &mut Vec<u8>) {
        let quoted = self.0.starts_with('"');
        out.extend_from_slice(if quoted { b"" } else { b"\"" });
        out.extend_from_slice(self.0.as_bytes());
        out.extend_from_slice(if quoted { b"" } else { b"\"" });
    }

    /// Whether the text is nothing but white space, some of it perhaps escaped.
    pub(super) fn is_blank(self) -> bool {
        let mut rest = self.inner().trim_start();
        while let Some(escape) = rest.strip_prefix('\\') {
            let (code, length) = match escape.as_bytes().first() {
                Some(b'n' | b'r' | b't' | b'f') => (u32::from(b' '), 1),
                Some(b'u') => (escape.get(1..5).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(u32::MAX), 5),
                _ => return false,
            };
            if !char::from_u32(code).is_some_and(char::is_whitespace) {
                return false;
            }
            rest = escape[length..].trim_start();
        }
        rest.is_empty()
    }
}

/// Whether an escape of the literal is half a surrogate pair without the other half.
pub(in crate::publication) fn has_lone_surrogate(literal: &str) -> bool {
    let unit = |escape: &str| u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok();
    let mut rest = literal;
    while let Some((_, escape)) = rest.split_once('\\') {
        rest = match unit(escape) {
            Some(0xd800..=0xdbff) => match escape[5..].strip_prefix('\\').filter(|low| matches!(unit(low), Some(0xdc00..=0xdfff))) {
                Some(low) => &low[5..],
                None => return true,
            },
            Some(0xdc00..=0xdfff) => return true,
            Some(_) => &escape[5..],
            None => &escape[1..],
        };
    }
    false
}

/// Resolves the escape after a backslash and gives what follows it. The literal was checked when it was parsed.
fn push_escape<'t>(text: &'t str, out: &mut String) -> &'t str {
    let simple = match text.as_bytes().first() {
        Some(b'u') => return push_unicode_escape(&text[1..], out),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(other) => char::from(*other),
        None => return text,
    };
    out.push(simple);
    &text[1..]
}

fn push_unicode_escape<'t>(text: &'t str, out: &mut String) -> &'t str {
    let unit = |text: &str| text.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let Some(first) = unit(text) else { return text };
    let rest = &text[4..];
    let second = rest.strip_prefix("\\u").and_then(unit);
    let mut pair = char::decode_utf16([first].into_iter().chain(second));
    match pair.next() {
        Some(Ok(character)) => {
            out.push(character);
            if character.len_utf16() == 2 { &rest[6..] } else { rest }
        }
        _ => {
            out.push(char::REPLACEMENT_CHARACTER);
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_written_literal_is_read_as_its_text(text in any::<String>()) {
            let mut literal = "before".to_owned();
            prop_assert_eq!(JsonText::write(&text, &mut literal).text(), text.as_str());
            prop_assert_eq!(serde_json::from_str::<String>(&literal).unwrap(), text);
        }

        #[test]
        fn escapes_are_resolved_as_serde_json_does(text in ".*") {
            let literal = serde_json::to_string(&text).unwrap();
            let parsed: JsonText<'_> = serde_json::from_str(&literal).unwrap();
            prop_assert_eq!(parsed.text(), text.as_str());
            let mut written = Vec::new();
            parsed.push_literal(&mut written);
            prop_assert_eq!(written, literal.as_bytes());
        }

        #[test]
        fn a_text_is_blank_however_it_is_escaped(text in "[ \\t\\n\\r\u{c}\u{8}\u{2003}a\\\\]{0,4}", escape_all in any::<bool>()) {
            let escaped = |unit: u16| format!("\\u{unit:04x}");
            let literal = if escape_all { format!("\"{}\"", text.encode_utf16().map(escaped).collect::<String>()) } else { serde_json::to_string(&text).unwrap() };
            let parsed: JsonText<'_> = serde_json::from_str(&literal).unwrap();
            prop_assert_eq!(parsed.is_blank(), text.trim().is_empty());
        }

        #[test]
        fn every_utf16_escape_is_resolved_or_refused(units in proptest::collection::vec(any::<u16>(), 0..8)) {
            let literal = format!("\"{}\"", units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
            match (serde_json::from_str::<JsonText<'_>>(&literal), String::from_utf16(&units)) {
                (Ok(parsed), Ok(text)) => prop_assert_eq!(parsed.text(), text),
                (parsed, text) => prop_assert!(parsed.is_err() && text.is_err(), "{parsed:?} {text:?}"),
            }
        }
    }
}
