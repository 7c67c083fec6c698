//! Which answers count, and which are faults.

use serde_json::Value;

/// How many faults of a run are kept word for word.
const FAULTS_SHOWN: usize = 3;
/// How much of a faulty answer's body is shown, in characters.
const BODY_CHARACTERS_SHOWN: usize = 200;

/// What a good answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectation {
    /// The status.
    pub status: u16,
    /// What its body must hold.
    pub body: BodyRule,
}

/// What the body of a good answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// Anything or nothing.
    Any,
    /// A member that is a list with something in it.
    FilledList(&'static str),
    /// A member with this text.
    Member(&'static str, &'static str),
}

impl Expectation {
    /// This status, whatever the body.
    pub const fn status(status: u16) -> Self {
        Self { status, body: BodyRule::Any }
    }

    /// Says what is wrong with an answer, or nothing.
    pub fn fault(self, status: u16, body: &[u8]) -> Option<String> {
        let excerpt = || String::from_utf8_lossy(body).chars().take(BODY_CHARACTERS_SHOWN).collect::<String>();
        if status != self.status {
            return Some(format!("status {status} instead of {}: {}", self.status, excerpt()));
        }
        let parsed = || serde_json::from_slice::<Value>(body).unwrap_or_default();
        match self.body {
            BodyRule::Any => None,
            BodyRule::FilledList(member) => {
                let filled = parsed()[member].as_array().is_some_and(|list| !list.is_empty());
                (!filled).then(|| format!("nothing in `{member}`: {}", excerpt()))
            }
            BodyRule::Member(member, text) => {
                (parsed()[member].as_str() != Some(text)).then(|| format!("`{member}` is not {text}: {}", excerpt()))
            }
        }
    }
}

/// The faults of a run: all counted, the first ones kept.
#[derive(Debug, Default, Clone)]
pub struct Faults {
    /// How many there were.
    pub count: u64,
    /// The first few in words.
    pub first: Vec<String>,
}

impl Faults {
    /// Adds one.
    pub fn add(&mut self, fault: String) {
        self.count += 1;
        if self.first.len() < FAULTS_SHOWN {
            self.first.push(fault);
        }
    }

    /// Adds those of another run.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        let free = FAULTS_SHOWN.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(free));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_good_by_its_status_and_its_list() {
        let register = Expectation::status(201);
        assert_eq!(register.fault(201, b""), None);
        assert_eq!(register.fault(400, b"taken").unwrap(), "status 400 instead of 201: taken");
        let orchestrate = Expectation { status: 200, body: BodyRule::FilledList("response") };
        assert_eq!(orchestrate.fault(200, br#"{"response":[{}]}"#), None);
        for body in [br#"{"response":[]}"#.as_slice(), b"{}", b"", b"[1]", br#"{"response":7}"#] {
            assert!(orchestrate.fault(200, body).is_some());
        }
        let token = Expectation { status: 500, body: BodyRule::Member("exceptionType", "ARROWHEAD") };
        assert_eq!(token.fault(500, br#"{"exceptionType":"ARROWHEAD"}"#), None);
        assert!(token.fault(500, b"broken").unwrap().starts_with("`exceptionType` is not ARROWHEAD"));
    }

    #[test]
    fn the_first_faults_are_kept_and_all_are_counted() {
        let mut faults = Faults::default();
        let mut more = Faults::default();
        for n in 0..10 {
            faults.add(n.to_string());
            more.add("later".into());
        }
        faults.append(more);
        assert_eq!((faults.count, faults.first.join(" ").as_str()), (20, "0 1 2"));
    }
}
