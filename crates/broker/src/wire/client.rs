//! The commands between a broker and its publishers and subscribers.
//!
//! A command is a message of one frame; events are messages of two or three (event type, payload, [`EventHeader`](super::EventHeader)).

use std::hash::{Hash, Hasher};

use super::codec::{Field, Reader, VERSION, WireError, codes, frames};
use crate::{
    epoch::Epoch,
    event::{Incarnation, PublisherId, Sequence},
};

/// Watermarks that one subscription may state; messages of further streams may come again, and are known as duplicates.
pub const WATERMARKS_MAX: usize = 2048;

/// What a node of the pair is at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It leads.
    Leader,
    /// It follows.
    Follower,
    /// It votes.
    Witness,
}

/// Why a broker does not take an event or a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// This system may not.
    NotAuthorized,
    /// There is no such topic, and none can be made.
    UnknownTopic,
    /// What has to be kept of this stream is full: the same event again, later.
    Full,
    /// It is larger than an event may be.
    TooLarge,
    /// Its header cannot be true.
    Header,
    /// This broker does not lead.
    NotLeading,
    /// The client knows a higher epoch than this broker's: only the pair's own nodes can raise it.
    Epoch,
    /// A newer incarnation of the publisher has published.
    OldIncarnation,
    /// The admission test fails with what the subscription asks for.
    NotAdmitted,
    /// A limit on how many there may be is reached.
    Limit,
    /// It is no event: a text is missing, blank, too long, or not UTF-8.
    Malformed,
    /// It was taken, and the disk did not: a durable event was delivered, and is not kept.
    NotKept,
    /// The subscriber was away or silent for longer than it is waited for: it is not required any more.
    NotRequired,
}

impl RefusalReason {
    /// Whether the same may be taken at a later time.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::Full | Self::NotLeading)
    }
}

codes!(RefusalReason: "a reason from 1 to 13",
    1 => NotAuthorized, 2 => UnknownTopic, 3 => Full, 4 => TooLarge, 5 => Header,
    6 => NotLeading, 7 => Epoch, 8 => OldIncarnation, 9 => NotAdmitted, 10 => Limit,
    11 => Malformed, 12 => NotKept, 13 => NotRequired);

/// Whether something that was promised can be relied on at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guarantee {
    /// What it depends on is being measured.
    Pending,
    /// Nobody has stated what it depends on, or there is nothing that could give it.
    Unstated,
    /// It holds.
    Held,
    /// An assumption does not hold.
    Suspended,
}

codes!(Guarantee: "a guarantee from 1 to 4", 1 => Pending, 2 => Unstated, 3 => Held, 4 => Suspended);

/// How far a subscriber has a stream of the subscription's topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watermark {
    /// Whose stream.
    pub publisher: PublisherId,
    /// Which numbering.
    pub incarnation: Incarnation,
    /// It needs nothing up to here.
    pub through: Sequence,
}

/// Length of a watermark in a frame.
pub const WATERMARK_BYTES: usize = 24;

/// The watermarks of a subscription: of a client's own, or as they were received.
#[derive(Clone, Copy, Debug)]
pub enum Watermarks<'a> {
    /// To be sent; at most [`WATERMARKS_MAX`] of them are.
    Own(&'a [Watermark]),
    /// As received.
    Received(&'a [u8]),
}

impl<'a> Watermarks<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Own(own) => own.len().min(WATERMARKS_MAX),
            Self::Received(bytes) => bytes.len() / WATERMARK_BYTES,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Watermark> + use<'a> {
        let (own, received): (&[Watermark], &[u8]) = match self {
            Self::Own(own) => (&own[..own.len().min(WATERMARKS_MAX)], &[]),
            Self::Received(bytes) => (&[], bytes),
        };
        own.iter().copied().chain(received.chunks_exact(WATERMARK_BYTES).map(|chunk| {
            let number = |at: usize| u64::from_be_bytes(chunk[at..at + 8].try_into().expect("eight bytes"));
            Watermark { publisher: PublisherId(number(0)), incarnation: Incarnation(number(8)), through: Sequence(number(16)) }
        }))
    }
}

impl PartialEq for Watermarks<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Watermarks<'_> {}

impl Hash for Watermarks<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.iter().for_each(|watermark| watermark.hash(hasher));
    }
}

impl<'a> Field<'a> for Watermarks<'a> {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.len() as u16).write(bytes);
        for watermark in self.iter() {
            watermark.publisher.write(bytes);
            watermark.incarnation.write(bytes);
            watermark.through.write(bytes);
        }
    }

    fn read(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, WireError> {
        let count = usize::from(u16::read(reader, field)?);
        if count > WATERMARKS_MAX {
            return Err(WireError::Long { field, limit: WATERMARKS_MAX, found: count });
        }
        reader.take(field, count * WATERMARK_BYTES).map(Self::Received)
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        let all = self.iter();
        all.map(|one| serde_json::json!({"publisher": one.publisher.0, "incarnation": one.incarnation.0, "through": one.through.0}))
            .collect()
    }
}

frames! {
    /// Commands of brokers and clients.
    pub enum ClientFrame<'a>: "a command (64 to 80)" {
        /// A client's first command on a connection.
        64 => Hello {
            /// Which run of the client: greater than that of every earlier one.
            incarnation: Incarnation,
            /// The client's name, for logs.
            name: &'a str,
        }
        /// A broker's answer, and again whenever it changes.
        65 => Leader {
            /// Whether this broker leads in its epoch.
            is_leader: bool,
        }
        /// The publisher need not keep events up to here any more.
        66 => Covered {
            /// The publisher's numbering.
            incarnation: Incarnation,
            /// The last one.
            through: Sequence,
            /// The topic's name.
            topic: &'a str,
        }
        /// An event was not taken.
        67 => Refused {
            /// Its place in the stream.
            sequence: Sequence,
            /// Why.
            reason: RefusalReason,
            /// When to send it again, if the reason passes.
            retry_after_ns: u64,
            /// The topic's name.
            topic: &'a str,
            /// What was expected, what came, what to do.
            text: &'a str,
        }
        /// Asks for a topic's events, or states the watermarks anew.
        68 => Subscribe {
            /// Losses in a row that the subscriber tolerates, if it asks for a bound of its own.
            loss_tolerance: Option<u32>,
            /// Creation to arrival, if it asks for a bound of its own.
            deadline_ns: Option<u64>,
            /// Whether events are covered only when this subscriber has acknowledged them.
            required: bool,
            /// How long it is waited for when it is away.
            wait_ns: u64,
            /// The topic's name.
            topic: &'a str,
            /// What it has already.
            watermarks: Watermarks<'a>,
        }
        /// The subscription is made.
        69 => Subscribed {
            /// The topic's name.
            topic: &'a str,
        }
        /// It is not.
        70 => SubscribeRefused {
            /// Why.
            reason: RefusalReason,
            /// The topic's name.
            topic: &'a str,
            /// What was expected, what came, what to do.
            text: &'a str,
        }
        /// The subscriber has this stream up to here, or knows that it is lost.
        71 => Delivered {
            /// Whose stream.
            publisher: PublisherId,
            /// Which numbering.
            incarnation: Incarnation,
            /// The last one.
            through: Sequence,
            /// The topic's name.
            topic: &'a str,
        }
        /// The last event of a stream, so that its loss does not stay unseen.
        72 => Last {
            /// Whose stream; 0 from its publisher.
            publisher: PublisherId,
            /// Which numbering.
            incarnation: Incarnation,
            /// The last one; 0 if there was none yet.
            sequence: Sequence,
            /// The topic's name.
            topic: &'a str,
        }
        /// The publisher resends these events now, in order, and then sends new ones.
        73 => Resume {
            /// Which numbering.
            incarnation: Incarnation,
            /// The oldest that it keeps; one behind `to` if it keeps none.
            from: Sequence,
            /// The newest that it has published.
            to: Sequence,
            /// The topic's name.
            topic: &'a str,
        }
        /// Events of a stream were dropped: to a subscriber, those that it does not get; to a publisher, those that nobody gets.
        74 => Lost {
            /// Whose stream.
            publisher: PublisherId,
            /// Which numbering.
            incarnation: Incarnation,
            /// How many more.
            events: u64,
            /// The topic's name.
            topic: &'a str,
        }
        /// An event came faster than its topic's period allows: it is dispatched if there is time, and never covered.
        76 => Excess {
            /// The publisher's numbering.
            incarnation: Incarnation,
            /// The event.
            sequence: Sequence,
            /// The topic's name.
            topic: &'a str,
        }
        /// Ends a subscription.
        75 => Unsubscribe {
            /// The topic's name.
            topic: &'a str,
        }
        /// Asks what the other side's clock shows.
        77 => ClockRequest {
            /// When this left, in nanoseconds since 1970 (UTC) by the asker's clock.
            sent_utc_ns: u64,
        }
        /// The answer ([`ClockExchange`](crate::ClockExchange)).
        78 => ClockReply {
            /// From the request.
            sent_utc_ns: u64,
            /// When it came, by the answerer's clock.
            received_utc_ns: u64,
            /// When this left, by the same clock.
            replied_utc_ns: u64,
        }
        /// Asks a broker to be told what is guaranteed: now, if it leads, and whenever that changes while it does.
        79 => WatchGuarantee {
        }
        /// What the broker that leads guarantees from now on.
        80 => Guaranteed {
            /// That events are in time, as far as machine and clocks go.
            deadlines: Guarantee,
            /// That a crash costs no more events than topics tolerate; unstated of a broker without a pair.
            losses: Guarantee,
            /// The longest stall of the last minute.
            worst_stall_ns: u64,
            /// How long a stall deadlines were admitted with; 0: nobody has stated it.
            blocking_ns: u64,
            /// By how much the farthest clock differs from the broker's for certain.
            clock_difference_ns: u64,
            /// How large a difference deadlines were admitted with; 0: nobody has stated it.
            clock_error_ns: u64,
            /// By how much events of the last minute came later than the longest way from their publishers.
            publisher_excess_ns: u64,
            /// How long replicas of the last minute took to the Backup at the most.
            broker_backup_ns: u64,
            /// How long a way bounds on losses were admitted with; 0: nobody has stated it.
            broker_backup_stated_ns: u64,
        }
    }
}
