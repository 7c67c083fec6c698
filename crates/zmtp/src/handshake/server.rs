//! The server's side.

use std::sync::Arc;

use super::{Established, Handshake, Progress, READY};
use crate::command;
use crate::curve::{CurveServer, ExpectInitiate, Initiated, PublicKey};
use crate::error::ConnectionError;
use crate::limits::Limits;
use crate::metadata::Metadata;
use crate::plain::{self, PlainCredentials};
use crate::protection::Protection;
use crate::random::Random;
use crate::settings::{ServerSecurity, ServerSettings};

/// A server that waits for a command.
pub(crate) struct ServerHandshake {
    settings: Arc<ServerSettings>,
    awaits: Awaits,
}

enum Awaits {
    NullReady,
    PlainHello,
    PlainInitiate,
    CurveHello(CurveServer),
    CurveInitiate(ExpectInitiate),
}

/// A peer that has shown who it is, and waits for the host.
pub(crate) enum Decision {
    Plain { settings: Arc<ServerSettings>, credentials: PlainCredentials },
    Curve { initiated: Initiated, metadata: Metadata },
}

impl ServerHandshake {
    pub fn new(settings: Arc<ServerSettings>, random: Random) -> Self {
        let awaits = match &settings.security {
            ServerSecurity::Null => Awaits::NullReady,
            ServerSecurity::Plain => Awaits::PlainHello,
            ServerSecurity::Curve(own) => Awaits::CurveHello(CurveServer::new(Arc::clone(own), random)),
        };
        Self { settings, awaits }
    }

    pub fn step(self, body: &mut [u8], limits: &Limits, out: &mut Vec<u8>) -> Result<Progress, ConnectionError> {
        let settings = self.settings;
        let goes = |settings, awaits| Ok(Progress::Goes(Handshake::Server(Self { settings, awaits })));
        match self.awaits {
            Awaits::NullReady => in_clear(&settings, command::expect(READY, body)?, limits, out),
            Awaits::PlainHello => {
                let credentials = PlainCredentials::from_hello(body)?;
                Ok(Progress::Asks(Decision::Plain { settings, credentials }))
            }
            Awaits::PlainInitiate => in_clear(&settings, command::expect(plain::INITIATE, body)?, limits, out),
            Awaits::CurveHello(curve) => goes(settings, Awaits::CurveInitiate(curve.hello(body, out)?)),
            Awaits::CurveInitiate(curve) => {
                let (metadata, initiated) = curve.initiate(body)?;
                let metadata = taken(&settings, metadata, limits)?;
                Ok(Progress::Asks(Decision::Curve { initiated, metadata }))
            }
        }
    }
}

impl Decision {
    /// The peer may come in: appends the command that says so.
    pub fn allow(self, out: &mut Vec<u8>) -> Progress {
        match self {
            Self::Plain { settings, .. } => {
                command::push(plain::WELCOME, &[], out);
                Progress::Goes(Handshake::Server(ServerHandshake { settings, awaits: Awaits::PlainInitiate }))
            }
            Self::Curve { initiated, metadata } => {
                let channel = initiated.ready(answer(&metadata).as_bytes(), out);
                Progress::Done(Established { metadata, protection: Protection::Curve(Box::new(channel)) })
            }
        }
    }

    /// By what the peer has shown who it is.
    pub fn credentials(&self) -> Credentials<'_> {
        match self {
            Self::Plain { credentials, .. } => Credentials::Plain(credentials),
            Self::Curve { initiated, .. } => Credentials::Curve(&initiated.client),
        }
    }
}

/// By what a peer shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials<'c> {
    /// A name and a password, which anybody on the way has read.
    Plain(&'c PlainCredentials),
    /// The key that the peer has proved to hold.
    Curve(&'c PublicKey),
}

/// Reads the last command of a handshake in clear and answers with READY.
fn in_clear(settings: &ServerSettings, metadata: &[u8], limits: &Limits, out: &mut Vec<u8>) -> Result<Progress, ConnectionError> {
    let metadata = taken(settings, metadata, limits)?;
    command::push(READY, &[answer(&metadata).as_bytes()], out);
    Ok(Progress::Done(Established { metadata, protection: Protection::None }))
}

/// The properties of a peer whose socket type is taken.
fn taken(settings: &ServerSettings, metadata: &[u8], limits: &Limits) -> Result<Metadata, ConnectionError> {
    let metadata = Metadata::parse(metadata, limits)?;
    let came = metadata.socket_type();
    if settings.takes.contains(&came) {
        return Ok(metadata);
    }
    let taken: Vec<&str> = settings.takes.iter().map(|socket_type| socket_type.name()).collect();
    Err(ConnectionError::NotTaken { came: came.name(), taken: taken.join(", ") })
}

/// What we are to such a peer.
fn answer(metadata: &Metadata) -> Metadata {
    Metadata::of(metadata.socket_type().counterpart())
}
