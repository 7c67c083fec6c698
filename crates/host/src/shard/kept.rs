//! What is kept of an event of a real-time topic: on the leader until nobody needs it, on its Backup as a replica.

use bodkin_arrowhead::{
    event_handler::EventFacts,
    publication::{KeptTexts, Publication},
    record::SystemId,
    utc::UtcTime,
};
use bodkin_broker::SlotId;
use bodkin_store::event_log::Position;

use super::Waiting;

/// Memory of a slot that grew beyond this is given back with the event.
const KEPT_BYTES_MAX: usize = 4 * 1024;
/// In front of a replica's JSON: the publisher's id and the time stamp.
const FACTS_BYTES: usize = 16;

/// An event that the broker keeps.
pub struct Kept {
    texts: KeptTexts,
    facts: EventFacts,
    /// Who is answered when it goes out.
    pub(super) publisher: Option<Waiting>,
    /// Its place in the event log, from its dispatch on.
    pub(super) position: Option<Position>,
    /// Whether it has gone out from here: who is behind is brought it once more.
    pub(super) is_out: bool,
    /// Whether the graphs that read its topic have had it.
    pub(super) is_supplied: bool,
    /// When it was taken, in nanoseconds since 1970 (UTC); 0 where that is not told.
    pub(super) taken_ns: u64,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("texts", &self.texts).finish_non_exhaustive()
    }
}

impl Kept {
    pub fn empty() -> Self {
        let facts = EventFacts { source: SystemId(0), time: UtcTime::from_unix_seconds(0) };
        Self { texts: KeptTexts::default(), facts, publisher: None, position: None, is_out: false, is_supplied: false, taken_ns: 0 }
    }

    /// The place of a slot in a table, which grows.
    pub fn at(table: &mut Vec<Self>, slot: SlotId) -> &mut Self {
        if slot.index() >= table.len() {
            table.resize_with(slot.index() + 1, Self::empty);
        }
        &mut table[slot.index()]
    }

    /// Keeps a publication.
    pub(super) fn fill(&mut self, publication: &Publication<'_>, publisher: Option<Waiting>) {
        self.texts.keep(publication);
        (self.facts, self.publisher, self.position) = (publication.facts(), publisher, None);
        (self.is_out, self.is_supplied, self.taken_ns) = (false, false, 0);
    }

    /// Reads what [`Self::payload`] has made on another node; an error says why it cannot be meant.
    pub fn read(payload: &[u8]) -> Result<Publication<'_>, String> {
        let (facts, json) = payload.split_at_checked(FACTS_BYTES).ok_or("a replica's payload is shorter than its facts")?;
        let integer = |at: usize| u64::from_be_bytes(facts[at..at + 8].try_into().expect("eight bytes"));
        let (source, time) = (SystemId(integer(0).cast_signed()), UtcTime::from_unix_nanos(integer(8)));
        let text = std::str::from_utf8(json).map_err(|_| "a replica's event is no text")?;
        Publication::reread(text, source, time).map_err(|error| format!("a replica's event cannot be read: {error}"))
    }

    /// Keeps what another node keeps.
    pub fn keep_replica(&mut self, publication: &Publication<'_>) {
        self.fill(publication, None);
    }

    /// Appends what the other node needs to go on with the event.
    pub fn payload(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.facts.source.0.to_be_bytes());
        out.extend_from_slice(&self.facts.time.unix_nanos().to_be_bytes());
        self.publication().push_event_json(out);
    }

    /// Lets the texts go.
    pub fn clear(&mut self) {
        self.texts.clear(KEPT_BYTES_MAX);
        self.position = None;
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The event, as its subscribers hear it.
    pub fn publication(&self) -> Publication<'_> {
        self.texts.publication(self.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_the_event_that_was_kept_and_a_wrong_one_is_told() {
        let json = r#"{"eventType":"HOT","metaData":{"a":"b"},"payload":"1 \"2\"","timeStamp":"2026-01-01T00:00:00Z"}"#;
        let publication = Publication::reread(json, SystemId(7), UtcTime::from_unix_seconds(1_767_225_600)).unwrap();
        let (mut here, mut there, mut payload) = (Kept::empty(), Kept::empty(), Vec::new());
        here.fill(&publication, None);
        here.payload(&mut payload);
        assert_eq!(&payload[FACTS_BYTES..], json.as_bytes());
        there.keep_replica(&Kept::read(&payload).unwrap());
        let mut again = Vec::new();
        there.payload(&mut again);
        assert_eq!(again, payload);
        for (bytes, told) in [(&payload[..15], "shorter than its facts"), (&payload[..40], "cannot be read"), (&[0xff; 17], "no text")] {
            assert!(Kept::read(bytes).unwrap_err().contains(told), "{told}");
        }
    }
}
