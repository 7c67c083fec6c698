//! Once out of the stream: an intake on a simulated JetStream that brings at least once, over connections that are cut anywhere, with a taker that is killed. They speak as on a socket, in bytes.
//!
//! What is held in every run: every message that the stream keeps is taken, none is taken twice, and each behind those in front of it.

#[path = "taken_once/server.rs"]
mod server;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bodkin_nats::{
    client::Options,
    intake::{Intake, IntakeSetup, Memory, Told},
    jetstream::Api,
    protocol::{Credentials, Subject},
};

use crate::server::Server;

/// Runs of each kind: some seconds in a debug build.
const SEEDS: u64 = 600;
/// Steps of a run in which anything may happen.
const STEPS: u32 = 400;
/// Steps within which everything has to be taken once nothing happens any more.
const QUIET_STEPS: u32 = 20_000;
/// What a step takes.
const STEP: Duration = Duration::from_millis(50);

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a run repeats from its seed.
pub struct Random(u64);

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
    /// The taker is killed: what it has taken stays, what it knew of the servers does not.
    kills_taker: bool,
    /// What the consumer brings and what is said to it is lost on the way now and then, while the connection goes on.
    loses_words: bool,
    /// The stream is purged up to somewhere while the taker is away.
    purges: bool,
}

fn subject(name: &str) -> Subject {
    Subject::new(name).expect("a subject")
}

fn intake() -> Intake {
    let setup = IntakeSetup {
        api: Api::new(None).expect("no domain"),
        stream: "COMMANDS".to_owned(),
        consumer: IntakeSetup::consumer("e", vec!["c.e.*".to_owned()]),
        creates: true,
        taken_max: 20,
        answer_wait_max: Duration::from_secs(5),
        look_every: Duration::from_millis(500),
    };
    Intake::new(setup).expect("names")
}

struct Run {
    random: Random,
    server: Server,
    intake: Intake,
    is_connected: bool,
    to_server: Vec<u8>,
    now: Duration,
    /// What was told to be taken and is not done.
    under_way: VecDeque<u64>,
    /// What is where it is not lost, in its order: the taker's log.
    log: Vec<u64>,
    /// The floor that was noted last.
    noted: Option<u64>,
    gone: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            server: Server::default(),
            intake: intake(),
            is_connected: false,
            to_server: Vec::new(),
            now: Duration::ZERO,
            under_way: VecDeque::new(),
            log: Vec::new(),
            noted: None,
            gone: 0,
        }
    }

    fn connect(&mut self) {
        let options = Options {
            name: "e".to_owned(),
            credentials: Credentials::None,
            inbox: subject("_INBOX.r"),
            is_encrypted: false,
            greeting_wait_max: Duration::from_secs(5),
            silence_max: Duration::from_secs(60),
        };
        let pulled = format!("_INBOX.p{}", self.random.number());
        self.server.accept(&pulled);
        self.intake.connected(options, subject(&pulled), self.now);
        (self.is_connected, self.to_server) = (true, Vec::new());
    }

    fn cut(&mut self) {
        // A part of what was on its way to the server comes still.
        let some = self.random.below(self.to_server.len() as u64 + 1) as usize;
        self.to_server.truncate(some);
        self.server.receive(&mut self.to_server, usize::MAX, self.now);
        self.server.cut();
        self.intake.disconnected();
        self.is_connected = false;
    }

    fn kill(&mut self) {
        if self.is_connected {
            self.cut();
        }
        self.intake = intake();
        self.under_way.clear();
    }

    fn step(&mut self, seed: u64) {
        self.now += STEP;
        if !self.is_connected {
            self.connect();
        }
        let mut told = Vec::new();
        self.server.advance(self.now);
        let piece = 1 + self.random.below(400) as usize;
        let some = piece.min(self.server.to_taker.len());
        let bytes: Vec<u8> = self.server.to_taker.drain(..some).collect();
        self.intake.receive(&bytes, self.now, &mut told).expect("the server speaks NATS");
        self.intake.step(self.now, &mut told).expect("the server speaks NATS");
        self.hear(told, seed);
        self.finish_some();
        self.intake.take_out(&mut self.to_server);
        let piece = 1 + self.random.below(400) as usize;
        self.server.receive(&mut self.to_server, piece, self.now);
    }

    fn hear(&mut self, told: Vec<Told>, seed: u64) {
        for told in told {
            match told {
                Told::Stream(_) => {
                    let floor = self.noted;
                    self.intake.remembers(Memory::new(floor, self.log.iter().copied()));
                }
                Told::Take(delivery) => {
                    assert!(!self.log.contains(&delivery.sequence), "seed {seed}: {} is taken twice", delivery.sequence);
                    let last = self.under_way.back().or(self.log.last()).copied().unwrap_or_default();
                    assert!(delivery.sequence > last, "seed {seed}: {} comes behind {last}", delivery.sequence);
                    self.under_way.push_back(delivery.sequence);
                }
                Told::Lost(messages) => self.gone += messages,
                Told::None(why) => assert!(!why.to_string().is_empty()),
                Told::Open(_) | Told::Ready(_) | Told::Repeated => {}
                Told::Refused(_) | Told::Leaving => panic!("seed {seed}: {told:?}"),
            }
        }
    }

    /// Some of what is under way gets into the log, in its order.
    fn finish_some(&mut self) {
        for _ in 0..self.random.below(6) {
            let Some(sequence) = self.under_way.pop_front() else { break };
            self.log.push(sequence);
            self.intake.done(sequence);
        }
        if self.random.one_in(20) {
            self.noted = self.intake.memory().and_then(Memory::floor).or(self.noted);
        }
    }
}

fn run(seed: u64, adversary: Adversary) -> (u64, u64) {
    let mut run = Run::new(seed);
    // It begins with the present.
    while run.server.consumer.is_none() {
        run.step(seed);
    }
    for _ in 0..STEPS {
        for _ in 0..run.random.below(4) {
            let for_us = !run.random.one_in(4);
            run.server.publish(for_us);
        }
        if run.random.one_in(40) && run.is_connected {
            run.cut();
        }
        if adversary.kills_taker && run.random.one_in(80) {
            run.kill();
        }
        run.server.loses = adversary.loses_words && run.random.one_in(10);
        // While it is away: between the two questions of a look nobody can tell.
        if adversary.purges && !run.is_connected && run.random.one_in(4) {
            let through = run.random.below(run.server.last() + 1);
            run.server.purge(through);
        }
        run.step(seed);
    }
    run.server.loses = false;
    for step in 0..QUIET_STEPS {
        // The stream is looked at now and then.
        let was_looked_at = !adversary.purges || step > 250;
        if was_looked_at && run.log.last() == run.server.kept.last() && run.under_way.is_empty() && run.server.is_idle() {
            break;
        }
        run.step(seed);
    }
    let taken: BTreeSet<u64> = run.log.iter().copied().collect();
    for sequence in &run.server.ours {
        let is_taken = taken.contains(sequence);
        assert!(is_taken || run.server.purged >= *sequence, "seed {seed}: {sequence} is not taken");
    }
    let missing = run.server.ours.iter().filter(|sequence| !taken.contains(sequence)).count() as u64;
    (missing, run.gone)
}

#[test]
fn each_is_taken_once_and_in_order_over_connections_that_are_cut() {
    for seed in 0..SEEDS {
        let kills_taker = seed % 2 == 0;
        assert_eq!(run(seed, Adversary { kills_taker, loses_words: false, purges: false }), (0, 0), "seed {seed}");
    }
}

#[test]
fn words_that_are_lost_on_the_way_are_made_good() {
    for seed in 0..SEEDS {
        assert_eq!(run(seed, Adversary { kills_taker: seed % 3 == 0, loses_words: true, purges: false }), (0, 0), "seed {seed}");
    }
}

#[test]
fn what_the_stream_lets_go_of_is_told_at_the_most() {
    let mut all = 0;
    for seed in 0..SEEDS {
        let (missing, gone) = run(seed, Adversary { kills_taker: seed % 2 == 0, loses_words: false, purges: true });
        assert!(missing <= gone, "seed {seed}: {missing} are missing, and {gone} are told");
        all += missing;
    }
    assert!(all > SEEDS, "{all} went missing in all: nothing was tried");
}
