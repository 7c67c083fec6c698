//! What travels between processes: the real frames as bytes, and what the simulator's operator says.

use bodkin_broker::wire::HEADER_BYTES;

/// A message on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// A frame of the replica link without its prefix.
    Link(Box<[u8]>),
    /// A command between a broker and a client.
    Command(Box<[u8]>),
    /// An event.
    Event {
        /// The topic's index, in place of its name.
        topic: u16,
        /// As it is on the wire.
        header: [u8; HEADER_BYTES],
        /// What the bytes of the message stand for.
        payload: u64,
    },
    /// An event of a publisher that does not number its own, as by HTTP or REQ.
    Publish {
        /// The topic's index, in place of its name.
        topic: u16,
        /// What the bytes of the message stand for.
        payload: u64,
    },
    /// The answer to it.
    Answer(Answer),
    /// The operator wants something committed.
    Commit {
        /// The operator's number of it.
        request: u64,
    },
    /// It is committed.
    Committed {
        /// The operator's number.
        request: u64,
        /// Its position in the control state, from 1.
        position: u64,
        /// Digest of the control state through it.
        digest: u64,
    },
}

/// The answer to an event that the node numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The event is safe (200).
    Accepted,
    /// The event was not accepted (429, 503): it may be sent again, here or to the other node.
    Refused,
    /// The node stopped leading before the event was safe: the event may be delivered or not.
    Unknown,
}

/// The payload of a requester's event: who sent it, and its number among that requester's events.
pub fn request_payload(requester: u16, request: u64) -> u64 {
    u64::from(requester) << 48 | request
}

/// What [`request_payload`] was made of.
pub fn request_of(payload: u64) -> (u16, u64) {
    ((payload >> 48) as u16, payload & ((1 << 48) - 1))
}

/// The payload of a message: a digest of its identity, so that bytes in the wrong place are seen.
pub fn payload(publisher: u16, incarnation: u64, topic: u16, sequence: u64) -> u64 {
    [u64::from(publisher), incarnation, u64::from(topic), sequence].into_iter().fold(0x5bd1_e995, mix)
}

/// The digest of a control state that was `digest` and is one commit longer.
pub fn chained(digest: u64, request: u64, epoch: u64) -> u64 {
    mix(mix(digest, request), epoch)
}

fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
