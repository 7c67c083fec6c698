//! How texts stand in headers: percent-encoded (HTTP binding, section 3.1.3.2).

/// A header's value without its percent-encoding; `None`: it is not encoded so, or no UTF-8.
pub fn from_percent(value: &str) -> Option<String> {
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
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: String) {
            let mut header = Vec::new();
            push_percent(&text, &mut header);
            prop_assert!(header.iter().all(u8::is_ascii_graphic));
            prop_assert_eq!(from_percent(std::str::from_utf8(&header).unwrap()), Some(text));
        }
    }
}
