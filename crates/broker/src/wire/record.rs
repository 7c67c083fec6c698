//! What a member has on its disk.

use super::{
    Standing,
    codec::{Field, Reader, VERSION, WireError},
};
use crate::epoch::{Epoch, Node, PairId};

/// The form of a record with the pair's name. Form 1 ([`VERSION`]) has none.
const FORM: u8 = 2;

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
}

impl Record {
    /// Of a member that is new: the first candidate alone may lead, for the other has nothing yet.
    pub const NEW: Self = Self {
        epoch: Epoch::NONE,
        reserved: Epoch::NONE,
        standing: Standing { epoch: Epoch::NONE, number: 0, out: Some(Node::Second) },
        pair: None,
    };

    /// Appends the record as a file holds it.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        FORM.write(bytes);
        self.epoch.write(bytes);
        self.reserved.write(bytes);
        self.standing.write(bytes);
        self.pair.write(bytes);
    }

    /// Reads a file. A node whose record is damaged must not take part: what it has promised is not known.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let form = u8::read(&mut reader, "form")?;
        if form != FORM && form != VERSION {
            return Err(WireError::Value { field: "form", expected: "1 or 2", found: form.into() });
        }
        let record = Self {
            epoch: Field::read(&mut reader, "epoch")?,
            reserved: Field::read(&mut reader, "reserved")?,
            standing: Field::read(&mut reader, "standing")?,
            pair: if form == FORM { Field::read(&mut reader, "pair")? } else { None },
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
        };
        for record in [Record::NEW, led] {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes), Ok(record));
            assert!((0..bytes.len()).all(|cut| Record::decode(&bytes[..cut]).is_err()));
        }
    }

    #[test]
    fn record_of_form_one_names_no_pair() {
        let mut bytes = vec![1];
        Epoch(7).write(&mut bytes);
        Epoch(9).write(&mut bytes);
        let standing = Standing { epoch: Epoch(7), number: 2, out: None };
        standing.write(&mut bytes);
        assert_eq!(Record::decode(&bytes), Ok(Record { epoch: Epoch(7), reserved: Epoch(9), standing, pair: None }));
        bytes[0] = 3;
        assert!(matches!(Record::decode(&bytes), Err(WireError::Value { found: 3, .. })));
    }
}
