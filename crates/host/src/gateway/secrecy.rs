//! What passes the relay: messages of a tunnel, sealed and opened.

use std::sync::Arc;

use bodkin_arrowhead::{dialogue::SessionId, error::ArrowheadError};
use bodkin_relay::tunnel::{Frame, Numbers, Place, Reason, Side};
use bodkin_trust::{
    Direction, MessageFault, RelayMessage, TunnelKey, TunnelSecret,
    jose::{SealingKey, UnusableKey, VerifyingKey},
    replay::ReplayFault,
};

use super::Gateway;
use crate::{control::now, relay::Message, sealing::in_turn};

/// The other gateway's key, to seal for it and to know its signature.
pub(super) struct PeerKeys {
    sealing: SealingKey,
    verifying: VerifyingKey,
}

impl PeerKeys {
    pub(super) fn new(key: &str) -> Result<Self, ArrowheadError> {
        let refused = |error: UnusableKey| ArrowheadError::invalid_parameter(format!("The other gateway's public key: {error}."));
        Ok(Self {
            sealing: SealingKey::from_authentication_info(key).map_err(refused)?,
            verifying: VerifyingKey::from_authentication_info(key).map_err(refused)?,
        })
    }
}

/// What a message has brought.
pub(super) enum Opened {
    /// The consumer's gateway opens a numbered session, and waits for so many milliseconds.
    Session(TunnelSecret, u32),
    /// Bytes of a session that is not numbered.
    Plain(Vec<u8>),
    /// What was said by number, and in which form.
    Frame(Frame, Form),
}

/// In which form a numbered message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As Base64.
    Text,
    /// As bytes: who sends such takes them too.
    Bytes,
}

/// A message that was not taken.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// It is passed over, and told.
    Stray(String),
    /// The other gateway's message has come before: a relay redelivers after a reconnect.
    Duplicate,
    /// The session cannot go on.
    Over(Reason),
}

impl std::fmt::Debug for PeerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerKeys(..)")
    }
}

/// Opens what comes.
pub(super) struct Ear {
    keys: Arc<PeerKeys>,
    session: SessionId,
    /// The other gateway's cloud, in whose share opened messages are remembered.
    cloud: Arc<str>,
    /// True until the session is opened, at the provider's side.
    awaits_opening: bool,
    /// Of a numbered session.
    key: Option<TunnelKey>,
    numbers: Numbers,
}

impl Ear {
    /// Creates the ear of a session. `cloud` is the other gateway's.
    pub(super) fn new(keys: Arc<PeerKeys>, session: SessionId, (cloud, side): (String, Side)) -> Self {
        let awaits_opening = side == Side::Provider;
        Self { keys, session, cloud: cloud.into(), awaits_opening, key: None, numbers: Numbers::default() }
    }

    /// From here on messages are numbered.
    pub(super) fn number(&mut self, key: TunnelKey) {
        self.key = Some(key);
    }

    /// Opens a message.
    pub(super) async fn open(&mut self, gateway: &Gateway, message: Message) -> Result<Opened, NotOpened> {
        let stray = |why: &dyn std::fmt::Display| NotOpened::Stray(format!("a message of a tunnel was passed over: {why}"));
        let message = match (&self.key, message) {
            (Some(key), Message::Text(text)) => {
                let (number, frame) = key.open(&text).map_err(|fault| stray(&fault))?;
                return numbered(&mut self.numbers, number, (frame, 0), Form::Text);
            }
            (Some(key), Message::Bytes(mut bytes)) => {
                let (number, at) = key.open_bytes(&mut bytes).map_err(|fault| stray(&fault))?;
                return numbered(&mut self.numbers, number, (bytes, at), Form::Bytes);
            }
            (None, Message::Bytes(_)) => return Err(stray(&"it is of bytes, and the session is not opened")),
            (None, Message::Text(text)) => text,
        };
        let (keys, peer, cloud) = (gateway.keys.load_full(), self.keys.clone(), self.cloud.clone());
        let (session, awaits_opening) = (self.session.clone(), self.awaits_opening);
        let opened = in_turn(move || {
            let read = keys.opener.read(&message, &peer.verifying).map_err(|fault| stray(&fault))?;
            // A message without a use is not remembered: it would take the memory of messages that have one.
            let useful = read.select(|message| useful(message, &session, awaits_opening)).map_err(|why| stray(&why))?;
            keys.opener.accept(useful, &cloud, now()).map_err(|fault| match fault {
                MessageFault::Replay(ReplayFault::Again) => NotOpened::Duplicate,
                fault => stray(&fault),
            })
        });
        let opened = opened.await.map_err(|_| NotOpened::Over(Reason::Stopping))??;
        self.awaits_opening = false;
        Ok(opened)
    }
}

/// Returns what a message brings to a session that is not numbered, or not yet.
fn useful(message: RelayMessage, own: &SessionId, awaits_opening: bool) -> Result<Opened, String> {
    match message {
        RelayMessage::Raw(bytes) => Ok(Opened::Plain(bytes)),
        RelayMessage::Tunnel { session, .. } if session != *own => Err("it is of another session".to_owned()),
        RelayMessage::Tunnel { .. } if !awaits_opening => Err("it opens a session that is open".to_owned()),
        RelayMessage::Tunnel { bytes, .. } => TunnelSecret::read(&bytes)
            .map(|(secret, silent_ms)| Opened::Session(secret, silent_ms))
            .ok_or_else(|| "it opens a session in a way that is not known".to_owned()),
        _ => Err("it is of a dialogue of gatekeepers".to_owned()),
    }
}

/// What a genuine message of a number brings, whose frame begins there.
fn numbered(numbers: &mut Numbers, number: u64, (message, at): (Vec<u8>, usize), form: Form) -> Result<Opened, NotOpened> {
    match numbers.take(number) {
        Place::Again => Err(NotOpened::Duplicate),
        Place::Behind(missing) => Err(NotOpened::Over(Reason::Lost(missing))),
        Place::Next => match Frame::read_from(message, at) {
            Ok(frame) => Ok(Opened::Frame(frame, form)),
            Err(fault) => Err(NotOpened::Over(Reason::Fault(fault.to_string()))),
        },
    }
}

/// Seals what goes.
pub(super) enum Mouth {
    /// By number.
    Numbered { key: TunnelKey, next: u64 },
    /// Each by itself.
    Plain,
}

/// Seals a message by the other gateway's key; off the threads that carry others.
pub(super) async fn seal(gateway: &Gateway, peer: &Arc<PeerKeys>, message: RelayMessage) -> Result<String, Reason> {
    let (keys, peer) = (gateway.keys.load_full(), peer.clone());
    let sealed = in_turn(move || keys.sealer.seal(&message, &peer.sealing, now())).await;
    match sealed {
        Ok(sealed) => sealed.map_err(|error| Reason::Relay(error.to_string())),
        Err(_) => Err(Reason::Stopping),
    }
}

/// The keys of a session at one of its sides: to seal, and to open.
pub(super) fn session_keys(secret: &TunnelSecret, session: &SessionId, side: Side) -> (TunnelKey, TunnelKey) {
    let [to_provider, to_consumer] = [Direction::ToProvider, Direction::ToConsumer].map(|direction| secret.key(session, direction));
    match side {
        Side::Consumer => (to_provider, to_consumer),
        Side::Provider => (to_consumer, to_provider),
    }
}
