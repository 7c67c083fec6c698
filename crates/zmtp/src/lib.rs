//! ZMTP 3.0 and 3.1 (RFC 23, RFC 37) as a pure machine, for either end of a connection: greeting, mechanisms NULL, PLAIN (RFC 24) and
//! CURVE (RFC 25, RFC 26), frames, multipart messages, subscriptions, heartbeats.
//!
//! There is no socket, clock or randomness here: the host reads and writes, and gives the octets that nobody may guess.
//!
//! ```
//! use std::sync::Arc;
//! use bodkin_zmtp::{ClientSecurity, ClientSettings, Connection, Event, Limits, Metadata, Random, ServerSecurity, ServerSettings, SocketType};
//!
//! let limits = Limits::default();
//! let takes = vec![SocketType::Push];
//! let server = Arc::new(ServerSettings { limits, takes, security: ServerSecurity::Null });
//! let client = Arc::new(ClientSettings { limits, metadata: Metadata::of(SocketType::Push), security: ClientSecurity::Null });
//!
//! // Each end has bytes to send at once.
//! let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
//! let mut server = Connection::server(server, Random::new(&mut [0; Random::OCTETS]), &mut to_client);
//! let mut client = Connection::client(client, Random::new(&mut [0; Random::OCTETS]), &mut to_server);
//!
//! // What comes in is given to `receive` until it finds nothing more; what it writes is to be sent.
//! let received = server.receive(&mut to_server, &mut to_client)?;
//! assert_eq!(received.event, Some(Event::Ready));
//! let received = client.receive(&mut to_client, &mut Vec::new())?;
//! assert_eq!(received.event, Some(Event::Ready));
//!
//! to_server.clear();
//! client.sender().expect("it is ready").message(&[b"temperature", b"21.5"], &mut to_server);
//! let received = server.receive(&mut to_server, &mut to_client)?;
//! let Some(Event::Message(message)) = received.event else { panic!("{received:?}") };
//! assert_eq!(message.split(), Some([&b"temperature"[..], b"21.5"]));
//! # Ok::<(), bodkin_zmtp::ConnectionError>(())
//! ```

mod assembly;
mod command;
mod connection;
mod curve;
mod error;
mod event;
mod frame;
mod greeting;
mod handshake;
mod heartbeat;
mod limits;
mod message;
mod metadata;
mod plain;
mod protection;
mod random;
mod sender;
mod settings;
mod socket_type;
mod subscriptions;

pub use crate::{
    command::PING_CONTEXT_BYTES_MAX,
    connection::Connection,
    curve::{KeyError, KeyPair, PublicKey, SecretKey},
    error::ConnectionError,
    event::{Event, Peer, Received},
    frame::{FrameHead, HEAD_BYTES_MAX},
    greeting::GREETING_BYTES,
    handshake::Credentials,
    heartbeat::{Beat, Heartbeat, HeartbeatPolicy},
    limits::Limits,
    message::{Envelope, Frames, Message},
    metadata::{Metadata, PropertyError},
    plain::{CredentialsError, PlainCredentials},
    random::Random,
    sender::Sender,
    settings::{ClientSecurity, ClientSettings, ServerSecurity, ServerSettings},
    socket_type::SocketType,
    subscriptions::{SubscriptionError, SubscriptionLimits, Subscriptions},
};
