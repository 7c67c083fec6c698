//! Bytes as a text: Base64 with padding (RFC 4648, section 4), from and into buffers of the caller's. (`arrowhead` has it for keys and tokens, making texts of its own; this crate may not import it.)

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

/// The letters of each 12 bits: a group of three bytes is two of these.
static PAIRS: [[u8; 2]; 1 << 12] = {
    let mut pairs = [[0; 2]; 1 << 12];
    let mut bits = 0;
    while bits < pairs.len() {
        pairs[bits] = [ALPHABET[bits >> 6], ALPHABET[bits & 63]];
        bits += 1;
    }
    pairs
};

/// Bytes whose text is made at a time, without padding between.
const PIECE_BYTES: usize = 768;

/// Appends the text of some bytes.
pub fn write(bytes: &[u8], text: &mut String) {
    text.reserve(bytes.len().div_ceil(3) * 4);
    for piece in bytes.chunks(PIECE_BYTES) {
        let mut letters = [PAD; PIECE_BYTES / 3 * 4];
        let (groups, rest) = piece.as_chunks();
        for (place, group) in letters.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
            *place = letters_of(*group);
        }
        if !rest.is_empty() {
            let mut octets = [0; 3];
            octets[..rest.len()].copy_from_slice(rest);
            letters[groups.len() * 4..][..=rest.len()].copy_from_slice(&letters_of(octets)[..=rest.len()]);
        }
        let letters = &letters[..piece.len().div_ceil(3) * 4];
        text.push_str(std::str::from_utf8(letters).expect("letters are ASCII"));
    }
}

fn letters_of([first, second, third]: [u8; 3]) -> [u8; 4] {
    let bits = u32::from_be_bytes([0, first, second, third]);
    let ([one, two], [three, four]) = (PAIRS[(bits >> 12) as usize & 0xfff], PAIRS[bits as usize & 0xfff]);
    [one, two, three, four]
}

/// Appends the bytes of a text; false if it is none of some. Bits that stand for nothing must be 0, so that bytes have one text.
pub fn read(text: &str, bytes: &mut Vec<u8>) -> bool {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return false;
    }
    let Some((last, whole)) = groups.split_last() else { return true };
    bytes.reserve(groups.len() * 3);
    for group in whole {
        let values = group.map(|letter| VALUES[usize::from(letter)]);
        // Values have six bits.
        if values.iter().fold(0, |all, value| all | value) == NONE {
            return false;
        }
        bytes.extend_from_slice(&octets_of(&values));
    }
    read_last(*last, bytes)
}

/// The last group, which may have padding.
fn read_last(group: [u8; 4], bytes: &mut Vec<u8>) -> bool {
    let padding = group.iter().rev().take_while(|letter| **letter == PAD).count();
    if padding > 2 {
        return false;
    }
    let mut values = [0; 4];
    for (value, letter) in values.iter_mut().zip(&group[..4 - padding]) {
        *value = VALUES[usize::from(*letter)];
    }
    let octets = octets_of(&values);
    let (octets, unused) = octets.split_at(3 - padding);
    bytes.extend_from_slice(octets);
    !values.contains(&NONE) && unused.iter().all(|octet| *octet == 0)
}

fn octets_of(values: &[u8; 4]) -> [u8; 3] {
    let [_, octets @ ..] = values.iter().fold(0, |bits: u32, value| bits << 6 | u32::from(*value)).to_be_bytes();
    octets
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
        fn bytes_are_read_as_they_were_written(bytes in prop::collection::vec(any::<u8>(), 0..3 * PIECE_BYTES)) {
            let (mut text, mut back) = (String::new(), Vec::new());
            write(&bytes, &mut text);
            prop_assert!(read(&text, &mut back));
            prop_assert_eq!(back, bytes);
        }
    }
}
