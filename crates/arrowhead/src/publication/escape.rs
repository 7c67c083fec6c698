//! Where a text has characters that JSON has escapes for.

/// Bytes that are looked at in one go: without a branch for each, so that several are compared at a time.
const LOOKED_AT_BYTES: usize = 64;

/// Where the first character is that JSON has an escape for. All of them are ASCII, and no byte of another character is.
pub fn first_escaped(text: &str) -> Option<usize> {
    let is_escaped = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    let mut pieces = text.as_bytes().chunks(LOOKED_AT_BYTES);
    let at = pieces.position(|piece| piece.iter().fold(false, |found, byte| found | is_escaped(byte)))? * LOOKED_AT_BYTES;
    text.as_bytes()[at..].iter().position(is_escaped).map(|place| at + place)
}
