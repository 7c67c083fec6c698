//! Bytes as a text: Base64 with padding (RFC 4648, section 4), from and into buffers of the caller's. (`trust` has it for keys, and is no crate that a pure one may import.)

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// No letter of the alphabet.
const NONE: u8 = 0xff;
const PAD: u8 = b'=';

/// The value of each letter.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Appends the text of some bytes.
pub(crate) fn write(bytes: &[u8], text: &mut String) {
    for group in bytes.chunks(3) {
        let mut octets = [0; 3];
        octets[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, octets[0], octets[1], octets[2]]);
        for at in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(char::from(if at <= group.len() { letter } else { PAD }));
        }
    }
}

/// Appends the bytes of a text; false if it is none of some. Bits that stand for nothing must be 0, so that bytes have one text.
pub(crate) fn read(text: &str, bytes: &mut Vec<u8>) -> bool {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return false;
    }
    for (at, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|letter| **letter == PAD).count();
        if padding > 2 || (padding > 0 && at + 1 < groups.len()) {
            return false;
        }
        let letters = &group[..4 - padding];
        if letters.iter().any(|letter| VALUES[usize::from(*letter)] == NONE) {
            return false;
        }
        let bits = letters.iter().fold(0, |bits, letter| bits << 6 | u32::from(VALUES[usize::from(*letter)])) << (6 * padding);
        let [_, octets @ ..] = bits.to_be_bytes();
        let (octets, unused) = octets.split_at(3 - padding);
        if unused.iter().any(|octet| *octet != 0) {
            return false;
        }
        bytes.extend_from_slice(octets);
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 4648, section 10.
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")] {
            let (mut text, mut back) = (String::new(), Vec::new());
            write(bytes.as_bytes(), &mut text);
            assert!(read(&text, &mut back));
            assert_eq!((text.as_str(), back.as_slice()), (expected, bytes.as_bytes()));
        }
    }

    #[test]
    fn what_is_no_text_of_bytes_is_refused() {
        for text in ["Z", "Zg=", "Zg", "Zh==", "Zm9=", "====", "Z===", "Zg==Zg==", "Zm9v ", "Zm-v", "Zm\u{e9}v"] {
            assert!(!read(text, &mut Vec::new()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_are_read_as_they_were_written(bytes: Vec<u8>) {
            let (mut text, mut back) = (String::new(), Vec::new());
            write(&bytes, &mut text);
            prop_assert!(read(&text, &mut back));
            prop_assert_eq!(back, bytes);
        }
    }
}
