//! What a member has on its disk.

use std::time::Duration;

use super::{
    Standing,
    codec::{Field, Reader, VERSION, WireError},
};
use crate::epoch::{Epoch, Node, PairId};

/// The form of a record with the pair's name and the longest lease. Form 2 has no lease, form 1 ([`VERSION`]) no name either.
const FORM: u8 = 3;

/// What a member must not forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The highest epoch that it has voted for, followed or led: it votes for no lower one.
    pub epoch: Epoch,
    /// The highest own epoch that it may have led, so that a restarted candidate takes a fresh one.
    pub reserved: Epoch,
    /// Who is in sync.
    pub standing: Standing,
    /// The pair that it belongs to; `None` until a leader was elected.
    pub pair: Option<PairId>,
    /// No process of the member has granted a longer lease: for so long a restarted one grants and votes for nothing.
    pub lease_max: Duration,
}

impl Record {
    /// Of a member that is new: the first candidate alone may lead, for the other has nothing yet.
    pub const NEW: Self = Self {
        epoch: Epoch::NONE,
        reserved: Epoch::NONE,
        standing: Standing { epoch: Epoch::NONE, number: 0, out: Some(Node::Second) },
        pair: None,
        lease_max: Duration::ZERO,
    };

    /// Appends the record as a file holds it.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        FORM.write(bytes);
        self.epoch.write(bytes);
        self.reserved.write(bytes);
        self.standing.write(bytes);
        self.pair.write(bytes);
        u64::try_from(self.lease_max.as_nanos()).unwrap_or(u64::MAX).write(bytes);
    }

    /// Reads a file. A node whose record is damaged must not take part: what it has promised is not known.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let form = u8::read(&mut reader, "form")?;
        if !(VERSION..=FORM).contains(&form) {
            return Err(WireError::Value { field: "form", expected: "1 to 3", found: form.into() });
        }
        let record = Self {
            epoch: Field::read(&mut reader, "epoch")?,
            reserved: Field::read(&mut reader, "reserved")?,
            standing: Field::read(&mut reader, "standing")?,
            pair: if form > VERSION { Field::read(&mut reader, "pair")? } else { None },
            lease_max: Duration::from_nanos(if form == FORM { Field::read(&mut reader, "lease_max")? } else { 0 }),
        };
        reader.end()?;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let led = Record {
            epoch: Epoch(7),
            reserved: Epoch(9),
            standing: Standing { epoch: Epoch(7), number: 2, out: None },
            pair: Some(PairId(5)),
            lease_max: Duration::from_millis(50),
        };
        for record in [Record::NEW, led] {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes), Ok(record));
            assert!((0..bytes.len()).all(|cut| Record::decode(&bytes[..cut]).is_err()));
        }
    }

    #[test]
    fn records_of_earlier_forms_name_no_pair_or_no_lease() {
        let written = Record { pair: Some(PairId(5)), lease_max: Duration::from_millis(50), ..Record::NEW };
        let mut bytes = Vec::new();
        written.encode(&mut bytes);
        bytes.truncate(bytes.len() - 8);
        bytes[0] = 2;
        assert_eq!(Record::decode(&bytes), Ok(Record { lease_max: Duration::ZERO, ..written }));
        let mut named = Vec::new();
        written.pair.write(&mut named);
        bytes.truncate(bytes.len() - named.len());
        bytes[0] = 1;
        assert_eq!(Record::decode(&bytes), Ok(Record::NEW));
        bytes[0] = 4;
        assert!(matches!(Record::decode(&bytes), Err(WireError::Value { found: 4, .. })));
    }
}
