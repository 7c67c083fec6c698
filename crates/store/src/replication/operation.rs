//! An operation as bytes: which rows it has changed, and the statements that changed them.
//!
//! ```text
//! 1 byte    form, 1
//! 4 bytes   how many changes, then each: 1 byte kind, and
//!           of a row (kinds of `crate::table::Kind`) its id in 8 bytes;
//!           of a topic's declaration (kind 14) 2 bytes length and the event type
//! the rest  the statements with their values, each with a semicolon and a line end behind it
//! ```
//!
//! Integers are big-endian. Who repeats the statements reads these rows again, and no others.

use bodkin_arrowhead::name::EventType;

use crate::table::Kind;

/// The form that is written and read here.
const FORM: u8 = 1;
/// Kind of a topic's declaration: it has a name instead of an id.
const TOPIC: u8 = 14;

/// What an operation has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// A row that the snapshot holds, and its members: made, changed or removed.
    Row(Kind, i64),
    /// The declaration of this event type's topic.
    Topic(Box<str>),
}

/// What another node has done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operation<'o> {
    /// In the order of the changes.
    pub touched: Vec<Touched>,
    /// What to run.
    pub statements: &'o str,
}

/// Bytes that are no operation to this Bodkin: what was expected, and what came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOperation {
    /// Another form.
    #[error("an operation of form {FORM} was expected, and one of form {0} came; a newer Bodkin may have made it")]
    Form(u8),
    /// A kind of row that is not known.
    #[error("a change of kind 1 to {TOPIC} was expected, and one of kind {0} came; a newer Bodkin may have made it")]
    Kind(u8),
    /// It ends before its statements.
    #[error("the operation ends in the middle of its changes")]
    Cut,
    /// No text where there is to be one.
    #[error("the operation has bytes that are no UTF-8 where text was expected")]
    Text,
}

/// Writes an operation down.
pub(crate) fn encode(rows: impl ExactSizeIterator<Item = (Kind, i64)>, topics: &[EventType], statements: &[u8]) -> Vec<u8> {
    let count = u32::try_from(rows.len() + topics.len()).expect("an operation's changes fit into memory");
    let mut bytes = Vec::with_capacity(5 + 9 * rows.len() + statements.len());
    bytes.push(FORM);
    bytes.extend(count.to_be_bytes());
    for (kind, id) in rows {
        bytes.push(kind as u8);
        bytes.extend(id.to_be_bytes());
    }
    for topic in topics {
        let name = topic.as_str().as_bytes();
        bytes.push(TOPIC);
        bytes.extend(u16::try_from(name.len()).expect("an event type is at most 255 characters").to_be_bytes());
        bytes.extend(name);
    }
    bytes.extend(statements);
    bytes
}

impl<'o> Operation<'o> {
    /// Reads an operation.
    pub fn parse(mut bytes: &'o [u8]) -> Result<Self, NoOperation> {
        let [form] = take(&mut bytes)?;
        if form != FORM {
            return Err(NoOperation::Form(form));
        }
        let count = u32::from_be_bytes(take(&mut bytes)?);
        // Nothing is kept for what has not come: the number alone is not believed.
        let touched = (0..count).map(|_| touched(&mut bytes)).collect::<Result<_, _>>()?;
        Ok(Self { touched, statements: text(bytes)? })
    }
}

fn touched(bytes: &mut &[u8]) -> Result<Touched, NoOperation> {
    let [kind] = take(bytes)?;
    if kind == TOPIC {
        let length = u16::from_be_bytes(take(bytes)?);
        let (name, rest) = bytes.split_at_checked(length.into()).ok_or(NoOperation::Cut)?;
        *bytes = rest;
        return Ok(Touched::Topic(text(name)?.into()));
    }
    let kind = Kind::of_number(kind).ok_or(NoOperation::Kind(kind))?;
    Ok(Touched::Row(kind, i64::from_be_bytes(take(bytes)?)))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], NoOperation> {
    let (first, rest) = bytes.split_first_chunk().ok_or(NoOperation::Cut)?;
    *bytes = rest;
    Ok(*first)
}

fn text(bytes: &[u8]) -> Result<&str, NoOperation> {
    std::str::from_utf8(bytes).map_err(|_| NoOperation::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let rows = [(Kind::System, 7), (Kind::Reservation, i64::MAX)];
        encode(rows.into_iter(), &[EventType::from_stored("temperature")], b"DELETE FROM x;\n")
    }

    #[test]
    fn an_operation_is_read_as_it_was_written() {
        let bytes = example();
        let read = Operation::parse(&bytes).unwrap();
        let rows = [Touched::Row(Kind::System, 7), Touched::Row(Kind::Reservation, i64::MAX)];
        assert_eq!(read.touched[..2], rows);
        assert_eq!(read.touched[2], Touched::Topic("temperature".into()));
        assert_eq!((read.touched.len(), read.statements), (3, "DELETE FROM x;\n"));
        assert_eq!(bytes[..14], [1, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
    }

    #[test]
    fn what_is_no_operation_is_told() {
        let bytes = example();
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Operation::parse(&bytes).map(drop)
        };
        assert_eq!(changed(0, 2), Err(NoOperation::Form(2)));
        assert_eq!(changed(5, 0), Err(NoOperation::Kind(0)));
        assert_eq!(changed(5, 16), Err(NoOperation::Kind(16)));
        assert_eq!(changed(bytes.len() - 1, 0xFF), Err(NoOperation::Text));
        assert_eq!(changed(1, 0xFF).map_err(|_| ()), Err(()), "more changes than there are bytes");
        let changes_end = bytes.len() - "DELETE FROM x;\n".len();
        for length in 0..changes_end {
            assert_eq!(Operation::parse(&bytes[..length]).map(drop), Err(NoOperation::Cut), "{length}");
        }
    }
}
