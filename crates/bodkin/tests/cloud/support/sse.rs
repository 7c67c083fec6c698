//! A subscriber by server-sent events that reads on a thread of its own, or not at all until told to.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use super::http::{Connection, Head, Pieces};
use super::patience::PATIENCE;
use super::stream::{Event, Reader, Told};

/// A stream whose head was read and whose body is not read yet.
pub struct UnreadStream {
    connection: Connection,
    pieces: Pieces,
    /// Status and headers of the answer.
    pub head: Head,
}

impl UnreadStream {
    /// Opens the stream and waits for the head of the answer.
    #[track_caller]
    pub fn open(address: SocketAddr, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::open_on(Connection::open(address).expect("the event handler accepts"), target, headers)
    }

    /// Opens the stream on a connection and waits for the head of the answer.
    #[track_caller]
    pub fn open_on(mut connection: Connection, target: &str, headers: &[(&str, &str)]) -> Self {
        let mut all = vec![("Accept", "text/event-stream")];
        all.extend_from_slice(headers);
        connection.send_request("GET", target, &all, None).expect("the request is sent");
        let head = connection.read_head().expect("a head is answered");
        let pieces = Pieces::of(&head).expect("the body's framing is known");
        Self { connection, pieces, head }
    }

    /// Begins to read.
    pub fn read(self) -> EventStream {
        let Self { mut connection, mut pieces, head } = self;
        let handle = connection.handle().expect("a second handle");
        let heard = Arc::new((Mutex::new(Heard::default()), Condvar::new()));
        let shared = Arc::clone(&heard);
        thread::spawn(move || {
            let mut reader = Reader::default();
            let mut told = Vec::new();
            let end = loop {
                match pieces.next(&mut connection) {
                    Ok(Some(piece)) => {
                        reader.feed(&piece, &mut told);
                        shared.0.lock().expect("no listener panics").told.append(&mut told);
                        shared.1.notify_all();
                    }
                    Ok(None) => break "the server ended the stream".to_string(),
                    // A stream may be silent for longer than one read waits.
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(error) => break error.to_string(),
                }
            };
            shared.0.lock().expect("no listener panics").end = Some(end);
            shared.1.notify_all();
        });
        EventStream { heard, handle, head }
    }
}

#[derive(Default)]
struct Heard {
    told: Vec<Told>,
    end: Option<String>,
}

/// A stream that is being read.
pub struct EventStream {
    heard: Arc<(Mutex<Heard>, Condvar)>,
    handle: TcpStream,
    /// Status and headers of the answer.
    pub head: Head,
}

impl EventStream {
    /// Opens the stream and reads it; panics when it is not answered 200.
    #[track_caller]
    pub fn open(address: SocketAddr, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::read_from(UnreadStream::open(address, target, headers))
    }

    /// The same on a connection.
    #[track_caller]
    pub fn open_on(connection: Connection, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::read_from(UnreadStream::open_on(connection, target, headers))
    }

    #[track_caller]
    fn read_from(stream: UnreadStream) -> Self {
        assert_eq!(stream.head.status, 200, "{:?}", stream.head);
        stream.read()
    }

    /// Whether what was told until now fits.
    pub fn has(&self, fits: impl Fn(&[Told]) -> bool) -> bool {
        fits(&self.heard.0.lock().expect("no reader panics").told)
    }

    /// The number of events heard until now.
    pub fn count(&self) -> usize {
        count(&self.heard.0.lock().expect("no reader panics").told)
    }

    /// Waits until the server has ended the stream and gives all that was told.
    #[track_caller]
    pub fn until_end(&self) -> Vec<Told> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = self.heard.0.lock().expect("no reader panics");
        while heard.end.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the stream goes on; heard {} things", heard.told.len());
            heard = self.heard.1.wait_timeout(heard, left).expect("no reader panics").0;
        }
        heard.told.clone()
    }

    /// Waits until `count` events are heard and gives all; panics with what was heard when they do not come.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Event> {
        let told = self.wait_until(|told| self::count(told) >= count, &format!("{count} events"));
        events(&told)
    }

    /// Waits until `enough` of what was told; panics otherwise, naming `what` was waited for.
    #[track_caller]
    pub fn wait_until(&self, enough: impl Fn(&[Told]) -> bool, what: &str) -> Vec<Told> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = self.heard.0.lock().expect("no reader panics");
        while !enough(&heard.told) {
            let left = deadline.saturating_duration_since(Instant::now());
            let last = heard.told.last();
            assert!(!left.is_zero(), "no {what}; heard {} things, the last {last:?}", heard.told.len());
            assert!(heard.end.is_none(), "no {what}; the stream ended: {:?}, the last {last:?}", heard.end);
            heard = self.heard.1.wait_timeout(heard, left).expect("no reader panics").0;
        }
        heard.told.clone()
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // Wakes the reading thread; fails only when the server has closed already.
        let _ = self.handle.shutdown(Shutdown::Both);
    }
}

/// Everything a stream is told until its replay has reached the present.
#[track_caller]
pub fn until_live(stream: &EventStream) -> Vec<Event> {
    events(&stream.wait_until(|told| told.contains(&Told::Comment(" live".into())), "comment that it is live"))
}

fn count(told: &[Told]) -> usize {
    told.iter().filter(|item| matches!(item, Told::Event(_))).count()
}

fn events(told: &[Told]) -> Vec<Event> {
    let event = |item: &Told| if let Told::Event(event) = item { Some(event.clone()) } else { None };
    told.iter().filter_map(event).collect()
}
