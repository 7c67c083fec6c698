//! The bytes of a connection to a relay, of a client's to ours, or of one that a tunnel carries: both directions at once, without waiting for either.

use std::{io, time::Duration};

use tokio::{
    io::Interest,
    time::{Instant, timeout},
};

use crate::async_channel::AsyncChannel;

/// Bytes that are read at once.
pub(super) const PIECE_BYTES: usize = 64 * 1024;
/// Reads in a row before others have their turn.
pub(super) const READS_MAX: usize = 16;
/// An end that takes nothing of what is written for so long is given up.
pub(super) const STALL_MAX: Duration = Duration::from_secs(30);
/// Room that is kept for what is written.
const ROOM_KEPT: usize = 256 * 1024;
/// For the last words to be taken.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);

/// A connection, and what is being written to it.
pub(crate) struct Flow {
    channel: AsyncChannel,
    out: Vec<u8>,
    written: usize,
    /// When something was last taken, or nothing waited.
    moved: Instant,
}

impl Flow {
    pub(crate) fn new(channel: AsyncChannel) -> Self {
        Self { channel, out: Vec::new(), written: 0, moved: Instant::now() }
    }

    /// What is to be written next may be put here; `None`: what was put before is not written yet.
    pub(crate) fn room(&mut self) -> Option<&mut Vec<u8>> {
        self.out.is_empty().then_some(&mut self.out)
    }

    /// Writes this next, as it is: everything that was put before [is written](Self::is_written).
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        debug_assert!(self.out.is_empty(), "what was put before is written");
        self.out = bytes;
    }

    /// Keeps no room for what is written next.
    pub(crate) fn keep_no_room(&mut self) {
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }

    /// Whether the system has taken everything.
    pub(crate) fn is_written(&self) -> bool {
        self.out.is_empty() && self.channel.is_flushed()
    }

    /// When the other end is to be given up, if nothing moves until then.
    pub(super) fn stalled_from(&self) -> Option<Instant> {
        (!self.is_written()).then(|| self.moved + STALL_MAX)
    }

    /// Since when nothing is taken of what is written; `None`: nothing waits.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        (!self.is_written()).then_some(self.moved)
    }

    /// Writes as much as is taken.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        loop {
            let done = if self.written < self.out.len() {
                match self.channel.write(&self.out[self.written..]) {
                    Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                    Ok(bytes) => {
                        self.written += bytes;
                        self.moved = Instant::now();
                        continue;
                    }
                    Err(error) => Err(error),
                }
            } else {
                self.out.clear();
                self.out.shrink_to(ROOM_KEPT);
                self.written = 0;
                self.channel.flush()
            };
            return match done {
                Ok(()) => {
                    self.moved = Instant::now();
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                Err(error) => Err(error),
            };
        }
    }

    /// Reads what is there; `None`: nothing, 0: the end.
    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<Option<usize>> {
        match self.channel.read(space) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until there is something to read, or room for what is to be written. May be given up.
    pub(super) async fn ready(&mut self) -> io::Result<()> {
        if self.channel.holds_bytes()? {
            return Ok(());
        }
        let interest = if self.is_written() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        self.channel.socket().0.ready(interest).await.map(drop)
    }

    /// As [`Self::ready`], for whoever reads nothing now unless `reads`. With nothing to write it waits for ever then.
    pub(crate) async fn ready_to(&mut self, reads: bool) -> io::Result<()> {
        match (reads, self.is_written()) {
            (true, _) => self.ready().await,
            (false, true) => std::future::pending().await,
            (false, false) => self.channel.socket().0.ready(Interest::WRITABLE).await.map(drop),
        }
    }

    /// Says that nothing more is written, and goes on reading.
    pub(crate) async fn end_writing(&mut self) -> io::Result<()> {
        self.channel.shut_down().await
    }

    /// Writes what is left, as far as it is taken within a moment, and closes so that it can be read.
    pub(crate) async fn close(mut self) {
        let last_words = async {
            let rest = std::mem::take(&mut self.out);
            self.channel.write_all(&rest[self.written..]).await?;
            self.channel.linger().await
        };
        // How the end goes does not matter any more.
        let _ = timeout(LAST_WORDS_MAX, last_words).await;
    }
}
