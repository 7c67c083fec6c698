//! Bytes of a connection become frames.

use super::{Frame, FrameError, read};

/// Bytes that an empty assembly keeps the room of.
const ROOM_KEPT: usize = 64 * 1024;

/// What has come and was not read: at most one frame that is not whole, and what came with its last bytes.
#[derive(Debug, Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    read: usize,
}

impl Assembly {
    /// Takes what has come.
    pub fn put(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        if self.bytes.is_empty() {
            self.bytes.shrink_to(ROOM_KEPT);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Gives the next frame; `None` when there is no whole one.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let Some((frame, length)) = read(&self.bytes[self.read..])? else { return Ok(None) };
        self.read += length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Channel, write},
        *,
    };

    #[test]
    fn frames_come_out_however_their_bytes_are_cut() {
        let frames = [Frame::Ping { token: 7 }, Frame::Message { channel: Channel(1), bytes: b"abc" }, Frame::Pong { token: 8 }];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| write(frame, &mut bytes));
        for piece in 1..=bytes.len() {
            let (mut assembly, mut found) = (Assembly::default(), 0);
            for part in bytes.chunks(piece) {
                assembly.put(part);
                while let Some(frame) = assembly.next_frame().unwrap() {
                    assert_eq!(frame, frames[found]);
                    found += 1;
                }
            }
            assert_eq!(found, frames.len(), "in pieces of {piece}");
        }
    }
}
