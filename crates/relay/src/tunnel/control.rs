//! The words on a tunnel's control queues, in plain as upstream has them.

use std::fmt;

const CLOSE: &str = "CLOSE";
const SWITCH: &str = "SWITCH";

/// What is said about the session of a queue id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// It is over.
    Close,
    /// The other side sends from now on: a test of a relay.
    Switch,
}

impl Control {
    /// Reads a message of the queue that belongs to `queue_id`; `None` of anything else.
    pub fn parse(text: &str, queue_id: &str) -> Option<Self> {
        let (word, id) = text.trim().split_once(' ')?;
        match word {
            _ if id != queue_id => None,
            CLOSE => Some(Self::Close),
            SWITCH => Some(Self::Switch),
            _ => None,
        }
    }

    /// The message about a session.
    pub fn of(self, queue_id: &str) -> String {
        format!("{self} {queue_id}")
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Close => CLOSE,
            Self::Switch => SWITCH,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_closed_by_its_own_id_only() {
        for control in [Control::Close, Control::Switch] {
            assert_eq!(Control::parse(&control.of("abc"), "abc"), Some(control));
            assert_eq!(Control::parse(&control.of("abd"), "abc"), None);
        }
        for text in ["", "CLOSE", "CLOSE ", "close abc", "CLOSE  abc", "OPEN abc", "abc"] {
            assert_eq!(Control::parse(text, "abc"), None, "{text:?}");
        }
    }
}
