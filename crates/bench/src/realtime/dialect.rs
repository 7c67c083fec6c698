//! What a broker is spoken to in: bytes to send for what is wanted, and what the bytes that came mean.

use bodkin_zmtp::Message;
use serde::{Deserialize, Serialize};

use super::echo::Echo;
use super::peer::{Mqtt, Nats};
use super::zmtp::Zmtp;

/// Something that came.
#[derive(Debug)]
pub enum Heard<'b> {
    /// The broker is ready for whatever comes next.
    Ready,
    /// Everything sent before has been served.
    Settled,
    /// An event's payload.
    Event(&'b [u8]),
    /// A message of ZMTP, whatever it is.
    Message(Message<'b>),
    /// The broker has so many more of the events that this publisher sent, for good.
    Acknowledged(u32),
}

/// One end's state of a protocol. It has no socket.
pub trait Dialect: Send {
    /// What is said first. Behind it [`Heard::Ready`] is waited for.
    fn open(&mut self, out: &mut Vec<u8>);
    /// Asks for the events of a topic.
    fn subscribe(&mut self, topic: &str, out: &mut Vec<u8>);
    /// Asks for a sign that everything so far has been served: [`Heard::Settled`].
    fn settle(&mut self, out: &mut Vec<u8>);
    /// Sends an event.
    fn publish(&mut self, topic: &str, payload: &[u8], out: &mut Vec<u8>);
    /// Takes bytes that came and gives how many; the rest comes again with what follows it. They may be changed.
    ///
    /// # Errors
    /// They are not what the protocol allows, or say that something was refused.
    fn receive(&mut self, input: &mut [u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize>;
}

/// Which protocol, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speech {
    /// Events of two frames from PUB to SUB.
    ZmtpPubSub,
    /// DEALER at both ends, with header, retention, acknowledgements.
    ZmtpDealer,
    /// NATS core.
    Nats,
    /// NATS JetStream: what is published is stored, and acknowledged.
    JetStream {
        /// Of the stream.
        replicas: u8,
    },
    /// Messages of this length that a chain of bare hops sends back.
    Echo {
        /// Their length.
        message_bytes: usize,
    },
    /// MQTT 3.1.1.
    Mqtt {
        /// 0: at most once; 1: at least once.
        qos: u8,
    },
}

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Sends events.
    Publisher,
    /// Hears them.
    Subscriber,
}

impl Speech {
    /// What one end speaks; `name` is the client's own.
    ///
    /// # Panics
    /// Of DEALER, whose ends are machines of their own.
    pub fn dialect(self, end: End, name: &str) -> Box<dyn Dialect> {
        match self {
            Self::ZmtpPubSub => Box::new(Zmtp::of(end)),
            Self::ZmtpDealer => panic!("a DEALER is no plain connection"),
            Self::Nats => Box::new(Nats::core()),
            Self::JetStream { replicas } => Box::new(Nats::jet_stream(end, name, replicas)),
            Self::Echo { message_bytes } => Box::new(Echo::new(message_bytes)),
            Self::Mqtt { qos } => Box::new(Mqtt::new(qos, name)),
        }
    }

    /// Whether a publisher is told that the broker has its events.
    pub fn acknowledges(self) -> bool {
        match self {
            Self::ZmtpPubSub | Self::Nats | Self::Mqtt { qos: 0 } => false,
            Self::ZmtpDealer | Self::JetStream { .. } | Self::Echo { .. } | Self::Mqtt { .. } => true,
        }
    }

    /// In words.
    pub fn description(self) -> String {
        match self {
            Self::ZmtpPubSub => "ZMTP, PUB to SUB, two frames".into(),
            Self::ZmtpDealer => "ZMTP, DEALER to DEALER, acknowledged".into(),
            Self::Nats => "NATS core".into(),
            Self::JetStream { replicas } => format!("NATS JetStream R{replicas}, acknowledged"),
            Self::Echo { .. } => "bare TCP".into(),
            Self::Mqtt { qos } => format!("MQTT 3.1.1, QoS {qos}"),
        }
    }
}
