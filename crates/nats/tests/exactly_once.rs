//! Exactly once into the stream: forwarders on a simulated JetStream, over connections that are cut anywhere, with servers that are killed, refuse, or stand still. They speak as on a socket, in bytes.
//!
//! What is held in every run: no event is twice in the stream, the order of a lane is that of its events, and in the end every event is in it; where the server was told to lose what it had acknowledged, the
//! lane tells which positions that were.

#[path = "exactly_once/edge.rs"]
mod edge;
#[path = "exactly_once/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::time::Duration;

use bodkin_nats::{
    forwarder::Told,
    lane::{self, Record, Records},
};

use crate::{edge::Edge, server::Server};

/// Runs of each kind: some seconds in a debug build.
const SEEDS: u64 = 1000;
/// Steps of a run in which anything may happen.
const STEPS: u32 = 250;
/// Steps within which everything has to be in the stream once nothing happens any more.
const QUIET_STEPS: u32 = 5_000;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a run repeats from its seed.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What may happen in a run.
#[derive(Clone, Copy)]
struct Adversary {
    /// The server loses what it has acknowledged and not synced, when it is killed.
    loses_unsynced: bool,
    /// The edge's process is killed; its backlog stays.
    kills_edge: bool,
    /// Names of messages are forgotten between any two steps: the duplicate window is over.
    forgets_names: bool,
}

/// One run: the edge, the server, and what was seen.
struct Run {
    random: Random,
    edge: Edge,
    server: Server,
    told: Vec<Told>,
    now: Duration,
}

impl Run {
    fn new(seed: u64) -> Self {
        let random = Random(seed);
        Self { random, edge: Edge::new(), server: Server::new(), told: Vec::new(), now: Duration::ZERO }
    }

    /// The edge and the server each do a part of what they have to do.
    fn step(&mut self, piece_max: u64) {
        self.now += Duration::from_millis(self.random.below(8));
        if !self.edge.is_connected {
            self.server.accept();
            self.edge.connect(self.now);
        }
        self.edge.step(self.now, &mut self.told);
        let piece = 1 + self.random.below(piece_max) as usize;
        self.server.receive(&mut self.edge.to_server, piece);
        let piece = 1 + self.random.below(piece_max) as usize;
        self.edge.receive(&mut self.server.to_edge, piece, self.now, &mut self.told);
    }

    /// The connection is at its end for the edge. What is on its way to the server is lost, or comes later, beside what the next connection brings.
    fn cut(&mut self) {
        let on_its_way = std::mem::take(&mut self.edge.to_server);
        self.edge.cut();
        self.server.cut(if self.random.one_in(2) { on_its_way } else { Vec::new() });
    }

    fn happens(&mut self, adversary: Adversary) {
        match self.random.below(40) {
            0 | 1 => self.cut(),
            2 => {
                self.edge.cut();
                self.server.kill(adversary.loses_unsynced, &mut self.random);
            }
            3 => self.server.refuses = self.random.below(4),
            4 if adversary.kills_edge => {
                self.cut();
                self.edge.restart();
            }
            5 if adversary.forgets_names => self.server.names.clear(),
            6 => self.server.sync(),
            // The server stands still: answers are given up.
            7 => self.now += Duration::from_secs(self.random.below(8)),
            8 | 9 => self.server.hear_late(&mut self.random),
            10..20 => {
                let events = 1 + self.random.below(30);
                (0..events).for_each(|_| {
                    self.edge.publish_to(self.random.below(edge::LANES as u64) as usize, self.random.below(400) as usize, self.now)
                });
            }
            _ => {}
        }
    }

    /// Nothing happens any more, until everything is in the stream.
    fn settle(&mut self) {
        self.server.refuses = 0;
        for _ in 0..QUIET_STEPS {
            if self.edge.is_drained() {
                return;
            }
            // What is waited for comes soon.
            self.now += Duration::from_millis(100);
            self.step(100_000);
        }
        panic!("after {QUIET_STEPS} quiet steps not everything is in the stream: {:?}", self.told.last_chunk::<5>());
    }

    /// Positions of which a lane has told that they are not in the stream any more.
    fn told_lost(&self, lane: usize) -> BTreeSet<u64> {
        let lost = self.told.iter().filter_map(|told| match told {
            Told::Lane(place, lane::Told::StreamLost(first, last)) if *place == lane => Some(*first..=*last),
            Told::Lane(place, lane::Told::Emptied(through)) if *place == lane => Some(1..=*through),
            _ => None,
        });
        lost.flatten().collect()
    }
}

/// Positions and events of a lane in the stream; each position once, in ascending order.
fn in_stream(run: &Run, lane: usize) -> Vec<(u64, u64)> {
    let mut seen = Vec::new();
    for message in run.server.stored.iter().filter(|message| message.subject == edge::subject(lane).as_str()) {
        let identity = lane::Identity::read(&message.headers).expect("a batch");
        let records: Vec<_> = Records::new(&message.payload).map(|record| record.expect("a record")).collect();
        assert_eq!(records.len() as u64, identity.last - identity.first + 1, "a position each");
        for (position, record) in (identity.first..).zip(records) {
            let Record::Event { sequence, .. } = record else { panic!("nothing was lost in front of the stream") };
            seen.push((position, sequence));
        }
    }
    assert!(seen.is_sorted_by(|one, next| one.0 < next.0), "a position twice, or behind a later one");
    seen
}

fn holds(seed: u64, adversary: Adversary) -> usize {
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.happens(adversary);
        let piece_max = [40, 1000, 100_000][run.random.below(3) as usize];
        run.step(piece_max);
    }
    // Behind each loss there is an event, with which it is told.
    (0..edge::LANES).for_each(|lane| run.edge.publish_to(lane, 10, run.now));
    run.settle();
    let mut told_lost = 0;
    for lane in 0..edge::LANES {
        let seen = in_stream(&run, lane);
        let lost = run.told_lost(lane);
        // The event at a position is the one that was published there: the order is that of the lane, so of each topic.
        assert!(seen.iter().all(|(position, event)| run.edge.published[lane][*position as usize - 1] == *event));
        let there: BTreeSet<u64> = seen.iter().map(|(position, _)| *position).collect();
        let missing: BTreeSet<u64> = (1..=run.edge.published[lane].len() as u64).filter(|position| !there.contains(position)).collect();
        assert_eq!(missing, lost, "what is missing, and what is told to be");
        assert!(adversary.loses_unsynced || missing.is_empty());
        told_lost += lost.len();
    }
    told_lost
}

fn hold(adversary: Adversary) -> usize {
    let run = |seed| match std::panic::catch_unwind(|| holds(seed, adversary)) {
        Ok(lost) => lost,
        Err(_) => panic!("the run with seed {seed}"),
    };
    (0..SEEDS).map(run).sum()
}

#[test]
fn nothing_is_lost_or_doubled_by_cuts_kills_refusals_and_silence() {
    hold(Adversary { loses_unsynced: false, kills_edge: false, forgets_names: false });
}

#[test]
fn the_length_of_the_duplicate_window_does_not_matter() {
    hold(Adversary { loses_unsynced: false, kills_edge: false, forgets_names: true });
}

#[test]
fn an_edge_that_was_killed_goes_on_with_what_the_stream_has() {
    hold(Adversary { loses_unsynced: false, kills_edge: true, forgets_names: true });
}

#[test]
fn what_a_server_loses_behind_its_acknowledgement_is_told_and_nothing_else_is_lost() {
    assert!(
        hold(Adversary { loses_unsynced: true, kills_edge: false, forgets_names: true }) > 0,
        "nothing was lost: the test shows nothing"
    );
}
