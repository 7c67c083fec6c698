//! What has come of the events of other nodes: each is taken once, in its order, and what is missing is counted.

use std::collections::BTreeMap;

use bodkin_arrowhead::record::SystemId;
use bodkin_broker::{Incarnation, Sequence};

/// Streams, of a publisher and event type at a node, that are kept account of; events of one more are taken as they come, and their losses are not seen.
const STREAMS_MAX: usize = 65_536;

/// The events of one publisher and event type at one node.
type StreamName = (Box<str>, Box<str>, SystemId);

/// How far such a stream has come.
#[derive(Clone, Copy, Debug)]
struct Come {
    run: Incarnation,
    /// The run before: what is on its way of it yet is over. Runs are told apart and not put in order, for they are named by the time of a clock that may be set back.
    before: Option<Incarnation>,
    number: Sequence,
}

/// The account of all.
#[derive(Debug, Default)]
pub struct Account {
    streams: BTreeMap<StreamName, Come>,
}

impl Account {
    /// Takes an event; gives how many in front of it are missing, or `None` if it was taken before.
    pub fn take(&mut self, node: &str, event_type: &str, source: SystemId, incarnation: Incarnation, sequence: Sequence) -> Option<u64> {
        let name = (node.into(), event_type.into(), source);
        let Some(come) = self.streams.get_mut(&name) else {
            if self.streams.len() < STREAMS_MAX {
                self.streams.insert(name, Come { run: incarnation, before: None, number: sequence });
            }
            return Some(0);
        };
        let Come { run, before, number } = *come;
        if incarnation == run {
            come.number = number.max(sequence);
            return (sequence > number).then(|| sequence.0 - number.0 - 1);
        }
        if before == Some(incarnation) {
            return None;
        }
        *come = Come { run: incarnation, before: Some(run), number: sequence };
        // A new run begins with 1; what was not heard of the run before is not known.
        Some(sequence.0 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_and_what_is_missing_is_counted() {
        let mut account = Account::default();
        let mut take = |node, run, number| account.take(node, "HEAT", SystemId(1), Incarnation(run), Sequence(number));
        assert_eq!(take("a", 5, 7), Some(0), "what was before the first is nobody's loss");
        assert_eq!([take("a", 5, 8), take("a", 5, 8), take("a", 5, 7), take("a", 5, 11)], [Some(0), None, None, Some(2)]);
        assert_eq!([take("b", 5, 3), take("b", 5, 4)], [Some(0), Some(0)], "another node numbers by itself");
        assert_eq!([take("a", 6, 1), take("a", 5, 12), take("a", 6, 2)], [Some(0), None, Some(0)], "a run that is over is over");
        assert_eq!(take("a", 7, 3), Some(2), "a new run begins with 1");
        assert_eq!([take("a", 4, 1), take("a", 7, 4), take("a", 4, 2)], [Some(0), None, Some(0)], "a clock may be set back between runs");
    }
}
