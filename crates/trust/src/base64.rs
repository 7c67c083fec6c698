//! Base64 (RFC 4648): the standard alphabet of keys, and the URL-safe one of JOSE.
//!
//! A text that is no spelling of any bytes, or not the one that we would write, is refused: bits that mean nothing must be zero. So two
//! texts are never the same bytes, except that a standard one may lack its `=`.

const STANDARD: Alphabet = Alphabet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
const URL_SAFE: Alphabet = Alphabet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

/// A byte that is no digit.
const NO_DIGIT: u8 = u8::MAX;

struct Alphabet {
    digits: &'static [u8; 64],
    values: [u8; 256],
}

impl Alphabet {
    const fn new(digits: &'static [u8; 64]) -> Self {
        let mut values = [NO_DIGIT; 256];
        let mut value = 0;
        while value < digits.len() {
            values[digits[value] as usize] = value as u8;
            value += 1;
        }
        Self { digits, values }
    }

    fn encode(&self, bytes: &[u8]) -> String {
        let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
        let digits = |whole: [u8; 4]| {
            let bits = u32::from_be_bytes(whole);
            [18, 12, 6, 0].map(|shift| self.digits[(bits >> shift & 63) as usize])
        };
        let (groups, rest) = bytes.as_chunks::<3>();
        for [first, second, third] in groups {
            text.extend_from_slice(&digits([0, *first, *second, *third]));
        }
        if !rest.is_empty() {
            let mut whole = [0; 4];
            whole[1..=rest.len()].copy_from_slice(rest);
            text.extend_from_slice(&digits(whole)[..=rest.len()]);
        }
        String::from_utf8(text).expect("digits are ASCII")
    }

    fn decode(&self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
        for group in text.as_bytes().chunks(4) {
            let mut bits = 0_u32;
            for digit in group {
                let value = self.values[usize::from(*digit)];
                if value == NO_DIGIT {
                    return None;
                }
                bits = bits << 6 | u32::from(value);
            }
            let (whole_bytes, spare_bits) = (group.len() * 6 / 8, group.len() * 6 % 8);
            if whole_bytes == 0 || bits.trailing_zeros() < spare_bits as u32 {
                return None;
            }
            bytes.extend_from_slice(&(bits >> spare_bits).to_be_bytes()[4 - whole_bytes..]);
        }
        Some(bytes)
    }
}

/// With the standard alphabet, in one line, filled up with `=`.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = STANDARD.encode(bytes);
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// Reads the standard alphabet. White space around the text, and a missing `=`, do no harm.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let digits = text.trim_end_matches('=');
    let is_filled = text.len().is_multiple_of(4) && text.len() - digits.len() <= 2;
    if digits.len() == text.len() || is_filled { STANDARD.decode(digits) } else { None }
}

/// With the URL-safe alphabet, without `=`.
pub fn encode_url_safe(bytes: &[u8]) -> String {
    URL_SAFE.encode(bytes)
}

/// Reads the URL-safe alphabet without `=`.
pub fn decode_url_safe(text: &str) -> Option<Vec<u8>> {
    URL_SAFE.decode(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_are_written_and_read() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!((encode(&[0xfb, 0xff]), encode_url_safe(&[0xfb, 0xff])), ("+/8=".to_owned(), "-_8".to_owned()));
    }

    #[test]
    fn what_no_bytes_are_written_as_is_refused() {
        for text in ["Z", "Zg=", "Zg===", "Zh==", "Zm9", "Zm9=", "Zm 9v", "Zm9v\nZg==", "Zg==Zg==", "-_8=", "=", "====", "Zm9vé"] {
            assert_eq!(decode(text), None, "{text}");
        }
        for text in ["Zg==", "+/8", "Z", " Zg", "Zg ", "Zh"] {
            assert_eq!(decode_url_safe(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes.clone()));
            prop_assert_eq!(decode_url_safe(&encode_url_safe(&bytes)), Some(bytes));
        }

        #[test]
        fn a_text_is_refused_or_the_one_spelling_of_its_bytes(text in "[A-Za-z0-9_-]{0,12}|.{0,12}") {
            if let Some(bytes) = decode_url_safe(&text) {
                prop_assert_eq!(encode_url_safe(&bytes), text);
            }
        }
    }
}
