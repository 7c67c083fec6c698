//! Replay: what a listener has missed, read from the event log on tokio's blocking threads and handed to the shard in chunks,
//! each when the connection has room for it.

use std::{io, sync::Arc};

use bodkin_arrowhead::{publication::Publication, record::SystemId, utc::UtcTime};
use bodkin_broker::EventId;
use bodkin_store::{
    Store,
    event_log::{Cursor, EventLogReader, Position, Record},
};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    frames::Frames,
    inbox::{ConnectionKey, Inbox, Message},
    listening::{Listening, Since},
    resume_token::ResumeToken,
};

/// Bytes of frames handed over at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Records read at once, so that a replay that finds nothing looks up now and then whether anybody still listens.
const CHUNK_RECORDS: usize = 100_000;
/// Replays that read at the same time; the others wait, so that a thousand listeners that come back leave the disk and the
/// processors to live events.
pub const READERS_MAX: usize = 2;

/// Told where events may be missing: in front of a stream that cannot begin where it should, and at the place of those that the log
/// has lost, or has not kept until they were read. Nobody can tell how many of them were the listener's.
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
    /// How far the listener has received events with it, where nodes send each other events.
    pub token: Option<ResumeToken>,
}

/// Replays until the shard takes over or the connection is gone: a chunk for each `credit`.
pub async fn replay(
    connection: ConnectionKey,
    listening: Arc<Listening>,
    (since, now): (Since, Option<ResumeToken>),
    mut credit: mpsc::Receiver<()>,
    context: ReplayContext,
) {
    let mut reading: Option<Reading> = None;
    while credit.recv().await.is_some() {
        let place = context.readers.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (listening, store, log, now) = (listening.clone(), context.store.clone(), context.log.clone(), now.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut reading = match reading {
                Some(reading) => reading,
                None => Reading::begin(&log, &listening, since, now)?,
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
    /// Behind the last event that was read or told to be missing.
    expected: Position,
    frames: Frames,
    text: String,
    /// How far the listener has received events.
    token: Option<ResumeToken>,
    /// Whether the listener is still to be told that something is missing.
    tells_loss: bool,
}

impl Reading {
    fn begin(log: &EventLogReader, listening: &Listening, since: Since, now: Option<ResumeToken>) -> io::Result<Self> {
        if let (Since::Event(id), Some(brought), Some(now)) = (since, &listening.resume, &now) {
            let (from, tells_loss) = brought.first_pending(now, id, log)?;
            let tells_loss = tells_loss || listening.has_lost || brought.may_be_lost_at(now);
            return Ok(Self { token: Some(brought.continued_at(now)), ..Self::at(log, Some(from), tells_loss) });
        }
        let token = now.map(|now| now.empty());
        let (from, tells_loss) = match since {
            Since::Event(id) => {
                let from = log.behind(listening.event_type.as_str(), id)?;
                (from, from.is_none())
            }
            // All that ever was is requested: retention, or somebody, may have removed the first files.
            Since::Time(0) => (None, log.state().first > Position(0)),
            Since::Time(time_ns) => {
                let from = log.since(time_ns)?;
                // What is kept is asked for behind the search, which takes its time.
                let state = log.state();
                (Some(from), state.first > Position(0) && time_ns <= state.oldest_ns)
            }
            Since::Oldest => (None, true),
        };
        Ok(Self { token, ..Self::at(log, from, tells_loss) })
    }

    /// Begins at a position, which may be gone since it was found, or with the oldest event.
    fn at(log: &EventLogReader, from: Option<Position>, tells_loss: bool) -> Self {
        let cursor = log.cursor(from.unwrap_or_default());
        let expected = from.unwrap_or(cursor.position());
        Self { cursor, expected, frames: Frames::default(), text: String::new(), token: None, tells_loss }
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
            if record.position > self.expected {
                frames.extend_from_slice(LOST);
            }
            self.expected = Position(record.position.0 + 1);
            let is_received = is_received(&record, listening, self.token.as_ref());
            if let Some(token) = &mut self.token {
                token.read(&record);
            }
            if is_loss(&record, listening) {
                frames.extend_from_slice(LOST);
            } else if record.topic == listening.event_type.as_str()
                && !is_received
                && let Some(publication) = publication(&record)
                && listening.hears(&snapshot, &publication, &mut self.text)
            {
                self.frames.clear();
                if let Some(token) = &self.token {
                    self.frames.set_token(token);
                }
                frames.extend_from_slice(self.frames.stream(listening.form, record.id, &publication));
            }
            if frames.len() >= CHUNK_BYTES {
                break;
            }
        }
        // At the end of what is written, what is missing has nothing behind it yet.
        let next = self.cursor.position();
        if next > self.expected {
            frames.extend_from_slice(LOST);
            self.expected = next;
        }
        // Until there is credit for the next chunk, the replay keeps no memory but this one's.
        self.cursor.rest();
        Ok(Chunk { frames, next, is_end, token: self.token.clone() })
    }
}

/// Returns true if a listener received a record at another node before the record reached this one.
pub fn is_received(record: &Record<'_>, listening: &Listening, here: Option<&ResumeToken>) -> bool {
    listening.resume.as_ref().zip(here).is_some_and(|(brought, here)| brought.covers_record(here.node(), record))
}

/// Whether a record says that events of another node are missing that a listener may have been to get.
pub fn is_loss(record: &Record<'_>, listening: &Listening) -> bool {
    let is_told = record.topic.is_empty() || record.topic == listening.event_type.as_str();
    record.origin.is_some() && is_told && record.event.bytes().all(|digit| digit.is_ascii_digit())
}

/// The event of a record; `None` for a loss, and for one that no version of ours has written, which the checksum makes unlikely.
pub fn publication<'r>(record: &Record<'r>) -> Option<Publication<'r>> {
    let (source, time) = (source(record.id)?, UtcTime::from_unix_nanos(record.time_ns));
    // The checksum says that it is as it was written.
    Publication::written(record.event, source, time).or_else(|| Publication::reread(record.event, source, time).ok())
}

/// The system that has published an event; `None` as for [`publication`].
pub fn source(event: EventId) -> Option<SystemId> {
    i64::try_from(event.publisher.0).ok().map(SystemId)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, channel},
        time::{Duration, Instant},
    };

    use bodkin_arrowhead::caller::Caller;
    use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};
    use bodkin_store::{
        Opened,
        event_log::{EventLog, EventLogLimits},
    };
    use tempfile::TempDir;

    use super::*;
    use crate::request::{Method, Request};

    const LIMITS: EventLogLimits = EventLogLimits { bytes_max: 1 << 20, age_max: Duration::from_secs(3600) };
    const TIME_NS: u64 = 1_800_000_000_000_000_000;

    struct Scene {
        directory: TempDir,
        opened: Opened,
        listening: Listening,
        log: EventLog,
        reader: EventLogReader,
        synced: Receiver<()>,
    }

    fn open(directory: &TempDir, from: u64) -> (EventLog, EventLogReader, Receiver<()>) {
        let (told, synced) = channel();
        let on_sync = Box::new(move |_, _| {
            // The receiver may be gone at the last sync.
            let _ = told.send(());
        });
        let (log, reader) = EventLog::open(&directory.path().join("events"), LIMITS, Position(from), TIME_NS, on_sync).unwrap();
        (log, reader, synced)
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let request = Request {
                caller: Caller::Anonymous,
                sender: None,
                method: Method::Get,
                path: "/eventhandler/subscription".into(),
                query: vec![("eventtype".into(), "T".into())],
                url: String::new(),
                content_type: String::new(),
                bearer: None,
                if_none_match: None,
                accepts_html: false,
                is_forged: false,
                trace: None,
                says_empty: false,
                body: Vec::new(),
            };
            let listening = Listening::parse(&request, None, None).unwrap_or_else(|_| panic!("a request for T"));
            let opened = Store::open(&directory.path().join("data")).unwrap();
            let (log, reader, synced) = open(&directory, 0);
            Self { directory, opened, listening, log, reader, synced }
        }

        /// Restarts the log, which goes on at this position.
        fn restart_at(self, from: u64) -> Self {
            let Self { directory, opened, listening, log, .. } = self;
            drop(log);
            let (log, reader, synced) = open(&directory, from);
            Self { directory, opened, listening, log, reader, synced }
        }

        /// Appends events until the position, each with its position as payload and `filling` bytes more, and lets the keeper look at them.
        fn fill(&mut self, until: u64, filling: usize) {
            while self.log.next_position() < Position(until) {
                let number = self.log.next_position().0;
                let json = format!(r#"{{"eventType":"T","payload":"{number} {:filling$}"}}"#, "");
                self.log.append(TIME_NS + number, id(number), "T", &json, Instant::now());
                if number % 50 == 49 || number + 1 == until {
                    self.log.write(Instant::now());
                    self.sync();
                }
            }
            // The keeper removes what is too much behind the sync that it tells; in front of the next one that is done.
            self.sync();
            self.sync();
        }

        fn sync(&mut self) {
            while self.synced.try_recv().is_ok() {}
            self.log.sync();
            self.synced.recv_timeout(Duration::from_secs(10)).unwrap();
        }

        /// What a listener gets until the present: events by their numbers, `None` for what is missing.
        fn rest_of(&self, reading: &mut Reading) -> (Vec<Option<u64>>, Position) {
            let mut heard = Vec::new();
            loop {
                let chunk = self.chunk(reading);
                heard.extend(heard_in(&chunk));
                if chunk.is_end {
                    return (heard, chunk.next);
                }
            }
        }

        fn chunk(&self, reading: &mut Reading) -> Chunk {
            reading.chunk(&self.listening, &self.opened.store).unwrap()
        }

        fn replayed(&self, since: Since) -> (Vec<Option<u64>>, Position) {
            self.rest_of(&mut Reading::begin(&self.reader, &self.listening, since, None).unwrap())
        }
    }

    fn id(sequence: u64) -> EventId {
        EventId { publisher: PublisherId(1), incarnation: Incarnation(5), topic: TopicId(0), sequence: Sequence(sequence) }
    }

    fn heard_in(chunk: &Chunk) -> Vec<Option<u64>> {
        let text = std::str::from_utf8(&chunk.frames).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| data.split(' ').next()?.parse().ok()).collect()
    }

    fn heard(ranges: &[std::ops::Range<u64>]) -> Vec<Option<u64>> {
        let parts: Vec<Vec<_>> = ranges.iter().map(|range| range.clone().map(Some).collect()).collect();
        parts.join(&None)
    }

    #[test]
    fn what_is_missing_in_the_log_is_told_at_its_place() {
        let mut scene = Scene::new();
        scene.fill(3, 0);
        let mut scene = scene.restart_at(7);
        scene.fill(9, 0);
        // The clock of the first event behind the hole, and that of one in it.
        for since in [Since::Time(TIME_NS + 7), Since::Time(TIME_NS + 4)] {
            assert_eq!(scene.replayed(since), (heard(&[3..3, 7..9]), Position(9)), "{since:?}");
        }
        assert_eq!(scene.replayed(Since::Event(id(2))), (heard(&[3..3, 7..9]), Position(9)));
        assert_eq!(scene.replayed(Since::Event(id(7))), (vec![Some(8)], Position(9)));
        let scene = scene.restart_at(20);
        assert_eq!(scene.replayed(Since::Time(0)), (heard(&[0..3, 7..9, 20..20]), Position(20)), "nothing is behind it yet");
        let mut reading = Reading::begin(&scene.reader, &scene.listening, Since::Event(id(8)), None).unwrap();
        assert_eq!(scene.rest_of(&mut reading).0, [None]);
        assert_eq!(scene.rest_of(&mut reading).0, [], "it is told once");
    }

    #[test]
    fn a_slow_replay_tells_what_retention_has_taken_in_front_of_it() {
        let mut scene = Scene::new();
        scene.fill(900, 1000);
        let mut reading = Reading::begin(&scene.reader, &scene.listening, Since::Time(0), None).unwrap();
        let mut told = heard_in(&scene.chunk(&mut reading));
        scene.fill(4000, 1000);
        told.extend(scene.rest_of(&mut reading).0);
        let gap = told.iter().position(Option::is_none).expect("a gap is told");
        let behind = told[gap + 1].expect("an event follows");
        assert!(behind > gap as u64 && behind <= scene.reader.state().first.0, "{gap} to {behind}");
        assert_eq!(told, heard(&[0..gap as u64, behind..4000]));
    }

    #[test]
    fn a_place_that_is_gone_when_it_is_read_is_told() {
        let mut scene = Scene::new();
        scene.fill(4000, 1000);
        let first = scene.reader.state().first.0;
        assert!(first > 10);
        let mut reading = Reading::at(&scene.reader, Some(Position(first - 10)), false);
        assert_eq!(scene.rest_of(&mut reading).0, heard(&[first - 10..first - 10, first..4000]));
        let mut reading = Reading::at(&scene.reader, Some(Position(first)), false);
        assert_eq!(scene.rest_of(&mut reading).0, (first..4000).map(Some).collect::<Vec<_>>());
    }
}
