//! Header names and values on the wire: what would end them is written with a backslash.

/// Appends `text` with its escapes.
pub(super) fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b':' => out.extend_from_slice(b"\\c"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(byte),
        }
    }
}

/// The text that was written so; `None` where a backslash stands in front of something else.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut characters = behind.chars();
        plain.push(match characters.next()? {
            'r' => '\r',
            'n' => '\n',
            'c' => ':',
            '\\' => '\\',
            _ => return None,
        });
        rest = characters.as_str();
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_four_escapes_are_read_and_no_other() {
        assert_eq!(unescape(r"a\rb\nc\cd\\e").as_deref(), Some("a\rb\nc:d\\e"));
        for text in [r"\", r"a\", r"\t", r"\R", r"\\\"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back_and_ends_nothing(text in ".*") {
            let mut escaped = Vec::new();
            escape(&text, &mut escaped);
            prop_assert!(!escaped.iter().any(|byte| matches!(byte, b'\r' | b'\n' | b':')));
            prop_assert_eq!(unescape(std::str::from_utf8(&escaped).unwrap()), Some(text));
        }
    }
}
