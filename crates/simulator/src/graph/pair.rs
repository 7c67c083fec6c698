//! The pair around the graph: a publisher, the channel to the Backup, subscribers, and what is known of all of them.

use std::collections::{BTreeMap, VecDeque};

use bodkin_broker::{
    Backup, BackupStanding, Epoch, EventId, Incarnation, Instant, Output, Publication, PublisherId, Sequence, SlotId, StreamId,
    wire::{Position, Watermark},
};
use bodkin_operators::{
    Keys,
    catalogue::KINDS,
    file::{self, GraphFile},
};

use super::{
    Broken, GraphTally,
    leader::{BACKLOG, Effect, Flaw, Frame, Leader, Promoted, TOPICS, terms},
};
use crate::random::Random;

/// The filter's window, in events.
const WINDOW: usize = 4;
const GRAPH: &str = r#"
[graph]
name = "press"
replace_queued = false

[[supplier]]
topic = "A"
shape = "f64"
period_ms = 1

[[operator]]
name = "mean"
kind = "moving_average"
inputs = ["A"]
window = 4

[[operator]]
name = "seal"
kind = "encrypt"
inputs = ["mean"]
key = "plant"

[[output]]
topic = "MEAN"
from = "mean"

[[output]]
topic = "SEALED"
from = "seal"
"#;
/// Events that the publisher keeps, covered or not.
const RETENTION: u64 = 2;
const PUBLISHER: PublisherId = PublisherId(1);
const RUN: Incarnation = Incarnation(1);

pub struct Pair {
    pub tally: GraphTally,
    now: u64,
    epoch: u64,
    file: GraphFile,
    keys: Keys,
    flaw: Option<Flaw>,
    leader: Leader,
    stream: StreamId,
    /// The points that were published, whether they were taken or not.
    points: Vec<f64>,
    /// How many of them were taken, and how far they are covered.
    taken: u64,
    covered: u64,
    channel: VecDeque<Frame>,
    acknowledgements: VecDeque<Position>,
    backup: Backup,
    at_backup: BTreeMap<SlotId, Vec<u8>>,
    checkpoint: Option<Vec<u8>>,
    /// Of the two outputs: what is under way, what has been received, and how far all of it is there.
    queues: [VecDeque<(u64, Vec<u8>)>; 2],
    received: [BTreeMap<u64, Vec<u8>>; 2],
    /// What was encrypted under which key and nonce.
    sealed: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn at(now: u64) -> Instant {
    Instant::from_nanos(now)
}

impl Pair {
    pub fn new(random: &mut Random, flaw: Option<Flaw>) -> Self {
        let file = file::parse(GRAPH, KINDS, |name| Ok(name.to_owned())).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let mut keys = Keys::default();
        keys.add("plant", &[7; 32]).expect("it is a key");
        let now = 1_000 + random.below(100);
        let mut leader = Leader::new(at(now), Epoch(1), (&file, &keys.for_deployment(1, 1), flaw), None, |_| Vec::new())
            .unwrap_or_else(|broken| panic!("{broken}"));
        let stream = leader.open(PUBLISHER, RUN);
        Self {
            tally: GraphTally::default(),
            now,
            epoch: 1,
            file,
            keys,
            flaw,
            leader,
            stream,
            points: Vec::new(),
            taken: 0,
            covered: 0,
            channel: VecDeque::new(),
            acknowledgements: VecDeque::new(),
            backup: new_backup(),
            at_backup: BTreeMap::new(),
            checkpoint: None,
            queues: [const { VecDeque::new() }; 2],
            received: [const { BTreeMap::new() }; 2],
            sealed: BTreeMap::new(),
        }
    }

    /// The next thing that happens.
    pub fn act(&mut self, random: &mut Random) -> Result<(), Broken> {
        let most = random.below(6);
        match random.below(17) {
            0..=2 => self.publish(random.below(1_000) as f64)?,
            3 => self.now += random.below(40),
            4..=6 => self.work(most)?,
            7 => self.end_turn()?,
            8 => self.bring(most)?,
            9 => self.acknowledge(most)?,
            10..=11 => self.finish(random)?,
            12..=13 => self.read(random.below(2) as usize, most)?,
            14 => self.leader.checkpoint(at(self.now)),
            15 => self.link_changes(most)?,
            _ => {
                if random.chance(1, 2) {
                    self.crash()?;
                }
            }
        }
        self.take_effects()
    }

    fn publish(&mut self, point: f64) -> Result<(), Broken> {
        self.now += 1 + self.now % 7;
        if self.taken == self.points.len() as u64 {
            self.points.push(point);
            self.tally.published += 1;
        }
        self.offer(self.taken + 1, false)?;
        self.take_effects()
    }

    /// Offers an event to the leader; one that is refused comes again.
    fn offer(&mut self, sequence: u64, is_resent: bool) -> Result<bool, Broken> {
        let bytes = self.points[sequence as usize - 1].to_le_bytes();
        let event =
            Publication { epoch: Epoch::NONE, sequence: Sequence(sequence), created: at(self.now), is_resent, has_wrong_clock: false };
        let is_taken = self.leader.accept(at(self.now), self.stream, event, &bytes)?;
        self.taken = self.taken.max(if is_taken { sequence } else { 0 });
        Ok(is_taken)
    }

    fn work(&mut self, most: u64) -> Result<(), Broken> {
        for _ in 0..most {
            if !self.leader.work(at(self.now))? {
                break;
            }
        }
        self.take_effects()
    }

    fn end_turn(&mut self) -> Result<(), Broken> {
        self.leader.end_turn(at(self.now));
        self.take_effects()
    }

    fn finish(&mut self, random: &mut Random) -> Result<(), Broken> {
        if !self.leader.jobs.is_empty() {
            let which = random.below(self.leader.jobs.len() as u64) as usize;
            self.leader.finish(at(self.now), which)?;
        }
        self.take_effects()
    }

    /// Brings frames to the Backup, and what it answers on its way.
    fn bring(&mut self, most: u64) -> Result<(), Broken> {
        let mut freed = Vec::new();
        let told = |error: bodkin_broker::BackupError| error.to_string();
        for frame in self.channel.drain(..self.channel.len().min(most as usize)).collect::<Vec<_>>() {
            match frame {
                Frame::Open { number, topic, publisher, incarnation } => {
                    self.backup.open_stream(number, topic, publisher, incarnation).map_err(told)?;
                }
                Frame::Replica { position, number, sequence, created, bytes } => {
                    if let Some(slot) = self.backup.keep(position, number, sequence, created).map_err(told)? {
                        self.at_backup.insert(slot, bytes);
                    }
                }
                Frame::Discard { number, through } => self.backup.discard(number, through, &mut freed).map_err(told)?,
                Frame::Close { number } => self.backup.close_stream(number, &mut freed).map_err(told)?,
                Frame::Checkpoint { position, bytes } => {
                    self.backup.checkpoint(position).map_err(told)?;
                    self.checkpoint = Some(bytes);
                }
                Frame::End(position) => self.backup.end_snapshot(position).map_err(told)?,
            }
            for output in freed.drain(..) {
                let Output::Freed { slot } = output else { unreachable!("a Backup frees only") };
                self.at_backup.remove(&slot);
            }
        }
        self.acknowledgements.extend(self.backup.acknowledgement());
        Ok(())
    }

    fn acknowledge(&mut self, most: u64) -> Result<(), Broken> {
        for position in self.acknowledgements.drain(..self.acknowledgements.len().min(most as usize)).collect::<Vec<_>>() {
            self.leader.acknowledged(at(self.now), position)?;
        }
        self.take_effects()
    }

    /// A subscriber receives results, and acknowledges all that it has without a gap.
    fn read(&mut self, output: usize, most: u64) -> Result<(), Broken> {
        let queue = &mut self.queues[output];
        for (sequence, bytes) in queue.drain(..queue.len().min(most as usize)).collect::<Vec<_>>() {
            if output == 0 {
                let expected = mean(&self.points, sequence);
                if bytes != expected.to_le_bytes() {
                    return Err(format!("the mean named {sequence} has other bytes than {expected}"));
                }
            }
            self.tally.duplicates += u64::from(self.received[output].insert(sequence, bytes).is_some());
        }
        let through = Sequence(self.has_through(output));
        self.leader.delivered(at(self.now), output + 1, PUBLISHER, RUN, through);
        self.take_effects()
    }

    fn has_through(&self, output: usize) -> u64 {
        (1..).take_while(|sequence| self.received[output].contains_key(sequence)).last().unwrap_or(0)
    }

    /// The link to the Backup breaks or is made, and the witness learns of it.
    fn link_changes(&mut self, which: u64) -> Result<(), Broken> {
        match self.leader.standing {
            BackupStanding::Lost => self.stand(BackupStanding::Out)?,
            BackupStanding::Absent | BackupStanding::Out => self.join()?,
            BackupStanding::Settling if which > 1 => self.stand(BackupStanding::InSync)?,
            BackupStanding::Settling | BackupStanding::InSync if which == 0 => self.stand(BackupStanding::Lost)?,
            BackupStanding::CatchingUp | BackupStanding::Joining if which == 0 => self.stand(BackupStanding::Out)?,
            BackupStanding::CatchingUp | BackupStanding::Joining | BackupStanding::Settling | BackupStanding::InSync => {}
        }
        Ok(())
    }

    fn stand(&mut self, standing: BackupStanding) -> Result<(), Broken> {
        if !matches!(standing, BackupStanding::Settling | BackupStanding::InSync) {
            // What is under way may still come to a Backup that may be voted for; it is not acknowledged.
            self.acknowledgements.clear();
        }
        self.leader.stand(at(self.now), standing);
        self.take_effects()
    }

    fn join(&mut self) -> Result<(), Broken> {
        self.channel.clear();
        self.acknowledgements.clear();
        self.backup.begin_snapshot(self.leader.shard.position(), &mut Vec::new());
        self.at_backup.clear();
        self.checkpoint = None;
        self.stand(BackupStanding::Joining)
    }

    fn take_effects(&mut self) -> Result<(), Broken> {
        while !self.leader.effects.is_empty() {
            for effect in std::mem::take(&mut self.leader.effects) {
                match effect {
                    Effect::Deliver { event: EventId { publisher: PUBLISHER, incarnation: RUN, topic, sequence }, bytes } => {
                        self.queues[self.leader.topic(topic) - 1].push_back((sequence.0, bytes));
                    }
                    Effect::Deliver { event, .. } => return Err(format!("{event} is nobody's name")),
                    Effect::Covered(through) => self.covered = self.covered.max(through.0),
                    Effect::Send(frame) => self.channel.push_back(frame),
                    Effect::Sealed { head, text } => {
                        if let Some(other) = self.sealed.insert(head, text.clone()).filter(|other| *other != text) {
                            return Err(format!("one key and nonce encrypt {other:?} and {text:?}"));
                        }
                    }
                    Effect::CaughtUp => self.leader.stand(at(self.now), BackupStanding::Settling),
                    Effect::CheckpointArrived => self.tally.checkpoints += 1,
                }
            }
        }
        Ok(())
    }

    /// The leader's host dies with everything that is under way. A Backup that lacks something is not voted for: then nobody dies.
    fn crash(&mut self) -> Result<(), Broken> {
        let may_lead = matches!(self.leader.standing, BackupStanding::Settling | BackupStanding::InSync | BackupStanding::Lost);
        if !may_lead || !self.backup.is_in_sync() {
            return Ok(());
        }
        self.tally.crashes += 1;
        self.tally.crashes_in_a_round += u64::from(!self.leader.jobs.is_empty());
        self.tally.restored += u64::from(self.checkpoint.is_some());
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.channel.clear();
        self.acknowledgements.clear();
        self.epoch += 1;
        self.now += 50;
        let promoted = Promoted {
            backup: std::mem::replace(&mut self.backup, new_backup()),
            bytes: std::mem::take(&mut self.at_backup),
            graph: self.checkpoint.take(),
        };
        let through = [0, 1].map(|output| self.has_through(output));
        let has = |topic: &str| {
            let through = through[usize::from(topic != TOPICS[1])];
            vec![Watermark { publisher: PUBLISHER, incarnation: RUN, through: Sequence(through) }]
        };
        let keys = self.keys.for_deployment(self.epoch, self.epoch);
        self.leader = Leader::new(at(self.now), Epoch(self.epoch), (&self.file, &keys, self.flaw), Some(promoted), has)?;
        self.stand(BackupStanding::Out)?;
        self.stream = self.leader.open(PUBLISHER, RUN);
        // What is not covered, and the newest in any case.
        let from = (self.covered + 1).min((self.taken + 1).saturating_sub(RETENTION)).max(1);
        self.leader.resumed(at(self.now), self.stream, Sequence(from), Sequence(self.taken));
        for sequence in from..=self.taken {
            for tries in 0.. {
                if self.offer(sequence, true)? {
                    break;
                }
                if tries > 4 * BACKLOG {
                    return Err(format!("{sequence} is refused for ever"));
                }
                self.rest()?;
            }
        }
        Ok(())
    }

    /// Everything that can be done is done once, and some time passes.
    fn rest(&mut self) -> Result<(), Broken> {
        self.work(u64::MAX)?;
        while !self.leader.jobs.is_empty() {
            self.leader.finish(at(self.now), 0)?;
            self.work(u64::MAX)?;
        }
        self.end_turn()?;
        (0..2).try_for_each(|output| self.read(output, u64::MAX))?;
        self.leader.checkpoint(at(self.now));
        self.take_effects()?;
        self.bring(u64::MAX)?;
        self.acknowledge(u64::MAX)?;
        self.end_turn()?;
        self.now += 100;
        Ok(())
    }

    /// Until nothing is left to be done.
    pub fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..16 {
            match self.leader.standing {
                BackupStanding::Lost => self.stand(BackupStanding::Out)?,
                BackupStanding::Absent | BackupStanding::Out => self.join()?,
                BackupStanding::Settling => self.stand(BackupStanding::InSync)?,
                BackupStanding::CatchingUp | BackupStanding::Joining | BackupStanding::InSync => {}
            }
            if self.taken < self.points.len() as u64 {
                self.offer(self.taken + 1, false)?;
            }
            self.rest()?;
        }
        Ok(())
    }

    /// Every event has its results, and nobody keeps anything.
    pub fn check_end(&self) -> Result<(), Broken> {
        let all = self.points.len() as u64;
        for (output, topic) in TOPICS[1..].iter().enumerate() {
            let (through, count) = (self.has_through(output), self.received[output].len() as u64);
            if (through, count) != (all, all) {
                return Err(format!("of {all} events {topic} has {count} results, without a gap {through}"));
            }
        }
        let kept = (self.leader.shard.kept(), self.backup.kept());
        if kept != (0, 0) || self.covered != all {
            return Err(format!("{kept:?} events are kept at leader and Backup, and {} of {all} are covered", self.covered));
        }
        Ok(())
    }
}

fn new_backup() -> Backup {
    let mut backup = Backup::new();
    for topic in TOPICS {
        backup.admit(topic, terms(topic), TOPICS.len()).expect("there is room");
    }
    backup
}

/// What a filter makes of an event that has had all in front of it.
fn mean(points: &[f64], sequence: u64) -> f64 {
    let points = &points[..sequence as usize];
    let window = &points[points.len().saturating_sub(WINDOW)..];
    // Whole numbers: no order of adding them changes the sum.
    window.iter().sum::<f64>() / window.len() as f64
}
