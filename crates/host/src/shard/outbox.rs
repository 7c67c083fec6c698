//! What waits to be written to a socket.

use std::io;

/// Memory beyond this is given back when everything is written.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// Buffers that are kept while nobody has anything to write: as many links are written to in a turn without any memory being taken.
const SPARE_MAX: usize = 1024;
/// Larger ones stay with those who needed them: they would have all who borrow them one after the other keep as much.
const SPARE_BYTES_MAX: usize = 8 * 1024;
/// A new buffer has room for so much from the beginning: who borrows one that shorter events have made does not have to make it larger.
const BUFFER_BYTES: usize = 1024;

/// Empty buffers, of those who have written everything for those who have something to write: of thousands of links few have at the same time, and what each would keep of its own
/// is more than what all of them write in a turn.
pub struct Spare(Vec<Vec<u8>>);

impl Default for Spare {
    fn default() -> Self {
        Self(Vec::with_capacity(SPARE_MAX))
    }
}

/// Bytes in the order in which they go out.
#[derive(Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    /// Where to append what is to be written.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Takes a buffer of those that are spare, if it has none.
    pub fn borrow(&mut self, spare: &mut Spare) {
        if self.bytes.capacity() == 0 {
            self.bytes = spare.0.pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES));
        }
    }

    /// Gives its buffer to those that are spare, if everything is written and it is not large.
    pub fn give_back(&mut self, spare: &mut Spare) {
        if self.unsent_bytes() == 0 && (1..=SPARE_BYTES_MAX).contains(&self.bytes.capacity()) {
            let mut buffer = std::mem::take(&mut self.bytes);
            if spare.0.len() < SPARE_MAX {
                // A greeting's or a pong's is smaller: who borrows it next would make it larger in the way of an event.
                buffer.reserve(BUFFER_BYTES);
                spare.0.push(buffer);
            }
        }
    }

    /// Bytes that are to be written.
    pub fn unsent_bytes(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Writes as much as is taken by `write`, which writes to a socket that does not block; gives how many bytes that was.
    pub fn write_to(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
        let before = self.unsent_bytes();
        while self.written < self.bytes.len() {
            match write(&self.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let taken = before - self.unsent_bytes();
        self.tidy();
        Ok(taken)
    }

    /// Gives written bytes' memory back: at once when all is written, else when they are the larger part.
    fn tidy(&mut self) {
        if self.unsent_bytes() == 0 {
            self.written = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_is_written_later_in_its_order() {
        let (mut outbox, mut taken) = (Outbox::default(), Vec::new());
        for (appended, room, left) in [("abcdef", 2, 4), ("gh", 3, 3), ("", 0, 3), ("i", 9, 0)] {
            outbox.bytes().extend_from_slice(appended.as_bytes());
            let mut room = room;
            let write = |bytes: &[u8]| {
                let bytes = &bytes[..bytes.len().min(room)];
                taken.extend_from_slice(bytes);
                room -= bytes.len();
                if bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(bytes.len()) }
            };
            outbox.write_to(write).unwrap();
            assert_eq!(outbox.unsent_bytes(), left, "{appended}");
        }
        assert_eq!(taken, b"abcdefghi");
        outbox.bytes().push(0);
        assert!(outbox.write_to(|_| Ok(0)).is_err());
    }

    #[test]
    fn a_buffer_that_began_small_is_no_smaller_than_others_when_it_is_borrowed() {
        let mut spare = Spare::default();
        let (mut greeting, mut event) = (Outbox::default(), Outbox::default());
        greeting.bytes().extend_from_slice(b"pong");
        greeting.write_to(|bytes| Ok(bytes.len())).unwrap();
        greeting.give_back(&mut spare);
        event.borrow(&mut spare);
        assert!(event.bytes.capacity() >= BUFFER_BYTES, "{}", event.bytes.capacity());
    }

    #[test]
    fn of_many_who_write_one_behind_the_other_one_has_a_buffer() {
        let mut spare = Spare::default();
        let mut outboxes: Vec<Outbox> = std::iter::repeat_with(Outbox::default).take(SPARE_MAX + 36).collect();
        let mut buffers = std::collections::BTreeSet::new();
        for outbox in &mut outboxes {
            outbox.borrow(&mut spare);
            outbox.bytes().extend_from_slice(b"abc");
            buffers.insert(outbox.bytes.as_ptr());
            outbox.give_back(&mut spare);
            assert_eq!(outbox.unsent_bytes(), 3, "what is not written stays");
            outbox.write_to(|bytes| Ok(bytes.len())).unwrap();
            outbox.give_back(&mut spare);
            assert_eq!(outbox.bytes.capacity(), 0);
        }
        assert_eq!((buffers.len(), spare.0.len()), (1, 1));
        assert!(spare.0[0].capacity() >= BUFFER_BYTES, "the next one may have more to write");
        // All at the same time: no more are kept than that.
        for outbox in &mut outboxes {
            outbox.borrow(&mut spare);
            outbox.bytes().push(0);
        }
        for outbox in &mut outboxes {
            outbox.write_to(|bytes| Ok(bytes.len())).unwrap();
            outbox.give_back(&mut spare);
        }
        assert_eq!(spare.0.len(), SPARE_MAX);
        // Who has much to write keeps what it needs for that.
        let mut outbox = Outbox::default();
        outbox.borrow(&mut spare);
        outbox.bytes().resize(SPARE_BYTES_MAX + 1, 0);
        outbox.write_to(|bytes| Ok(bytes.len())).unwrap();
        outbox.give_back(&mut spare);
        assert_eq!((outbox.bytes.capacity() > SPARE_BYTES_MAX, spare.0.len()), (true, SPARE_MAX - 1));
    }
}
