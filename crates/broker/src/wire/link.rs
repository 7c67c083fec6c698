//! The replica link: what Primary, Backup and witness send each other over one ordered connection a pair.

use super::{
    Ballot,
    codec::{Field, Reader, VERSION, WireError, codes, frames, newtypes},
};
use crate::{
    epoch::{Epoch, Node, PairId},
    event::{Incarnation, PublisherId, Sequence, TopicId},
    wire::Role,
};

/// Bytes in front of every frame of the link: its length, big-endian.
pub const LINK_PREFIX_BYTES: usize = 4;
/// Longest frame of the link without its prefix, in bytes. A longer one is refused before anything is kept for it.
pub const LINK_FRAME_BYTES_MAX: usize = 1 << 20;

/// A place in the order of the replica channel: everything that the Backup has to acknowledge has one. They go on over the connections of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The short name of a stream on one connection, given by [`Replication::StreamOpen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamNumber(pub u32);

newtypes!(Position, StreamNumber, TopicId);

frames! {
    /// The greeting and the replica channel.
    pub enum Replication<'a>: "the replica link (1 to 6, 16 to 42)" {
        /// The first frame of either side; its layout never changes.
        16 => Greeting {
            /// The newest protocol version that the sender speaks.
            protocol: u16,
            /// The oldest.
            protocol_min: u16,
            /// Who it is; the connection's certificate has to say the same.
            node: Node,
            /// What it is at present.
            role: Role,
            /// Which run of the process.
            incarnation: Incarnation,
        }
        /// Gives a stream its number on this connection.
        17 => StreamOpen {
            /// The number, not used before on this connection.
            stream: StreamNumber,
            /// Whose.
            publisher: PublisherId,
            /// Which numbering.
            incarnation: Incarnation,
            /// The topic's name.
            topic: &'a str,
        }
        /// A message for the Backup to keep.
        18 => Replica {
            /// Its place in the channel.
            position: Position,
            /// Its stream.
            stream: StreamNumber,
            /// Its place in the stream.
            sequence: Sequence,
            /// When it was created, in nanoseconds since 1970 (UTC).
            created_utc_ns: u64,
            /// The message, to the frame's end.
            payload: &'a [u8],
        }
        /// The Backup need not keep this stream's messages up to here any more.
        19 => Discard {
            /// The stream.
            stream: StreamNumber,
            /// The last one.
            through: Sequence,
        }
        /// The Backup has everything up to here: messages in memory, control operations on its disk.
        20 => Ack {
            /// The last one.
            position: Position,
        }
        /// A committed change of the control state.
        21 => Control {
            /// Its place in the channel.
            position: Position,
            /// The change, to the frame's end.
            operation: &'a [u8],
        }
        /// The whole state follows: what the Backup had is replaced at the end of it.
        22 => SnapshotBegin {
            /// The last position in front of it: what follows counts on from there.
            position: Position,
        }
        /// A piece of it.
        23 => SnapshotPart {
            /// The piece, to the frame's end.
            part: &'a [u8],
        }
        /// The snapshot is whole.
        24 => SnapshotEnd {
            /// Its place in the channel, which is acknowledged like any other.
            position: Position,
        }
        /// The sender lives.
        25 => Heartbeat {
            /// Grows while the sender can write its record: a node that cannot votes for no node.
            progress: u64,
        }
        /// The stream is over: its number will not be used again.
        26 => StreamClose {
            /// The stream.
            stream: StreamNumber,
        }
        /// Asks what the other side's clock shows.
        27 => ClockRequest {
            /// When this left, in nanoseconds since 1970 (UTC) by the asker's clock.
            sent_utc_ns: u64,
        }
        /// The answer ([`ClockExchange`](crate::ClockExchange)).
        28 => ClockReply {
            /// From the request.
            sent_utc_ns: u64,
            /// When it came, by the answerer's clock.
            received_utc_ns: u64,
            /// When this left, by the same clock.
            replied_utc_ns: u64,
        }
        /// The first frame on the replica channel of an epoch, from the side that connects, and the other side's answer. Ballots and heartbeats
        /// keep the connection that began with a greeting, so that nothing that is large delays a vote.
        29 => Channel {
            /// The newest protocol version that the sender speaks.
            protocol: u16,
            /// The oldest.
            protocol_min: u16,
            /// Who it is.
            node: Node,
            /// Which run of the process: that of its greeting.
            incarnation: Incarnation,
        }
        /// From now on this subscriber's acknowledgements count for the topic, and who is promoted has to wait for it.
        30 => Required {
            /// For so long when it is away or silent.
            wait_ns: u64,
            /// The topic's name.
            topic: &'a str,
            /// The subscriber's.
            subscriber: &'a str,
        }
        /// From now on they do not.
        31 => NotRequired {
            /// The topic's name.
            topic: &'a str,
            /// The subscriber's.
            subscriber: &'a str,
        }
        /// What subscribers ask of a topic beyond its declaration, all together; nothing if both are absent. Protocol 2.
        32 => Asked {
            /// The losses in a row that the strictest of them tolerates.
            loss_tolerance: Option<u32>,
            /// The shortest deadline.
            deadline_ns: Option<u64>,
            /// The topic's name.
            topic: &'a str,
        }
        /// What the Backup has on its disk of what this leader has committed in this epoch: its first frame on the replica channel but for what its event log has.
        /// Protocol 2.
        33 => Have {
            /// The operations up to this number, and nothing else; absent: it needs a copy.
            number: Option<u64>,
        }
        /// The next operation is the one behind this one; the copy that follows has those up to it. Protocol 2.
        34 => Numbered {
            /// Counts this leader's operations.
            number: u64,
        }
        /// No copy follows: what the Backup has counts, and what it lacks follows. Protocol 2.
        35 => Tail {
            /// The last position in front of it: what follows counts on from there.
            position: Position,
        }
        /// One of the newest records of durable events in the Backup's event log, the newest first, all of them in front of [`Self::Have`]. Protocol 3.
        36 => Logged {
            /// When a leader accepted the event, in nanoseconds since 1970 (UTC).
            time_utc_ns: u64,
            /// Who published it.
            publisher: PublisherId,
            /// Which numbering.
            incarnation: Incarnation,
            /// Of which topic, by the number that it had at that leader.
            topic: TopicId,
            /// Its place in the stream.
            sequence: Sequence,
        }
        /// A checkpoint of a graph, in place of its last one. Protocol 3.
        37 => Graph {
            /// Its place in the channel.
            position: Position,
            /// The graph's name.
            graph: &'a str,
            /// The checkpoint, to the frame's end; empty: the graph is removed.
            checkpoint: &'a [u8],
        }
        /// The second frame of either side, behind the greeting: what all nodes of a pair have to have alike. Protocol 4.
        38 => Identity {
            /// The pair that the sender has met.
            pair: Option<PairId>,
            /// The `[platform]` times of the sender: `lease`.
            lease_ns: u64,
            /// `heartbeat`.
            heartbeat_ns: u64,
            /// `detect_jitter`.
            detect_jitter_ns: u64,
            /// `redirect`.
            redirect_ns: u64,
            /// `drift_ppm`.
            drift_ppm: u32,
            /// The digest of the configured topics; absent at a witness, which has none.
            topics: Option<u64>,
        }
        /// The greeting is refused, and the connection ends. Protocol 4.
        39 => Rejected {
            /// The class of the reason.
            reason: RejectReason,
            /// The reason and what to do, for people.
            text: &'a str,
        }
        /// Another process of a node is refused at the sender, to the nodes that are connected. Protocol 4.
        40 => Duplicate {
            /// The node that two processes claim to be.
            node: Node,
            /// The address that the refused process connected from.
            address: &'a str,
        }
        /// Lines of the standby's own certificate ledger that the leader's database lacks. Sent again until it has them. Protocol 5.
        41 => LedgerLines {
            /// One JSON object per line, to the frame's end.
            lines: &'a [u8],
        }
        /// Whether the sender's disk takes new data, from candidate to candidate, about once a second. Protocol 5.
        42 => Disk {
            /// False if a test of the disk failed, as on a full disk.
            has_room: bool,
        }
    }
}

impl Replication<'_> {
    /// The first protocol that has this frame where it is sent. An end that speaks an older one is not sent it.
    pub fn since_protocol(&self) -> u16 {
        match self {
            Self::ClockRequest { .. } | Self::ClockReply { .. } | Self::Asked { .. } => 2,
            Self::Have { .. } | Self::Numbered { .. } | Self::Tail { .. } => 2,
            Self::Logged { .. } => 3,
            Self::Graph { .. } => 3,
            Self::Duplicate { .. } => 4,
            Self::LedgerLines { .. } => 5,
            Self::Disk { .. } => 5,
            // Part of the greeting, which comes before a protocol is agreed.
            Self::Identity { .. } | Self::Rejected { .. } => 1,
            _ => 1,
        }
    }
}

codes!(Role: "1 (leader), 2 (follower) or 3 (witness)", 1 => Leader, 2 => Follower, 3 => Witness);

/// Why a greeting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// A former process of the node may still act: the process tries again.
    Predecessor,
    /// Another process of the same node runs.
    Duplicate,
    /// The process belongs to another pair.
    OtherPair,
    /// The receiver expects another node at this address.
    Unexpected,
}

codes!(RejectReason: "a reason from 1 to 4", 1 => Predecessor, 2 => Duplicate, 3 => OtherPair, 4 => Unexpected);

/// Any frame of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkFrame<'a> {
    /// For the member.
    Ballot(Ballot),
    /// For the rest.
    Replication(Replication<'a>),
}

impl<'a> LinkFrame<'a> {
    /// The sender's epoch, which every frame has.
    pub fn epoch(&self) -> Epoch {
        match self {
            Self::Ballot(frame) => frame.epoch(),
            Self::Replication(frame) => frame.epoch(),
        }
    }

    /// Appends the frame with its prefix.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        0_u32.write(bytes);
        match self {
            Self::Ballot(frame) => frame.encode(bytes),
            Self::Replication(frame) => frame.encode(bytes),
        }
        write_prefix(bytes, start);
    }

    /// Reads one whole frame, without its prefix.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        match bytes.get(1) {
            Some(1..=6) => Ballot::decode(bytes).map(Self::Ballot),
            _ => Replication::decode(bytes).map(Self::Replication),
        }
    }
}

/// A frame without its prefix, and what follows it.
pub type FrameAndRest<'a> = (&'a [u8], &'a [u8]);

/// Finds the first frame of what a connection has received; there is none as long as it is not whole.
pub fn link_frame(received: &[u8]) -> Result<Option<FrameAndRest<'_>>, WireError> {
    let Some((prefix, rest)) = received.split_at_checked(LINK_PREFIX_BYTES) else { return Ok(None) };
    let length = u32::from_be_bytes(prefix.try_into().expect("as many bytes were taken")) as usize;
    if length > LINK_FRAME_BYTES_MAX {
        return Err(WireError::Long { field: "frame", limit: LINK_FRAME_BYTES_MAX, found: length });
    }
    Ok(rest.split_at_checked(length))
}

/// Appends a [`Replication::Replica`] with its prefix, whose payload `payload` appends from where it lies.
pub fn replica_frame(
    epoch: Epoch,
    position: Position,
    stream: StreamNumber,
    sequence: Sequence,
    created_utc_ns: u64,
    payload: impl FnOnce(&mut Vec<u8>),
    bytes: &mut Vec<u8>,
) {
    let start = bytes.len();
    0_u32.write(bytes);
    Replication::Replica { epoch, position, stream, sequence, created_utc_ns, payload: &[] }.encode(bytes);
    payload(bytes);
    write_prefix(bytes, start);
}

fn write_prefix(bytes: &mut [u8], start: usize) {
    let length = bytes.len() - start - LINK_PREFIX_BYTES;
    assert!(length <= LINK_FRAME_BYTES_MAX, "a frame of {length} bytes for the link, where {LINK_FRAME_BYTES_MAX} are allowed");
    bytes[start..start + LINK_PREFIX_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replicas_head_and_its_payload_are_its_frame() {
        let frame = Replication::Replica {
            epoch: Epoch(3),
            position: Position(9),
            stream: StreamNumber(2),
            sequence: Sequence(7),
            created_utc_ns: 1,
            payload: b"12.5",
        };
        let (mut whole, mut behind) = (Vec::new(), b"before".to_vec());
        LinkFrame::Replication(frame).encode(&mut whole);
        let payload = |bytes: &mut Vec<u8>| bytes.extend_from_slice(b"12.5");
        replica_frame(Epoch(3), Position(9), StreamNumber(2), Sequence(7), 1, payload, &mut behind);
        assert_eq!(behind[6..], whole);
    }

    #[test]
    fn frames_are_found_one_behind_the_other_and_only_when_they_are_whole() {
        let heartbeat = LinkFrame::Replication(Replication::Heartbeat { epoch: Epoch(1), progress: 5 });
        let ack = LinkFrame::Replication(Replication::Ack { epoch: Epoch(1), position: Position(4) });
        let mut bytes = Vec::new();
        heartbeat.encode(&mut bytes);
        let first = bytes.len();
        ack.encode(&mut bytes);
        for cut in 0..first {
            assert_eq!(link_frame(&bytes[..cut]), Ok(None), "{cut} bytes");
        }
        let (frame, rest) = link_frame(&bytes).unwrap().expect("two frames");
        assert_eq!(LinkFrame::decode(frame), Ok(heartbeat));
        let (frame, rest) = link_frame(rest).unwrap().expect("one frame");
        assert_eq!((LinkFrame::decode(frame), rest), (Ok(ack), &[][..]));
        let long = (LINK_FRAME_BYTES_MAX as u32 + 1).to_be_bytes();
        assert!(matches!(link_frame(&long), Err(WireError::Long { .. })), "refused before its bytes are there");
    }
}
