//! Z85 (RFC 32): four octets as five characters to the base 85, the highest first.

const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// The text of a key.
pub fn encode(key: &[u8; 32]) -> [u8; 40] {
    let mut text = [0; 40];
    for (word, digits) in key.chunks_exact(4).zip(text.chunks_exact_mut(5)) {
        let mut value = word.iter().fold(0, |value, &octet| value << 8 | u32::from(octet));
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(value % 85) as usize];
            value /= 85;
        }
    }
    text
}

/// The key of a text; nothing if it is none.
pub fn decode(text: &[u8]) -> Option<[u8; 32]> {
    let text: &[u8; 40] = text.try_into().ok()?;
    let mut key = [0; 32];
    for (digits, word) in text.chunks_exact(5).zip(key.chunks_exact_mut(4)) {
        let mut value = 0_u32;
        for digit in digits {
            let digit = DIGITS.iter().position(|known| known == digit)?;
            value = value.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)?;
        }
        word.copy_from_slice(&value.to_be_bytes());
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_32_holds() {
        let octets = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        let key: [u8; 32] = std::array::from_fn(|at| octets[at % 8]);
        assert_eq!(&encode(&key), "HelloWorld".repeat(4).as_bytes());
        assert_eq!(decode(&encode(&key)), Some(key));
    }
}
