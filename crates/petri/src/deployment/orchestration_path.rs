//! The net of orchestrations, which the own cloud or another one answers.
//!
//! A thread that is woken goes to the processor on which it ran, and waits for it although another one may be idle: the kernel moves threads that wait for long, and a step does not. So each step's
//! work goes to one of the processors, any as likely as another one, and stands in its queue. Who waits there is served in the order of coming, as nearly as a net has it: a queue is two rooms, and those
//! of the outer one enter the inner one when that is empty.

use super::{
    costs::Work,
    draft::{Around, Draft},
    orchestration::{HeldUp, OrchestrationLaws, OrchestrationStep, Whose},
};
use crate::{
    distribution::{Distribution, DistributionError},
    net::{Net, Servers},
    simulate::{Tag, TagStart},
};

/// Most processors of a net: each has a queue for every step.
pub const ORCHESTRATION_CORES_MAX: u32 = 64;

/// Least part of the processors that is left to orchestrations, whatever others have: somebody who asks gets something.
pub const FREE_PART_MIN: f64 = 0.05;

/// Least part of a processor by which it counts as a further one; where less of it is left, the others are so much quicker.
const FREE_OF_ONE_MIN: f64 = 0.25;

/// Who asks for orchestrations, and what is there for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrchestrationDeployment {
    /// Processors.
    pub cores: u32,
    /// How many of them others keep busy in the mean: 0.5 is half of one, or a quarter of two.
    pub others: f64,
    /// Consumers, each of which asks again when it has its answer.
    pub consumers: u32,
}

impl OrchestrationDeployment {
    /// The processors that are left, and how much longer work takes on each than on one that nobody else has. Together they do as much as others leave: others have as many whole ones as they can,
    /// and what they have of a further one makes all that are left slower, as if these were processors of one's own (Sevcik, "Priority scheduling disciplines in queuing network models of computer
    /// systems", IFIP Congress 1977, for what comes after others).
    pub fn left(&self) -> (u32, f64) {
        let cores = f64::from(self.cores);
        let left = (cores - self.others).max(FREE_PART_MIN * cores);
        let whole = (left + 1.0 - FREE_OF_ONE_MIN).floor().clamp(1.0, cores);
        (whole as u32, whole / left)
    }
}

/// Priorities of immediate transitions, the most urgent first: work goes to a processor, whose inner room fills up to the last one of the outer, and closes, before anybody is served.
const GO: u32 = 6;
const OPEN: u32 = 5;
const ENTER: u32 = 4;
const CLOSE: u32 = 3;
const SERVE: u32 = 2;
const ASK: u32 = 1;

/// The net of such consumers on such processors; whose times in it are response times; and about what passes between two answers, in us.
///
/// # Errors
/// A law that is none.
pub fn orchestration(laws: &OrchestrationLaws, deployment: &OrchestrationDeployment) -> Result<(Net, Tag, f64), DistributionError> {
    let OrchestrationDeployment { cores, others, consumers } = *deployment;
    let (left, slowness) = deployment.left();
    let mut draft = Draft::default();
    let asked = draft.place("asked", consumers);
    let answered = draft.place("answered", 0);
    let processors: Vec<Processor> = (1..=left).map(|number| Processor::new(&mut draft, number)).collect();
    let beside_us = slowness * laws.beside_us.of(consumers);
    let working = laws.steps.iter().filter(|step| step.work_of_us(consumers) > 0.0).count();
    let left_behind = draft.place("left behind", 0);
    if beside_us > 0.0 && working > 0 {
        let law = fixed(beside_us / working as f64)?;
        processors.iter().for_each(|processor| {
            processor.serves(&mut draft, "what is left behind", &law, left_behind, 1.0, &[], &[]);
        });
    }
    let (mut at, mut answer_us, mut worked_us) = (asked, 0.0, 0.0);
    let shared = laws.places.map_or(1.0, |places| places.shared);
    let mut begins = TagStart::Arrival(asked);
    let works_us: Vec<f64> = if laws.places.is_some() { in_one_go(&laws.steps, consumers) } else { each(&laws.steps, consumers) };
    for (index, (step, work_us)) in laws.steps.iter().zip(works_us).enumerate() {
        let OrchestrationStep { name, waits, whose, .. } = step;
        let waits = Distribution::try_from(waits.clone())?;
        let work_us = slowness * work_us;
        answer_us += work_us + waits.mean();
        let is_last = index + 1 == laws.steps.len();
        let next = if is_last { answered } else { draft.place(format!("behind {name}"), 0) };
        if work_us > 0.0 {
            let squared_variation = if *whose == Whose::Cloud { laws.places.map_or(0.0, |places| places.squared_variation) } else { 0.0 };
            let law = Work { mean_us: work_us, squared_variation }.law()?;
            let on_its_way = draft.place(format!("{name} waits"), 0);
            let done = if beside_us > 0.0 { vec![on_its_way, left_behind] } else { vec![on_its_way] };
            let ways = ways(&processors, *whose, shared);
            for (processor, weight) in &ways {
                let runs = processor.serves(&mut draft, name, &law, at, *weight, &done, &[processor.spare]);
                // Consumers look at the clock when they begin to ask.
                if index == 0 && *whose == Whose::Consumers {
                    begins = TagStart::Service(runs);
                }
            }
            let weight = ways.iter().map(|(_, weight)| weight).sum();
            held_up(&mut draft, laws.held_up, name, at, weight, &processors)?;
            (at, worked_us) = (on_its_way, worked_us + work_us);
        }
        draft.timed(format!("{name} is on its way"), &waits, Servers::Infinite, Around::from(&[at]).to(&[next]));
        at = next;
    }
    match laws.places.map(|places| slowness * places.between_us).filter(|between_us| *between_us > 0.0) {
        Some(between_us) => {
            let law = fixed(between_us)?;
            processors[0].serves(&mut draft, "next one", &law, answered, 1.0, &[asked], &[processors[0].spare]);
            (answer_us, worked_us) = (answer_us + between_us, worked_us + between_us);
        }
        None => {
            draft.immediate("next one", ASK, Around::from(&[answered]).to(&[asked]));
        }
    }
    let beside_others = if others > 0.0 { format!(", {others:.2} of them others'") } else { String::new() };
    let net = draft.net(format!("orchestration, {consumers} consumers, {cores} cores{beside_others}"));
    let between_us = ((worked_us + beside_us) / f64::from(left)).max(answer_us / f64::from(consumers));
    Ok((net.expect("steps have names of their own"), Tag::new(begins, answered), between_us))
}

/// What is worked in each step.
fn each(steps: &[OrchestrationStep], consumers: u32) -> Vec<f64> {
    steps.iter().map(|step| step.work_of_us(consumers)).collect()
}

/// The same where one side's work is done by one thread in one go, in front of its first step's wait.
fn in_one_go(steps: &[OrchestrationStep], consumers: u32) -> Vec<f64> {
    let mut works_us = each(steps, consumers);
    for index in (1..steps.len()).rev() {
        if steps[index].whose == steps[index - 1].whose {
            works_us[index - 1] += std::mem::take(&mut works_us[index]);
        }
    }
    works_us
}

/// Processors that a step's work may go to, and how likely it goes to each: of the consumers to their own, which is the first one; of the cloud to any, to that one `shared` times as likely.
fn ways(processors: &[Processor], whose: Whose, shared: f64) -> Vec<(&Processor, f64)> {
    let [first, others @ ..] = processors else { return Vec::new() };
    if whose == Whose::Consumers || others.is_empty() {
        return vec![(first, 1.0)];
    }
    std::iter::once((first, shared)).chain(others.iter().map(|other| (other, 1.0))).filter(|(_, weight)| *weight > 0.0).collect()
}

/// Now and then work that finds all processors at steps of others is held up before it goes to one: its thread was put behind one that keeps its processor for a time slice.
fn held_up(draft: &mut Draft, how: HeldUp, name: &str, at: usize, ways: f64, processors: &[Processor]) -> Result<(), DistributionError> {
    let HeldUp { probability, mean_us } = how;
    if probability > 0.0 {
        let waits = draft.place(format!("{name} is held up: it"), 0);
        let spare: Vec<usize> = processors.iter().map(|processor| processor.spare).collect();
        // Beside all ways to processors.
        let weight = ways * probability / (1.0 - probability);
        draft.chance(format!("{name} is held up"), GO, weight, Around::from(&[at]).to(&[waits]).without(&spare));
        let law = Work { mean_us, squared_variation: HeldUp::SQUARED_VARIATION }.law()?;
        draft.timed(format!("{name} is let go"), &law, Servers::Infinite, Around::from(&[waits]).to(&[at]));
    }
    Ok(())
}

fn fixed(mean_us: f64) -> Result<Distribution, DistributionError> {
    Work { mean_us, squared_variation: 0.0 }.law()
}

/// A processor and its queue.
struct Processor {
    number: u32,
    idle: usize,
    /// It runs no step; it may run what one has left behind.
    spare: usize,
    /// How many are in each room.
    outside: usize,
    inside: usize,
    open: usize,
}

impl Processor {
    fn new(draft: &mut Draft, number: u32) -> Self {
        let [idle, closed, spare] = ["idle", "closed", "without a step"].map(|state| draft.place(format!("processor {number} {state}"), 1));
        let [open, outside, inside] = ["open", "outside", "inside"].map(|what| draft.place(format!("processor {number} {what}"), 0));
        let opens = Around::from(&[closed]).to(&[open]).while_in(&[outside]).without(&[inside]);
        draft.immediate(format!("processor {number} opens"), OPEN, opens);
        let closes = Around::from(&[open]).to(&[closed]).without(&[outside]);
        draft.immediate(format!("processor {number} closes"), CLOSE, closes);
        Self { number, idle, spare, outside, inside, open }
    }

    /// What it does with the work that is at a place: queue, serve, while it keeps a token of each of `keeps`, and tell so by a token in each of `done`; `weight` is how likely it is the one that the work goes to. Gives the transition that serves.
    #[expect(clippy::too_many_arguments, reason = "what and where, how long, how likely, and what becomes of it")]
    fn serves(&self, draft: &mut Draft, name: &str, law: &Distribution, at: usize, weight: f64, done: &[usize], keeps: &[usize]) -> usize {
        let Self { number, idle, outside, inside, open, .. } = *self;
        let [comes, enters, runs] = ["comes to", "is in front of", "runs on"].map(|what| format!("{name} {what} processor {number}"));
        let [outer, inner, running] = [&comes, &enters, &runs].map(|name| draft.place(format!("{name}: it"), 0));
        draft.chance(comes, GO, weight, Around::from(&[at]).to(&[outer, outside]));
        draft.immediate(enters.clone(), ENTER, Around::from(&[outer, outside]).to(&[inner, inside]).while_in(&[open]));
        let starts = [&[inner, inside, idle], keeps].concat();
        draft.immediate(format!("{enters} no more"), SERVE, Around::from(&starts).to(&[running]));
        let ends = [done, &[idle], keeps].concat();
        draft.timed(runs, law, Servers::SINGLE, Around::from(&[running]).to(&ends))
    }
}
