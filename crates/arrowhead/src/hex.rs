//! Bytes as hexadecimal digits in lower case.

/// Takes two digits for each of `N` bytes, and no others.
pub fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_number_of_lower_case_digits_is_taken() {
        assert_eq!(parse("00ff1a"), Some([0, 255, 26]));
        assert_eq!(parse::<0>(""), Some([]));
        for text in ["", "00ff1", "00ff1a0", "00FF1A", "00ff1g", "\u{fc}\u{fc}\u{fc}"] {
            assert_eq!(parse::<3>(text), None, "{text}");
        }
    }
}
