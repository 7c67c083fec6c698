//! What waits to be forwarded: whoever carries a lane keeps it, on disk or in memory.

use super::batch::Batch;

/// Records of a lane by their positions, without gaps from the oldest one that is held to the newest one.
pub trait Backlog {
    /// The position of the oldest record that is held; where there is none, that of the next one.
    fn first(&self) -> u64;

    /// The position that the next record gets. The first record of an epoch has 1.
    fn end(&self) -> u64;

    /// Puts the records from this position on into the batch, until it takes no more or there are none.
    fn read(&mut self, from: u64, batch: &mut Batch);

    /// The stream has everything up to this position: it need not be held any more.
    fn release(&mut self, through: u64);
}
