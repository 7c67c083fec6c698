//! A backlog in memory with a bound: what has no room is counted by topic, and told at its place in the order.

use std::collections::{BTreeMap, VecDeque};

use super::{
    backlog::Backlog,
    batch::{Batch, Put, Record},
};

/// Topics whose losses are counted one by one; those of further ones are told under the empty name.
pub const TOPICS_MAX: usize = 4096;

/// Records of a lane, oldest first, with so many bytes at the most.
///
/// When it is full, new events are lost until half of it is free again; then a record for each topic says how many, and events have places again. Nothing that has a place is ever thrown away.
#[derive(Clone, Debug)]
pub struct MemoryBacklog {
    /// Each in the form that it has in a batch, so that it is written once.
    records: VecDeque<Box<[u8]>>,
    first: u64,
    bytes: usize,
    bytes_max: usize,
    /// Losses that have no place yet.
    lost: BTreeMap<String, u64>,
}

impl MemoryBacklog {
    /// Empty, in front of the record with this position.
    ///
    /// # Panics
    /// Positions begin with 1.
    pub fn new(first: u64, bytes_max: usize) -> Self {
        assert!(first > 0, "positions begin with 1");
        Self { records: VecDeque::new(), first, bytes: 0, bytes_max, lost: BTreeMap::new() }
    }

    /// Puts an event behind the others. `None`: there is no room, it is lost; otherwise the bytes that wait have grown by so many.
    pub fn put(&mut self, event: Record<'_>) -> Option<usize> {
        let before = self.bytes;
        self.tell_losses();
        if !self.lost.is_empty() || self.bytes + event.bytes() > self.bytes_max {
            let (Record::Event { topic, .. } | Record::Lost { topic, .. }) = event;
            self.lose(topic);
            return None;
        }
        self.keep(event);
        Some(self.bytes - before)
    }

    /// Gives losses their places, if there is room again: the bytes that wait have grown by so many. Whoever carries the backlog calls it now and then, for no further event may come.
    pub fn tell_losses(&mut self) -> usize {
        if self.lost.is_empty() || self.bytes > self.bytes_max / 2 {
            return 0;
        }
        let before = self.bytes;
        for (topic, count) in std::mem::take(&mut self.lost) {
            self.keep(Record::Lost { topic: &topic, count });
        }
        self.bytes - before
    }

    /// Events that are lost and have no place yet.
    pub fn untold(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn lose(&mut self, topic: &str) {
        let has_place = self.lost.len() < TOPICS_MAX || self.lost.contains_key(topic);
        *self.lost.entry(if has_place { topic.to_owned() } else { String::new() }).or_default() += 1;
    }

    fn keep(&mut self, record: Record<'_>) {
        let mut bytes = Vec::with_capacity(record.bytes());
        record.write(&mut bytes);
        self.bytes += bytes.len();
        self.records.push_back(bytes.into_boxed_slice());
    }
}

impl Backlog for MemoryBacklog {
    fn first(&self) -> u64 {
        self.first
    }

    fn end(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    fn read(&mut self, from: u64, batch: &mut Batch) {
        let skipped = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        for bytes in self.records.iter().skip(skipped) {
            let record = super::batch::Records::new(bytes).next().expect("a record").expect("it was written here");
            if batch.put(record) == Put::Full {
                return;
            }
        }
    }

    fn release(&mut self, through: u64) {
        while self.first <= through {
            let Some(record) = self.records.pop_front() else { return };
            self.bytes -= record.len();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::Records;
    use super::*;

    fn event<'a>(topic: &'a str, payload: &'a [u8]) -> Record<'a> {
        Record::Event { topic, publisher: 1, incarnation: 1, sequence: 1, created_ns: 0, payload }
    }

    fn read(backlog: &mut MemoryBacklog, from: u64) -> Vec<(String, u64)> {
        let mut batch = Batch::new(1 << 20);
        backlog.read(from, &mut batch);
        let told = |record: Result<Record<'_>, _>| match record.expect("a record") {
            Record::Event { topic, .. } => (topic.to_owned(), 0),
            Record::Lost { topic, count } => (topic.to_owned(), count),
        };
        Records::new(batch.bytes()).map(told).collect()
    }

    #[test]
    fn what_has_no_room_is_lost_until_half_is_free_and_told_in_its_place() {
        let mut backlog = MemoryBacklog::new(5, 1000);
        for _ in 0..10 {
            assert_eq!(backlog.put(event("a", &[0; 60])), Some(100));
        }
        assert_eq!((backlog.put(event("a", &[0; 60])), backlog.put(event("b", b"")), backlog.untold()), (None, None, 2));
        backlog.release(9);
        assert_eq!((backlog.first(), backlog.end(), backlog.bytes()), (10, 15, 500));
        assert_eq!(backlog.put(event("b", b"")), Some(12 + 12 + 40), "half is free: two losses and the event");
        assert_eq!(
            read(&mut backlog, 13),
            [("a", 0), ("a", 0), ("a", 1), ("b", 1), ("b", 0)].map(|(topic, lost)| (topic.to_owned(), lost))
        );
        assert_eq!((backlog.untold(), backlog.end()), (0, 18));
        backlog.release(100);
        assert_eq!((backlog.first(), backlog.end(), backlog.bytes()), (18, 18, 0));
    }

    #[test]
    fn losses_are_told_where_no_further_event_comes() {
        let mut backlog = MemoryBacklog::new(1, 150);
        backlog.put(event("a", &[0; 60]));
        assert_eq!((backlog.put(event("a", &[0; 60])), backlog.tell_losses()), (None, 0));
        backlog.release(1);
        assert_eq!(backlog.tell_losses(), 12);
        assert_eq!(read(&mut backlog, 2), [("a".to_owned(), 1)]);
    }

    #[test]
    fn topics_without_number_are_counted_under_one_name() {
        let mut backlog = MemoryBacklog::new(1, 20);
        // The first loss has a place at once, which is more than half of it.
        for topic in 0..=TOPICS_MAX + 7 {
            assert_eq!(backlog.put(event(&topic.to_string(), b"")), None);
        }
        assert_eq!((backlog.lost.len(), backlog.lost[""], backlog.untold()), (TOPICS_MAX + 1, 7, TOPICS_MAX as u64 + 7));
    }
}
