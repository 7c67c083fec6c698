//! A batch: records of a lane one behind the other, a position each.

/// The version of the form.
pub const FORMAT: u8 = 1;
/// Bytes that a batch can be limited to at the least.
pub const BATCH_BYTES_MIN: usize = 4096;
/// Records in a batch.
pub const EVENTS_MAX: u64 = 65_536;
/// Bytes of a topic's name.
pub const TOPIC_BYTES_MAX: usize = 1024;
const EVENT: u8 = 1;
const LOST: u8 = 2;
/// Bytes of an event beside its topic and its payload: kind, length of the topic, four numbers, length of the payload.
const EVENT_BYTES: usize = 1 + 2 + 4 * 8 + 4;
/// Bytes of a loss beside its topic.
const LOST_BYTES: usize = 1 + 2 + 8;

/// What has a position in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// An event.
    Event {
        /// Its topic's name, of [`TOPIC_BYTES_MAX`] at the most.
        topic: &'a str,
        /// Its publisher's number.
        publisher: u64,
        /// The publisher's incarnation.
        incarnation: u64,
        /// Its number among those of this publisher and topic.
        sequence: u64,
        /// When it was made, in UTC nanoseconds.
        created_ns: u64,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// So many events of a topic are missing here, one behind the other as far as this topic goes.
    Lost {
        /// Its name.
        topic: &'a str,
        /// How many.
        count: u64,
    },
}

impl Record<'_> {
    /// Bytes that it has in a batch.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Event { topic, payload, .. } => EVENT_BYTES + topic.len() + payload.len(),
            Self::Lost { topic, .. } => LOST_BYTES + topic.len(),
        }
    }

    /// Writes it as it is in a batch, behind what is in `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Event { topic, publisher, incarnation, sequence, created_ns, payload } => {
                name(EVENT, topic, out);
                for number in [publisher, incarnation, sequence, created_ns] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
                out.extend_from_slice(payload);
            }
            Self::Lost { topic, count } => {
                name(LOST, topic, out);
                out.extend_from_slice(&count.to_be_bytes());
            }
        }
    }
}

fn name(kind: u8, topic: &str, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(topic.len() as u16).to_be_bytes());
    out.extend_from_slice(topic.as_bytes());
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is in the batch.
    In,
    /// It has no room in any batch: a loss of one event is in the batch in its place.
    LostInstead,
    /// It is for the next one.
    Full,
}

/// A batch that is being filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    bytes_max: usize,
    records: u64,
    too_long: u64,
    source: Option<String>,
}

impl Batch {
    /// Without records, for so many bytes at the most, [`BATCH_BYTES_MIN`] at the least.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max: bytes_max.max(BATCH_BYTES_MIN), records: 0, too_long: 0, source: None }
    }

    /// Puts a record behind the others.
    ///
    /// # Panics
    /// Its topic's name is too long.
    pub fn put(&mut self, record: Record<'_>) -> Put {
        let (Record::Event { topic, .. } | Record::Lost { topic, .. }) = record;
        assert!(topic.len() <= TOPIC_BYTES_MAX, "a topic's name of {} bytes", topic.len());
        let is_too_long = record.bytes() > self.bytes_max;
        let record = if is_too_long { Record::Lost { topic, count: 1 } } else { record };
        if self.records == EVENTS_MAX || record.bytes() > self.bytes_max - self.bytes.len() {
            return Put::Full;
        }
        record.write(&mut self.bytes);
        self.records += 1;
        self.too_long += u64::from(is_too_long);
        if is_too_long { Put::LostInstead } else { Put::In }
    }

    /// The same with a record's bytes, as [`Record::write`] has made them.
    ///
    /// # Panics
    /// They are no record's, and longer than a batch may be.
    pub fn put_written(&mut self, record: &[u8]) -> Put {
        if record.len() > self.bytes_max {
            return self.put(Records::new(record).next().expect("a record").expect("it was written so"));
        }
        if self.records == EVENTS_MAX || record.len() > self.bytes_max - self.bytes.len() {
            return Put::Full;
        }
        self.bytes.extend_from_slice(record);
        self.records += 1;
        Put::In
    }

    /// Notes where its last record is from, in words of the edge's: they come back with [`super::Held`].
    ///
    /// # Panics
    /// They are longer than [`super::SOURCE_BYTES_MAX`].
    pub fn set_source(&mut self, source: String) {
        assert!(source.len() <= super::SOURCE_BYTES_MAX, "a source of {} bytes", source.len());
        self.source = Some(source);
    }

    /// What was noted.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Events that had no room in any batch.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What is no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A kind that there is not.
    #[error("a record is of kind 1 or 2, and this one of {0}")]
    Kind(u8),
    /// It ends within a record.
    #[error("the batch ends within a record")]
    Cut,
    /// A topic is no text, or its name too long.
    #[error("a topic's name is UTF-8, of {TOPIC_BYTES_MAX} bytes at the most")]
    Topic,
    /// A loss of nothing.
    #[error("a loss is of one event at the least")]
    NothingLost,
    /// More than a batch has.
    #[error("a batch has {EVENTS_MAX} records at the most")]
    Records,
}

/// Reads a batch: its records, then `None`, or an error and then `None`.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    records: u64,
}

impl<'a> Records<'a> {
    /// Those of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, records: 0 }
    }

    fn record(&mut self) -> Result<Record<'a>, ReadError> {
        if self.records == EVENTS_MAX {
            return Err(ReadError::Records);
        }
        self.records += 1;
        let kind = self.take(1)?[0];
        if kind != EVENT && kind != LOST {
            return Err(ReadError::Kind(kind));
        }
        let length = usize::from(u16::from_be_bytes(self.array()?));
        if length > TOPIC_BYTES_MAX {
            return Err(ReadError::Topic);
        }
        let topic = std::str::from_utf8(self.take(length)?).map_err(|_| ReadError::Topic)?;
        if kind == LOST {
            return match self.number()? {
                0 => Err(ReadError::NothingLost),
                count => Ok(Record::Lost { topic, count }),
            };
        }
        let [publisher, incarnation, sequence, created_ns] = [self.number()?, self.number()?, self.number()?, self.number()?];
        let length = u32::from_be_bytes(self.array()?);
        let payload = self.take(length as usize)?;
        Ok(Record::Event { topic, publisher, incarnation, sequence, created_ns, payload })
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        Ok(self.take(N)?.try_into().expect("so many were taken"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ReadError::Cut)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event<'a>(topic: &'a str, payload: &'a [u8]) -> Record<'a> {
        Record::Event { topic, publisher: 1, incarnation: 2, sequence: 3, created_ns: 4, payload }
    }

    #[test]
    fn the_form_is_the_documented_one_and_is_read_again() {
        let mut batch = Batch::new(0);
        assert_eq!(batch.put(event("ab", b"xyz")), Put::In);
        assert_eq!(batch.put(Record::Lost { topic: "ö", count: 258 }), Put::In);
        let numbers = [[0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 0, 0, 3], [0, 0, 0, 0, 0, 0, 0, 4]].concat();
        let expected =
            [b"\x01\x00\x02ab", numbers.as_slice(), b"\x00\x00\x00\x03xyz", b"\x02\x00\x02\xc3\xb6\x00\x00\x00\x00\x00\x00\x01\x02"]
                .concat();
        assert_eq!((batch.bytes(), batch.records()), (expected.as_slice(), 2));
        let records: Vec<_> = Records::new(batch.bytes()).collect();
        assert_eq!(records, [Ok(event("ab", b"xyz")), Ok(Record::Lost { topic: "ö", count: 258 })]);
        for cut in 1..expected.len() {
            let last = Records::new(&expected[..cut]).last();
            assert!(last == Some(Err(ReadError::Cut)) || last == Some(Ok(event("ab", b"xyz"))), "cut at {cut}: {last:?}");
        }
    }

    #[test]
    fn a_record_that_is_written_already_is_put_as_one_that_is_not() {
        let long = vec![7; BATCH_BYTES_MIN];
        let (mut batch, mut other) = (Batch::new(0), Batch::new(0));
        for payload in [&b"xyz"[..], &long, &long[..3000], b"x", &long[..2000], b"y"] {
            let (record, mut bytes) = (event("ab", payload), Vec::new());
            record.write(&mut bytes);
            assert_eq!(batch.put_written(&bytes), other.put(record));
        }
        assert_eq!(batch, other);
        assert_eq!((batch.records(), batch.too_long()), (5, 1));
    }

    #[test]
    fn what_is_no_batch_is_told_by_its_fault() {
        for (bytes, fault) in [
            (&b"\x00"[..], ReadError::Kind(0)),
            (b"\x03\x00\x00", ReadError::Kind(3)),
            (b"\x02\x00\x01\xff\x00\x00\x00\x00\x00\x00\x00\x01", ReadError::Topic),
            (b"\x02\x04\x01", ReadError::Topic),
            (b"\x02\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00", ReadError::NothingLost),
        ] {
            assert_eq!(Records::new(bytes).collect::<Vec<_>>(), [Err(fault)]);
        }
        let many = b"\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01".repeat(EVENTS_MAX as usize + 1);
        assert_eq!(Records::new(&many).last(), Some(Err(ReadError::Records)));
    }

    #[test]
    fn a_full_batch_takes_no_more_and_what_never_has_room_is_lost_in_its_place() {
        let mut batch = Batch::new(BATCH_BYTES_MIN);
        let fits = vec![7; BATCH_BYTES_MIN - EVENT_BYTES - 1 - (LOST_BYTES + 1)];
        assert_eq!(batch.put(event("t", &[7; BATCH_BYTES_MIN])), Put::LostInstead);
        assert_eq!(batch.put(event("t", &fits)), Put::In);
        assert_eq!(batch.bytes().len(), BATCH_BYTES_MIN);
        assert_eq!(batch.put(event("", b"")), Put::Full);
        assert_eq!(batch.put(event("t", &[7; BATCH_BYTES_MIN])), Put::Full);
        assert_eq!((batch.records(), batch.too_long()), (2, 1));
        let first = Records::new(batch.bytes()).next();
        assert_eq!(first, Some(Ok(Record::Lost { topic: "t", count: 1 })));
    }
}
