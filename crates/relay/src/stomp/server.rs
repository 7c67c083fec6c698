//! The frames that a broker sends.

use super::{
    error::StompError,
    frame::{Command, Frame},
    heart_beat::HeartBeat,
};
use crate::{Destination, DestinationError};

/// Words of a broker that an error repeats.
const WORDS_CHARACTERS_MAX: usize = 1024;

/// What a broker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    /// The session is open, in version 1.2.
    Connected {
        /// How often the broker sends and wants to hear.
        heart_beat: HeartBeat,
        /// Name and version of the broker; empty if it does not say.
        server: String,
    },
    /// A text has come.
    Message {
        /// Whose it is: the number that was subscribed with.
        subscription: u64,
        /// What [`ack`](super::request::ack) takes.
        ack: String,
        /// Where it was sent to.
        destination: Destination,
        /// The text.
        text: String,
    },
    /// What was sent with this number is done.
    Receipt(u64),
    /// The broker refuses, and closes the connection.
    Error {
        /// Why, in its words.
        words: String,
        /// The number of what it refuses, if that came with one and the broker says it.
        receipt: Option<u64>,
    },
}

impl ServerFrame {
    /// Reads a frame.
    pub fn read(frame: Frame) -> Result<Self, StompError> {
        match frame.command {
            Command::Connected => Self::connected(&frame),
            Command::Message => Self::message(frame),
            Command::Receipt => Ok(Self::Receipt(number(&frame, "receipt-id")?)),
            Command::Error => Ok(Self::Error { words: words(&frame), receipt: frame.header("receipt-id").and_then(|id| id.parse().ok()) }),
            other => Err(StompError::NotOfServer(other.word())),
        }
    }

    fn connected(frame: &Frame) -> Result<Self, StompError> {
        match frame.header("version") {
            Some("1.2") => {}
            // STOMP 1.0 says no version.
            other => return Err(wrong("version", "1.2", other.unwrap_or("1.0"))),
        }
        let heart_beat = HeartBeat::read(frame.header("heart-beat"))?;
        Ok(Self::Connected { heart_beat, server: frame.header("server").unwrap_or_default().to_owned() })
    }

    fn message(frame: Frame) -> Result<Self, StompError> {
        let destination = destination(needed(&frame, "destination")?)?;
        let (subscription, ack) = (number(&frame, "subscription")?, needed(&frame, "ack")?.to_owned());
        let text = String::from_utf8(frame.body).map_err(|_| StompError::NotText)?;
        Ok(Self::Message { subscription, ack, destination, text })
    }
}

/// Artemis may leave the prefix out of a queue's name.
fn destination(text: &str) -> Result<Destination, DestinationError> {
    match text.strip_prefix("/topic/") {
        Some(topic) => Destination::topic(topic),
        None => Destination::queue(text.strip_prefix("/queue/").unwrap_or(text)),
    }
}

fn needed<'f>(frame: &'f Frame, header: &'static str) -> Result<&'f str, StompError> {
    frame.header(header).ok_or(StompError::Missing { command: frame.command.word(), header })
}

fn number(frame: &Frame, header: &'static str) -> Result<u64, StompError> {
    let said = needed(frame, header)?;
    said.parse().map_err(|_| wrong(header, "a number of ours", said))
}

fn wrong(header: &'static str, expected: &'static str, found: &str) -> StompError {
    StompError::Value { header, expected, found: found.chars().take(80).collect() }
}

fn words(frame: &Frame) -> String {
    let body = String::from_utf8_lossy(&frame.body);
    let words = [frame.header("message").unwrap_or_default(), body.trim()].join(" ");
    words.trim().chars().take(WORDS_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::Decoder, *};

    fn read(bytes: &str) -> Result<ServerFrame, StompError> {
        let frame = Decoder::new(Default::default()).receive(&mut bytes.as_bytes())?;
        ServerFrame::read(frame.expect("it is whole"))
    }

    /// As ActiveMQ 5.15 and Artemis write them, in the order of their headers.
    #[test]
    fn what_brokers_say_is_read() {
        let connected = read("CONNECTED\nserver:ActiveMQ/5.15.16\nheart-beat:10000,10000\nsession:ID:host-1:2\nversion:1.2\n\n\0\n");
        let heart_beat = HeartBeat { sends_ms: 10_000, wants_ms: 10_000 };
        assert_eq!(connected, Ok(ServerFrame::Connected { heart_beat, server: "ActiveMQ/5.15.16".into() }));

        let message = "MESSAGE\nack:ID\\chost-1\\c2\nmessage-id:ID\\chost-1\\c2\\c1\ndestination:/queue/RESP-a\ntimestamp:1900000000000\nexpires:0\n\
            subscription:7\npriority:4\n\nCLOSE abc\0\n";
        let expected = ServerFrame::Message {
            subscription: 7,
            ack: "ID:host-1:2".into(),
            destination: Destination::queue("RESP-a").unwrap(),
            text: "CLOSE abc".into(),
        };
        assert_eq!(read(message), Ok(expected.clone()));
        assert_eq!(read(&message.replace("/queue/", "")), Ok(expected));

        assert_eq!(read("RECEIPT\nreceipt-id:3\n\n\0"), Ok(ServerFrame::Receipt(3)));
        let refused =
            read("ERROR\nmessage:User name [a] or password is invalid.\ncontent-type:text/plain\n\njava.lang.SecurityException\n\0");
        let words = "User name [a] or password is invalid. java.lang.SecurityException".to_owned();
        assert_eq!(refused, Ok(ServerFrame::Error { words, receipt: None }));
        let refused = read("ERROR\nreceipt-id:7\nmessage:not authorized\n\n\0");
        assert_eq!(refused, Ok(ServerFrame::Error { words: "not authorized".into(), receipt: Some(7) }));
    }

    #[test]
    fn what_no_broker_of_ours_says_is_refused() {
        for (bytes, expected) in [
            ("CONNECTED\nversion:1.1\n\n\0", wrong("version", "1.2", "1.1")),
            ("CONNECTED\n\n\0", wrong("version", "1.2", "1.0")),
            ("SEND\ndestination:/queue/a\n\n\0", StompError::NotOfServer("SEND")),
            ("RECEIPT\n\n\0", StompError::Missing { command: "RECEIPT", header: "receipt-id" }),
            ("RECEIPT\nreceipt-id:x\n\n\0", wrong("receipt-id", "a number of ours", "x")),
            ("MESSAGE\nsubscription:1\nack:2\n\n\0", StompError::Missing { command: "MESSAGE", header: "destination" }),
            ("MESSAGE\nsubscription:1\ndestination:/queue/a\n\n\0", StompError::Missing { command: "MESSAGE", header: "ack" }),
        ] {
            assert_eq!(read(bytes), Err(expected), "{bytes}");
        }
        let other = read("MESSAGE\nsubscription:1\nack:2\ndestination:/temp-queue/a\n\n\0");
        assert!(matches!(other, Err(StompError::Destination(_))), "{other:?}");
        let mut frame = Frame::new(Command::Message).with("subscription", "1").with("ack", "2").with("destination", "/queue/a");
        frame.body = vec![0xff];
        assert_eq!(ServerFrame::read(frame), Err(StompError::NotText));
    }
}
