//! Messages between gatekeepers, and between gateways: signed, and sealed for the other cloud (reference section 9.3).
//!
//! ```text
//! RelayMessage ─> claims jti, iat, mst, sid, pld ─> jose (RS512 in RSA-OAEP-256 with A256CBC-HS512) ─> text on a queue
//! ```
//!
//! The relay can read none of it, and can change nothing unnoticed. What it still can do is to lose messages, to hold them up, and to send one again:
//! the last is what a [`MessageOpener`] remembers them for.

mod content_keys;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::{digest, rand};
use bodkin_arrowhead::{
    dialogue::{SESSION_ID_LENGTH, SessionId, Subject},
    json,
    trace::Cause,
    utc::UtcTime,
};
use serde::{Deserialize, Serialize};

use self::content_keys::{DrawnKeys, TakenKeys};
use crate::{
    base64,
    jose::{self, ContentKey, OpeningKey, SealingKey, SigningKey, UnusableKey, VerifyingKey},
    key::PrivateKey,
    replay::{MessageIdentity, ReplayFault, ReplayGuard},
};

/// Bytes of a sealed message; a longer one is refused unread, and none is made. An HTTP request of 1 MiB has 2.4 times as many when it is sealed.
pub const SEALED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a message's identity, drawn at random.
const ID_BYTES: usize = 16;

/// The message type of a tunnel's bytes.
const RAW: &str = "raw";
/// The message type of a gatekeeper that was called.
const ACKNOWLEDGEMENT: &str = "ack";

/// A session id that nobody can guess.
pub fn draw_session() -> SessionId {
    SessionId::from_random(draw())
}

/// The id of a tunnel whose provider's gateway is a Bodkin, and takes messages of bytes.
pub fn draw_numbered_tunnel() -> SessionId {
    SessionId::of_tunnel_in_bytes(draw())
}

fn draw() -> [u16; SESSION_ID_LENGTH] {
    let mut random = [0; 2 * SESSION_ID_LENGTH];
    rand::fill(&mut random).expect("the system gives random bytes");
    std::array::from_fn(|at| u16::from_be_bytes([random[2 * at], random[2 * at + 1]]))
}

/// What one cloud says to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayMessage {
    /// A gatekeeper calls another one, on the topic that all hear.
    Call(SessionId),
    /// The one that was called listens.
    Acknowledgement(SessionId),
    /// A question or its answer.
    Dialogue {
        /// What about.
        subject: Subject,
        /// Which dialogue.
        session: SessionId,
        /// The question's or answer's JSON, or that of an error.
        json: String,
        /// What has caused a question, if it is of a trace. Arrowhead's own gatekeepers do not look at it.
        cause: Option<Cause>,
    },
    /// The same of a kind that is not known here: of another version. The question is told so by an answer of its own kind.
    Unknown {
        /// What it is said to be about, of 1 to 64 bytes.
        subject: String,
        /// Which dialogue.
        session: SessionId,
        /// What is said, unread.
        json: String,
    },
    /// Bytes of a tunnel.
    Raw(Vec<u8>),
    /// The same, said to be of this session: the first message of a tunnel between two Bodkins.
    Tunnel {
        /// The tunnel's queue id.
        session: SessionId,
        /// What is said.
        bytes: Vec<u8>,
    },
}

/// Longest message type; a longer one is none.
const SUBJECT_BYTES_MAX: usize = 64;

/// The claims. Absent members are absent on the wire too.
#[derive(Serialize, Deserialize)]
struct Claims {
    #[serde(default)]
    jti: String,
    iat: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mst: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pld: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl Claims {
    fn new(message: &RelayMessage, now: UtcTime) -> Self {
        let (mst, sid, pld) = match message {
            RelayMessage::Call(session) => (None, Some(session), None),
            RelayMessage::Acknowledgement(session) => (Some(ACKNOWLEDGEMENT), Some(session), None),
            RelayMessage::Dialogue { subject, session, json, .. } => (Some(subject.as_str()), Some(session), Some(json.clone())),
            RelayMessage::Unknown { subject, session, json } => (Some(subject.as_str()), Some(session), Some(json.clone())),
            RelayMessage::Raw(bytes) => (Some(RAW), None, Some(base64::encode(bytes))),
            RelayMessage::Tunnel { session, bytes } => (Some(RAW), Some(session), Some(base64::encode(bytes))),
        };
        let cause = if let RelayMessage::Dialogue { cause, .. } = message { cause.as_ref() } else { None };
        let mut id = [0; ID_BYTES];
        rand::fill(&mut id).expect("the system gives random bytes");
        Self {
            jti: base64::encode_url_safe(&id),
            iat: now.unix_seconds(),
            mst: mst.map(str::to_owned),
            sid: sid.map(|session| session.as_str().to_owned()),
            pld,
            traceparent: cause.map(|cause| cause.context.to_string()),
            tracestate: cause.and_then(|cause| Some(cause.state.as_ref()?.to_string())),
        }
    }

    fn message(self) -> Result<RelayMessage, MessageFault> {
        let session = |sid: Option<String>| {
            let sid = sid.ok_or(MessageFault::Form("it has no session id"))?;
            SessionId::parse(&sid).map_err(|_| MessageFault::Form("its session id is not 48 letters and digits"))
        };
        let payload = self.pld.ok_or(MessageFault::Form("it has no payload"));
        match self.mst.as_deref() {
            None => session(self.sid).map(RelayMessage::Call),
            Some(ACKNOWLEDGEMENT) => session(self.sid).map(RelayMessage::Acknowledgement),
            Some(RAW) => {
                let bytes = base64::decode(&payload?).ok_or(MessageFault::Form("its bytes are not Base64"))?;
                match self.sid {
                    None => Ok(RelayMessage::Raw(bytes)),
                    sid => Ok(RelayMessage::Tunnel { session: session(sid)?, bytes }),
                }
            }
            Some(subject) => {
                let (session, json) = (session(self.sid)?, payload?);
                // What is no context is of no trace, and a question all the same.
                let cause = self.traceparent.and_then(|text| Cause::parse(text.as_bytes(), self.tracestate.as_deref().map(str::as_bytes)));
                match Subject::parse(subject) {
                    Some(subject) => Ok(RelayMessage::Dialogue { subject, session, json, cause }),
                    None if (1..=SUBJECT_BYTES_MAX).contains(&subject.len()) => {
                        Ok(RelayMessage::Unknown { subject: subject.to_owned(), session, json })
                    }
                    None => Err(MessageFault::Form("its message type is none")),
                }
            }
        }
    }
}

/// Why a message was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The other cloud's key is none that can be sealed for.
    #[error(transparent)]
    Key(#[from] UnusableKey),
    /// It would be too long.
    #[error("the message has {0} bytes when it is sealed, and {SEALED_BYTES_MAX} are allowed")]
    TooLong(usize),
}

/// Seals messages. A gatekeeper or gateway has one, with the key of its certificate.
#[derive(Debug)]
pub struct MessageSealer {
    key: SigningKey,
    drawn: Mutex<DrawnKeys>,
}

impl MessageSealer {
    /// Takes the sender's key.
    pub fn new(own: &PrivateKey) -> Result<Self, UnusableKey> {
        Ok(Self { key: SigningKey::new(own)?, drawn: Mutex::default() })
    }

    /// Seals a message for `recipient`.
    pub fn seal(&self, message: &RelayMessage, recipient: &SealingKey, now: UtcTime) -> Result<String, SealError> {
        let claims = serde_json::to_vec(&Claims::new(message, now)).expect("claims have text keys and finite numbers");
        let signed = jose::sign(&claims, &self.key)?;
        let key = lock(&self.drawn).next(recipient, now)?;
        let sealed = jose::seal_by(signed.as_bytes(), &key);
        if sealed.len() > SEALED_BYTES_MAX { Err(SealError::TooLong(sealed.len())) } else { Ok(sealed) }
    }
}

/// A message that is not taken. It is for the own log: whoever has sent it is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageFault {
    /// It is no message, not sealed for this recipient, or not signed by the sender that it should be from.
    #[error("it is not one that the expected sender has sealed for this recipient")]
    Unreadable,
    /// It was made at another time, or has come before.
    #[error(transparent)]
    Replay(#[from] ReplayFault),
    /// The sender has sealed something else than a message.
    #[error("{0}")]
    Form(&'static str),
}

/// Opens messages, each once. A gatekeeper or gateway has one, with the key of its certificate.
#[derive(Debug)]
pub struct MessageOpener {
    key: OpeningKey,
    /// Held for no longer than it is asked, as the next one: keys work meanwhile.
    taken: Mutex<ReplayGuard>,
    content_keys: Mutex<TakenKeys>,
}

impl MessageOpener {
    /// Takes the recipient's key.
    pub fn new(own: &PrivateKey) -> Result<Self, UnusableKey> {
        Ok(Self { key: OpeningKey::new(own)?, taken: Mutex::default(), content_keys: Mutex::default() })
    }

    /// Opens a message that the neighbor `cloud`, whose key is `sender`, has to have signed, and remembers it.
    pub fn open(&self, sealed: &str, (cloud, sender): (&str, &VerifyingKey), now: UtcTime) -> Result<RelayMessage, MessageFault> {
        self.accept(self.read(sealed, sender)?, cloud, now)
    }

    /// Reads a message that `sender` has to have signed, without remembering it. A caller that has a use for the message calls [`Self::accept`] first.
    pub fn read(&self, sealed: &str, sender: &VerifyingKey) -> Result<ReadMessage, MessageFault> {
        if sealed.len() > SEALED_BYTES_MAX {
            return Err(MessageFault::Unreadable);
        }
        let unreadable = |_| MessageFault::Unreadable;
        let known = |wrapped: &str| lock(&self.content_keys).get(wrapped);
        let (signed, content_key) = jose::open_by(sealed, &self.key, known).map_err(unreadable)?;
        let signed = std::str::from_utf8(&signed).map_err(|_| MessageFault::Unreadable)?;
        let claims = jose::verify(signed, sender).map_err(unreadable)?;
        let claims = std::str::from_utf8(&claims).map_err(|_| MessageFault::Unreadable)?;
        let claims: Claims = json::parse_object(claims).map_err(|_| MessageFault::Form("its claims are not those of a message"))?;
        if claims.jti.is_empty() {
            return Err(MessageFault::Form("it has no jti"));
        }
        let sealed_s = claims.iat;
        Ok(ReadMessage { message: claims.message()?, identity: identity(signed), sealed_s, content_key })
    }

    /// Accepts a message of the neighbor `cloud` once, and remembers it in that neighbor's share.
    ///
    /// The share belongs to the cloud and not to the key, because a neighbor may name another gateway key for each tunnel.
    ///
    /// # Errors
    /// Returns `Replay` if the message is a duplicate, or its time does not count.
    pub fn accept<M>(&self, read: ReadMessage<M>, cloud: &str, now: UtcTime) -> Result<M, MessageFault> {
        let ReadMessage { message, identity, sealed_s, content_key } = read;
        lock(&self.taken).take(cloud, identity, sealed_s, now)?;
        // Of who is no neighbour none is kept.
        lock(&self.content_keys).keep(&content_key, now);
        Ok(message)
    }
}

/// A genuine message, or what is of use of it, that [`MessageOpener::accept`] has not checked for duplicates yet.
#[derive(Debug)]
pub struct ReadMessage<M = RelayMessage> {
    message: M,
    identity: MessageIdentity,
    sealed_s: u64,
    content_key: Arc<ContentKey>,
}

impl<M> ReadMessage<M> {
    /// Keeps what `select` returns of the message.
    ///
    /// # Errors
    /// Returns the error of `select`: the message has no use, and nothing remembers it.
    pub fn select<N, E>(self, select: impl FnOnce(M) -> Result<N, E>) -> Result<ReadMessage<N>, E> {
        let Self { message, identity, sealed_s, content_key } = self;
        Ok(ReadMessage { message: select(message)?, identity, sealed_s, content_key })
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // A change leaves it whole wherever it is interrupted.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of what was signed, not of what was sealed: anybody who can read a message can seal it once more.
fn identity(signed: &str) -> MessageIdentity {
    let hash = digest::digest(&digest::SHA256, signed.as_bytes());
    hash.as_ref()[..size_of::<MessageIdentity>()].try_into().expect("SHA-256 has more bytes")
}

#[cfg(test)]
mod tests;
