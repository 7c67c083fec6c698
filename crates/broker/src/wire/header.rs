//! The header of an event: the third frame of its message, behind event type and payload.

use super::codec::{Field, Reader, WireError};
use crate::{
    epoch::Epoch,
    event::{Incarnation, PublisherId, Sequence},
};

/// Length of a header, in bytes.
pub const HEADER_BYTES: usize = 42;

/// What is special about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The publisher sends it again, because a fail-over may have cost it.
    pub resend: bool,
    /// It comes from the Backup's replicas, or a resend after a promotion: it is late by the fail-over.
    pub recovered: bool,
    /// There is no event: the sequence is the last that was published, the payload empty.
    pub last: bool,
    /// The subscriber is asked to acknowledge at once.
    pub acknowledge: bool,
    /// A graph has made it of events, and it is named after one of them: numbers that are passed over are no losses.
    pub derived: bool,
    /// Some of them were not valid.
    pub marked: bool,
}

const RESEND: u8 = 1;
const RECOVERED: u8 = 2;
const LAST: u8 = 4;
const ACKNOWLEDGE: u8 = 8;
const DERIVED: u8 = 16;
const MARKED: u8 = 32;
const ALL: u8 = RESEND | RECOVERED | LAST | ACKNOWLEDGE | DERIVED | MARKED;

impl Field<'_> for Flags {
    fn write(&self, bytes: &mut Vec<u8>) {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let Self { resend, recovered, last, acknowledge, derived, marked } = *self;
        let session = flag(resend, RESEND) | flag(recovered, RECOVERED) | flag(last, LAST) | flag(acknowledge, ACKNOWLEDGE);
        bytes.push(session | flag(derived, DERIVED) | flag(marked, MARKED));
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, WireError> {
        let bits = u8::read(reader, field)?;
        if bits & !ALL != 0 {
            return Err(WireError::Value { field, expected: "a sum of 1, 2, 4, 8, 16 and 32", found: bits.into() });
        }
        let is_set = |bit| bits & bit != 0;
        Ok(Self {
            resend: is_set(RESEND),
            recovered: is_set(RECOVERED),
            last: is_set(LAST),
            acknowledge: is_set(ACKNOWLEDGE),
            derived: is_set(DERIVED),
            marked: is_set(MARKED),
        })
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        serde_json::json!({"resend": self.resend, "recovered": self.recovered, "last": self.last, "acknowledge": self.acknowledge,
            "derived": self.derived, "marked": self.marked})
    }
}

/// Identity, creation time and epoch of an event; its topic is the message's first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventHeader {
    /// What is special about it.
    pub flags: Flags,
    /// Whose; a publisher may leave it 0, for the broker knows its session and fills it in.
    pub publisher: PublisherId,
    /// Which numbering of the publisher's.
    pub incarnation: Incarnation,
    /// Position in the stream, from 1.
    pub sequence: Sequence,
    /// When it was created by the publisher's clock, in nanoseconds since 1970 (UTC).
    pub created_utc_ns: u64,
    /// The highest epoch that the sender knows, its own if it leads; [`Epoch::NONE`] from who takes no part in epochs.
    pub epoch: Epoch,
}

impl EventHeader {
    /// Appends [`HEADER_BYTES`] bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let Self { flags, publisher, incarnation, sequence, created_utc_ns, epoch } = self;
        super::VERSION.write(bytes);
        flags.write(bytes);
        publisher.write(bytes);
        incarnation.write(bytes);
        sequence.write(bytes);
        created_utc_ns.write(bytes);
        epoch.write(bytes);
    }

    /// Reads a header. A sequence of 0 is refused, but of one that says that nothing was published yet.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        reader.version()?;
        let header = Self {
            flags: Field::read(&mut reader, "flags")?,
            publisher: Field::read(&mut reader, "publisher")?,
            incarnation: Field::read(&mut reader, "incarnation")?,
            sequence: Field::read(&mut reader, "sequence")?,
            created_utc_ns: Field::read(&mut reader, "created_utc_ns")?,
            epoch: Field::read(&mut reader, "epoch")?,
        };
        reader.end()?;
        if header.sequence == Sequence(0) && !header.flags.last {
            return Err(WireError::Value { field: "sequence", expected: "1 or more", found: 0 });
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(flags in 0u8..64, publisher: u64, incarnation: u64, sequence in 1u64.., created_utc_ns: u64, epoch: u64) {
            let header = EventHeader {
                flags: Flags {
                    resend: flags & 1 != 0,
                    recovered: flags & 2 != 0,
                    last: flags & 4 != 0,
                    acknowledge: flags & 8 != 0,
                    derived: flags & 16 != 0,
                    marked: flags & 32 != 0,
                },
                publisher: PublisherId(publisher),
                incarnation: Incarnation(incarnation),
                sequence: Sequence(sequence),
                created_utc_ns,
                epoch: Epoch(epoch),
            };
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), HEADER_BYTES);
            prop_assert_eq!(EventHeader::decode(&bytes), Ok(header));
        }
    }
}
