//! Base64 (RFC 4648): the standard alphabet of keys, and the URL-safe one of JOSE.
//!
//! A text that is no spelling of any bytes, or not the one that we would write, is refused: bits that mean nothing must be zero. So two
//! texts are never the same bytes, except that a standard one may lack its `=`.

static STANDARD: Alphabet = Alphabet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
static URL_SAFE: Alphabet = Alphabet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

/// Set in the value of a byte that is no digit, beside the 24 bits of a group.
const NO_DIGIT: u32 = 1 << 31;
/// Values of 12 bits, which are two digits.
const PAIRS: usize = 1 << 12;

/// Tables for a step with each group of three bytes or four digits: tunnels carry much.
struct Alphabet {
    pairs: [[u8; 2]; PAIRS],
    /// Of a digit by its place in a group, where it stands there.
    values: [[u32; 256]; 4],
}

impl Alphabet {
    const fn new(digits: &'static [u8; 64]) -> Self {
        let (mut pairs, mut values) = ([[0; 2]; PAIRS], [[NO_DIGIT; 256]; 4]);
        let mut pair = 0;
        while pair < PAIRS {
            pairs[pair] = [digits[pair >> 6], digits[pair & 63]];
            pair += 1;
        }
        let mut value = 0;
        while value < digits.len() {
            let mut place = 0;
            while place < 4 {
                values[place][digits[value] as usize] = (value as u32) << (18 - 6 * place);
                place += 1;
            }
            value += 1;
        }
        Self { pairs, values }
    }

    /// The four digits of a group.
    fn digits(&self, [first, second, third]: [u8; 3]) -> [u8; 4] {
        let bits = u32::from_be_bytes([0, first, second, third]) as usize;
        let ([one, two], [three, four]) = (self.pairs[bits >> 12], self.pairs[bits & (PAIRS - 1)]);
        [one, two, three, four]
    }

    /// The bits of a group; [`NO_DIGIT`] among them if one is none.
    fn bits(&self, digits: [u8; 4]) -> u32 {
        let value = |place: usize| self.values[place][usize::from(digits[place])];
        value(0) | value(1) | value(2) | value(3)
    }

    fn encode(&self, bytes: &[u8]) -> String {
        let (groups, rest) = bytes.as_chunks::<3>();
        let mut text = vec![0; groups.len() * 4];
        for (group, digits) in groups.iter().zip(text.as_chunks_mut::<4>().0) {
            *digits = self.digits(*group);
        }
        if !rest.is_empty() {
            let mut whole = [0; 3];
            whole[..rest.len()].copy_from_slice(rest);
            text.extend_from_slice(&self.digits(whole)[..=rest.len()]);
        }
        String::from_utf8(text).expect("digits are ASCII")
    }

    fn decode(&self, text: &str) -> Option<Vec<u8>> {
        let (groups, rest) = text.as_bytes().as_chunks::<4>();
        let mut bytes = vec![0; groups.len() * 3];
        let mut all = 0;
        for (digits, group) in groups.iter().zip(bytes.as_chunks_mut::<3>().0) {
            let bits = self.bits(*digits);
            all |= bits;
            let [_, whole @ ..] = bits.to_be_bytes();
            *group = whole;
        }
        if !rest.is_empty() {
            // Digits that are not there are zeros.
            let mut digits = [self.pairs[0][0]; 4];
            digits[..rest.len()].copy_from_slice(rest);
            let bits = self.bits(digits);
            all |= bits;
            let [_, whole @ ..] = bits.to_be_bytes();
            let (whole_bytes, rest) = whole.split_at(rest.len() * 6 / 8);
            if whole_bytes.is_empty() || rest.iter().any(|spare| *spare != 0) {
                return None;
            }
            bytes.extend_from_slice(whole_bytes);
        }
        (all & NO_DIGIT == 0).then_some(bytes)
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
