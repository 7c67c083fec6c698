//! Rare events by splitting: the way to the event is cut at levels, and whoever reaches a level is continued many times.
//!
//! Fixed effort (Garvels, "The splitting method in rare event simulation", Twente 2000; L'Ecuyer, Demers and Tuffin, "Rare events,
//! splitting, and quasi-Monte Carlo", ACM TOMACS 17, 2007): from the states in which a level was reached as many particles start as at
//! the first, and the product of the shares that reach the next level is an estimate without bias, whatever the levels are. Good
//! levels only make it narrow. Whole replicates of this are independent; the interval is from their spread.

use std::ops::Range;

use super::{
    SimulationError,
    estimate::{Estimate, Interval, Sums},
    program::Program,
    stack::StackProgram,
    state::{State, Watch},
};
use crate::{expression::Expression, net::Net};

/// Fewest replicates: an interval is made of their spread.
const REPLICATES_MIN: u32 = 10;

/// By how much the replicates may become more at once, and what is added to those that the last interval says are needed.
const GROWTH_MAX: f64 = 4.0;
const GROWTH_MARGIN: f64 = 1.05;

/// Most replicates, levels and particles: run numbers hold all three.
const PARTS_MAX: usize = 60_000;

/// A rare event.
#[derive(Clone, Debug)]
pub struct RareEvent {
    /// The condition whose probability to hold at some time is asked for.
    pub target: Expression,
    /// Where this condition holds, a run has missed the target.
    pub stop: Option<Expression>,
    /// So does a run at this time, which may be infinite if there is a `stop`.
    pub horizon: f64,
    /// How near a marking is to the target: larger is nearer.
    pub importance: Expression,
    /// Values of the importance on the way, rising.
    pub levels: Vec<f64>,
}

/// How the event is sought.
#[derive(Clone, Copy, Debug)]
pub struct Splitting {
    /// Decides all random numbers.
    pub seed: u64,
    /// Probability with which the interval is to hold the true value.
    pub confidence: f64,
    /// Particles that start at each level.
    pub particles: u32,
    /// Independent repetitions, 10 to 60,000; where `within` is given the fewest.
    pub replicates: u32,
    /// Replicates are added until the interval reaches no further to one side than this part of the probability, or there are 60,000.
    pub within: Option<f64>,
    /// Threads to use; the answer does not depend on it.
    pub threads: usize,
}

impl Default for Splitting {
    /// Seed 1, 99 %, 1,000 particles, 50 replicates, one thread.
    fn default() -> Self {
        Self { seed: 1, confidence: 0.99, particles: 1_000, replicates: 50, within: None, threads: 1 }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Rarity {
    /// Probability of the event.
    pub probability: Estimate,
    /// The mean share of particles that come from each level to the next, the last to the target.
    pub shares: Vec<f64>,
    /// Firings in all runs.
    pub events: u64,
    /// Replicates that were made.
    pub replicates: u32,
    /// Whether the interval is as narrow as was asked.
    pub is_narrow: bool,
}

/// One independent repetition.
struct Replicate {
    /// Of the particles of each level those that reached the next.
    shares: Vec<f64>,
    events: u64,
}

struct Nobody;

impl Watch for Nobody {
    fn at(&mut self, _: f64) {}
    fn changed(&mut self, _: u32, _: u32, _: u32) {}
    fn fired(&mut self, _: u32, _: f64, _: usize) {}
}

struct Search<'a> {
    program: Program,
    target: StackProgram,
    stop: Option<StackProgram>,
    importance: StackProgram,
    event: &'a RareEvent,
    options: &'a Splitting,
}

/// Estimates the probability of a rare event.
pub fn split(net: &Net, event: &RareEvent, options: &Splitting) -> Result<Rarity, SimulationError> {
    check(event, options)?;
    let search = Search {
        program: Program::new(net),
        target: StackProgram::new(&event.target),
        stop: event.stop.as_ref().map(StackProgram::new),
        importance: StackProgram::new(&event.importance),
        event,
        options,
    };
    let mut replicates = Vec::new();
    let mut wanted = options.replicates;
    loop {
        replicates.extend(search.replicates(replicates.len() as u32..wanted)?);
        let rarity = search.summed(&replicates);
        match wanted_for(&rarity, options.within) {
            Some(more) if !rarity.is_narrow && wanted < PARTS_MAX as u32 => wanted = more,
            _ => return Ok(rarity),
        }
    }
}

/// How many replicates the interval is likely to take that is asked for.
fn wanted_for(rarity: &Rarity, within: Option<f64>) -> Option<u32> {
    let asked = within? * rarity.probability.value;
    // Where nothing was found yet that cannot be told.
    let factor = if asked > 0.0 { (rarity.probability.half_width() / asked).powi(2) } else { GROWTH_MAX };
    let wanted = f64::from(rarity.replicates) * (GROWTH_MARGIN * factor).clamp(GROWTH_MARGIN, GROWTH_MAX);
    Some((wanted.ceil() as u32).min(PARTS_MAX as u32))
}

fn check(event: &RareEvent, options: &Splitting) -> Result<(), SimulationError> {
    let refuse = |reason: &str| Err(SimulationError::Option(reason.to_owned()));
    if !event.levels.windows(2).all(|pair| pair[0] < pair[1]) || event.levels.len() > PARTS_MAX {
        return refuse("levels are rising numbers, at most 60,000");
    }
    if event.horizon.is_nan() || event.horizon < 0.0 || (event.horizon.is_infinite() && event.stop.is_none()) {
        return refuse("a horizon is a time from 0, and finite where no condition stops a run");
    }
    if !(REPLICATES_MIN as usize..=PARTS_MAX).contains(&(options.replicates as usize)) || options.particles == 0 {
        return refuse("there are 10 to 60,000 replicates and at least one particle");
    }
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        return refuse("a confidence is above 0 and below 1");
    }
    if options.within.is_some_and(|within| within.is_nan() || within <= 0.0) {
        return refuse("a part of the probability is above 0");
    }
    Ok(())
}

impl Search<'_> {
    fn summed(&self, replicates: &[Replicate]) -> Rarity {
        let count = replicates.len() as f64;
        let values: Vec<f64> = replicates.iter().map(|replicate| replicate.shares.iter().product()).collect();
        let sums = Sums { runs: count, value: values.iter().sum(), square: values.iter().map(|value| value * value).sum() };
        let probability = Interval::new(self.options.confidence).mean_of_few(sums);
        let stages = self.event.levels.len() + 1;
        Rarity {
            probability,
            shares: (0..stages).map(|stage| replicates.iter().map(|replicate| replicate.shares[stage]).sum::<f64>() / count).collect(),
            events: replicates.iter().map(|replicate| replicate.events).sum(),
            replicates: replicates.len() as u32,
            is_narrow: self
                .options
                .within
                .is_none_or(|within| probability.value > 0.0 && probability.half_width() <= within * probability.value),
        }
    }

    /// These replicates in their order, whichever thread makes one.
    fn replicates(&self, numbers: Range<u32>) -> Result<Vec<Replicate>, SimulationError> {
        let numbers: Vec<u32> = numbers.collect();
        let share = numbers.len().div_ceil(self.options.threads.max(1)).max(1);
        std::thread::scope(|scope| {
            let make = |numbers: &[u32]| numbers.iter().map(|number| self.replicate(*number)).collect::<Result<Vec<_>, _>>();
            let threads: Vec<_> = numbers.chunks(share).map(|numbers| scope.spawn(move || make(numbers))).collect();
            let made: Result<Vec<_>, _> =
                threads.into_iter().map(|thread| thread.join().expect("a panic of a thread is one of the whole")).collect();
            Ok(made?.into_iter().flatten().collect())
        })
    }

    fn replicate(&self, replicate: u32) -> Result<Replicate, SimulationError> {
        let mut entries: Vec<State> = Vec::new();
        let mut shares = Vec::new();
        let mut events = 0;
        for stage in 0..=self.event.levels.len() {
            let mut reached = Vec::new();
            for particle in 0..self.options.particles {
                let run = u64::from(replicate) << 48 | (stage as u64) << 32 | u64::from(particle);
                let mut state = if stage == 0 {
                    let mut state = self.program.state(self.options.seed);
                    self.program.begin(&mut state, run, &mut Nobody)?;
                    state
                } else {
                    let mut state = entries[particle as usize % entries.len()].clone();
                    state.run = run;
                    state.events = 0;
                    // Copies that shared the end of a clock would come far together, or none of them.
                    self.program.redraw(&mut state)?;
                    state
                };
                let arrived = self.arrives(&mut state, self.event.levels.get(stage).copied())?;
                events += state.events;
                if arrived {
                    reached.push(state);
                }
            }
            shares.push(reached.len() as f64 / f64::from(self.options.particles));
            if reached.is_empty() {
                shares.resize(self.event.levels.len() + 1, 0.0);
                break;
            }
            entries = reached;
        }
        Ok(Replicate { shares, events })
    }

    /// Whether the particle comes to the level, or where there is none any more to the target, before it is stopped.
    fn arrives(&self, state: &mut State, level: Option<f64>) -> Result<bool, SimulationError> {
        let mut stack = Vec::new();
        loop {
            let value = |program: &StackProgram, stack: &mut Vec<f64>| program.value(&state.marking, stack);
            if value(&self.target, &mut stack) != 0.0 {
                return Ok(true);
            }
            if self.stop.as_ref().is_some_and(|stop| value(stop, &mut stack) != 0.0) {
                return Ok(false);
            }
            if level.is_some_and(|level| value(&self.importance, &mut stack) >= level) {
                return Ok(true);
            }
            if !self.program.step(state, self.event.horizon, &mut Nobody)? {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json;

    /// A queue with one customer in it, which comes to `most` before it is empty with the probability of the gambler's ruin:
    /// `(r - 1) / (r^most - 1)` with `r` the rate of service over that of arrivals.
    fn overflow(most: u32) -> (Net, RareEvent) {
        let text = r#"{"schema": "stpn-neutral-1", "name": "queue", "time_unit": "s", "places": [{"id": "Queue", "initial": 1}], "transitions": [
            {"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "outputs": [{"place": "Queue"}]},
            {"id": "serve", "kind": "timed", "distribution": {"type": "exponential", "rate": 3}, "inputs": [{"place": "Queue"}]}]}"#;
        let net = json::read(text).expect("the net is right");
        let expression = |text: &str| Expression::parse(text, &|name| net.place(name)).expect("it is right");
        let event = RareEvent {
            target: expression(&format!("Queue >= {most}")),
            stop: Some(expression("Queue == 0")),
            horizon: f64::INFINITY,
            importance: expression("Queue"),
            levels: (2..most).map(f64::from).collect(),
        };
        (net, event)
    }

    fn exact(most: i32) -> f64 {
        2.0 / (3.0_f64.powi(most) - 1.0)
    }

    #[test]
    fn a_full_queue_of_one_in_30_million_million_is_found() {
        let (net, event) = overflow(29);
        let options = Splitting { particles: 300, replicates: 30, confidence: 0.999, ..Splitting::default() };
        let rarity = split(&net, &event, &options).expect("an answer");
        assert!(rarity.probability.covers(exact(29)), "{:?} for {}", rarity.probability, exact(29));
        assert!(rarity.probability.half_width() < 0.5 * exact(29), "{:?}", rarity.probability);
        assert_eq!(rarity.shares.len(), 28);
        assert_eq!(split(&net, &event, &Splitting { threads: 3, ..options }), Ok(rarity), "for any number of threads");
    }

    /// The same to 5 % of it, by as many replicates as that takes.
    #[test]
    fn replicates_are_added_until_the_interval_is_narrow_enough() {
        let (net, event) = overflow(29);
        let options = Splitting { particles: 2_000, replicates: 20, within: Some(0.05), threads: 2, ..Splitting::default() };
        let rarity = split(&net, &event, &options).expect("an answer");
        let Estimate { value, .. } = rarity.probability;
        assert!(rarity.is_narrow && rarity.probability.half_width() <= 0.05 * value, "{:?}", rarity.probability);
        assert!((20..200).contains(&rarity.replicates), "{}", rarity.replicates);
        // Five standard deviations of what the interval says.
        assert!((value / exact(29) - 1.0).abs() < 0.1, "{value:e} for {:e}", exact(29));
        assert_eq!(split(&net, &event, &Splitting { threads: 1, ..options }), Ok(rarity), "for any number of threads");
        let (net, event) = overflow(3);
        let wrong = Splitting { within: Some(0.0), ..Splitting::default() };
        assert_eq!(split(&net, &event, &wrong).expect_err("no part").to_string(), "a part of the probability is above 0");
    }

    /// No levels at all: plain simulation, of the same probability.
    #[test]
    fn levels_do_not_change_what_is_estimated() {
        let (net, event) = overflow(4);
        for levels in [vec![], vec![2.0, 3.0], vec![-5.0, 3.0, 77.0]] {
            let event = RareEvent { levels, ..event.clone() };
            let options = Splitting { particles: 2_000, replicates: 20, confidence: 0.9999, ..Splitting::default() };
            let probability = split(&net, &event, &options).expect("an answer").probability;
            assert!(probability.covers(exact(4)), "{probability:?} for {} with {:?}", exact(4), event.levels);
        }
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let (net, event) = overflow(4);
        let refused = |event: &RareEvent, options| split(&net, event, &options).expect_err("no answer").to_string();
        let endless = RareEvent { stop: None, ..event.clone() };
        assert_eq!(refused(&endless, Splitting::default()), "a horizon is a time from 0, and finite where no condition stops a run");
        let falling = RareEvent { levels: vec![3.0, 2.0], ..event.clone() };
        assert_eq!(refused(&falling, Splitting::default()), "levels are rising numbers, at most 60,000");
        let few = Splitting { replicates: 9, ..Splitting::default() };
        assert_eq!(refused(&event, few), "there are 10 to 60,000 replicates and at least one particle");
    }
}
