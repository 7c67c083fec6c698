//! What waits to be forwarded: whoever carries a lane keeps it, on disk or in memory.

use super::{batch::Batch, identity::Identity, machine::Stop};

/// What the stream has last of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'a> {
    /// Which part of the lane it is.
    pub identity: Identity,
    /// What the edge has noted with it ([`Batch::set_source`]).
    pub source: Option<&'a str>,
}

/// What a backlog says to what the stream has last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It goes on as it is.
    Kept,
    /// Its positions are in this epoch from now on; those that it has may be others than before.
    Moved(u64),
    /// It cannot go on.
    Stop(Stop),
}

/// Records of a lane by their positions, without gaps from the oldest one that is held to the newest one.
pub trait Backlog {
    /// The position of the oldest record that is held; where there is none, that of the next one.
    fn first(&self) -> u64;

    /// The position that the next record gets. The first record of an epoch has 1.
    fn end(&self) -> u64;

    /// Puts the records from this position on into the batch, until it takes no more or there are none.
    fn read(&mut self, from: u64, batch: &mut Batch);

    /// The stream was asked what it has last of the lane; `None`: nothing. A backlog whose positions are its own has nothing to say; one that is made of another order of events finds its place by it.
    fn place(&mut self, _last: Option<Held<'_>>) -> Place {
        Place::Kept
    }

    /// The stream has everything up to this position: it need not be held any more.
    fn release(&mut self, through: u64);
}
