//! What a member has on its disk.

use super::{
    Standing,
    codec::{Field, Reader, VERSION, WireError},
};
use crate::epoch::{Epoch, Node};

/// What a member must not forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The highest epoch that it has voted for, followed or led: it votes for no lower one.
    pub epoch: Epoch,
    /// The highest own epoch that it may have led, so that a restarted candidate takes a fresh one.
    pub reserved: Epoch,
    /// Who is in sync.
    pub standing: Standing,
}

impl Record {
    /// Of a member that is new: the first candidate alone may lead, for the other has nothing yet.
    pub const NEW: Self =
        Self { epoch: Epoch::NONE, reserved: Epoch::NONE, standing: Standing { epoch: Epoch::NONE, number: 0, out: Some(Node::Second) } };

    /// Appends the record as a file holds it.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        VERSION.write(bytes);
        self.epoch.write(bytes);
        self.reserved.write(bytes);
        self.standing.write(bytes);
    }

    /// Reads a file. A node whose record is damaged must not take part: what it has promised is not known.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        reader.version()?;
        let record = Self {
            epoch: Field::read(&mut reader, "epoch")?,
            reserved: Field::read(&mut reader, "reserved")?,
            standing: Field::read(&mut reader, "standing")?,
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
        let led = Record { epoch: Epoch(7), reserved: Epoch(9), standing: Standing { epoch: Epoch(7), number: 2, out: None } };
        for record in [Record::NEW, led] {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes), Ok(record));
            assert!((0..bytes.len()).all(|cut| Record::decode(&bytes[..cut]).is_err()));
        }
    }
}
