//! Answers that are the same whoever asks what: for measurements of the asking side, as Deliorman 2020, section 5.6.2, makes them.

use std::fmt;

use serde_json::{Map, Value};

use super::Subject;
use crate::json;

/// What other clouds are answered without a look at what there is; what is not in it is decided as ever.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FixedAnswers(Vec<(Subject, String)>);

/// A text that has no answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixedAnswersError {
    /// It is no JSON object.
    #[error("expected a JSON object whose members are answers, by what they are about: {0}")]
    Form(String),
    /// Nothing is asked about that.
    #[error(
        "'{0}' is nothing that another cloud asks about: expected one of gsd_poll, multi_gsd_poll, icn_proposal, access_type, system_address_list, qos_relay_test, shared_event"
    )]
    Subject(String),
    /// It is no object.
    #[error("the answer to {0} is no JSON object")]
    Answer(&'static str),
}

impl FixedAnswers {
    /// Reads an object such as `{"gsd_poll": {...}, "icn_proposal": {...}}`.
    pub fn parse(text: &str) -> Result<Self, FixedAnswersError> {
        let members: Map<String, Value> = json::parse_object(text).map_err(|error| FixedAnswersError::Form(error.to_string()))?;
        let answer = |(about, answer): (String, Value)| {
            let subject = Subject::parse(&about).ok_or(FixedAnswersError::Subject(about))?;
            if !answer.is_object() {
                return Err(FixedAnswersError::Answer(subject.as_str()));
            }
            Ok((subject, answer.to_string()))
        };
        Ok(Self(members.into_iter().map(answer).collect::<Result<_, _>>()?))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The JSON of the answer to this.
    pub fn of(&self, subject: Subject) -> Option<&str> {
        self.0.iter().find(|(about, _)| *about == subject).map(|(_, answer)| answer.as_str())
    }
}

impl fmt::Debug for FixedAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(about, _)| about.as_str())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fixed_is_answered_and_nothing_else() {
        let fixed = FixedAnswers::parse(r#"{"gsd_poll": {"numOfProviders": 1}, "access_type": {"directAccess": true}}"#).unwrap();
        assert_eq!(fixed.of(Subject::GsdPoll), Some(r#"{"numOfProviders":1}"#));
        assert_eq!((fixed.of(Subject::AccessType).is_some(), fixed.of(Subject::IcnProposal)), (true, None));
        assert!(FixedAnswers::parse("{}").unwrap().is_empty() && FixedAnswers::default().is_empty());
    }

    #[test]
    fn what_is_no_answer_is_told() {
        let refused = |text: &str| FixedAnswers::parse(text).unwrap_err().to_string();
        assert!(refused(r#"{"gsd": {}}"#).starts_with("'gsd' is nothing that another cloud asks about: expected one of gsd_poll"));
        assert_eq!(refused(r#"{"gsd_poll": []}"#), "the answer to gsd_poll is no JSON object");
        assert!(refused("[]").starts_with("expected a JSON object"));
    }
}
