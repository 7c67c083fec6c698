//! The words of two gatekeepers at a relay (reference section 9.1): who is called, in which queues they speak, and what about.

mod fixed;

use std::{fmt, sync::Arc};

use serde::{Deserialize, de::IgnoredAny};

use crate::{
    common_name::SystemCommonName,
    error::ArrowheadError,
    form::Advertisement,
    json,
    record::{Cloud, CloudId},
    snapshot::Snapshot,
};

pub use self::fixed::{FixedAnswers, FixedAnswersError};

/// The topic that every gatekeeper hears at every relay.
pub const GENERAL_TOPIC: &str = "General-M5QTZXM9G9AnpPHWT6WennWu";

/// Letters of another cloud's words about a refusal that are passed on to whoever has asked, and to logs; more are cut off.
const WORDS_MAX: usize = 1_000;

/// Letters and digits of a session id.
pub const SESSION_ID_LENGTH: usize = 48;
const DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Letters and digits at the end of a tunnel's id that follow from those in front of them; of a tunnel in bytes so many in front of these too. 32 that nobody can guess are
/// enough: 190 bits.
const MARK_LENGTH: usize = 8;

/// What follows from an id's first letters and digits: FNV-1a of them, written with its digits.
fn mark(drawn: &str) -> String {
    let mut hash = drawn.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mut digit = || {
        let digit = DIGITS[(hash % DIGITS.len() as u64) as usize];
        hash /= DIGITS.len() as u64;
        char::from(digit)
    };
    (0..MARK_LENGTH).map(|_| digit()).collect()
}

/// What a dialogue, or a tunnel's queues, are known by: 48 letters and digits that nobody can guess. Who does not know them cannot listen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

/// A text that is no session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id has {SESSION_ID_LENGTH} letters and digits")]
pub struct SessionIdError;

impl SessionId {
    /// Of random numbers.
    pub fn from_random(random: [u16; SESSION_ID_LENGTH]) -> Self {
        let digits = random.map(|number| char::from(DIGITS[usize::from(number) % DIGITS.len()]));
        Self(digits.iter().collect::<String>().into())
    }

    /// Of random numbers, for a tunnel whose provider's gateway is a Bodkin: so the consumer's gateway knows that it may speak by frames there. To upstream's
    /// it is an id like any other.
    pub fn of_numbered_tunnel(random: [u16; SESSION_ID_LENGTH]) -> Self {
        let drawn = Self::from_random(random);
        let (drawn, _) = drawn.0.split_at(SESSION_ID_LENGTH - MARK_LENGTH);
        Self(format!("{drawn}{}", mark(drawn)).into())
    }

    /// Whether it was made by [`Self::of_numbered_tunnel`]; of an id that another gateway has drawn that is so once in 10^14.
    pub fn is_of_numbered_tunnel(&self) -> bool {
        let (drawn, marked) = self.0.split_at(SESSION_ID_LENGTH - MARK_LENGTH);
        mark(drawn) == marked
    }

    /// The same of a gateway that also takes messages of bytes, where the relay carries them. To a gateway that knows numbered tunnels only it is the id of one.
    pub fn of_tunnel_in_bytes(random: [u16; SESSION_ID_LENGTH]) -> Self {
        let drawn = Self::from_random(random);
        let (drawn, _) = drawn.0.split_at(SESSION_ID_LENGTH - 2 * MARK_LENGTH);
        let marked = format!("{drawn}{}", mark(drawn));
        Self(format!("{marked}{}", mark(&marked)).into())
    }

    /// Whether it was made by [`Self::of_tunnel_in_bytes`].
    pub fn is_of_tunnel_in_bytes(&self) -> bool {
        let (drawn, marks) = self.0.split_at(SESSION_ID_LENGTH - 2 * MARK_LENGTH);
        self.is_of_numbered_tunnel() && marks.starts_with(&mark(drawn))
    }

    /// Takes one that another cloud has drawn.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        let is_good = text.len() == SESSION_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_good { Ok(Self(text.into())) } else { Err(SessionIdError) }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The queue of what `recipient` is asked; of a tunnel, of what goes to the provider's gateway, whose name it is.
    pub fn request_queue(&self, recipient: &SystemCommonName) -> String {
        format!("REQ-{recipient}-{self}")
    }

    /// The queue of what `recipient` answers.
    pub fn response_queue(&self, recipient: &SystemCommonName) -> String {
        format!("RESP-{recipient}-{self}")
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Not whole: who knows a session id can listen.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({}..)", &self.0[..6])
    }
}

/// What a dialogue is about: the message type of its question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Who offers a service?
    GsdPoll,
    /// Who offers several services?
    MultiGsdPoll,
    /// May this consumer use this service, and how?
    IcnProposal,
    /// Can the cloud be reached without a gateway?
    AccessType,
    /// Where are the cloud's systems?
    SystemAddressList,
    /// Is the other side ready for a test of the relay?
    QosRelayTest,
    /// Will you take this event? Between two Bodkins only.
    SharedEvent,
}

impl Subject {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::GsdPoll,
        Self::MultiGsdPoll,
        Self::IcnProposal,
        Self::AccessType,
        Self::SystemAddressList,
        Self::QosRelayTest,
        Self::SharedEvent,
    ];

    /// The wire's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GsdPoll => "gsd_poll",
            Self::MultiGsdPoll => "multi_gsd_poll",
            Self::IcnProposal => "icn_proposal",
            Self::AccessType => "access_type",
            Self::SystemAddressList => "system_address_list",
            Self::QosRelayTest => "qos_relay_test",
            Self::SharedEvent => "shared_event",
        }
    }

    /// The subject of a message type.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == text)
    }
}

/// The common name of a cloud's gatekeeper.
pub fn gatekeeper_of(cloud: &Cloud) -> SystemCommonName {
    let name = format!("gatekeeper.{}.{}.arrowhead.eu", cloud.name, cloud.operator);
    SystemCommonName::parse(&name).expect("a cloud's name and operator are parts of a name")
}

/// Why a call is not answered. It is for the own log: the caller hears nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCalled {
    /// Another gatekeeper is called: nothing is wrong.
    #[error("another gatekeeper is called")]
    Other,
    /// The caller is no gatekeeper of a cloud that is known here.
    #[error("{0:?} calls, which is no gatekeeper of a secure cloud that is known here")]
    Stranger(String),
    /// The caller shows another key than the one of its cloud.
    #[error(
        "{0} calls with another key than its cloud's authenticationInfo: either its key has changed, or somebody else calls in its name"
    )]
    Forged(SystemCommonName),
}

/// The cloud that calls the gatekeeper `own`. Its key still has to open the session id: only then has it called.
pub fn caller(snapshot: &Snapshot, call: &Advertisement, own: &SystemCommonName) -> Result<CloudId, NotCalled> {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    if !text(&call.recipient_cn).eq_ignore_ascii_case(&own.to_string()) {
        return Err(NotCalled::Other);
    }
    let sender = text(&call.sender_cn);
    let stranger = || NotCalled::Stranger(sender.chars().take(crate::name::TEXT_LENGTH_MAX).collect());
    let name = SystemCommonName::parse(&sender).ok().filter(|name| name.system.as_str() == "gatekeeper").ok_or_else(stranger)?;
    let cloud = snapshot.cloud_by_name(name.cloud.operator.as_str(), name.cloud.cloud.as_str());
    let cloud = cloud.filter(|cloud| cloud.secure && !cloud.own_cloud).ok_or_else(stranger)?;
    let key = cloud.authentication_info.as_deref().map(str::trim).ok_or_else(stranger)?;
    if key == text(&call.sender_public_key) { Ok(cloud.id) } else { Err(NotCalled::Forged(name)) }
}

/// The answer to a question, if it is no error: that has `errorCode` and `exceptionType`, and no answer has both.
pub fn answer(json: &str) -> Result<&str, ArrowheadError> {
    let unreadable = |error| ArrowheadError::arrowhead(format!("The other cloud's gatekeeper has sent what is no answer: {error}."));
    let Members { error_code, exception_type } = json::parse_object(json).map_err(unreadable)?;
    if error_code.is_none() || exception_type.is_none() {
        return Ok(json);
    }
    let error: ArrowheadError = json::parse_object(json).map_err(unreadable)?;
    let is_error = (400..600).contains(&error.error_code);
    let error_code = if is_error { error.error_code } else { 500 };
    Err(ArrowheadError { error_message: cut(error.error_message), error_code, origin: error.origin.map(cut), ..error })
}

/// What another cloud says of its refusal, as far as it is passed on.
fn cut(words: String) -> String {
    match words.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}..", &words[..end]),
        None => words,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    error_code: Option<IgnoredAny>,
    exception_type: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests;
