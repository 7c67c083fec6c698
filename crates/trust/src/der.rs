//! DER (X.690) as we write it; it is read by `x509-parser`.

pub const INTEGER: u8 = 0x02;
pub const OCTET_STRING: u8 = 0x04;
pub const NULL: u8 = 0x05;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const SEQUENCE: u8 = 0x30;

/// Bytes of the longest length that we write.
const LENGTH_BYTES: usize = 4;

/// Tag, length and content.
///
/// # Panics
/// If the content has 4 GiB.
pub fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length: [u8; LENGTH_BYTES] = u32::try_from(content.len()).expect("what we write is short").to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count().min(LENGTH_BYTES - 1);
    let mut whole = vec![tag];
    if content.len() >= 0x80 {
        whole.push(0x80 | u8::try_from(LENGTH_BYTES - zeros).expect("at most four"));
    }
    whole.extend(&length[zeros..]);
    whole.extend(content);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        for (bytes, header) in [
            (0, vec![4, 0]),
            (1, vec![4, 1]),
            (0x7f, vec![4, 0x7f]),
            (0x80, vec![4, 0x81, 0x80]),
            (0x100, vec![4, 0x82, 1, 0]),
            (0x1_0000, vec![4, 0x83, 1, 0, 0]),
        ] {
            let written = tlv(OCTET_STRING, &[&vec![7; bytes]]);
            assert_eq!((&written[..header.len()], written.len()), (header.as_slice(), header.len() + bytes));
        }
    }
}
