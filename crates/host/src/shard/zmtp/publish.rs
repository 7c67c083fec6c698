//! Publishing by ZMTP: from a message to the way that every event takes.

use bodkin_arrowhead::{
    access::Denial,
    error::ArrowheadError,
    name::SystemName,
    publication::{Created, JsonText, PublishForm},
    utc::UtcTime,
};
use bodkin_broker::{Refusal, wire::EventHeader};
use bodkin_zmtp::Message;

use super::{LinkKey, Role, Shard};
use crate::{
    route,
    shard::{
        log::Waiting,
        not_taken::NotTaken,
        publish::{Numbering, Published},
        traced::{Publishing, Transport},
    },
    stage::Stage,
};

/// What an event's time came from.
pub(super) const ORIGIN: &str = "ZMTP";

/// Buffers for an event's texts as JSON.
#[derive(Default)]
pub struct Literals {
    event_type: String,
    payload: String,
    metadata: String,
}

/// The frames of an event that are texts.
#[derive(Clone, Copy)]
pub(super) struct EventTexts<'m> {
    pub event_type: &'m [u8],
    pub payload: &'m [u8],
    /// As the member `metaData` in JSON.
    pub metadata: Option<&'m [u8]>,
}

/// The frames of an event.
#[derive(Clone, Copy)]
pub(super) struct EventFrames<'m> {
    pub texts: EventTexts<'m>,
    /// As it came; an empty one, in front of metadata, is none.
    pub header: Option<&'m [u8]>,
}

impl<'m> EventFrames<'m> {
    /// Event type and payload, and behind them the header and the metadata where there are any; `None`: another number of frames has come.
    pub fn read(message: &Message<'m>) -> Option<Self> {
        let mut frames = message.frames();
        let (event_type, payload) = (frames.next()?, frames.next()?);
        let (header, metadata) = (frames.next(), frames.next());
        let texts = EventTexts { event_type, payload, metadata };
        let header = header.filter(|header| metadata.is_none() || !header.is_empty());
        frames.next().is_none().then_some(Self { texts, header })
    }
}

/// The rules about who may publish, asked of whose key it is.
fn denied(denial: &Denial) -> NotTaken {
    NotTaken::Rules(ArrowheadError::auth(format!("{} is unauthorized to publish this.", denial.caller.common_name)))
}

/// A frame that is a text.
fn text<'m>(bytes: &'m [u8], what: &str) -> Result<&'m str, NotTaken> {
    std::str::from_utf8(bytes).map_err(|_| {
        let told = format!("{what} is no UTF-8. Send a text: bytes of other kinds as Base64.");
        NotTaken::Rules(ArrowheadError::bad_payload(told, ORIGIN))
    })
}

/// As whom a peer publishes: the system that its `Identity` names, or the one that is configured for those who name none.
pub(super) fn named(identity: &[u8], configured: Option<&SystemName>) -> Result<SystemName, String> {
    if identity.is_empty() {
        let told = "it does not say which system publishes: a REQ or DEALER socket says it by its routing id, and zmtp_system names one for those who do not";
        return configured.cloned().ok_or_else(|| told.to_owned());
    }
    let name = std::str::from_utf8(identity).map_err(|_| "the routing id is not the name of a system".to_owned())?;
    SystemName::parse(name).map_err(|error| format!("the routing id is not the name of a system: it {error}"))
}

impl Shard {
    /// Takes a message of a peer.
    pub(super) fn take_message(&mut self, slot: usize, message: &Message<'_>) -> Result<(), String> {
        match &self.endpoint.links[slot].role {
            Role::Publisher { system } => {
                let system = system.clone();
                if let Err(error) = self.publish_message((slot, &system), message, None) {
                    self.refuse_untold(Some(&system), &error);
                }
                Ok(())
            }
            Role::Requester { awaits: true, .. } => Err("a REQ waits for its reply before it asks again".to_owned()),
            Role::Requester { system, .. } => {
                let system = system.clone();
                let Some(envelope) = message.envelope().filter(|envelope| envelope.hops().next().is_none()) else {
                    return Err("a request begins with an empty frame".to_owned());
                };
                let key = LinkKey { slot, serial: self.endpoint.links[slot].serial };
                let published = self.publish_message((slot, &system), &envelope.body, Some(Waiting::Link(key)));
                self.answer_request(key, published);
                Ok(())
            }
            Role::Subscriber(_) => Err("a subscriber publishes nothing: use PUB, PUSH or REQ".to_owned()),
            Role::Dealer(_) => self.take_dealer_message(slot, message),
            Role::Stranger | Role::Closing => unreachable!("messages come behind the handshake, and not any more behind the end"),
        }
    }

    /// `publisher` is who gets a reply when an event goes out that is kept.
    fn publish_message(
        &mut self,
        from: (usize, &SystemName),
        message: &Message<'_>,
        publisher: Option<Waiting>,
    ) -> Result<Published, ArrowheadError> {
        let refused = |told: String| ArrowheadError::bad_payload(told, ORIGIN);
        let EventFrames { texts, header } = EventFrames::read(message).ok_or_else(|| {
            let count = message.frame_count();
            refused(format!("An event has two frames, event type and payload, and may have a header and metadata: {count} came."))
        })?;
        let header = header.map(EventHeader::decode).transpose().map_err(|error| refused(format!("Header: {error}.")))?;
        // Who waits for a reply would not get one behind a hand-over.
        if !self.leads() || (publisher.is_some() && self.hand_over.is_some()) {
            return Err(NotTaken::Broker(Refusal::NotLeading).error());
        }
        let created = header.map_or(Created::Unsaid, |header| Created::Stamped(UtcTime::from_unix_nanos(header.created_utc_ns)));
        self.publish_texts(from, texts, created, Numbering::Ours(publisher)).map_err(NotTaken::error)
    }

    /// Publishes an event's texts, as the form that a request's body has. Whether this node leads was asked before.
    pub(super) fn publish_texts(
        &mut self,
        from: (usize, &SystemName),
        EventTexts { event_type, payload, metadata }: EventTexts<'_>,
        created: Created,
        numbering: Numbering,
    ) -> Result<Published, NotTaken> {
        let event_bytes_max = self.context.limits.event_bytes_max;
        if payload.len() > event_bytes_max {
            let told = format!("The payload has {} bytes, at most {event_bytes_max} are taken here.", payload.len());
            return Err(NotTaken::TooLarge(ArrowheadError::bad_payload(told, ORIGIN)));
        }
        let (event_type, payload) = (text(event_type, "Event type")?, text(payload, "Payload")?);
        let metadata = metadata.map(|metadata| text(metadata, "Metadata")).transpose()?;
        let mut literals = std::mem::take(&mut self.endpoint.literals);
        let published = self.publish_as(from, (event_type, payload, metadata), (created, numbering), &mut literals);
        self.endpoint.literals = literals;
        published
    }

    fn publish_as(
        &mut self,
        (slot, system): (usize, &SystemName),
        (event_type, payload, metadata): (&str, &str, Option<&str>),
        (created, numbering): (Created, Numbering),
        literals: &mut Literals,
    ) -> Result<Published, NotTaken> {
        let snapshot = self.context.store.snapshot();
        let link = &mut self.endpoint.links[slot];
        let source = link.source.find(&mut self.endpoint.versions, &snapshot, system).map_err(NotTaken::Rules)?;
        let event_type = JsonText::write(event_type, &mut literals.event_type);
        let payload = JsonText::write(payload, &mut literals.payload);
        let mut form = PublishForm::of(source, event_type, payload, created);
        if let Some(metadata) = metadata {
            form = form.with_metadata(metadata).map_err(NotTaken::Rules)?;
        }
        let cause = form.cause();
        let publishing = self.begin_publish(cause.as_ref());
        let begun = publishing.as_ref().map(Publishing::cause);
        if let Some(begun) = &begun {
            form.carry(begun, &mut literals.metadata);
        }
        let published = self.permit_and_take(slot, form, numbering);
        self.end_publish(publishing, Transport::Zmtp, published.as_ref().map_or_else(|refusal| refusal.status(), |_| 200));
        published
    }

    fn permit_and_take(&mut self, slot: usize, form: PublishForm<'_>, numbering: Numbering) -> Result<Published, NotTaken> {
        let link = &self.endpoint.links[slot];
        let form = route::PUBLISH.admit(&link.caller).and_then(|admitted| admitted.permit(form)).map_err(|denial| denied(&denial))?;
        self.lap(Stage::Parse);
        self.take_in(&form, numbering)
    }

    /// Counts and logs an event whose publisher's socket type takes no answer.
    pub(super) fn refuse_untold(&mut self, system: Option<&SystemName>, error: &ArrowheadError) {
        self.context.counts.refused_untold.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if let Some(times) = self.endpoint.refused_events.due() {
            let reason = &error.error_message;
            let system = system.map_or("nobody", SystemName::as_str);
            tracing::warn!(system, times, reason, "a ZMTP event was refused; REQ sockets are told so, PUB and PUSH cannot be");
        }
    }

    /// Answers a REQ, when the event is in the log; of a durable event type when it is synced, of a real-time topic when it has gone out.
    fn answer_request(&mut self, key: LinkKey, published: Result<Published, ArrowheadError>) {
        match published {
            Ok(Published::AtOnce(Some(position))) if self.is_durable() => {
                self.unsynced.publishers.push_back((position, Waiting::Link(key)));
                self.let_wait(key.slot);
            }
            Ok(Published::Kept { .. }) => self.let_wait(key.slot),
            Ok(Published::AtOnce(_) | Published::Known) => self.reply(key.slot, Ok(())),
            Err(error) => self.reply(key.slot, Err(&error)),
        }
    }

    fn let_wait(&mut self, slot: usize) {
        if let Role::Requester { awaits, .. } = &mut self.endpoint.links[slot].role {
            *awaits = true;
        }
    }

    /// Answers a REQ whose event was to be synced first.
    pub(in crate::shard) fn answer_link(&mut self, key: LinkKey, result: Result<(), &ArrowheadError>) {
        let Some(link) = self.endpoint.links.get_mut(key.slot).filter(|link| link.serial == key.serial) else { return };
        if let Role::Requester { awaits, .. } = &mut link.role {
            *awaits = false;
            self.reply(key.slot, result);
            if self.endpoint.links[key.slot].resumes(self.endpoint.queue_bytes_max) {
                self.endpoint.read_next_turn(key.slot);
            }
        }
    }

    /// Status and reason, as HTTP has them.
    fn reply(&mut self, slot: usize, result: Result<(), &ArrowheadError>) {
        let (status, reason) = result.map_or_else(|error| (error.error_code, error.error_message.as_str()), |()| (200, ""));
        let digits = [100, 10, 1].map(|place| b'0' + (status / place % 10) as u8);
        let endpoint = &mut self.endpoint;
        let frames = endpoint.links[slot].frames(&mut endpoint.spare);
        for (payload, more) in [(&b""[..], true), (&digits, true), (reason.as_bytes(), false)] {
            frames.extend_from_slice(bodkin_zmtp::FrameHead::message(payload.len(), more).as_bytes());
            frames.extend_from_slice(payload);
        }
        self.endpoint.is_dirty(slot);
    }
}
