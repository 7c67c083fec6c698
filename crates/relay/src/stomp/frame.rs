//! One frame: a command, headers, and of three commands a body.

use super::escape::escape;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Opens a session.
    Connect,
    /// The same under its other name.
    Stomp,
    /// Sends a message.
    Send,
    /// Listens to a destination.
    Subscribe,
    /// Listens no more.
    Unsubscribe,
    /// Has taken a message.
    Ack,
    /// Has not taken a message.
    Nack,
    /// Begins a transaction.
    Begin,
    /// Ends one.
    Commit,
    /// Gives one up.
    Abort,
    /// Ends the session.
    Disconnect,
    /// The session is open.
    Connected,
    /// A message of a destination.
    Message,
    /// Has done what was asked.
    Receipt,
    /// Has not, and closes.
    Error,
}

impl Command {
    const ALL: [Self; 15] = [
        Self::Connect,
        Self::Stomp,
        Self::Send,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Ack,
        Self::Nack,
        Self::Begin,
        Self::Commit,
        Self::Abort,
        Self::Disconnect,
        Self::Connected,
        Self::Message,
        Self::Receipt,
        Self::Error,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Stomp => "STOMP",
            Self::Send => "SEND",
            Self::Subscribe => "SUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Ack => "ACK",
            Self::Nack => "NACK",
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Abort => "ABORT",
            Self::Disconnect => "DISCONNECT",
            Self::Connected => "CONNECTED",
            Self::Message => "MESSAGE",
            Self::Receipt => "RECEIPT",
            Self::Error => "ERROR",
        }
    }

    /// The command of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.word() == word)
    }

    /// Whether its headers have escapes. Those of the first two frames have none, as in STOMP 1.0.
    pub(super) fn has_escapes(self) -> bool {
        !matches!(self, Self::Connect | Self::Connected)
    }

    /// Whether it may have a body.
    pub(super) fn has_body(self) -> bool {
        matches!(self, Self::Send | Self::Message | Self::Error)
    }
}

/// A frame. [`Decoder`](super::Decoder) reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub command: Command,
    headers: Vec<(String, String)>,
    /// What follows the headers; empty but of SEND, MESSAGE and ERROR.
    pub body: Vec<u8>,
}

impl Frame {
    /// A frame without headers and body.
    pub fn new(command: Command) -> Self {
        Self { command, headers: Vec::new(), body: Vec::new() }
    }

    /// With one more header. Of two with one name the first counts.
    ///
    /// # Panics
    /// If it cannot be written: a zero byte has no escape, and in CONNECT and CONNECTED nothing has. Ask [`Self::can_say`] of a text that came from elsewhere.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        assert!(Self::can_say(self.command, name) && Self::can_say(self.command, value), "{name} can be written");
        let is_name = !name.is_empty() && name != CONTENT_LENGTH && (self.command.has_escapes() || !name.contains(':'));
        assert!(is_name, "{name:?} is a name");
        self.put(name.to_owned(), value.to_owned());
        self
    }

    /// Whether a header of this command can say `text`.
    pub fn can_say(command: Command, text: &str) -> bool {
        !text.contains('\0') && (command.has_escapes() || !text.contains(['\r', '\n']))
    }

    /// Keeps a header, unless there is one of this name.
    pub(super) fn put(&mut self, name: String, value: String) {
        if self.header(&name).is_none() {
            self.headers.push((name, value));
        }
    }

    /// What a header says.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }

    /// Appends the frame's bytes.
    ///
    /// `content-length` is written only where the body has a zero byte in it, which would end it: brokers take a frame without for a text message,
    /// and one with it for bytes, which Java gatekeepers do not read.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.command.word().as_bytes());
        out.push(b'\n');
        let written = |text: &str, out: &mut Vec<u8>| {
            if self.command.has_escapes() { escape(text, out) } else { out.extend_from_slice(text.as_bytes()) }
        };
        for (name, value) in &self.headers {
            written(name, out);
            out.push(b':');
            written(value, out);
            out.push(b'\n');
        }
        if self.body.contains(&0) {
            out.extend_from_slice(format!("{CONTENT_LENGTH}:{}\n", self.body.len()).as_bytes());
        }
        out.push(b'\n');
        out.extend_from_slice(&self.body);
        out.push(0);
    }
}

/// The header that says how long a body is. It is no part of a [`Frame`]: decoder and [`Frame::write`] keep it to themselves.
pub(super) const CONTENT_LENGTH: &str = "content-length";
