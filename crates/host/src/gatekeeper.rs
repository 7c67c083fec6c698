//! Dialogues with the gatekeepers of other clouds (reference section 9.1), carried by relays: [`asking`] has this cloud's side of those that it begins,
//! [`answering`] the other.
//!
//! ```text
//! Control ── ask ──> Gatekeeper ── call, question ──> Relay ══ ... ══ another cloud's gatekeeper
//!         <─ answer_question ── listener at every relay of every other cloud
//! ```
//!
//! What is right is decided in `arrowhead::{dialogue, gatekeeper}`; what is sealed how in `trust::sealed`. Here are the waits, the queues and the places.

mod answering;
mod asking;
mod asking_time;
mod heard;
mod relay_test;
mod times;
mod traced;

use std::{
    collections::BTreeSet,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{
    common_name::{CommonNameError, SystemCommonName},
    dialogue::{FixedAnswers, GENERAL_TOPIC, SessionId, Subject, gatekeeper_of},
    error::ArrowheadError,
    record::{Cloud, CloudId},
};
use bodkin_trust::{
    Identity, MessageFault, MessageOpener, MessageSealer, RelayMessage, SealError, base64,
    jose::{SealingKey, UnusableKey, VerifyingKey},
};
use tokio::time::{Instant, timeout_at};

pub use self::{
    answering::answer_calls,
    asking::Late,
    asking_time::AskingTime,
    heard::HeardEvents,
    relay_test::{JoinedTest, RelayTest},
    times::{DialogueTimes, Part},
};
use crate::{
    control::now,
    relay::{Destination, Heard, Messages, Relay, RelayError, RelayPlace, Relays},
    sealing::in_turn,
    seldom::SeldomOf,
    shares::Shares,
    trace::Traces,
};

/// Dialogues that look for a service, and again as many others, that this cloud has begun and that are under way at the same time; more wait for their turn, no longer than a neighbour may take.
pub const DIALOGUES_MAX: usize = 50;
/// Of either kind, those with one cloud: while it is silent the others are asked.
const DIALOGUES_OF_ONE_MAX: usize = 40;
/// Dialogues that other clouds have begun and that are under way at the same time; more wait for their turn.
const ANSWERS_MAX: usize = 50;
/// Of these, those of one cloud.
const ANSWERS_OF_ONE_MAX: usize = 40;
/// Dialogues that came to nothing in time, and whose answers are waited for, because they may grant a tunnel that is to be closed; of one more it is closed by nobody but its own gateway.
const LATE_MAX: usize = 50;
/// Of these, those with one cloud.
const LATE_OF_ONE_MAX: usize = 40;
/// Calls that wait for their turn, those under way among them; one more is dropped and told, and its caller calls again or gives up.
const CALLS_MAX: usize = 4_096;
/// Of these, those of one cloud.
const CALLS_OF_ONE_MAX: usize = 3_072;
/// Bytes of a call on the topic of all gatekeepers; a longer one is none.
const CALL_BYTES_MAX: usize = 16 * 1024;
/// Messages in one wait that are not what is waited for; behind them the dialogue is given up. A session of a tunnel ends after as many in a row.
pub(crate) const STRAY_MESSAGES_MAX: usize = 16;

/// Connections to relays.
pub trait Links: Send + Sync {
    /// The connection to a relay; asked again, the same one.
    fn link(&self, place: &RelayPlace) -> Arc<dyn Relay>;

    /// Ends those to other relays than these.
    fn keep(&self, wanted: &BTreeSet<RelayPlace>);

    /// All that there are.
    fn all(&self) -> Vec<Arc<dyn Relay>>;
}

impl Links for Relays {
    fn link(&self, place: &RelayPlace) -> Arc<dyn Relay> {
        Self::link(self, place)
    }

    fn keep(&self, wanted: &BTreeSet<RelayPlace>) {
        Self::keep(self, |place| wanted.contains(place));
    }

    fn all(&self) -> Vec<Arc<dyn Relay>> {
        Self::all(self)
    }
}

/// Why there can be no Gatekeeper.
#[derive(Debug, thiserror::Error)]
pub enum GatekeeperError {
    /// Its key does not seal.
    #[error("the Gatekeeper's key cannot be used between clouds: {0}")]
    Key(#[from] UnusableKey),
    /// Its name says no cloud.
    #[error("the Gatekeeper's certificate does not say which cloud it is of: {0}")]
    Name(#[from] CommonNameError),
}

/// What became of dialogues since the start.
#[derive(Debug, Default)]
pub struct DialogueCounts {
    /// Begun by this cloud.
    pub asked: AtomicU64,
    /// Of these, those that came to nothing.
    pub failed: AtomicU64,
    /// Begun by others, and answered.
    pub answered: AtomicU64,
    /// Calls that were not taken, and dialogues behind them that came to nothing.
    pub not_answered: AtomicU64,
}

/// Speaks with the gatekeepers of other clouds.
pub struct Gatekeeper {
    own: SystemCommonName,
    keys: ArcSwap<Keys>,
    links: Box<dyn Links>,
    /// For each step of a dialogue.
    patience: Duration,
    /// Places of dialogues that look for a service, and of all others: what goes on to negotiate is not to wait behind everybody who begins.
    searching: Shares,
    negotiating: Shares,
    calls: Shares,
    answered: Shares,
    /// Places of dialogues whose late answers are waited for.
    late: Shares,
    /// Places of tests of relays.
    tests: Shares,
    told: SeldomOf,
    /// What is answered without asking what there is: for measurements.
    fixed: FixedAnswers,
    /// Where spans of traces go.
    traces: Option<Arc<Traces>>,
    /// For whoever watches.
    pub counts: DialogueCounts,
    /// How long they took.
    pub times: DialogueTimes,
    /// Events of other clouds.
    pub heard: Arc<HeardEvents>,
}

/// What a gatekeeper or gateway signs, seals and opens with.
pub(crate) struct Keys {
    pub(crate) sealer: MessageSealer,
    pub(crate) opener: MessageOpener,
    /// Base64 of the public key.
    pub(crate) authentication_info: String,
}

impl Keys {
    pub(crate) fn new(identity: &Identity) -> Result<Self, UnusableKey> {
        Ok(Self {
            sealer: MessageSealer::new(identity.key())?,
            opener: MessageOpener::new(identity.key())?,
            authentication_info: base64::encode(identity.certificate().public_key_info()),
        })
    }
}

impl Gatekeeper {
    /// For the Gatekeeper's identity. `patience` is for how long each step of a dialogue may take.
    pub fn new(identity: &Identity, patience: Duration, links: Box<dyn Links>) -> Result<Self, GatekeeperError> {
        Ok(Self {
            own: identity.certificate().system()?,
            keys: ArcSwap::from_pointee(Keys::new(identity)?),
            links,
            patience,
            searching: Shares::new(DIALOGUES_MAX, DIALOGUES_OF_ONE_MAX),
            negotiating: Shares::new(DIALOGUES_MAX, DIALOGUES_OF_ONE_MAX),
            calls: Shares::new(CALLS_MAX, CALLS_OF_ONE_MAX),
            answered: Shares::new(ANSWERS_MAX, ANSWERS_OF_ONE_MAX),
            late: Shares::new(LATE_MAX, LATE_OF_ONE_MAX),
            tests: Shares::new(relay_test::TESTS_MAX, relay_test::TESTS_OF_ONE_MAX),
            told: SeldomOf::default(),
            fixed: FixedAnswers::default(),
            traces: None,
            counts: DialogueCounts::default(),
            times: DialogueTimes::default(),
            heard: Arc::default(),
        })
    }

    /// The time of a request that asks other clouds, from now on.
    pub fn asking_time(&self) -> AskingTime {
        AskingTime::begin(self.patience)
    }

    /// The places that a dialogue takes one of.
    fn places(&self, subject: Subject) -> &Shares {
        match subject {
            Subject::GsdPoll | Subject::MultiGsdPoll => &self.searching,
            _ => &self.negotiating,
        }
    }

    /// Answers the same, whoever asks what: for measurements of others.
    pub fn answering(self, fixed: FixedAnswers) -> Self {
        if !fixed.is_empty() {
            tracing::warn!(system = "gatekeeper", about = ?fixed, "other clouds are answered the same whatever they ask: for measurements only");
        }
        Self { fixed, ..self }
    }

    /// Who it is.
    pub fn own_name(&self) -> &SystemCommonName {
        &self.own
    }

    /// How it is with the connection to each relay: where it is, and in which state.
    pub fn relays(&self) -> Vec<(String, String)> {
        self.links.all().iter().map(|relay| (relay.place().to_string(), relay.state().to_string())).collect()
    }

    /// Base64 of its public key, by which other clouds know it.
    pub fn authentication_info(&self) -> String {
        self.keys.load().authentication_info.clone()
    }

    /// Goes on with another identity. Other clouds refuse it until they are told its key.
    pub fn replace_identity(&self, identity: &Identity) -> Result<(), GatekeeperError> {
        let keys = Keys::new(identity)?;
        if keys.authentication_info != self.keys.load().authentication_info {
            tracing::warn!(system = "gatekeeper", "the Gatekeeper has another key: neighbor clouds refuse it until they have the new one");
            self.keys.store(Arc::new(keys));
        }
        Ok(())
    }

    /// Signs and seals a message; off the threads that carry others.
    async fn seal(&self, message: RelayMessage, partner: &Arc<Partner>) -> Result<String, Fault> {
        let (keys, partner) = (self.keys.load_full(), partner.clone());
        let sealed = in_turn(move || keys.sealer.seal(&message, &partner.sealing, now()));
        Ok(sealed.await.map_err(|_| Fault::Stopping)??)
    }

    /// Opens a message that the partner has to have signed, off the threads that carry others, and returns what `take` returns of it. A message that `take`
    /// has no use for is not remembered: it would take the memory of messages that have one.
    async fn open<T>(
        &self,
        sealed: String,
        partner: &Arc<Partner>,
        take: impl Fn(RelayMessage) -> Option<T>,
    ) -> Result<Result<Option<T>, MessageFault>, Fault> {
        let (keys, sender) = (self.keys.load_full(), partner.clone());
        let read = in_turn(move || (keys.opener.read(&sealed, &sender.verifying), keys)).await;
        let (read, keys) = read.map_err(|_| Fault::Stopping)?;
        Ok(match read.map(|read| read.select(|message| take(message).ok_or(()))) {
            Ok(Ok(useful)) => keys.opener.accept(useful, &partner.told(), now()).map(Some),
            Ok(Err(())) => Ok(None),
            Err(fault) => Err(fault),
        })
    }

    /// Waits until then for the message that `take` takes; what else comes, forged or repeated, is told to the log and to nobody else.
    async fn hear<T>(
        &self,
        messages: &mut Messages,
        partner: &Arc<Partner>,
        (awaited, until): (&'static str, Instant),
        take: impl Fn(RelayMessage) -> Option<T>,
    ) -> Result<T, Fault> {
        let begun = Instant::now();
        for _ in 0..STRAY_MESSAGES_MAX {
            let heard = timeout_at(until, messages.next()).await.map_err(|_| Fault::silence(awaited, begun))??;
            let sealed = match heard {
                Heard::Message(sealed) => sealed,
                Heard::Bytes(_) => {
                    self.tell(partner, "is said to send a message that is not taken: it is of bytes, and gatekeepers send texts");
                    continue;
                }
                Heard::Interrupted => return Err(Fault::Interrupted),
            };
            match self.open(sealed, partner, &take).await? {
                Ok(Some(taken)) => return Ok(taken),
                Ok(None) => self.tell(partner, &format!("sends something else than {awaited}")),
                Err(fault) => self.tell(partner, &format!("is said to send a message that is not taken: {fault}")),
            }
        }
        Err(Fault::Garbage(awaited))
    }

    /// When a step of a dialogue that begins now is over, where nobody waits for no longer.
    fn patient(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Sends a message, which the relay has to take by then.
    async fn send(&self, relay: &dyn Relay, to: &Destination, message: String, until: Instant) -> Result<(), Fault> {
        let begun = Instant::now();
        let sent = timeout_at(until, relay.send(to, message)).await;
        Ok(sent.map_err(|_| Fault::silence("the relay to take a message", begun))??)
    }

    /// Listens; the relay has to confirm that by then.
    async fn listen(&self, relay: &dyn Relay, to: &Destination, until: Instant) -> Result<Messages, Fault> {
        let begun = Instant::now();
        let listening = timeout_at(until, relay.listen(to)).await;
        Ok(listening.map_err(|_| Fault::silence("the relay to listen", begun))??)
    }

    /// Removes a queue; that it cannot be is the relay's to settle, by its idle time.
    async fn remove(&self, relay: &dyn Relay, queue: &Destination) {
        let removed = timeout_at(self.patient(), relay.remove(queue)).await;
        if let Ok(Err(error)) = removed {
            tracing::debug!(system = "gatekeeper", %error, "a queue was not removed");
        }
    }

    /// Tells the log, of the same by the same cloud once a minute.
    fn tell(&self, partner: &Partner, what: &str) {
        if let Some(times) = self.told.due(&format!("{} {what}", partner.cloud)) {
            tracing::warn!(system = "gatekeeper", cloud = partner.told(), times, "the other cloud's gatekeeper {what}");
        }
    }
}

/// The cloud at the other side of a dialogue.
struct Partner {
    cloud: CloudId,
    name: SystemCommonName,
    sealing: SealingKey,
    verifying: VerifyingKey,
}

impl Partner {
    fn new(cloud: &Cloud) -> Result<Self, ArrowheadError> {
        let name = gatekeeper_of(cloud);
        let key = cloud.authentication_info.as_deref().unwrap_or_default();
        let refused = |error: UnusableKey| {
            ArrowheadError::invalid_parameter(format!("The authenticationInfo of cloud {}.{}: {error}.", cloud.name, cloud.operator))
        };
        Ok(Self {
            cloud: cloud.id,
            name,
            sealing: SealingKey::from_authentication_info(key).map_err(refused)?,
            verifying: VerifyingKey::from_authentication_info(key).map_err(refused)?,
        })
    }

    /// The cloud, as it is told.
    fn told(&self) -> String {
        format!("{}.{}", self.name.cloud.cloud, self.name.cloud.operator)
    }
}

/// The two queues of a dialogue.
struct Queues {
    request: Destination,
    response: Destination,
}

impl Queues {
    /// Of a dialogue in which `answerer` is called.
    fn new(session: &SessionId, answerer: &SystemCommonName) -> Result<Self, Fault> {
        let queue = |name: String| Destination::queue(&name).map_err(|error| Fault::Name(error.to_string()));
        Ok(Self { request: queue(session.request_queue(answerer))?, response: queue(session.response_queue(answerer))? })
    }
}

/// The topic of all gatekeepers.
fn topic() -> Destination {
    Destination::topic(GENERAL_TOPIC).expect("it is a name")
}

/// Why a dialogue came to nothing.
#[derive(Debug)]
enum Fault {
    /// The time was over while this was waited for, so long.
    Silence(&'static str, Duration),
    /// The relay does not do its part.
    Relay(RelayError),
    /// The connection to the relay broke, and messages may be missing.
    Interrupted,
    /// What came instead of this could not be read.
    Garbage(&'static str),
    /// What was to be said cannot be.
    Seal(SealError),
    /// The cloud's name makes no queue.
    Name(String),
    /// The other side of a test of a relay has ended it.
    Closed,
    /// The cloud stops.
    Stopping,
}

impl Fault {
    fn silence(awaited: &'static str, since: Instant) -> Self {
        Self::Silence(awaited, since.elapsed())
    }
}

impl From<RelayError> for Fault {
    fn from(error: RelayError) -> Self {
        Self::Relay(error)
    }
}

impl From<SealError> for Fault {
    fn from(error: SealError) -> Self {
        Self::Seal(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence(awaited, _) => write!(f, "the time was over while it was waited for {awaited}"),
            Self::Relay(error) => error.fmt(f),
            Self::Interrupted => f.write_str("the connection to the relay broke in the middle of the dialogue"),
            Self::Garbage(awaited) => write!(f, "{STRAY_MESSAGES_MAX} messages came, and none was {awaited}"),
            Self::Seal(error) => error.fmt(f),
            Self::Name(error) => write!(f, "its name makes no queue: {error}"),
            Self::Closed => f.write_str("the other side has ended the test"),
            Self::Stopping => f.write_str("this cloud stops"),
        }
    }
}

/// Any index below `count`: relays of a cloud share its dialogues.
pub(crate) fn choose(count: usize) -> usize {
    (RandomState::new().hash_one(0) % count as u64) as usize
}

#[cfg(test)]
mod tests;
