//! Once out of the stream: an intake on a simulated JetStream that brings at least once, over connections that are cut anywhere, with a taker that is killed. They speak as on a socket, in bytes.
//! The taker has what a Bodkin has: a log that others write too, which it reads again behind what it has noted.
//!
//! What is held in every run: every message that the stream keeps is taken, none is taken twice, and each behind those in front of it.

#[path = "taken_once/server.rs"]
mod server;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bodkin_nats::{
    client::Options,
    intake::{ACK_PENDING_MAX, Intake, IntakeSetup, Noted, Recall, Told},
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
#[derive(Clone, Copy, Default)]
struct Adversary {
    /// The taker is killed: its log and what it has noted stay, all else is gone.
    kills_taker: bool,
    /// What the consumer brings and what is said to it is lost on the way now and then, while the connection goes on.
    loses_words: bool,
    /// The stream is purged up to somewhere while the taker is away.
    purges: bool,
    /// Acknowledgements count up to two seconds after they have come.
    delays_acknowledgements: bool,
    /// The consumer's next leader has not heard what the one before it has done last.
    changes_leaders: bool,
    /// The stream is deleted and made anew while the taker is away.
    remakes: bool,
    /// The server that leads the consumer has not got the newest messages of the stream yet.
    lags: bool,
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
        rewinds: true,
        process: None,
        taken_max: 20,
        look_every: Duration::from_millis(500),
    };
    Intake::new(setup).expect("names")
}

/// A message that was told to be taken and is not done.
struct Held {
    sequence: u64,
    /// Where the log ended when it came.
    behind: u64,
    is_logged: bool,
}

struct Run {
    seed: u64,
    random: Random,
    server: Server,
    intake: Intake,
    is_connected: bool,
    to_server: Vec<u8>,
    now: Duration,
    /// In their order.
    under_way: VecDeque<Held>,
    /// The taker's log: the stream and the sequence of each message, and between them others' records.
    log: Vec<Option<(u64, u64)>>,
    recall: Recall,
    /// On the disk.
    noted: Option<Noted>,
    gone: u64,
    /// Bytes that get through at once at the most.
    piece_max: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random(seed),
            server: Server::default(),
            intake: intake(),
            is_connected: false,
            to_server: Vec::new(),
            now: Duration::ZERO,
            under_way: VecDeque::new(),
            log: Vec::new(),
            recall: Recall::new(None),
            noted: None,
            gone: 0,
            piece_max: 400,
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
        (self.intake, self.recall) = (intake(), Recall::new(self.noted));
        self.under_way.clear();
    }

    fn step(&mut self) {
        self.now += STEP;
        if !self.is_connected {
            self.connect();
        }
        let mut told = Vec::new();
        self.server.advance(self.now);
        let piece = 1 + self.random.below(self.piece_max) as usize;
        let some = piece.min(self.server.to_taker.len());
        let bytes: Vec<u8> = self.server.to_taker.drain(..some).collect();
        self.intake.receive(&bytes, self.now, &mut told).expect("the server speaks NATS");
        self.intake.step(self.now, &mut told).expect("the server speaks NATS");
        told.into_iter().for_each(|told| self.hear(told));
        self.log_some();
        self.finish_some();
        if self.random.one_in(20) {
            self.note();
        }
        self.intake.take_out(&mut self.to_server);
        let piece = 1 + self.random.below(self.piece_max) as usize;
        self.server.receive(&mut self.to_server, piece, self.now);
    }

    fn hear(&mut self, told: Told) {
        let seed = self.seed;
        match told {
            Told::Stream(info) => {
                let stream = info.created.parse().expect("a number");
                self.under_way.clear();
                let from = self.recall.begin(stream) as usize;
                let taken = self.log[from..].iter().flatten().filter(|(of, _)| *of == stream).map(|(_, sequence)| *sequence);
                self.intake.remembers(self.recall.memory(taken.collect()), self.recall.lost().1);
            }
            Told::Take(delivery) => {
                let name = (self.recall.stream().expect("it was told"), delivery.sequence);
                assert!(!self.log.contains(&Some(name)), "seed {seed}: {name:?} is taken twice, with {:?} noted", self.noted);
                let last = self.under_way.back().map(|held| held.sequence).or(self.last_logged()).unwrap_or_default();
                assert!(delivery.sequence > last, "seed {seed}: {} comes behind {last}", delivery.sequence);
                self.under_way.push_back(Held { sequence: delivery.sequence, behind: self.log.len() as u64, is_logged: false });
            }
            Told::Ready(_) => self.note(),
            Told::Lost(messages) => self.gone += messages,
            Told::None(why) => assert!(!why.to_string().is_empty()),
            Told::Open(_) | Told::Repeated => {}
            Told::Refused(_) | Told::Leaving => panic!("seed {seed}: {told:?}"),
        }
    }

    /// The last message of the present stream that is in the log.
    fn last_logged(&self) -> Option<u64> {
        let stream = self.recall.stream()?;
        self.log.iter().rev().flatten().find(|(of, _)| *of == stream).map(|(_, sequence)| *sequence)
    }

    /// Some of what is under way gets into the log, in its order.
    fn log_some(&mut self) {
        let Some(stream) = self.recall.stream() else { return };
        let some = self.random.below(6) as usize;
        for held in self.under_way.iter_mut().filter(|held| !held.is_logged).take(some) {
            if self.random.one_in(3) {
                self.log.push(None);
            }
            self.log.push(Some((stream, held.sequence)));
            held.is_logged = true;
        }
    }

    /// Of some the taker hears that they are there.
    fn finish_some(&mut self) {
        for _ in 0..self.random.below(6) {
            let Some(held) = self.under_way.pop_front_if(|held| held.is_logged) else { break };
            self.intake.done(held.sequence);
        }
    }

    fn note(&mut self) {
        let Some(memory) = self.intake.memory() else { return };
        let oldest = self.under_way.iter().map(|held| held.behind).min();
        if let Some(noted) = self.recall.next(memory, (self.gone, self.intake.seen_through()), oldest, self.log.len() as u64) {
            self.noted = Some(noted);
            self.recall.is_noted(noted);
        }
    }

    /// What may happen between two steps.
    fn suffer(&mut self, adversary: Adversary) {
        if self.random.one_in(40) && self.is_connected {
            self.cut();
        }
        if adversary.kills_taker && self.random.one_in(80) {
            self.kill();
        }
        self.server.loses = adversary.loses_words && self.random.one_in(10);
        self.server.acknowledged_behind = match adversary.delays_acknowledgements {
            true => STEP * self.random.below(40) as u32,
            false => Duration::ZERO,
        };
        if adversary.lags && self.random.one_in(30) {
            self.server.behind = self.random.below(80);
        }
        if self.is_connected {
            return;
        }
        // While it is away: between the two questions of a look nobody can tell.
        if adversary.purges && self.random.one_in(4) {
            let through = self.random.below(self.server.last() + 1);
            self.server.purge(through);
        }
        if adversary.changes_leaders && self.random.one_in(2) {
            self.server.lead_from_earlier();
        }
        if adversary.remakes && self.random.one_in(8) {
            self.server.remake();
        }
    }
}

/// Messages that were not taken, and how many were told to be gone.
fn run(seed: u64, adversary: Adversary) -> (u64, u64) {
    let mut run = Run::new(seed);
    // It begins with the present.
    while run.server.consumer.is_none() {
        run.step();
    }
    for _ in 0..STEPS {
        for _ in 0..run.random.below(4) {
            let for_us = !run.random.one_in(4);
            run.server.publish(for_us);
        }
        run.suffer(adversary);
        run.step();
    }
    (run.server.loses, run.server.acknowledged_behind, run.server.behind) = (false, Duration::ZERO, 0);
    for step in 0..QUIET_STEPS {
        // The stream is looked at now and then.
        let was_looked_at = !adversary.purges || step > 250;
        let is_whole = run.last_logged().unwrap_or_default() >= run.server.kept.last().copied().unwrap_or_default();
        if was_looked_at && is_whole && run.under_way.is_empty() && run.server.is_idle() {
            break;
        }
        run.step();
    }
    let stream = run.recall.stream();
    let taken: BTreeSet<u64> = run.log.iter().flatten().filter(|(of, _)| Some(*of) == stream).map(|(_, sequence)| *sequence).collect();
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
        let adversary = Adversary { kills_taker: seed % 2 == 0, ..Adversary::default() };
        assert_eq!(run(seed, adversary), (0, 0), "seed {seed}");
    }
}

#[test]
fn words_that_are_lost_on_the_way_are_made_good() {
    for seed in 0..SEEDS {
        let adversary = Adversary { kills_taker: seed % 3 == 0, loses_words: true, ..Adversary::default() };
        assert_eq!(run(seed, adversary), (0, 0), "seed {seed}");
    }
}

#[test]
fn what_counts_late_and_what_the_next_leader_has_not_heard_is_taken_once() {
    for seed in 0..SEEDS {
        let adversary =
            Adversary { kills_taker: seed % 2 == 0, delays_acknowledgements: true, changes_leaders: seed % 3 > 0, ..Adversary::default() };
        assert_eq!(run(seed, adversary), (0, 0), "seed {seed}");
    }
}

#[test]
fn what_the_consumers_server_has_not_got_yet_is_not_taken_for_done() {
    for seed in 0..SEEDS {
        let adversary = Adversary { kills_taker: seed % 2 == 0, lags: true, ..Adversary::default() };
        assert_eq!(run(seed, adversary).0, 0, "seed {seed}");
    }
}

#[test]
fn a_stream_that_is_made_anew_is_taken_whole() {
    for seed in 0..SEEDS {
        let adversary = Adversary { kills_taker: seed % 2 == 0, remakes: true, loses_words: seed % 3 == 0, ..Adversary::default() };
        assert_eq!(run(seed, adversary).0, 0, "seed {seed}");
    }
}

#[test]
fn as_much_as_may_be_under_way_at_the_most_comes_again_and_in_order() {
    let under_way_max = usize::try_from(ACK_PENDING_MAX).expect("a number");
    for seed in 0..20 {
        let mut run = Run::new(seed);
        while run.server.consumer.is_none() {
            run.step();
        }
        run.server.ack_pending_max = Some(under_way_max);
        (0..under_way_max + 300).for_each(|_| run.server.publish(true));
        run.cut();
        run.server.bring_to_nobody(under_way_max, run.now);
        for step in 0..QUIET_STEPS {
            if run.last_logged() == run.server.kept.last().copied() && run.under_way.is_empty() {
                break;
            }
            if seed % 2 == 0 && step == 300 {
                run.kill();
            }
            run.step();
        }
        let taken: Vec<u64> = run.log.iter().flatten().map(|(_, sequence)| *sequence).collect();
        assert!(taken.iter().eq(&run.server.ours), "seed {seed}: {} of {}", taken.len(), run.server.ours.len());
    }
}

#[test]
fn over_a_link_that_is_cut_each_second_what_waits_comes() {
    for seed in 0..60 {
        let mut run = Run::new(seed);
        while run.server.consumer.is_none() {
            run.step();
        }
        run.piece_max = 20_000;
        (0..300).for_each(|_| run.server.publish(true));
        // Four minutes: a consumer brings again what is lost behind five seconds, which is longer than any connection lasts.
        for step in 0..4_800 {
            if step % 20 == 0 && run.is_connected {
                run.cut();
            }
            if run.random.one_in(3) {
                run.server.publish(true);
            }
            run.step();
        }
        // Without being said to come again, what has come and cannot be taken yet waits as what is lost does, and that is for ever: 43 are taken.
        let taken = run.log.iter().flatten().count();
        assert!(taken > run.server.ours.len() / 3, "seed {seed}: {taken} of {} are taken", run.server.ours.len());
    }
}

#[test]
fn what_the_stream_lets_go_of_is_told_at_the_most() {
    let mut all = 0;
    for seed in 0..SEEDS {
        let (missing, gone) = run(seed, Adversary { kills_taker: seed % 2 == 0, purges: true, ..Adversary::default() });
        assert!(missing <= gone, "seed {seed}: {missing} are missing, and {gone} are told");
        all += missing;
    }
    assert!(all > SEEDS, "{all} went missing in all: nothing was tried");
}
