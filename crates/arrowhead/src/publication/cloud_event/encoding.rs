//! How bytes and texts stand in attributes and data: Base64 (RFC 4648, section 4), and the percent-encoding of headers (HTTP binding, section 3.1.3.2).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Bytes that a text in Base64 has at a time; three of what it stands for.
const GROUP: usize = 4;

/// Bytes as Base64, padded.
pub fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * GROUP);
    for group in bytes.chunks(3) {
        let bits = group.iter().chain(&[0; 2]).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]);
        (0..GROUP).for_each(|place| text.push(if place <= group.len() { digit(place) } else { '=' }));
    }
    text
}

/// What a padded text in Base64 stands for; `None`: it is none.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(GROUP) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / GROUP * 3);
    for group in digits.as_bytes().chunks(GROUP) {
        let value = |byte: &u8| DIGITS.iter().position(|digit| digit == byte);
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | value(byte)?;
        }
        let bits = bits << (6 * (GROUP - group.len()));
        let whole = [bits >> 16, bits >> 8, bits].map(|shifted| (shifted & 0xff) as u8);
        bytes.extend_from_slice(&whole[..group.len() - 1]);
    }
    Some(bytes)
}

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
    fn base64_is_as_the_standard_has_it() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in cases {
            assert_eq!((to_base64(bytes.as_bytes()).as_str(), from_base64(text).as_deref()), (text, Some(bytes.as_bytes())));
        }
        for none in ["Zg=", "Z===", "Zm9-", "Zg==Zg==", "=", "Zm 9"] {
            assert_eq!(from_base64(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_no_encoding_is_refused() {
        for none in ["%", "%4", "%zz", "%+f", "%e2%82"] {
            assert_eq!(from_percent(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: Vec<u8>, text: String) {
            prop_assert_eq!(from_base64(&to_base64(&bytes)), Some(bytes));
            let mut header = Vec::new();
            push_percent(&text, &mut header);
            prop_assert!(header.iter().all(u8::is_ascii_graphic));
            prop_assert_eq!(from_percent(std::str::from_utf8(&header).unwrap()), Some(text));
        }
    }
}
