//! Giving a Backup that joins what it lacks of the event log: found out from the newest records that it names, read on tokio's blocking threads, a piece at a time, and
//! sent by the shard, whose order the channel has.

use std::{collections::BTreeSet, io, sync::Arc};

use bodkin_store::event_log::{EventLogReader, Position, batch};

use super::{Shard, log::BATCH_BYTES};
use crate::{
    inbox::{Inbox, Message},
    pair::{News, primary::Piece},
    topics,
};

/// Records read at once, so that what holds none of durable types is passed over in pieces too.
const PIECE_RECORDS: usize = 100_000;

impl Shard {
    /// Event types whose events are on both disks before they are answered.
    fn durable(&self) -> BTreeSet<Box<str>> {
        self.context.durable.iter().cloned().chain(self.real_time.durable().map(Box::from)).collect()
    }

    /// Of a node that follows: has the leader at the other end of this connection told which are the newest records here.
    pub(super) fn name_records(&mut self, serial: u64) {
        let pair = self.primary.as_ref().expect("only a node of a pair follows").pair().clone();
        let Some(context) = &self.context.replay else { return pair.logged(serial, Vec::new()) };
        // What was taken in this turn is read, too.
        self.log.iter_mut().for_each(|log| log.write(self.clock.now));
        let (log, store, platform) = (context.log.clone(), self.context.store.clone(), *self.context.asking.topics().platform());
        let mut durable = self.durable();
        self.context.runtime.spawn_blocking(move || {
            // Those that were declared while the cloud ran are told to the shard with the copy, which comes later.
            match topics::declared_durable(&store, &platform) {
                Ok(declared) => durable.extend(declared),
                Err(error) => tracing::warn!(%error, "which topics are declared durable is not known: their events may come again"),
            }
            let newest = log.newest(&durable).unwrap_or_else(|error| {
                tracing::error!(%error, "the event log cannot be read: the leader gives all durable events that it has");
                Vec::new()
            });
            pair.logged(serial, newest);
        });
    }

    /// Has the event log searched for where the Backup's parts from it, once that has named its newest records.
    pub(super) fn search_parting(&mut self) {
        let Some(primary) = &mut self.primary else { return };
        let Some((serial, names)) = primary.wants_search() else { return };
        let Some(context) = &self.context.replay else { return primary.searched(serial, None) };
        let Some(log) = &mut self.log else { unreachable!("a log that is read is written") };
        log.write(self.clock.now);
        let (until, durable, log, inbox) = (log.next_position(), self.durable(), context.log.clone(), self.inbox.clone());
        self.context.runtime.spawn_blocking(move || {
            inbox.post(Message::Pair(match log.first_lacking(&names, &durable, until) {
                Ok(first) => News::Searched { serial, first },
                Err(error) => News::LogUnread { serial, why: error.to_string() },
            }));
        });
    }

    /// Has the next piece read, if the Backup is to be given one and there is room for it on the way.
    pub(super) fn read_lacking(&mut self) {
        let Some((serial, from, until)) = self.primary.as_mut().and_then(|primary| primary.wants_piece()) else { return };
        let Some(context) = &self.context.replay else { unreachable!("what was logged is in a log") };
        let (durable, log, inbox) = (self.durable(), context.log.clone(), self.inbox.clone());
        self.context.runtime.spawn_blocking(move || tell_piece(&log, (from, until), &durable, serial, &inbox));
    }

    /// Sends a piece that was read, and reads the next one.
    pub(super) fn give_lacking(&mut self, serial: u64, piece: Piece) {
        let now = self.clock.broker();
        let Some(primary) = &mut self.primary else { unreachable!("a cloud by itself has no Backup") };
        let queued = primary.read_piece(serial, piece, now);
        self.send_queued(queued);
    }
}

fn tell_piece(log: &EventLogReader, (from, until): (Position, Position), durable: &BTreeSet<Box<str>>, serial: u64, inbox: &Arc<Inbox>) {
    inbox.post(Message::Pair(match read(log, (from, until), durable) {
        Ok(piece) => News::Lacking { serial, piece },
        Err(error) => News::LogUnread { serial, why: error.to_string() },
    }));
}

/// The records of durable event types from `from` on, as many as make a batch.
fn read(log: &EventLogReader, (from, until): (Position, Position), durable: &BTreeSet<Box<str>>) -> io::Result<Piece> {
    let mut cursor = log.cursor(from);
    let (mut first, mut bytes, mut next) = (None, Vec::new(), from);
    for _ in 0..PIECE_RECORDS {
        let Some(record) = cursor.read_before(until)? else {
            // What is not written yet was appended in this turn: it comes as everything does from now on.
            next = until;
            break;
        };
        next = Position(record.position.0 + 1);
        if durable.contains(record.topic) {
            first.get_or_insert(record.position);
            batch::push(&record, &mut bytes);
        }
        if bytes.len() >= BATCH_BYTES {
            break;
        }
    }
    Ok(Piece { batch: first.map(|first| (first, bytes)), next })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};
    use bodkin_store::event_log::{EventLog, EventLogLimits};

    use super::*;

    #[test]
    fn a_piece_has_the_durable_records_in_their_order_and_says_where_the_next_one_begins() {
        let directory = tempfile::tempdir().unwrap();
        let limits = EventLogLimits { bytes_max: 64 << 20, age_max: Duration::from_secs(3600) };
        let now_ns = 1_800_000_000_000_000_000;
        let (mut log, reader) = EventLog::open(directory.path(), limits, Position(0), now_ns, Box::new(|_, _| {})).unwrap();
        let (large, now) = ("x".repeat(BATCH_BYTES / 2), Instant::now());
        for sequence in 1..=9 {
            let id = EventId { publisher: PublisherId(1), incarnation: Incarnation(1), topic: TopicId(1), sequence: Sequence(sequence) };
            let topic = if sequence % 2 == 0 { "KEPT" } else { "ANY" };
            log.append(now_ns, id, topic, &large, now);
        }
        log.write(now);
        let durable = BTreeSet::from([Box::from("KEPT")]);
        let (mut from, until, mut sequences) = (Position(1), Position(8), Vec::new());
        while from < until {
            let piece = read(&reader, (from, until), &durable).unwrap();
            assert!(piece.next > from, "it goes on");
            if let Some((first, bytes)) = &piece.batch {
                let records = batch::records(bytes).unwrap();
                assert_eq!(records[0].position, *first);
                sequences.extend(records.iter().map(|record| record.id.sequence.0));
            }
            from = piece.next;
        }
        assert_eq!(sequences, [2, 4, 6, 8], "from the second record to the eighth");
    }
}
