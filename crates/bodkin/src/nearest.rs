//! The word that was probably meant.

/// A word that differs in more places is another one; so is one of which more than half differs.
const EDITS_MAX: usize = 3;

/// The word that is nearest to a mistaken one, if any is near.
pub fn nearest<'w>(mistaken: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let edits_max = EDITS_MAX.min(mistaken.chars().count() / 2);
    words.map(|word| (edits(word, mistaken), word)).min().filter(|(edits, _)| *edits <= edits_max).map(|(_, word)| word)
}

/// Letters to put in, take out or change to make one word of the other (Levenshtein).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (to, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[to + 1];
            row[to + 1] = changed.min(row[to] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let words = || ["period_ms", "deadline_ms", "retention"].into_iter();
        assert_eq!(nearest("periode_ms", words()), Some("period_ms"));
        assert_eq!(nearest("retension", words()), Some("retention"));
        assert_eq!(nearest("importance", words()), None);
        assert_eq!(nearest("x", [].into_iter()), None);
        assert_eq!(
            ["dtaa", "home", "hom"].map(|mistaken| nearest(mistaken, ["data", "edge", "log"].into_iter())),
            [Some("data"), None, None]
        );
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [("", "abc", 3), ("kitten", "sitting", 3), ("same", "same", 0), ("ab", "ba", 2)] {
            assert_eq!(edits(one, other), count, "{one} {other}");
        }
    }
}
