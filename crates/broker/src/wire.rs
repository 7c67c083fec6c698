//! The only codec of event headers and of the frames between Primary, Backup, witness, publishers and subscribers.
//!
//! Every frame is a version byte, a kind byte, the sender's epoch, and then the fields of its kind in a fixed order: integers big-endian, texts
//! with their length in front. What is decoded borrows from the bytes it was read from; encoding appends to a buffer of the
//! caller's. `docs/formats/event-header.md` and `docs/formats/replica-link.md` have the tables, `vectors/wire` golden bytes.

mod ballot;
mod client;
pub(crate) mod codec;
mod header;
mod link;
mod record;
#[cfg(test)]
mod vectors;

pub use self::{
    ballot::{Ballot, BallotRefusal, Claim, Standing},
    client::{ClientFrame, Guarantee, RefusalReason, Role, WATERMARK_BYTES, WATERMARKS_MAX, Watermark, Watermarks},
    codec::{TEXT_BYTES_MAX, VERSION, WireError},
    header::{EventHeader, Flags, HEADER_BYTES},
    link::{
        FrameAndRest, LINK_FRAME_BYTES_MAX, LINK_PREFIX_BYTES, LinkFrame, Position, RejectReason, Replication, StreamNumber, link_frame,
        replica_frame,
    },
    record::Record,
};
