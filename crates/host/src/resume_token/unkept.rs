//! Events of other nodes that are in no log here: a listener that was away cannot get them, so it is told that it has lost some.

use std::collections::BTreeMap;

use super::{LogPlace, ResumeToken};

/// Event types and nodes that are noted; beyond, the loss of events of one more is not reported.
const NOTED_MAX: usize = 65_536;

/// The newest event of a node and event type, and how many came.
#[derive(Clone, Copy, Debug)]
struct Came {
    newest: LogPlace,
    events: u64,
}

/// What came of each event type and node at most once.
#[derive(Debug, Default)]
pub struct UnkeptEvents {
    types: BTreeMap<Box<str>, BTreeMap<u64, Came>>,
    noted: usize,
}

impl UnkeptEvents {
    /// Notes an event of a node.
    pub fn note(&mut self, event_type: &str, node: u64, place: LogPlace) {
        if let Some(came) = self.types.get_mut(event_type).and_then(|nodes| nodes.get_mut(&node)) {
            *came = Came { newest: place, events: came.events + 1 };
        } else if self.noted < NOTED_MAX {
            self.noted += 1;
            self.types.entry(event_type.into()).or_default().insert(node, Came { newest: place, events: 1 });
        }
    }

    /// Returns how many events came of the nodes of which a listener lacks the newest one: 0 if it lacks none.
    ///
    /// A listener without a token lacks everything.
    pub fn events_after(&self, event_type: &str, token: Option<&ResumeToken>) -> u64 {
        let lacks = |(node, came): &(&u64, &Came)| token.is_none_or(|token| !token.covers_place(**node, came.newest));
        let nodes = self.types.get(event_type).into_iter().flatten();
        nodes.filter(lacks).map(|(_, came)| came.events).sum()
    }
}
