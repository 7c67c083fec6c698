//! One event in the log: little-endian, checksummed, readable on its own.
//!
//! `length u32, checksum u32, position u64, time u64, publisher u64, incarnation u64, topic u64, sequence u64,
//! topic name's length u16, topic name, event JSON`. The length counts what follows the checksum, which is the CRC-32
//! (IEEE 802.3) of the same bytes. Of an event of another node the highest bit of the topic name's length is set, and behind the name
//! follows where it is from: `node u64, position u64, epoch u64, lane position u64`. `docs/formats/event-log.md` describes it for other readers.

use std::ops::Range;

use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};

use super::Position;

/// Bytes in front of what the checksum covers.
const PREFIX_BYTES: usize = 8;
/// Bytes of the numbers in front of the topic's name.
const NUMBERS_BYTES: usize = 7 * 8 - 8 + 2;
/// Set in the topic name's length of a record that is of another node.
const OF_NODE: u16 = 1 << 15;
/// Bytes of where such a record is from.
const ORIGIN_BYTES: usize = 4 * 8;
/// Longest record that is believed; a longer one is damage. Far above the largest event that can be configured.
pub(super) const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Highest position that is believed: no log gets there, and one more is still a number.
pub(super) const POSITION_MAX: u64 = u64::MAX / 2;
/// Positions that may be missing in front of a record that follows damage: more than are skipped in a year.
const GAP_MAX: u64 = 1 << 45;

/// Where an event was accepted that another node of this cloud has handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The node, by its name's number.
    pub node: u64,
    /// Where it is in that node's log.
    pub position: Position,
    /// In which count of lane positions the node has handed it on.
    pub epoch: u64,
    /// Its position there.
    pub lane: u64,
}

/// An accepted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'r> {
    /// Where it is in the log.
    pub position: Position,
    /// When it was accepted, in nanoseconds since 1970 (UTC).
    pub time_ns: u64,
    /// Its identity.
    pub id: EventId,
    /// The topic's name as stored: upper-case.
    pub topic: &'r str,
    /// The event as JSON, as subscribers get it; of a loss in front of another node's events, how many are missing here.
    pub event: &'r str,
    /// Which node has accepted it; `None`: the one whose log this is.
    pub origin: Option<Origin>,
}

impl<'r> Record<'r> {
    /// Appends the record's bytes. Panics on a topic or event that is too long; both are limited where they come in.
    pub(super) fn push_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        let id = &self.id;
        for number in [self.position.0, self.time_ns, id.publisher.0, id.incarnation.0, id.topic.0, id.sequence.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let topic_bytes = u16::try_from(self.topic.len()).ok().filter(|bytes| bytes & OF_NODE == 0).expect("a topic's name is short");
        let mark = if self.origin.is_some() { OF_NODE } else { 0 };
        out.extend_from_slice(&(topic_bytes | mark).to_le_bytes());
        out.extend_from_slice(self.topic.as_bytes());
        if let Some(Origin { node, position, epoch, lane }) = self.origin {
            [node, position.0, epoch, lane].iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        }
        out.extend_from_slice(self.event.as_bytes());
        let body = start + PREFIX_BYTES;
        let length = out.len() - body;
        assert!(length <= RECORD_BYTES_MAX, "an event of {length} bytes");
        let checksum = crc32fast::hash(&out[body..]);
        out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        out[start + 4..body].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads a record whose bytes [`frame`] found whole; `None` if they are damaged.
    pub(super) fn parse(bytes: &'r [u8]) -> Option<Self> {
        let checksum = u32::from_le_bytes(bytes.get(4..PREFIX_BYTES)?.try_into().ok()?);
        if crc32fast::hash(&bytes[PREFIX_BYTES..]) != checksum { None } else { Self::parts(bytes) }
    }

    /// Reads the bytes of a record whose checksum was looked at.
    pub(super) fn parts(bytes: &'r [u8]) -> Option<Self> {
        let body = bytes.get(PREFIX_BYTES..).filter(|body| body.len() >= NUMBERS_BYTES)?;
        let number = |index: usize| u64::from_le_bytes(body[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
        let texts = &body[NUMBERS_BYTES..];
        let topic_bytes = u16::from_le_bytes([body[NUMBERS_BYTES - 2], body[NUMBERS_BYTES - 1]]);
        let (topic, rest) = texts.split_at_checked(usize::from(topic_bytes & !OF_NODE))?;
        let (origin, event) = if topic_bytes & OF_NODE == 0 {
            (None, rest)
        } else {
            let (from, event) = rest.split_at_checked(ORIGIN_BYTES)?;
            let number = |index: usize| u64::from_le_bytes(from[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
            (Some(Origin { node: number(0), position: Position(number(1)), epoch: number(2), lane: number(3) }), event)
        };
        Some(Self {
            position: Position(number(0)),
            time_ns: number(1),
            id: EventId {
                publisher: PublisherId(number(2)),
                incarnation: Incarnation(number(3)),
                topic: TopicId(number(4)),
                sequence: Sequence(number(5)),
            },
            topic: std::str::from_utf8(topic).ok()?,
            event: std::str::from_utf8(event).ok()?,
            origin,
        })
    }
}

/// What the first bytes of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A record of this many bytes, prefix included, at this position.
    Whole { bytes: usize, position: Position },
    /// The beginning of one; so many bytes make it whole, or at least tell how many do.
    Partial { wanted: usize },
    /// No record can begin like this.
    Damaged,
}

/// Finds where the first record of a buffer ends. Its checksum is not looked at.
pub(super) fn frame(bytes: &[u8]) -> Frame {
    let Some(length) = bytes.get(..4) else { return Frame::Partial { wanted: PREFIX_BYTES + NUMBERS_BYTES } };
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    if !(NUMBERS_BYTES..=RECORD_BYTES_MAX).contains(&length) {
        return Frame::Damaged;
    }
    let whole = PREFIX_BYTES + length;
    let Some(position) = bytes.get(PREFIX_BYTES..PREFIX_BYTES + 8).filter(|_| bytes.len() >= whole) else {
        return Frame::Partial { wanted: whole };
    };
    match u64::from_le_bytes(position.try_into().expect("eight bytes")) {
        position @ ..=POSITION_MAX => Frame::Whole { bytes: whole, position: Position(position) },
        _ => Frame::Damaged,
    }
}

/// The first whole record of a buffer that is at this position or later, and where it is. If something that is no record is in
/// front of it, its position must be near too, for what damage takes for a length may ask for the checksum of megabytes, at every byte.
pub(super) fn find(bytes: &[u8], from: Position) -> Option<(Range<usize>, Record<'_>)> {
    (0..bytes.len()).find_map(|at| {
        let Frame::Whole { bytes: length, position } = frame(&bytes[at..]) else { return None };
        let is_plausible = position >= from && (at == 0 || position.0 - from.0 <= GAP_MAX);
        let record = is_plausible.then(|| Record::parse(&bytes[at..at + length])).flatten()?;
        Some((at..at + length, record))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record<'r>(position: u64, topic: &'r str, event: &'r str) -> Record<'r> {
        let id = EventId { publisher: PublisherId(26), incarnation: Incarnation(3), topic: TopicId(1), sequence: Sequence(position + 1) };
        Record { position: Position(position), time_ns: 1_800_000_000_000_000_000, id, topic, event, origin: None }
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(position: u64, topic in "[A-Z]{0,9}", event in ".{0,40}", from: Option<[u64; 4]>, rest in prop::collection::vec(any::<u8>(), 0..9)) {
            let origin = from.map(|[node, position, epoch, lane]| Origin { node, position: Position(position), epoch, lane });
            let written = Record { origin, ..record(position % 1000, &topic, &event) };
            let mut bytes = Vec::new();
            written.push_to(&mut bytes);
            let whole = bytes.len();
            for cut in 0..whole {
                prop_assert!(matches!(frame(&bytes[..cut]), Frame::Partial { wanted } if wanted > cut && wanted <= whole.max(58)), "{cut}");
            }
            bytes.extend(rest);
            prop_assert_eq!(frame(&bytes), Frame::Whole { bytes: whole, position: written.position });
            prop_assert_eq!(Record::parse(&bytes[..whole]), Some(written));
        }

        #[test]
        fn a_flipped_bit_is_noticed(event in ".{0,40}", at: prop::sample::Index, bit in 0u8..8) {
            let mut bytes = Vec::new();
            record(5, "T", &event).push_to(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let noticed = match frame(&bytes) {
                Frame::Whole { bytes: whole, .. } => Record::parse(&bytes[..whole]).is_none(),
                Frame::Partial { .. } | Frame::Damaged => true,
            };
            prop_assert!(noticed);
        }

        #[test]
        fn a_record_is_found_behind_anything(front in prop::collection::vec(any::<u8>(), 0..200), event in ".{0,40}") {
            let written = record(5, "T", &event);
            let mut bytes = front.clone();
            written.push_to(&mut bytes);
            prop_assert_eq!(find(&bytes, Position(5)), Some((front.len()..bytes.len(), written)));
            prop_assert_eq!(find(&bytes, Position(6)), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Frame::Whole { bytes: whole, .. } = frame(&bytes) {
                let _ = Record::parse(&bytes[..whole]);
            }
        }
    }
}
