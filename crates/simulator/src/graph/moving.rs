//! An operator that moves between two edges and back while events come: the shard of the edge that has the events, the connection to the other one, a database for each, and a command that asks for the steps. At
//! any instant the connection breaks, the command dies and is given again, or an edge is killed.
//!
//! An edge without a pair that is killed loses what it holds in memory, moves or not; so an edge is killed only while it holds nothing of the operator but what its database has, which is at each step of a move. What is
//! promised: at no instant is the operator at work on both edges; each event is processed by exactly one of them, in order, with the state of all before.
//!
//! The office may be a pair ([`protection`]): then its leader dies at any instant at which its Backup may lead, whatever it holds. Another operator stays there all the time, and takes each event of its own once, in order.

mod calm;
mod command;
mod database;
mod office;
mod press;
mod protection;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bodkin_broker::{
    Incarnation,
    graph::{Event, Inputs, Operator},
};
use bodkin_operators::{catalogue::KINDS, file};

use self::{command::Command, office::Office, press::Press};
use super::{Broken, GraphViolation, link::Fetching};
use crate::random::Random;

/// Events of which the operator makes the mean.
const WINDOW: u64 = 3;
const GRAPH: &str = "[graph]\nname = \"line\"\n[[supplier]]\ntopic = \"A\"\nshape = \"f64\"\nperiod_ms = 1\n\
    [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"A\"]\nwindow = 3\n[[output]]\ntopic = \"MEAN\"\nfrom = \"mean\"\n";

/// What edges may do wrong, so that it is seen that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveFlaw {
    /// The office does not know what was taken at the press.
    ForgetsTaken,
    /// The office subscribes when it takes the operator, and not before it has gone.
    SubscribesLate,
    /// The press holds nothing for an operator that is to come.
    HoldsNothing,
    /// What goes with the operator is not kept in the database.
    KeepsNothing,
    /// A pair keeps no version before: a Backup with a checkpoint of that one begins anew.
    ForgetsTheVersionBefore,
    /// A pair begins a change while its Backup may have the version before the last one.
    DoesNotWait,
    /// A Backup that joins may lead as soon as it has what it was given, and not what was answered without it meanwhile.
    CountsTooEarly,
    /// The first checkpoint behind a move does not say what was taken where the operator was.
    LeavesOutTaken,
}

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTally {
    /// Events that were published.
    pub published: u64,
    /// Moves that came to their end.
    pub moves: u64,
    /// Commands that died, with a move that was committed, and before that.
    pub died_committed: u64,
    /// Of those before.
    pub died_before: u64,
    /// Connections that broke.
    pub cuts: u64,
    /// Edges that were killed, and those of them that had in their database what goes with the operator.
    pub kills: u64,
    /// Of these.
    pub kills_with_handover: u64,
    /// Events that were passed over because they had been taken on the other edge.
    pub passed_over: u64,
    /// Leaders of a pair that died.
    pub crashes: u64,
    /// Of these, before the Backup had the version to come, between that and its checkpoint, and behind both while what is kept besides was there.
    pub crashes_before: u64,
    /// See above.
    pub crashes_between: u64,
    /// See above.
    pub crashes_behind: u64,
}

/// An edge of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Press,
    Office,
}

fn operator() -> Box<dyn Operator> {
    let file = file::parse(GRAPH, KINDS, |name| Ok(name.to_owned())).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    file.recipes[0].make(None).expect("it needs no key").operator
}

/// An operator with the state that goes with it, or that a checkpoint has.
fn operator_with(state: &[u8]) -> Box<dyn Operator> {
    let mut operator = operator();
    operator.restore(state).expect("it is its state");
    operator
}

fn state_of(operator: &dyn Operator) -> Vec<u8> {
    let mut state = Vec::new();
    operator.save(&mut state);
    state
}

/// What the operators have made, by the number of the event, of all runs of the publisher.
#[derive(Default)]
struct Results {
    means: BTreeMap<u64, f64>,
    /// In a pair what the leader before has made is made again, with the same name.
    may_repeat: bool,
}

impl Results {
    /// An operator takes an event, whose value is its number.
    fn process(&mut self, operator: &mut dyn Operator, number: u64) -> Result<(), Broken> {
        let payload = (number as f64).to_le_bytes();
        let events = [Event { payload: &payload, created_ns: number, publisher: 1 }];
        let mut out = Vec::new();
        operator.run(&Inputs::new(&events, &[1]), &mut out).map_err(|fault| fault.to_string())?;
        let mean = f64::from_le_bytes(out[..8].try_into().map_err(|_| "a mean has eight bytes".to_owned())?);
        if self.means.insert(number, mean).is_some() && !self.may_repeat {
            return Err(format!("event {number} is processed twice"));
        }
        let first = number.saturating_sub(WINDOW - 1).max(1);
        let expected = (first..=number).sum::<u64>() as f64 / (number - first + 1) as f64;
        if (mean - expected).abs() > 1e-9 {
            return Err(format!("the mean at event {number} is {mean}, and not {expected}"));
        }
        Ok(())
    }
}

/// The two edges, and all between them.
struct World {
    tally: MoveTally,
    flaw: Option<MoveFlaw>,
    now: u64,
    press: Press,
    office: Office,
    command: Command,
    results: Results,
    /// By its run and number in it: which event of all it is.
    numbers: BTreeMap<(Incarnation, u64), u64>,
}

impl World {
    fn new(fetching: Fetching, flaw: Option<MoveFlaw>) -> Self {
        let is_pair = fetching == Fetching::Pair;
        Self {
            tally: MoveTally::default(),
            flaw,
            now: 1,
            press: Press::new(),
            office: Office::new(is_pair),
            command: Command::default(),
            results: Results { may_repeat: is_pair, ..Results::default() },
            numbers: BTreeMap::new(),
        }
    }

    fn act(&mut self, random: &mut Random) -> Result<(), Broken> {
        self.now += 1 + random.below(10);
        let kinds = if self.office.protection.is_some() { 36 } else { 20 };
        match random.below(kinds) {
            0..=4 => self.publish()?,
            5..=7 => self.work(random.below(5)),
            8..=10 => self.bring()?,
            11..=12 => self.take(random.below(5))?,
            13 => self.hear(),
            14 => self.connect(),
            15 if random.chance(1, 2) => self.cut(),
            16 if random.chance(1, 3) => self.kill_office(),
            17 if random.chance(1, 3) => self.kill_press()?,
            18 if random.chance(1, 8) => self.command_dies()?,
            20..=21 => self.publish_load(),
            22..=23 => self.take_loads(random.below(4))?,
            24..=25 => self.bring_to_backup(random.below(4)),
            26..=27 => self.hear_backup(random.below(4)),
            28..=29 => self.send_checkpoint(),
            30 => self.note_at_work(),
            31 if random.chance(1, 4) => self.backup_changes(random.chance(1, 2)),
            32 if random.chance(1, 3) => self.crash()?,
            33..=35 if self.office.is_changing() && random.chance(1, 2) => self.crash()?,
            _ => self.next_step()?,
        }
        self.check()
    }

    fn check(&self) -> Result<(), Broken> {
        match self.press.operator.is_some() && self.office.operator.is_some() {
            true => Err("the operator is at work on both edges".to_owned()),
            false => Ok(()),
        }
    }

    /// Until nothing is under way: the move that has begun comes to its end.
    fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..200 {
            self.now += 10;
            self.connect();
            self.hear();
            self.work(64);
            self.bring()?;
            self.take(u64::MAX)?;
            self.hear();
            self.settle_pair()?;
            if self.command.is_under_way() {
                self.next_step()?;
            }
            self.check()?;
        }
        let (made, published) = (self.results.means.len() as u64, self.tally.published);
        if made != published {
            return Err(format!("{made} results of {published} events"));
        }
        self.office.calm.check_end()
    }
}

/// Runs two edges for so many steps, and then until nothing is left to be done.
pub fn run(seed: u64, steps: u32, fetching: Fetching) -> Result<MoveTally, GraphViolation> {
    run_with(seed, steps, fetching, None)
}

/// The same with edges that do something wrong, which is to be found.
pub fn run_with(seed: u64, steps: u32, fetching: Fetching, flaw: Option<MoveFlaw>) -> Result<MoveTally, GraphViolation> {
    let mut random = Random::new(seed);
    let mut world = World::new(fetching, flaw);
    for step in 0..steps {
        world.act(&mut random).map_err(|what| GraphViolation { seed, step, what })?;
    }
    world.settle().map_err(|what| GraphViolation { seed, step: steps, what })?;
    Ok(world.tally)
}
