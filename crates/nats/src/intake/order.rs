//! The order of what a consumer brings: over one connection, with what it has brought before and nobody has taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::{jetstream::Sequences, protocol::Message};

/// What became of a message that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// These can be taken, in this order, and nothing is missing in front of them.
    InOrder(Vec<(u64, Message)>),
    /// Others have to come first. Whether it is one that was awaited and had not come.
    Collected(bool),
    /// Something was brought in front of it that has not come: the consumer is to be asked what it was, and this one has to come again.
    PassedOver(Message),
}

/// Which numbers of the consumer have come.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The consumer's number of what comes next.
    next: u64,
    /// Of what was brought up to this sequence of the stream, so many messages have to come again.
    through: u64,
    awaited: u64,
    /// Those that have.
    again: BTreeSet<u64>,
    /// Everything that has come while others were awaited.
    collected: BTreeMap<u64, Message>,
}

impl Order {
    /// The consumer has brought this last, and so many messages of that were not acknowledged.
    pub fn begin(&mut self, delivered: Sequences, awaited: u64) {
        self.next = delivered.consumer_seq + 1;
        (self.through, self.awaited) = (delivered.stream_seq, awaited);
        self.again.clear();
        self.collected.clear();
    }

    /// Whether nothing is awaited that was brought before.
    pub fn is_settled(&self) -> bool {
        self.awaited == 0
    }

    /// Messages that are kept until others come.
    pub fn len(&self) -> usize {
        self.collected.len()
    }

    /// What was kept, which has to come again.
    pub fn take_collected(&mut self) -> BTreeMap<u64, Message> {
        std::mem::take(&mut self.collected)
    }

    /// A message has come.
    pub fn came(&mut self, at: Sequences, message: Message) -> Came {
        if at.consumer_seq != self.next {
            return Came::PassedOver(message);
        }
        self.next += 1;
        if self.is_settled() {
            return Came::InOrder(vec![(at.stream_seq, message)]);
        }
        let is_awaited = at.stream_seq <= self.through && self.again.insert(at.stream_seq);
        self.collected.insert(at.stream_seq, message);
        if (self.again.len() as u64) < self.awaited {
            return Came::Collected(is_awaited);
        }
        self.awaited = 0;
        Came::InOrder(std::mem::take(&mut self.collected).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Headers;

    fn message() -> Message {
        Message { subject: "c.e.T".to_owned(), subscription: 2, reply: None, headers: Ok(Headers::default()), payload: Vec::new() }
    }

    fn came(order: &mut Order, consumer_seq: u64, stream_seq: u64) -> Option<Vec<u64>> {
        match order.came(Sequences { consumer_seq, stream_seq }, message()) {
            Came::InOrder(ready) => Some(ready.into_iter().map(|(sequence, _)| sequence).collect()),
            Came::Collected(_) => Some(Vec::new()),
            Came::PassedOver(_) => None,
        }
    }

    #[test]
    fn what_was_brought_and_not_taken_comes_first_whenever_it_comes() {
        let mut order = Order::default();
        order.begin(Sequences { consumer_seq: 7, stream_seq: 30 }, 2);
        // A new one overtakes what has to come again, of which one comes twice.
        assert_eq!(came(&mut order, 8, 31), Some(vec![]));
        assert_eq!(came(&mut order, 9, 28), Some(vec![]));
        assert_eq!(came(&mut order, 10, 28), Some(vec![]));
        assert_eq!((order.len(), order.is_settled()), (2, false));
        assert_eq!(came(&mut order, 11, 25), Some(vec![25, 28, 31]));
        assert_eq!(came(&mut order, 12, 35), Some(vec![35]), "and then each as it comes");
    }

    #[test]
    fn what_is_passed_over_is_seen_by_the_consumers_number() {
        let mut order = Order::default();
        order.begin(Sequences { consumer_seq: 0, stream_seq: 0 }, 0);
        assert_eq!(came(&mut order, 1, 10), Some(vec![10]));
        assert_eq!(came(&mut order, 3, 20), None, "its second one is lost on the way");
        order.begin(Sequences { consumer_seq: 3, stream_seq: 20 }, 2);
        assert_eq!(came(&mut order, 5, 20), None, "nor is one lost while others are awaited");
        assert_eq!(came(&mut order, 1, 10), None, "another leader counts from earlier on");
    }
}
