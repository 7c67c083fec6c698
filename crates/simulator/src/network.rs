//! Ordered channels between processes, as TCP gives them: what is sent arrives once and in order, late or never.
//!
//! A lost, doubled or reordered packet is only a delay here, because the kernel mends it. What the kernel cannot mend is modelled
//! as it is: a link that is cut in one direction or both holds everything back until it heals, a connection that is reset loses
//! what was under way, a killed process leaves its bytes to its kernel, and a host that dies takes them along without a word to
//! anybody. Frames of different channels overtake each other freely.
//!
//! The network does not act by itself: it says when something arrives on which link, and is asked for it when it is time.

use std::collections::VecDeque;

use crate::{clock::Time, random::Random};

/// A process on its own host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u16);

impl ProcessId {
    /// As an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How long a frame is under way while its link is whole, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Never shorter.
    pub min_ns: u64,
    /// Never longer.
    pub max_ns: u64,
}

impl Latency {
    /// Always the same.
    #[cfg(test)]
    pub fn fixed(ns: u64) -> Self {
        Self { min_ns: ns, max_ns: ns }
    }
}

/// What becomes of a process's connections when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process died, and its kernel sends what was handed over, then closes.
    Flush,
    /// The process died with something unread in its sockets: its kernel drops what was to be sent, and resets.
    Reset,
    /// The host died: some of what was on the wire arrives, and nobody is told.
    Vanish,
}

/// What arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<F> {
    /// What was sent.
    Frame(F),
    /// The end of the connection.
    Close,
}

/// On which link something arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it.
    pub from: ProcessId,
    /// Who gets it.
    pub to: ProcessId,
}

/// Arrivals with their times.
pub type Arrivals = Vec<(Time, Arrival)>;

#[derive(Clone, Debug)]
struct Parcel<F> {
    connection: u32,
    content: Content<F>,
}

#[derive(Clone, Debug)]
struct Link<F> {
    latency: Latency,
    /// How much longer its frames are under way at present.
    slow_ns: u64,
    is_cut: bool,
    /// Nothing arrives earlier than what was sent before.
    clear_at: Time,
    /// Frames that would arrive later died with their sender.
    lives_until: Time,
    /// What is under way, in its order; each arrival takes the first.
    under_way: VecDeque<Parcel<F>>,
    /// How many of these would have arrived while the link was cut: the sender's kernel sends them again once it is whole.
    held: usize,
}

impl<F> Link<F> {
    /// Forgets what is held back.
    fn forget_held(&mut self) {
        self.under_way.drain(..self.held);
        self.held = 0;
    }
}

/// One side's idea of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    connection: u32,
    is_open: bool,
}

/// All links and connections.
#[derive(Clone, Debug)]
pub struct Network<F> {
    processes: usize,
    links: Vec<Link<F>>,
    ends: Vec<End>,
    random: Random,
}

impl<F> Network<F> {
    /// A network of whole links without a connection.
    pub fn new(processes: usize, latency: Latency, random: Random) -> Self {
        let link = || Link {
            latency,
            slow_ns: 0,
            is_cut: false,
            clear_at: Time::default(),
            lives_until: Time::NEVER,
            under_way: VecDeque::new(),
            held: 0,
        };
        let pairs = processes * processes;
        Self { processes, links: (0..pairs).map(|_| link()).collect(), ends: vec![End::default(); pairs], random }
    }

    /// Makes one direction's latency what is given, for what is sent from now on.
    pub fn set_latency(&mut self, from: ProcessId, to: ProcessId, latency: Latency) {
        self.link(from, to).latency = latency;
    }

    /// Makes one direction slower by so much, for what is sent from now on.
    pub fn slow(&mut self, from: ProcessId, to: ProcessId, by_ns: u64) {
        self.link(from, to).slow_ns = by_ns;
    }

    /// Whether `of` believes to be connected to `peer`.
    pub fn is_open(&self, of: ProcessId, peer: ProcessId) -> bool {
        self.ends[self.place(of, peer)].is_open
    }

    /// Whether a connection could be made, as far as links decide.
    pub fn is_whole(&self, one: ProcessId, other: ProcessId) -> bool {
        !self.links[self.place(one, other)].is_cut && !self.links[self.place(other, one)].is_cut
    }

    /// Whether two processes are connected over whole links, with nothing held back and no end on its way.
    pub fn is_sound(&self, one: ProcessId, other: ProcessId) -> bool {
        [(one, other), (other, one)].into_iter().all(|(from, to)| {
            let link = &self.links[self.place(from, to)];
            self.is_open(from, to) && !link.is_cut && link.lives_until == Time::NEVER
        })
    }

    /// Connects two processes anew. Gives which of them held an earlier connection that has ended by this, unnoticed until now.
    pub fn connect(&mut self, one: ProcessId, other: ProcessId) -> [bool; 2] {
        let (here, there) = (self.place(one, other), self.place(other, one));
        let connection = self.ends[here].connection.max(self.ends[there].connection) + 1;
        let stale = [self.ends[here].is_open, self.ends[there].is_open];
        for place in [here, there] {
            self.ends[place] = End { connection, is_open: true };
            let link = &mut self.links[place];
            link.lives_until = Time::NEVER;
            link.forget_held();
        }
        stale
    }

    /// Sends a frame. It is silently gone where the sender has no connection: a socket that is closed takes nothing.
    pub fn send(&mut self, now: Time, from: ProcessId, to: ProcessId, frame: F) -> Option<(Time, Arrival)> {
        let End { connection, is_open } = self.ends[self.place(from, to)];
        if !is_open {
            return None;
        }
        self.link(from, to).under_way.push_back(Parcel { connection, content: Content::Frame(frame) });
        Some(self.arrival(now, from, to))
    }

    /// Draws when the next thing arrives.
    fn arrival(&mut self, now: Time, from: ProcessId, to: ProcessId) -> (Time, Arrival) {
        let place = self.place(from, to);
        let Link { latency: Latency { min_ns, max_ns }, slow_ns, .. } = self.links[place];
        let at = now.plus(self.random.between(min_ns, max_ns) + slow_ns).max(self.links[place].clear_at);
        self.links[place].clear_at = at;
        (at, Arrival { from, to })
    }

    /// The time of an arrival has come. Gives what arrived, if anything did.
    pub fn arrive(&mut self, now: Time, Arrival { from, to }: Arrival) -> Option<Content<F>> {
        let receiving = self.place(to, from);
        let end = self.ends[receiving];
        let link = self.link(from, to);
        if link.is_cut {
            link.held += 1;
            return None;
        }
        let Parcel { connection, content } = link.under_way.pop_front().expect("what arrives was under way");
        let has_died = matches!(content, Content::Frame(_)) && now > link.lives_until;
        if !end.is_open || end.connection != connection || has_died {
            return None;
        }
        if matches!(content, Content::Close) {
            self.ends[receiving].is_open = false;
        }
        Some(content)
    }

    /// Cuts one direction: what would arrive from now on is held back.
    pub fn cut(&mut self, from: ProcessId, to: ProcessId) {
        self.link(from, to).is_cut = true;
    }

    /// Makes one direction whole; what was held back is sent again.
    pub fn heal(&mut self, now: Time, from: ProcessId, to: ProcessId, arrivals: &mut Arrivals) {
        let link = self.link(from, to);
        link.is_cut = false;
        for _ in 0..std::mem::take(&mut link.held) {
            let arrival = self.arrival(now, from, to);
            arrivals.push(arrival);
        }
    }

    /// Resets a connection: what is under way is lost, and both sides are told as soon as their link is whole.
    pub fn reset(&mut self, now: Time, one: ProcessId, other: ProcessId, arrivals: &mut Arrivals) {
        for (from, to) in [(one, other), (other, one)] {
            self.close_behind(now, from, to, Ending::Reset, arrivals);
        }
    }

    /// Ends all connections of a process.
    pub fn end(&mut self, now: Time, process: ProcessId, ending: Ending, arrivals: &mut Arrivals) {
        for peer in (0..self.processes as u16).map(ProcessId).filter(|peer| *peer != process) {
            self.close(now, process, peer, ending, arrivals);
        }
    }

    /// Closes a process's end of a connection, if it is open.
    pub fn close(&mut self, now: Time, process: ProcessId, peer: ProcessId, ending: Ending, arrivals: &mut Arrivals) {
        let end = self.place(process, peer);
        if std::mem::take(&mut self.ends[end].is_open) {
            self.close_behind(now, process, peer, ending, arrivals);
        }
    }

    /// Decides what still reaches `to` of what `from` has sent, and when `to` is told that there is no more.
    fn close_behind(&mut self, now: Time, from: ProcessId, to: ProcessId, ending: Ending, arrivals: &mut Arrivals) {
        let connection = self.ends[self.place(from, to)].connection;
        let lost_within_ns = self.links[self.place(from, to)].latency.max_ns;
        let survives_ns = self.random.between(0, lost_within_ns);
        let link = self.link(from, to);
        match ending {
            Ending::Flush => {}
            Ending::Reset => {
                link.lives_until = now;
                link.forget_held();
            }
            Ending::Vanish => {
                // What was held back goes with its host, and on the same connection nothing can come behind it.
                link.lives_until = if link.held > 0 { now } else { now.plus(survives_ns) };
                link.forget_held();
                return;
            }
        }
        link.under_way.push_back(Parcel { connection, content: Content::Close });
        let arrival = self.arrival(now, from, to);
        arrivals.push(arrival);
    }

    fn place(&self, of: ProcessId, peer: ProcessId) -> usize {
        of.index() * self.processes + peer.index()
    }

    fn link(&mut self, from: ProcessId, to: ProcessId) -> &mut Link<F> {
        let place = self.place(from, to);
        &mut self.links[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProcessId = ProcessId(0);
    const B: ProcessId = ProcessId(1);

    struct Pair {
        network: Network<u32>,
        under_way: Arrivals,
    }

    fn connected(latency: Latency) -> Pair {
        let mut network = Network::new(2, latency, Random::new(3));
        assert_eq!(network.connect(A, B), [false, false]);
        Pair { network, under_way: Vec::new() }
    }

    impl Pair {
        fn send(&mut self, at: u64, frame: u32) {
            self.under_way.extend(self.network.send(Time(at), A, B, frame));
        }

        /// What arrives at `B` until `end`, in its order, a close being 0.
        fn arrivals(&mut self, end: u64) -> Vec<u32> {
            let (due, later) = std::mem::take(&mut self.under_way).into_iter().partition(|(at, _)| *at <= Time(end));
            self.under_way = later;
            let mut due: Arrivals = due;
            due.sort_by_key(|(at, _)| *at);
            let arrived = due.into_iter().filter(|(_, arrival)| arrival.to == B);
            arrived
                .filter_map(|(at, arrival)| self.network.arrive(at, arrival))
                .map(|content| match content {
                    Content::Frame(frame) => frame,
                    Content::Close => 0,
                })
                .collect()
        }
    }

    #[test]
    fn a_channel_keeps_its_order_and_its_latency() {
        let mut pair = connected(Latency { min_ns: 5, max_ns: 50 });
        for frame in 1..=100 {
            pair.send(u64::from(frame), frame);
        }
        for (sent, (at, _)) in (1..).zip(&pair.under_way) {
            assert!((5..=50).contains(&(at.0 - sent)), "frame {sent} took {} ns", at.0 - sent);
        }
        assert_eq!(pair.arrivals(200), (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn frames_on_a_slow_way_are_late_and_those_behind_them_stay_behind() {
        let mut pair = connected(Latency::fixed(10));
        pair.network.slow(A, B, 50);
        pair.send(0, 1);
        pair.network.slow(A, B, 0);
        pair.send(5, 2);
        assert_eq!((pair.arrivals(59), pair.arrivals(60)), (vec![], vec![1, 2]));
    }

    #[test]
    fn a_cut_link_holds_back_and_sends_again() {
        let mut pair = connected(Latency::fixed(10));
        pair.send(0, 1);
        pair.send(5, 2);
        assert_eq!(pair.arrivals(10), [1]);
        pair.network.cut(A, B);
        pair.send(20, 3);
        assert_eq!(pair.arrivals(40), [0; 0]);
        let mut arrivals = Vec::new();
        pair.network.heal(Time(40), A, B, &mut arrivals);
        pair.under_way.extend(arrivals);
        pair.send(41, 4);
        assert_eq!(pair.arrivals(60), [2, 3, 4]);
    }

    #[test]
    fn what_was_held_back_is_not_overtaken_by_what_was_sent_before_the_link_was_whole() {
        let mut pair = connected(Latency::fixed(10));
        pair.network.cut(A, B);
        pair.send(0, 1);
        assert_eq!(pair.arrivals(10), [0; 0]);
        pair.send(15, 2);
        let mut arrivals = Vec::new();
        pair.network.heal(Time(20), A, B, &mut arrivals);
        pair.under_way.extend(arrivals);
        assert_eq!(pair.arrivals(60), [1, 2]);
    }

    #[test]
    fn an_ending_decides_what_still_arrives() {
        let rest = |ending| {
            let mut pair = connected(Latency::fixed(10));
            pair.send(0, 1);
            pair.send(9, 2);
            let mut arrivals = Vec::new();
            pair.network.end(Time(9), A, ending, &mut arrivals);
            pair.under_way.extend(arrivals);
            pair.send(9, 3);
            let arrived = pair.arrivals(100);
            (arrived, pair.network.is_open(A, B), pair.network.is_open(B, A))
        };
        assert_eq!(rest(Ending::Flush), (vec![1, 2, 0], false, false));
        assert_eq!(rest(Ending::Reset), (vec![0], false, false));
        let (arrived, here, there) = rest(Ending::Vanish);
        assert!([vec![], vec![1], vec![1, 2]].contains(&arrived), "{arrived:?} is no beginning of what was sent");
        assert_eq!((here, there), (false, true), "nobody tells the other side");
    }

    #[test]
    fn behind_what_has_died_with_its_host_nothing_arrives() {
        for seed in 0..20 {
            let mut pair = connected(Latency::fixed(10));
            pair.network.random = Random::new(seed);
            pair.network.cut(A, B);
            pair.send(0, 1);
            assert_eq!(pair.arrivals(10), [0; 0]);
            pair.send(11, 2);
            let mut arrivals = Vec::new();
            pair.network.end(Time(12), A, Ending::Vanish, &mut arrivals);
            pair.network.heal(Time(13), A, B, &mut arrivals);
            pair.under_way.extend(arrivals);
            assert_eq!(pair.arrivals(100), [0; 0], "2 was sent behind 1");
        }
    }

    #[test]
    fn a_new_connection_forgets_what_was_under_way_on_the_old_one() {
        let mut pair = connected(Latency::fixed(10));
        pair.send(0, 1);
        assert_eq!(pair.network.connect(A, B), [true, true]);
        pair.send(2, 2);
        assert_eq!(pair.arrivals(100), [2]);
    }

    #[test]
    fn a_reset_tells_both_sides_and_loses_what_was_under_way() {
        let mut pair = connected(Latency::fixed(10));
        pair.send(0, 1);
        let mut arrivals = Vec::new();
        pair.network.reset(Time(5), A, B, &mut arrivals);
        assert_eq!(arrivals.len(), 2);
        pair.under_way.extend(arrivals);
        assert_eq!(pair.arrivals(100), [0]);
        assert!(!pair.network.is_open(B, A));
    }
}
