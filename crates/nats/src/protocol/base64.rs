//! Base64 with padding (RFC 4648 section 4), as stored messages have it in JSON.

/// What is no base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no base64 at byte {at}")]
pub struct Base64Error {
    /// Where it is not.
    pub at: usize,
}

/// The bytes that a text stands for.
///
/// # Errors
/// A character that is none, a length that is not, or bits behind the end.
pub fn decode(text: &str) -> Result<Vec<u8>, Base64Error> {
    let bytes = text.as_bytes();
    let padding = bytes.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let digits = &bytes[..bytes.len() - padding];
    if !bytes.len().is_multiple_of(4) {
        return Err(Base64Error { at: bytes.len() });
    }
    let mut decoded = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for (group, four) in digits.chunks(4).enumerate() {
        let mut bits = 0_u32;
        for (place, byte) in four.iter().enumerate() {
            let digit = digit(*byte).ok_or(Base64Error { at: group * 4 + place })?;
            bits |= u32::from(digit) << (18 - 6 * place);
        }
        let [_, whole @ ..] = bits.to_be_bytes();
        let (kept, rest) = whole.split_at(four.len() * 6 / 8);
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Base64Error { at: group * 4 + four.len() - 1 });
        }
        decoded.extend_from_slice(kept);
    }
    Ok(decoded)
}

/// Bytes in the alphabet for URLs, without padding (section 5): as a client's signature is said.
pub(super) fn encode_url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        text.extend((0..=three.len()).map(|place| char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63])));
    }
    text
}

fn digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba"), ("Zm9vYmFy", "foobar")]
        {
            assert_eq!(decode(text), Ok(bytes.as_bytes().to_vec()));
        }
        assert_eq!(decode("+/+/"), Ok(vec![0xfb, 0xff, 0xbf]));
    }

    #[test]
    fn nothing_else_is() {
        for (text, at) in [("Zg=", 3), ("Zg", 2), ("Zh==", 1), ("Zm9=", 2), ("Z===", 1), ("Zm9v====", 4), ("Zg-_", 2), ("=m9v", 0)] {
            assert_eq!(decode(text), Err(Base64Error { at }), "{text}");
        }
    }
}
