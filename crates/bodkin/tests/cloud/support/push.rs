//! A subscriber by HTTP push: a small server that keeps what it was sent.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::http::{find, header};
use super::patience::{PATIENCE, eventually};

/// Longest request that the listener accepts, in bytes.
const REQUEST_LIMIT_BYTES: usize = 1024 * 1024;

/// How long a slow subscriber takes for an answer.
const SLOWNESS: Duration = Duration::from_millis(120);

/// What the listener does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers 200 and keeps the connection.
    Answers,
    /// Reads and never answers.
    KeepsSilent,
    /// Reads, and answers from [`PushSubscriber::release`] on.
    Waits,
    /// Takes [`SLOWNESS`] for each answer.
    IsSlow,
}

/// One notification as it came.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method.
    pub method: String,
    /// The request target.
    pub target: String,
    /// Header names as sent, with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Notification {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a notification is JSON")
    }

    /// The `payload` member of the body.
    pub fn payload(&self) -> String {
        self.json()["payload"].as_str().expect("a notification has a payload").to_string()
    }
}

struct Inbox {
    notifications: Mutex<Vec<Notification>>,
    arrived: Condvar,
    open: Mutex<Vec<TcpStream>>,
    connections: Mutex<usize>,
    released: AtomicBool,
    status: AtomicU16,
    headers: Mutex<String>,
    body: Mutex<String>,
    ended: AtomicBool,
    caller: Mutex<Option<Vec<u8>>>,
}

/// A listener on 127.0.0.1; closed when dropped.
pub struct PushSubscriber {
    address: SocketAddr,
    inbox: Arc<Inbox>,
}

impl PushSubscriber {
    /// Listens on a port of the kernel's choice.
    pub fn listen(manner: Manner) -> Self {
        Self::listen_at(0, manner)
    }

    /// Listens on a port that [`held_port`](super::ports::held_port) has given.
    pub fn listen_at(port: u16, manner: Manner) -> Self {
        Self::begin(port, manner, None)
    }

    /// Listens in TLS.
    pub fn listen_secure(manner: Manner, config: Arc<ServerConfig>) -> Self {
        Self::begin(0, manner, Some(config))
    }

    fn begin(port: u16, manner: Manner, config: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let inbox = Arc::new(Inbox {
            notifications: Mutex::default(),
            arrived: Condvar::new(),
            open: Mutex::default(),
            connections: Mutex::default(),
            released: AtomicBool::new(false),
            status: AtomicU16::new(200),
            headers: Mutex::default(),
            body: Mutex::default(),
            ended: AtomicBool::new(false),
            caller: Mutex::default(),
        });
        let shared = Arc::clone(&inbox);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                shared.open.lock().expect("no thread panics").push(stream.try_clone().expect("a second handle"));
                *shared.connections.lock().expect("no thread panics") += 1;
                let (inbox, config) = (Arc::clone(&shared), config.clone());
                // A connection that breaks off ends its thread; what it brought whole is kept.
                thread::spawn(move || {
                    let _ = match config {
                        None => serve(stream, manner, &inbox),
                        Some(config) => serve_secure(stream, config, manner, &inbox),
                    };
                });
            }
        });
        Self { address, inbox }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets one that [`Manner::Waits`] answer.
    pub fn release(&self) {
        self.inbox.released.store(true, Ordering::SeqCst);
    }

    /// Answers with this status, and these headers (each with its line end), from now on.
    pub fn answer_with(&self, status: u16, headers: &str) {
        headers.clone_into(&mut self.inbox.headers.lock().expect("no thread panics"));
        self.inbox.status.store(status, Ordering::SeqCst);
    }

    /// Answers with this body from now on.
    pub fn answer_with_body(&self, body: &str) {
        body.clone_into(&mut self.inbox.body.lock().expect("no thread panics"));
    }

    /// What arrived until now.
    pub fn notifications(&self) -> Vec<Notification> {
        self.inbox.notifications.lock().expect("no thread panics").clone()
    }

    /// The number of notifications that arrived until now.
    pub fn count(&self) -> usize {
        self.inbox.notifications.lock().expect("no thread panics").len()
    }

    /// The payloads that arrived until now.
    pub fn payloads(&self) -> Vec<String> {
        self.notifications().iter().map(Notification::payload).collect()
    }

    /// The certificate that the last caller has shown, in DER.
    pub fn caller(&self) -> Option<Vec<u8>> {
        self.inbox.caller.lock().expect("no thread panics").clone()
    }

    /// The number of connections accepted until now.
    pub fn connections(&self) -> usize {
        *self.inbox.connections.lock().expect("no thread panics")
    }

    /// Waits until `enough` of what arrived; panics otherwise, naming `what` was waited for.
    #[track_caller]
    pub fn wait_until(&self, enough: impl Fn(&[Notification]) -> bool, what: &str) -> Vec<Notification> {
        let deadline = Instant::now() + PATIENCE;
        let mut notifications = self.inbox.notifications.lock().expect("no thread panics");
        while !enough(&notifications) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what}; {} arrived, the last {:?}", notifications.len(), notifications.last());
            notifications = self.inbox.arrived.wait_timeout(notifications, left).expect("no thread panics").0;
        }
        notifications.clone()
    }

    /// Waits for the notification with that payload.
    #[track_caller]
    pub fn wait_for_payload(&self, payload: &str) -> Notification {
        let all = self.wait_until(
            |notifications| notifications.iter().any(|notification| notification.payload() == payload),
            &format!("notification with payload {payload:?}"),
        );
        all.into_iter().find(|notification| notification.payload() == payload).expect("waited for above")
    }
}

impl Drop for PushSubscriber {
    fn drop(&mut self) {
        self.inbox.ended.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
        for stream in self.inbox.open.lock().expect("no thread panics").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve_secure(socket: TcpStream, config: Arc<ServerConfig>, manner: Manner, inbox: &Inbox) -> io::Result<()> {
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    let shown = stream.conn.peer_certificates().map(|chain| chain[0].to_vec());
    *inbox.caller.lock().expect("no thread panics") = shown;
    serve(stream, manner, inbox)
}

fn serve(mut stream: impl Read + Write, manner: Manner, inbox: &Inbox) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let notification = read_request(&mut stream, &mut unread)?;
        inbox.notifications.lock().expect("no thread panics").push(notification);
        inbox.arrived.notify_all();
        let answers = match manner {
            Manner::Answers => true,
            Manner::KeepsSilent => false,
            Manner::Waits => eventually(|| inbox.released.load(Ordering::SeqCst)),
            Manner::IsSlow => {
                thread::sleep(SLOWNESS);
                true
            }
        };
        if answers {
            let (status, headers) = (inbox.status.load(Ordering::SeqCst), inbox.headers.lock().expect("no thread panics").clone());
            let body = inbox.body.lock().expect("no thread panics").clone();
            stream.write_all(format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        }
    }
}

fn read_request(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<Notification> {
    let head_end = fill_until(stream, unread, |bytes| find(bytes, b"\r\n\r\n"))?;
    let head = String::from_utf8_lossy(&unread[..head_end]).into_owned();
    unread.drain(..head_end + 4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default().to_string(), words.next().unwrap_or_default().to_string());
    let headers: Vec<(String, String)> =
        lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.into(), value.trim().into())).collect();
    // Upstream's client and Bodkin's state the length; a notification in chunks would fail the test that reads it.
    let length = header(&headers, "content-length").and_then(|value| value.parse().ok()).ok_or(ErrorKind::InvalidData)?;
    fill_until(stream, unread, |bytes| (bytes.len() >= length).then_some(()))?;
    let body = unread.drain(..length).collect();
    Ok(Notification { method, target, headers, body })
}

fn fill_until<T>(stream: &mut impl Read, unread: &mut Vec<u8>, mut enough: impl FnMut(&[u8]) -> Option<T>) -> io::Result<T> {
    loop {
        if let Some(found) = enough(unread) {
            return Ok(found);
        }
        let mut block = [0; 16 * 1024];
        let count = stream.read(&mut block)?;
        if count == 0 || unread.len() > REQUEST_LIMIT_BYTES {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        unread.extend_from_slice(&block[..count]);
    }
}
