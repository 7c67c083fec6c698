//! How long the parts of dialogues take.

use std::time::Duration;

use bodkin_arrowhead::dialogue::Subject;
use serde_json::{Map, Value, json};

use crate::stage::Histogram;

/// Part of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Of one that this cloud is to begin: until it is its turn.
    Wait,
    /// Of one that this cloud has begun: from listening for the answer to the other cloud's acknowledgement of the call.
    Call,
    /// Of one that this cloud has begun: from sealing the question to the answer, opened.
    Answer,
    /// Of one that this cloud has begun: from its turn to the answer; queues are removed behind it.
    Whole,
    /// Of one that another cloud has begun: deciding what it is answered.
    Decide,
    /// Of a negotiation that another cloud has begun and that leads by a tunnel: opening the provider's end, which is a part of deciding.
    OpenProvider,
    /// Of a negotiation that this cloud has begun and that leads by a tunnel: opening the consumer's end, behind the answer.
    OpenConsumer,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Wait, Self::Call, Self::Answer, Self::Whole, Self::Decide, Self::OpenProvider, Self::OpenConsumer];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Call => "call",
            Self::Answer => "answer",
            Self::Whole => "whole",
            Self::Decide => "decide",
            Self::OpenProvider => "open_provider",
            Self::OpenConsumer => "open_consumer",
        }
    }
}

/// Of dialogues that have come to their answer, since the start.
///
/// A quarter of a megabyte, by subjects and parts: on the heap, for whoever owns it is moved about on stacks.
pub struct DialogueTimes(Box<[Histogram]>);

impl Default for DialogueTimes {
    fn default() -> Self {
        Self((0..Subject::ALL.len() * Part::ALL.len()).map(|_| Histogram::default()).collect())
    }
}

impl DialogueTimes {
    /// Counts a part.
    pub fn record(&self, subject: Subject, part: Part, took: Duration) {
        self.of(subject, part).record(took);
    }

    fn of(&self, subject: Subject, part: Part) -> &Histogram {
        &self.0[subject as usize * Part::ALL.len() + part as usize]
    }

    /// Those that there were, by what dialogues are about, as `GET /api/v1/stages` answers them.
    pub fn json(&self) -> Value {
        let part = |subject, part: Part| {
            let histogram = self.of(subject, part);
            let buckets = histogram.buckets();
            let count: u64 = buckets.iter().map(|(_, count)| count).sum();
            (count > 0).then(|| (part.name().to_owned(), json!({"count": count, "sum_ns": histogram.sum_ns(), "buckets": buckets})))
        };
        let about = |subject: Subject| {
            let parts: Map<_, _> = Part::ALL.into_iter().filter_map(|each| part(subject, each)).collect();
            (!parts.is_empty()).then(|| (subject.as_str().to_owned(), Value::Object(parts)))
        };
        Value::Object(Subject::ALL.into_iter().filter_map(about).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_there_were_are_told_by_what_dialogues_are_about() {
        let times = DialogueTimes::default();
        assert_eq!(times.json(), json!({}));
        times.record(Subject::IcnProposal, Part::Call, Duration::from_nanos(7));
        times.record(Subject::IcnProposal, Part::Call, Duration::from_nanos(7));
        assert_eq!(times.json(), json!({"icn_proposal": {"call": {"count": 2, "sum_ns": 14, "buckets": [[7, 2]]}}}));
        for (at, (subject, part)) in Subject::ALL.into_iter().zip(Part::ALL.into_iter().cycle()).enumerate() {
            assert_eq!((subject as usize, part as usize), (at, at % Part::ALL.len()), "they are counted by their places");
        }
    }
}
