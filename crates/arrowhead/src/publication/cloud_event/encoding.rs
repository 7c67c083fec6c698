//! How texts stand in headers: percent-encoded (HTTP binding, section 3.1.3.2).

/// What a header's value says: as earlier versions of the binding wrote it in double quotes, with backslashes in front of what ends them, and percent-encoded; `None`: it is
/// encoded in no such way, or no UTF-8.
pub fn from_header(value: &str) -> Option<String> {
    if !value.contains('"') {
        return from_percent(value);
    }
    let (mut plain, mut letters, mut is_quoted) = (String::with_capacity(value.len()), value.chars(), false);
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => plain.push(letters.next()?),
            letter => plain.push(letter),
        }
    }
    if is_quoted { None } else { from_percent(&plain) }
}

/// A text without its percent-encoding; `None`: it is not encoded so, or no UTF-8.
fn from_percent(value: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = if *first == b'%' {
            let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
            bytes.push((digit(0)? * 16 + digit(1)?) as u8);
            &behind[2..]
        } else {
            bytes.push(*first);
            behind
        };
    }
    String::from_utf8(bytes).ok()
}

/// Appends a text as a header's value: what is not printable ASCII, spaces, quotes and `%` are encoded.
pub fn push_percent(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'%') {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_encoding_is_refused() {
        for none in ["%", "%4", "%zz", "%+f", "%e2%82"] {
            assert_eq!(from_percent(none), None, "{none}");
        }
        for none in ["\"open", "\"ends\\", "a\"", "\"%zz\""] {
            assert_eq!(from_header(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_in_quotes_is_what_they_hold() {
        let cases = [
            ("plain", "plain"),
            ("\"a b\"", "a b"),
            ("\"say \\\"hello\\\" \\\\ \"", "say \"hello\" \\ "),
            ("\"Euro%20%E2%82%AC\"", "Euro \u{20ac}"),
            ("%22a%22", "\"a\""),
            ("\"\"", ""),
        ];
        for (value, meant) in cases {
            assert_eq!(from_header(value).as_deref(), Some(meant), "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: String) {
            let mut header = Vec::new();
            push_percent(&text, &mut header);
            prop_assert!(header.iter().all(u8::is_ascii_graphic));
            prop_assert_eq!(from_header(std::str::from_utf8(&header).unwrap()), Some(text));
        }
    }
}
