//! Dead letters, read again from the event log.

use std::{io, ops::Range};

use bodkin_arrowhead::record::Subscription;
use bodkin_store::{
    delivery::DeadLetters,
    event_log::{Cursor, EventLogReader, Position, Record},
};

use super::{
    backlog::{BacklogSource, Hearing, push_event},
    link::PushEvent,
};

/// Events read from the log at once, and replayed before the database is told.
const CHUNK_EVENTS: usize = 4000;
/// Bytes of events read from the log at once.
const CHUNK_BYTES: usize = 2 * 1024 * 1024;
/// Records looked at at once.
const CHUNK_RECORDS: usize = 200_000;

/// Reads dead letters of one subscription, row after row.
#[derive(Debug, Default)]
pub struct DeadLetterReader {
    cursor: Option<Cursor>,
}

impl DeadLetterReader {
    /// Calls `visit` with every record that is one of the row's letters, and whether its subscriber would still get it, until it says
    /// that it is enough; gives where the row goes on, its end if it was enough at the last one. Records that the log does not
    /// keep any more are passed over, and in a range those that the subscriber would not get: they may never have been for it.
    pub fn read(
        &mut self,
        letters: &DeadLetters,
        hearing: &mut Hearing<'_>,
        log: &EventLogReader,
        mut visit: impl FnMut(&Record<'_>, bool) -> bool,
    ) -> io::Result<Position> {
        let end = Position(letters.last.0 + 1);
        let cursor = match &mut self.cursor {
            Some(cursor) if cursor.position() <= letters.first => cursor,
            other => other.insert(log.cursor(letters.first)),
        };
        if !letters.is_range && cursor.position() < letters.first && letters.first.0 - cursor.position().0 > CHUNK_RECORDS as u64 {
            *cursor = log.cursor(letters.first);
        }
        for _ in 0..CHUNK_RECORDS {
            // What lies behind the row is not read: it may be the next row's.
            if cursor.position() >= end {
                return Ok(end);
            }
            let Some(record) = cursor.read()? else { return Ok(end) };
            if record.position >= end {
                return Ok(end);
            }
            if record.position < letters.first {
                continue;
            }
            let is_heard = hearing.hears(&record);
            if (is_heard || !letters.is_range) && !visit(&record, is_heard) {
                break;
            }
        }
        Ok(cursor.position().max(letters.first))
    }
}

/// A stretch of dead letters that was read.
pub struct Chunk {
    /// What is to be sent.
    pub events: Vec<PushEvent>,
    /// The row each event is of, by its place among the rows.
    pub rows: Vec<usize>,
    /// Where each row goes on: those that were read whole, and the one that was read in part.
    pub next: Vec<Position>,
}

impl Chunk {
    /// Which of the events are a row's.
    pub fn of_row(&self, row: usize) -> Range<usize> {
        self.rows.partition_point(|of| *of < row)..self.rows.partition_point(|of| *of <= row)
    }
}

/// Reads the events of rows until there are enough. Blocks.
pub fn read_chunk(
    reader: &mut DeadLetterReader,
    subscription: &Subscription,
    rows: &[DeadLetters],
    source: &BacklogSource,
) -> io::Result<Chunk> {
    let mut chunk = Chunk { events: Vec::new(), rows: Vec::new(), next: Vec::new() };
    let (mut hearing, mut bytes) = (Hearing::new(subscription, &source.store), 0);
    for (index, row) in rows.iter().enumerate() {
        let next = reader.read(row, &mut hearing, &source.log, |record, is_heard| {
            if is_heard {
                bytes += record.event.len();
                chunk.events.push(push_event(record));
                chunk.rows.push(index);
            }
            chunk.events.len() < CHUNK_EVENTS && bytes < CHUNK_BYTES
        })?;
        chunk.next.push(next);
        if next.0 <= row.last.0 || chunk.events.len() >= CHUNK_EVENTS || bytes >= CHUNK_BYTES {
            break;
        }
    }
    Ok(chunk)
}
