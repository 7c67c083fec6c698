//! What has come of the events of other nodes: each is taken once, in its order, and what is missing is counted.

use std::collections::BTreeMap;

use bodkin_arrowhead::record::SystemId;
use bodkin_broker::{Incarnation, Sequence};

/// Streams, of a publisher and event type at a node, that are kept account of; events of one more are taken as they come, and their losses are not seen.
const STREAMS_MAX: usize = 65_536;

/// The events of one publisher and event type at one node.
type StreamName = (Box<str>, Box<str>, SystemId);

/// The account of all.
#[derive(Debug, Default)]
pub struct Account {
    streams: BTreeMap<StreamName, (Incarnation, Sequence)>,
}

impl Account {
    /// Takes an event; gives how many in front of it are missing, or `None` if it was taken before.
    pub fn take(&mut self, node: &str, event_type: &str, source: SystemId, incarnation: Incarnation, sequence: Sequence) -> Option<u64> {
        let name = (node.into(), event_type.into(), source);
        let Some(last) = self.streams.get_mut(&name) else {
            if self.streams.len() < STREAMS_MAX {
                self.streams.insert(name, (incarnation, sequence));
            }
            return Some(0);
        };
        let (run, number) = *last;
        if incarnation.0 < run.0 || (incarnation == run && sequence <= number) {
            return None;
        }
        *last = (incarnation, sequence);
        // A new run begins with 1; what was not heard of the run before is not known.
        let before = if incarnation == run { number.0 } else { 0 };
        Some(sequence.0 - before - 1)
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
    }
}
