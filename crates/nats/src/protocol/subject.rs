//! Names that messages are published under.

use std::fmt::{self, Write};

/// Bytes of a subject: what a control line of 4096 has room for beside its other fields, twice.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// A subject that may be published to: tokens between dots, none of them empty or a wildcard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(String);

/// What is no subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// It is too long.
    #[error("a subject has {SUBJECT_BYTES_MAX} bytes at the most, and this one {0}")]
    Bytes(usize),
    /// A token is empty, a wildcard, or has what would end it on the wire.
    #[error("a subject is tokens between dots, none empty, without spaces, control characters and wildcards: {0:?}")]
    Token(String),
}

impl Subject {
    /// A subject of this name.
    ///
    /// # Errors
    /// It is none.
    pub fn new(name: &str) -> Result<Self, SubjectError> {
        if name.len() > SUBJECT_BYTES_MAX {
            return Err(SubjectError::Bytes(name.len()));
        }
        if !name.split('.').all(is_token) {
            return Err(SubjectError::Token(name.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// Is this one token of a subject? Names of streams and lanes are, too.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|letter| letter.is_whitespace() || letter.is_control() || matches!(letter, '.' | '*' | '>'))
}

/// A text as one token of a subject, in which no two texts are the same: what a token may not have is written as `%` and two hexadecimal digits of each byte.
pub fn token_of(text: &str) -> String {
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'.' | b'*' | b'>' | b'%' | 0..=b' ' | 0x7f.. => write!(token, "%{byte:02X}").expect("a string takes everything"),
            byte => token.push(byte.into()),
        }
    }
    token
}

/// Whether a pattern with wildcards, as one of a stream's subjects, takes what is published to a subject.
pub fn takes(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in pattern.split('.') {
        match (wanted, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_token_and_no_two_are_the_same() {
        let tokens = ["HEAT", "A B", "A.B", "A%20B", "Ä", ">", "*"].map(token_of);
        assert_eq!(tokens, ["HEAT", "A%20B", "A%2EB", "A%2520B", "%C3%84", "%3E", "%2A"]);
        assert!(tokens.iter().all(|token| is_token(token)));
    }

    #[test]
    fn what_would_end_a_token_on_the_wire_is_in_no_subject() {
        for name in ["a", "fleet.edge-7.alarms", "$JS.API.INFO", "_INBOX.x.12", "größe.1"] {
            assert_eq!(Subject::new(name).expect(name).as_str(), name);
        }
        for name in ["", ".", "a.", ".a", "a..b", "a b", "a\tb", "a\r\nPUB x 0", "a.*", "a.>", "a\0b", "a\u{a0}b"] {
            assert!(Subject::new(name).is_err(), "{name:?} is a subject");
        }
        assert_eq!(Subject::new(&"a".repeat(1025)), Err(SubjectError::Bytes(1025)));
    }

    #[test]
    fn patterns_take_what_their_wildcards_say() {
        const SUBJECT: &str = "bodkin.c0.nodes.b2.log";
        for (pattern, is_taken) in [
            (SUBJECT, true),
            ("bodkin.>", true),
            ("bodkin.*.nodes.*.log", true),
            (">", true),
            ("bodkin.c0.nodes.b2", false),
            ("bodkin.c0.nodes.b2.log.>", false),
            ("*.log", false),
        ] {
            assert_eq!(takes(pattern, SUBJECT), is_taken, "{pattern}");
        }
    }
}
