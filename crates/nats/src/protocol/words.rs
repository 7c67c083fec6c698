//! Words of a server, as they are told.

use serde::{Deserialize, Deserializer};

/// Characters of them that are told.
const WORDS_MAX: usize = 256;

/// The begin of what a server says, on one line: whatever that is, it may come into a log and into an answer.
pub fn words(text: &str) -> String {
    let mut letters = text.chars();
    let mut told: String = letters.by_ref().take(WORDS_MAX).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if letters.next().is_some() {
        told.push('…');
    }
    told
}

/// Reads a text as its words.
pub(crate) fn read_words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(words(&String::deserialize(from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_line_of_bounded_length() {
        assert_eq!(words("stream not found"), "stream not found");
        assert_eq!(words("no\r\n2026-01-01 ERROR \u{1b}[31mmore"), "no  2026-01-01 ERROR  [31mmore");
        assert_eq!(words(&"ö".repeat(WORDS_MAX)), "ö".repeat(WORDS_MAX));
        assert_eq!(words(&"ö".repeat(WORDS_MAX + 1)).chars().count(), WORDS_MAX + 1);
    }
}
