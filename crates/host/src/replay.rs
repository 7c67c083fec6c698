//! Replay: what a listener has missed, read from the event log on tokio's blocking threads and handed to the shard in chunks,
//! each when the connection has room for it.

use std::{io, sync::Arc};

use bodkin_arrowhead::{publication::Publication, record::SystemId, utc::UtcTime};
use bodkin_store::{
    Store,
    event_log::{Cursor, EventLogReader, Position, Record},
};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    frames::Frames,
    inbox::{ConnectionKey, Inbox, Message},
    listening::{Listening, Since},
};

/// Bytes of frames handed over at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Records read at once, so that a replay that finds nothing looks up now and then whether anybody still listens.
const CHUNK_RECORDS: usize = 100_000;
/// Replays that read at the same time; the others wait, so that a thousand listeners that come back leave the disk and the
/// processors to live events.
pub const READERS_MAX: usize = 2;

/// Told in front of a stream that cannot begin where it should.
pub const LOST: &[u8] = b": what was missed is not kept any more, or not all of it\nevent: bodkin-lost\ndata: {\"lost\":null}\n\n";

/// What every replay works with.
#[derive(Clone)]
pub struct ReplayContext {
    /// Who may hear whom.
    pub store: Store,
    /// The event log.
    pub log: EventLogReader,
    /// Where chunks go.
    pub inbox: Arc<Inbox>,
    /// Places of those who read.
    pub readers: Arc<Semaphore>,
}

/// A part of a replay on its way to the shard.
#[derive(Debug)]
pub struct Chunk {
    /// Frames, whole ones.
    pub frames: Vec<u8>,
    /// Where the next chunk would begin.
    pub next: Position,
    /// Whether that is the end of what is written.
    pub is_end: bool,
}

/// Replays until the shard takes over or the connection is gone: a chunk for each `credit`.
pub async fn replay(
    connection: ConnectionKey,
    listening: Arc<Listening>,
    since: Since,
    mut credit: mpsc::Receiver<()>,
    context: ReplayContext,
) {
    let mut reading: Option<Reading> = None;
    while credit.recv().await.is_some() {
        let place = context.readers.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (listening, store, log) = (listening.clone(), context.store.clone(), context.log.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut reading = match reading {
                Some(reading) => reading,
                None => Reading::begin(&log, &listening, since)?,
            };
            let chunk = reading.chunk(&listening, &store)?;
            io::Result::Ok((reading, chunk))
        });
        let message = match read.await {
            Ok(Ok((begun, chunk))) => {
                reading = Some(begun);
                Message::Replayed { connection, chunk }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "the event log cannot be read; a replay ends");
                return context.inbox.post(Message::ReplayFailed { connection });
            }
            // The runtime is shutting down.
            Err(_) => return,
        };
        drop(place);
        context.inbox.post(message);
    }
}

struct Reading {
    cursor: Cursor,
    frames: Frames,
    text: String,
    /// Whether the listener is still to be told that something is missing.
    tells_loss: bool,
}

impl Reading {
    fn begin(log: &EventLogReader, listening: &Listening, since: Since) -> io::Result<Self> {
        let (from, tells_loss) = match since {
            Since::Event(id) => match log.behind(listening.event_type.as_str(), id)? {
                Some(position) => (position, false),
                None => (Position(0), true),
            },
            Since::Time(0) => (Position(0), false),
            Since::Time(time_ns) => {
                let state = log.state();
                (log.since(time_ns)?, state.first > Position(0) && time_ns <= state.oldest_ns)
            }
            Since::Oldest => (Position(0), true),
        };
        Ok(Self { cursor: log.cursor(from), frames: Frames::default(), text: String::new(), tells_loss })
    }

    fn chunk(&mut self, listening: &Listening, store: &Store) -> io::Result<Chunk> {
        let snapshot = Arc::clone(&store.snapshot());
        let mut frames = Vec::with_capacity(CHUNK_BYTES);
        if std::mem::take(&mut self.tells_loss) {
            frames.extend_from_slice(LOST);
        }
        let mut is_end = false;
        for _ in 0..CHUNK_RECORDS {
            let Some(record) = self.cursor.read()? else {
                is_end = true;
                break;
            };
            if record.topic == listening.event_type.as_str()
                && let Some(publication) = publication(&record)
                && listening.hears(&snapshot, &publication, &mut self.text)
            {
                self.frames.clear();
                frames.extend_from_slice(self.frames.stream(listening.form, record.id, &publication));
            }
            if frames.len() >= CHUNK_BYTES {
                break;
            }
        }
        Ok(Chunk { frames, next: self.cursor.position(), is_end })
    }
}

/// The event of a record; `None` for one that no version of ours has written, which the checksum makes unlikely.
pub fn publication<'r>(record: &Record<'r>) -> Option<Publication<'r>> {
    let source = SystemId(i64::try_from(record.id.publisher.0).ok()?);
    Publication::reread(record.event, source, UtcTime::from_unix_nanos(record.time_ns)).ok()
}
