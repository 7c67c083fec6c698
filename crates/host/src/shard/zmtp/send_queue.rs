//! Send queues: of topics whose events are safe when their subscribers' hosts have them (`coverage = "host"`), what links were given, and whether it has left.
//!
//! Nobody is told when a send queue empties, so it is asked: in each turn in front of the work that is due, and soon again while something is under way. Whoever takes
//! nothing holds up the cover of its own topics only, and the Backup gets their events in time.
#![allow(unsafe_code)] // One question that no crate of ours asks in a safe form.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    time::Duration,
};

use bodkin_broker::{EventId, Input, Sequence, StreamId, TopicId};
use nix::{errno::Errno, libc};
use slab::Slab;

use super::{Link, LinkKey, Shard};
use crate::shard::Receiver;

/// How soon the kernel is asked again while something is under way.
const ASK_PERIOD: Duration = Duration::from_millis(1);
/// Events under way, once for each link; what goes out beyond that is for the Backup, or covered with what goes out behind it.
const UNDER_WAY_MAX: usize = 1 << 16;

/// Bytes that a socket was given and its peer's host has not acknowledged; of a path on this machine what its peer has not read, and the kernel's own beside it.
pub(super) fn queued_bytes(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one integer, which lives until it returns; the descriptor is open as long as it is borrowed.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// An event that a link was given, or has lost, which is told elsewhere: with what it was given before, it has left when this has.
struct UnderWay {
    link: LinkKey,
    /// Where the link's bytes stood behind it; `None` until they are in their final form, at the end of the turn.
    end: Option<u64>,
    stream: StreamId,
    sequence: Sequence,
}

/// What is under way of topics whose events are safe when it has left.
#[derive(Default)]
pub(in crate::shard) struct SendQueues {
    /// In the order in which it was given; a topic's queue stays when it is empty.
    of_topics: BTreeMap<TopicId, VecDeque<UnderWay>>,
    /// Topics with something under way.
    open: Vec<TopicId>,
    count: usize,
    /// What has left, while it is told.
    left: Vec<(StreamId, Sequence)>,
}

impl SendQueues {
    /// When the shard looks after it at the latest; `None`: nothing is under way.
    pub fn patience(&self) -> Option<Duration> {
        (self.count > 0).then_some(ASK_PERIOD)
    }

    fn have_room(&self, links: usize) -> bool {
        self.count.saturating_add(links) <= UNDER_WAY_MAX
    }

    fn push(&mut self, topic: TopicId, under_way: UnderWay) {
        let queue = self.of_topics.entry(topic).or_default();
        if queue.is_empty() {
            self.open.push(topic);
        }
        queue.push_back(under_way);
        self.count += 1;
    }

    /// Notes where the links' bytes stand behind what they were given in the turn, which ends.
    fn settle(&mut self, links: &Slab<Link>) {
        for topic in &self.open {
            let queue = self.of_topics.get_mut(topic).expect("an open topic has a queue");
            for under_way in queue.iter_mut().rev().take_while(|under_way| under_way.end.is_none()) {
                under_way.end = Some(at(links, under_way.link).map_or(0, Link::end));
            }
        }
    }

    /// Finds out what has left to all.
    fn ask(&mut self, links: &Slab<Link>) {
        let Self { of_topics, open, count, left } = self;
        // Most of a turn's events go to the same few links.
        let mut known: Option<(LinkKey, u64)> = None;
        let mut sent = |link: LinkKey| match known {
            Some((of, bytes)) if of == link => bytes,
            _ => {
                // What a link that is gone has not taken is for nobody.
                let bytes = at(links, link).map_or(u64::MAX, Link::sent_bytes);
                known = Some((link, bytes));
                bytes
            }
        };
        open.retain(|topic| {
            let queue = of_topics.get_mut(topic).expect("an open topic has a queue");
            while let Some(&UnderWay { link, end: Some(end), stream, sequence }) = queue.front()
                && sent(link) >= end
            {
                queue.pop_front();
                *count -= 1;
                if queue.front().is_none_or(|next| (next.stream, next.sequence) != (stream, sequence)) {
                    left.push((stream, sequence));
                }
            }
            !queue.is_empty()
        });
    }
}

/// A link that is still there.
fn at(links: &Slab<Link>, key: LinkKey) -> Option<&Link> {
    links.get(key.slot).filter(|link| link.serial == key.serial)
}

impl Shard {
    /// Notes to whom a dispatched event goes whose topic counts emptied send queues. Of a subscriber over HTTP, of one that is away, and of nobody at all they say nothing.
    pub(in crate::shard) fn is_under_way(&mut self, stream: StreamId, event: EventId) {
        let link = |receiver: &Receiver| match *receiver {
            Receiver::Link { slot, .. } | Receiver::Dealer { slot, .. } => {
                self.endpoint.links.get(slot).map(|link| LinkKey { slot, serial: link.serial })
            }
            Receiver::Stream { .. } | Receiver::Push { .. } | Receiver::Graph => None,
        };
        let queues = &mut self.endpoint.send_queues;
        if self.broker.receivers(event.topic).any(|receiver| link(receiver).is_none()) {
            return;
        }
        // All of its links or none: with some, it would count as gone when these have sent it.
        if !queues.have_room(self.broker.receivers(event.topic).count()) {
            return;
        }
        for link in self.broker.receivers(event.topic).filter_map(link) {
            queues.push(event.topic, UnderWay { link, end: None, stream, sequence: event.sequence });
        }
    }

    /// Tells the broker what has left the send queues.
    pub(in crate::shard) fn ask_send_queues(&mut self) {
        if self.endpoint.send_queues.count == 0 {
            return;
        }
        self.endpoint.send_queues.ask(&self.endpoint.links);
        let mut left = std::mem::take(&mut self.endpoint.send_queues.left);
        for (stream, through) in left.drain(..) {
            self.broker.step(self.clock.broker(), Input::Emptied { stream, through }, &mut self.outputs);
        }
        self.endpoint.send_queues.left = left;
        self.carry_out_now();
    }

    /// Ends a turn: what was given in it stands in the links as it goes out.
    pub(in crate::shard) fn settle_send_queues(&mut self) {
        self.endpoint.send_queues.settle(&self.endpoint.links);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
        os::fd::AsFd as _,
        time::Instant,
    };

    use super::*;

    /// Whether the queue gets below so many bytes within two seconds.
    fn falls_to(socket: &TcpStream, bytes: u64) -> bool {
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            if queued_bytes(socket.as_fd()).unwrap() <= bytes {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    #[test]
    fn event_is_tracked_for_all_of_its_links_or_for_none() {
        let queues = SendQueues { count: UNDER_WAY_MAX - 3, ..SendQueues::default() };
        assert!(queues.have_room(3) && !queues.have_room(4));
    }

    #[test]
    fn a_send_queue_empties_when_the_peers_host_has_the_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        assert_eq!(queued_bytes(ours.as_fd()).unwrap(), 0);
        ours.write_all(b"an event").unwrap();
        assert!(falls_to(&ours, 0), "the host has it, whether the peer has read it or not");
        ours.set_nonblocking(true).unwrap();
        while ours.write(&[0; 65_536]).is_ok() {}
        assert!(!falls_to(&ours, 0), "a peer that reads nothing has a full host");
        theirs.set_nonblocking(true).unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        while queued_bytes(ours.as_fd()).unwrap() > 0 && Instant::now() < until {
            let _ = theirs.read(&mut [0; 65_536]);
        }
        assert_eq!(queued_bytes(ours.as_fd()).unwrap(), 0);
    }
}
