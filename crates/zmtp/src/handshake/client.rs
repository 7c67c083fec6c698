//! The client's side.

use std::sync::Arc;

use super::{Established, Handshake, Progress, READY};
use crate::command;
use crate::curve::{CurveClient, ExpectReady};
use crate::error::ConnectionError;
use crate::limits::Limits;
use crate::metadata::Metadata;
use crate::plain;
use crate::protection::Protection;
use crate::random::Random;
use crate::settings::{ClientSecurity, ClientSettings};

/// A client that waits for a command.
pub(crate) struct ClientHandshake {
    settings: Arc<ClientSettings>,
    awaits: Awaits,
}

enum Awaits {
    /// Of NULL, or the last command of PLAIN.
    Ready,
    PlainWelcome,
    CurveWelcome(CurveClient),
    CurveReady(ExpectReady),
}

impl ClientHandshake {
    /// Appends the first command, which does not wait for the server's greeting: a round trip less.
    pub fn begin(settings: Arc<ClientSettings>, random: Random, out: &mut Vec<u8>) -> Self {
        let awaits = match &settings.security {
            ClientSecurity::Null => {
                command::push(READY, &[settings.metadata.as_bytes()], out);
                Awaits::Ready
            }
            ClientSecurity::Plain(credentials) => {
                credentials.push_hello(out);
                Awaits::PlainWelcome
            }
            ClientSecurity::Curve { own, server } => Awaits::CurveWelcome(CurveClient::hello(Arc::clone(own), server.clone(), random, out)),
        };
        Self { settings, awaits }
    }

    pub fn step(self, body: &mut [u8], limits: &Limits, out: &mut Vec<u8>) -> Result<Progress, ConnectionError> {
        let settings = self.settings;
        let goes = |settings, awaits| Ok(Progress::Goes(Handshake::Client(Self { settings, awaits })));
        match self.awaits {
            Awaits::Ready => {
                let metadata = fitting(&settings, command::expect(READY, body)?, limits)?;
                Ok(Progress::Done(Established { metadata, protection: Protection::None }))
            }
            Awaits::PlainWelcome => {
                if !command::expect(plain::WELCOME, body)?.is_empty() {
                    return Err(ConnectionError::Malformed { command: plain::WELCOME, expected: "nothing behind the name" });
                }
                command::push(plain::INITIATE, &[settings.metadata.as_bytes()], out);
                goes(settings, Awaits::Ready)
            }
            Awaits::CurveWelcome(curve) => {
                let ready = curve.welcome(body, settings.metadata.as_bytes(), out)?;
                goes(settings, Awaits::CurveReady(ready))
            }
            Awaits::CurveReady(curve) => {
                let (metadata, channel) = curve.ready(body)?;
                let metadata = fitting(&settings, metadata, limits)?;
                Ok(Progress::Done(Established { metadata, protection: Protection::Curve(Box::new(channel)) }))
            }
        }
    }
}

/// The properties of a server whose socket type may talk to ours.
fn fitting(settings: &ClientSettings, metadata: &[u8], limits: &Limits) -> Result<Metadata, ConnectionError> {
    let metadata = Metadata::parse(metadata, limits)?;
    let (came, own) = (metadata.socket_type(), settings.metadata.socket_type());
    if own.may_talk_to(came) {
        return Ok(metadata);
    }
    Err(ConnectionError::NotTaken { came: came.name(), taken: format!("what {own} talks to") })
}
