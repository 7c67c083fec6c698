//! The newest records in memory: what is still to be written, and what a replay is handed on its way to the present.

use super::{Position, record::Record};

/// Bytes of one of the two halves. One record may go beyond them.
const HALF_BYTES: usize = 1024 * 1024;
/// Room that is asked for once. The system gives memory only as it is filled.
const HALF_CAPACITY_BYTES: usize = HALF_BYTES + 128 * 1024;
/// Records of a half, at the least an event's JSON allows.
const HALF_CAPACITY_RECORDS: usize = HALF_BYTES / 100;

/// The last one to two [`HALF_BYTES`] of records, in two buffers that are used in turn: nothing is moved, and once both have
/// grown nothing is allocated.
#[derive(Debug)]
pub(super) struct Tail {
    newer: Half,
    older: Half,
}

#[derive(Debug)]
struct Half {
    first: Position,
    bytes: Vec<u8>,
    /// Where each record begins.
    offsets: Vec<usize>,
}

impl Half {
    fn new(first: Position) -> Self {
        Self { first, bytes: Vec::with_capacity(HALF_CAPACITY_BYTES), offsets: Vec::with_capacity(HALF_CAPACITY_RECORDS) }
    }

    fn records(&self, from: Position) -> impl Iterator<Item = Record<'_>> {
        let skipped = usize::try_from(from.0.saturating_sub(self.first.0)).unwrap_or(usize::MAX).min(self.offsets.len());
        let ends = self.offsets.iter().skip(1).copied().chain([self.bytes.len()]);
        let ranges = self.offsets.iter().copied().zip(ends).skip(skipped);
        ranges.map(|(begin, end)| Record::parse(&self.bytes[begin..end]).expect("what was just written can be read"))
    }
}

impl Tail {
    pub fn new(next: Position) -> Self {
        Self { newer: Half::new(next), older: Half::new(next) }
    }

    /// Appends a record, which must be the next one.
    pub fn push(&mut self, record: &Record<'_>) {
        debug_assert_eq!(record.position.0, self.newer.first.0 + self.newer.offsets.len() as u64);
        self.newer.offsets.push(self.newer.bytes.len());
        record.push_to(&mut self.newer.bytes);
    }

    /// Bytes of the newer half: what was pushed since the last [`Self::turn`].
    pub fn newer(&self) -> &[u8] {
        &self.newer.bytes
    }

    /// Whether the newer half is full.
    pub fn is_full(&self) -> bool {
        self.newer.bytes.len() >= HALF_BYTES
    }

    /// Makes the newer half the older one. Whatever of it is to be kept longer must have been written.
    pub fn turn(&mut self) {
        let next = Position(self.newer.first.0 + self.newer.offsets.len() as u64);
        std::mem::swap(&mut self.newer, &mut self.older);
        self.newer.first = next;
        self.newer.offsets.clear();
        self.newer.bytes.clear();
        // One very large event must not be paid for ever after.
        self.newer.bytes.shrink_to(HALF_CAPACITY_BYTES);
    }

    /// The records from `from` on, or `None` if some of them are not here any more.
    pub fn records(&self, from: Position) -> Option<impl Iterator<Item = Record<'_>>> {
        (from >= self.older.first).then(|| self.older.records(from).chain(self.newer.records(from)))
    }
}
