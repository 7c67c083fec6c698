//! Z85 (ZeroMQ RFC 32): four bytes as five printable characters.

const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Writes bytes whose number is a multiple of four.
pub fn encode(bytes: &[u8]) -> String {
    let (groups, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty(), "Z85 takes multiples of four bytes");
    let digits = groups.iter().flat_map(|group| {
        let number = u32::from_be_bytes(*group);
        [85 * 85 * 85 * 85, 85 * 85 * 85, 85 * 85, 85, 1].map(|weight| DIGITS[(number / weight % 85) as usize])
    });
    digits.map(char::from).collect()
}

/// Reads such a text; nothing if it is none.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<5>();
    let mut bytes = Vec::with_capacity(groups.len() * 4);
    for group in groups {
        let mut number: u32 = 0;
        for digit in group {
            let value = DIGITS.iter().position(|known| known == digit)?;
            number = number.checked_mul(85)?.checked_add(u32::try_from(value).ok()?)?;
        }
        bytes.extend(number.to_be_bytes());
    }
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The RFC's own example.
    #[test]
    fn the_example_of_the_rfc_is_written_and_read() {
        let bytes = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        assert_eq!(encode(&bytes), "HelloWorld");
        assert_eq!(decode("HelloWorld").as_deref(), Some(bytes.as_slice()));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["Hell", "HelloWorl", "Hello World", "Hell\u{f6}orld", "#####"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("%nSc0").as_deref(), Some([0xff; 4].as_slice()));
    }
}
