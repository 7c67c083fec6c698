//! A lane: one order of events, from one edge into one subject of a stream, exactly once (`docs/formats/fleet.md`).
//!
//! Every event that is to be forwarded gets a position in its lane when it comes, and lies in the lane's [`Backlog`]. Batches of them are published one at a time, each on the condition that the batch before
//! it is the subject's last message. So a batch that was sent twice, by a connection that was thought to be dead, or by another process of the same name, is refused by the stream itself, however long ago
//! that was; and what to go on with is asked of the stream's own last message, not of anything that is kept here.

mod backlog;
mod batch;
mod identity;
mod machine;
mod overflow;

pub use self::{
    backlog::{Backlog, Held, Place},
    batch::{BATCH_BYTES_MIN, Batch, EVENTS_MAX, FORMAT, Put, ReadError, Record, Records, TOPIC_BYTES_MAX},
    identity::{Identity, IdentityError, SOURCE_BYTES_MAX},
    machine::{Lane, Refusal, Step, Stop, Terms, Told},
    overflow::{MemoryBacklog, TOPICS_MAX},
};
