//! Records on their way to another node's event log: one operation of the replica channel.
//!
//! ```text
//! 1 byte    form, 2: form 1 is a change of the database
//! the rest  records, each with its length and checksum, as in the log's files
//! ```

use super::record::{self, Frame, Record};

/// The form of such an operation.
pub const FORM: u8 = 2;

/// Bytes that are no batch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records of an event log were expected, and what came at byte {0} is none")]
pub struct NoBatch(usize);

/// Appends a record to a batch, which it begins if that is empty.
pub fn push(record: &Record<'_>, batch: &mut Vec<u8>) {
    if batch.is_empty() {
        batch.push(FORM);
    }
    record.push_to(batch);
}

/// Whether an operation is a batch of records.
pub fn is_batch(operation: &[u8]) -> bool {
    operation.first() == Some(&FORM)
}

/// The records of a batch, in their order.
pub fn records(batch: &[u8]) -> Result<Vec<Record<'_>>, NoBatch> {
    if !is_batch(batch) {
        return Err(NoBatch(0));
    }
    let (mut at, mut records) = (1, Vec::new());
    while at < batch.len() {
        let Frame::Whole { bytes, .. } = record::frame(&batch[at..]) else { return Err(NoBatch(at)) };
        records.push(Record::parse(&batch[at..at + bytes]).ok_or(NoBatch(at))?);
        at += bytes;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};

    use super::*;
    use crate::event_log::Position;

    #[test]
    fn a_batch_is_its_records_and_a_damaged_one_is_none() {
        let record = |position: u64, event| Record {
            position: Position(position),
            time_ns: 1_800_000_000_000_000_000 + position,
            id: EventId { publisher: PublisherId(7), incarnation: Incarnation(9), topic: TopicId(3), sequence: Sequence(position) },
            topic: "HOT",
            event,
            origin: None,
        };
        let all = [record(5, r#"{"payload":"1"}"#), record(6, "{}")];
        let mut batch = Vec::new();
        all.iter().for_each(|record| push(record, &mut batch));
        assert_eq!(records(&batch).unwrap(), all);
        let second = 1 + (batch.len() - 1) - (8 + 6 * 8 + 2 + 3 + 2);
        for cut in 2..batch.len() {
            let expected = if cut == second { Ok(1) } else { Err(NoBatch(if cut < second { 1 } else { second })) };
            assert_eq!(records(&batch[..cut]).map(|records| records.len()), expected, "{cut}");
        }
        let flipped = |at: usize| {
            let mut damaged = batch.clone();
            damaged[at] ^= 1;
            damaged
        };
        assert_eq!(records(&flipped(0)), Err(NoBatch(0)));
        assert_eq!(records(&flipped(40)), Err(NoBatch(1)));
        assert_eq!(records(&[]), Err(NoBatch(0)));
    }
}
