//! Control variates: of a condition only its difference from one with a known probability is simulated.
//!
//! When a hundred messages have all arrived depends most on the hundred delays of the one transition that all of them wait for. The law of
//! the sum of these is known where they are gamma ones (exponential and Erlang laws among them): so runs tell how far "all have arrived by
//! t" differs from "the sum and a fixed shift are at most t", which is hardly ever, and the probability of the latter is added. Delays are
//! numbered, and the first `n` of a transition are `n` independent ones whatever the run makes of them: the estimate has no bias (Lavenberg
//! and Welch, "A perspective on the use of control variables to increase the efficiency of Monte Carlo simulations", Management Science 27,
//! 1981; the coefficient here is 1, so that nothing is estimated twice). The difference is -1, 0 or 1, and its interval that of any bounded
//! value.
//!
//! Which sum and which shift are taken from the first round of runs ([`Pilot`]), which then counts for nothing else.

use super::{
    estimate::{Estimate, Interval, Sums},
    program::Program,
    state::State,
    tally::{Instants, Tally},
};
use crate::{
    distribution::{Distribution, Gamma},
    net::{Delay, Net},
};

/// Most conditions that controls are looked for, and most transitions that they are looked for among.
const CONDITIONS_MAX: usize = 16;
const CANDIDATES_MAX: usize = 64;

/// Most delays of a sum: it is drawn for every run of the first round.
const DELAYS_MAX: u32 = 10_000;

/// Fewest runs in which a condition has to come to hold: a shift is taken from them.
const RISEN_MIN: usize = 100;

/// A control is worth it where it makes the widest interval narrower than this times what it was: less than half of the runs are enough.
const WORTH: f64 = 0.7;

/// What a condition is compared with: whether the first delays of a transition, added up, and a shift are over.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The condition: the index of its measure; the target is behind the last measure.
    pub condition: usize,
    /// The transition, by its index in the net.
    pub transition: usize,
    /// How many of its delays, from the first on.
    pub delays: u32,
    /// What is added to them, in the net's unit of time; may be below 0.
    pub shift: f64,
}

/// A control with what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Controlled {
    pub control: Control,
    pub slot: usize,
    /// The probability at each instant that it is over.
    known: Vec<f64>,
    /// The widest interval that the first round's runs would have had with it.
    width: f64,
}

/// A transition whose delays may be a control.
#[derive(Clone, Debug)]
struct Candidate {
    slot: usize,
    transition: usize,
    shape: f64,
    rate: f64,
}

/// What is looked at in the first round.
#[derive(Clone, Debug)]
pub(super) struct Pilot {
    conditions: Vec<usize>,
    candidates: Vec<Candidate>,
}

/// What the first round's runs showed, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Rises {
    /// `[runs, conditions]`: when each came to hold; infinite where it did not, not a number where it ended again.
    times: Vec<f64>,
    /// `[runs, conditions, candidates]`: delays that were drawn until then.
    draws: Vec<u32>,
}

impl Pilot {
    /// Of a net, and of the conditions among what is asked; none where there is nothing to find.
    pub fn new(net: &Net, conditions: Vec<usize>) -> Option<Self> {
        let timed = net.transitions().iter().enumerate().filter_map(|(index, transition)| Some((index, transition.timed()?)));
        let candidates = timed.enumerate().filter_map(|(slot, (transition, timed))| {
            let (shape, rate) = match &timed.delay {
                Delay::Distribution(Distribution::Exponential(law)) => (1.0, law.rate()),
                Delay::Distribution(Distribution::Erlang(law)) => (f64::from(law.shape()), law.rate()),
                Delay::Distribution(Distribution::Gamma(law)) => (law.shape(), law.rate()),
                _ => return None,
            };
            Some(Candidate { slot, transition, shape, rate })
        });
        let candidates: Vec<Candidate> = candidates.collect();
        let is_within = (1..=CONDITIONS_MAX).contains(&conditions.len()) && (1..=CANDIDATES_MAX).contains(&candidates.len());
        is_within.then_some(Self { conditions, candidates })
    }

    /// Controls that make the widest interval worth so much narrower; none where that is not to be had. `widths` are those of everything
    /// that is to be narrow, by its index.
    pub fn chosen(&self, rises: &Rises, round: &FirstRound<'_>, widths: &[f64]) -> Vec<Controlled> {
        let mut chosen: Vec<Controlled> = Vec::new();
        for (number, condition) in self.conditions.iter().enumerate() {
            let times: Vec<f64> = rises.times.iter().skip(number).step_by(self.conditions.len()).copied().collect();
            if times.iter().any(|time| time.is_nan()) {
                continue;
            }
            let of_all = self.candidates.iter().enumerate().filter_map(|(index, candidate)| {
                let usual = self.usual_draws(rises, number, index)?;
                // All controls of a transition are sums of as many delays.
                let taken = chosen.iter().find(|other| other.slot == candidate.slot).map(|other| other.control.delays);
                let controlled = round.controlled(candidate, taken.unwrap_or(usual), *condition, &times)?;
                (controlled.width < WORTH * widths[*condition]).then_some(controlled)
            });
            let best = of_all.min_by(|a, b| a.width.total_cmp(&b.width));
            chosen.extend(best);
        }
        let width_with =
            |index: usize| chosen.iter().find(|other| other.control.condition == index).map_or(widths[index], |other| other.width);
        let widest = (0..widths.len()).map(width_with).fold(0.0, f64::max);
        let was = widths.iter().copied().fold(0.0, f64::max);
        if widest < WORTH * was { chosen } else { Vec::new() }
    }

    /// The median of what a candidate had drawn when the condition came to hold.
    fn usual_draws(&self, rises: &Rises, number: usize, candidate: usize) -> Option<u32> {
        let (conditions, candidates) = (self.conditions.len(), self.candidates.len());
        let risen = rises.times.iter().skip(number).step_by(conditions).enumerate().filter(|(_, time)| time.is_finite());
        let mut draws: Vec<u32> = risen.map(|(run, _)| rises.draws[(run * conditions + number) * candidates + candidate]).collect();
        if draws.len() < RISEN_MIN {
            return None;
        }
        draws.sort_unstable();
        Some(draws[draws.len() / 2]).filter(|usual| (1..=DELAYS_MAX).contains(usual))
    }
}

/// The first round, to be drawn again: its runs are numbered from 0.
pub(super) struct FirstRound<'a> {
    pub program: &'a Program,
    pub seed: u64,
    pub instants: &'a Instants,
    pub interval: Interval,
}

impl FirstRound<'_> {
    /// The sum of so many delays as a control of a condition that came to hold at these times, and how well it would have done.
    fn controlled(&self, candidate: &Candidate, delays: u32, condition: usize, times: &[f64]) -> Option<Controlled> {
        let Candidate { slot, transition, shape, rate } = *candidate;
        let law = Gamma::new(shape * f64::from(delays), rate).ok().map(Distribution::Gamma)?;
        let sum = |run: usize| self.program.sum_of_delays(slot, (self.seed, run as u64), 0..delays, 0.0, f64::INFINITY);
        let sums: Vec<f64> = (0..times.len()).map(sum).collect();
        let mut apart: Vec<f64> = times.iter().zip(&sums).filter(|(time, _)| time.is_finite()).map(|(time, sum)| time - sum).collect();
        apart.sort_unstable_by(f64::total_cmp);
        let shift = *apart.get(apart.len() / 2)?;
        let mut changes = vec![Change::default(); self.instants.count()];
        for (time, sum) in times.iter().zip(&sums) {
            let path = [(0, 0.0), (self.instants.index(*time, 0), 1.0)];
            add_run(&mut changes, &path, self.instants.index(sum + shift, 0));
        }
        let runs = times.len() as u64;
        let width = sums_of(&changes, runs).map(|sums| self.interval.mean(sums, DIFFERENCES).half_width()).fold(0.0, f64::max);
        let known = self.instants.times().iter().map(|instant| law.cdf(instant - shift)).collect();
        Some(Controlled { control: Control { condition, transition, delays, shift }, slot, known, width })
    }
}

impl Rises {
    /// A run begins.
    pub fn begin(&mut self, pilot: &Pilot) {
        let conditions = pilot.conditions.len();
        self.times.extend(std::iter::repeat_n(f64::INFINITY, conditions));
        self.draws.extend(std::iter::repeat_n(0, conditions * pilot.candidates.len()));
    }

    /// Looks at the conditions behind an event.
    pub fn settled(&mut self, pilot: &Pilot, tally: &Tally<'_>, state: &State) {
        let (conditions, candidates) = (pilot.conditions.len(), pilot.candidates.len());
        let first = self.times.len() - conditions;
        for (number, condition) in pilot.conditions.iter().enumerate() {
            let holds = tally.value(*condition) != 0.0;
            let time = &mut self.times[first + number];
            if holds && time.is_infinite() {
                *time = state.time;
                let from = (first + number) * candidates;
                let draws = pilot.candidates.iter().map(|candidate| state.draws(candidate.slot));
                self.draws[from..from + candidates].iter_mut().zip(draws).for_each(|(own, draws)| *own = draws);
            } else if !holds && time.is_finite() {
                *time = f64::NAN;
            }
        }
    }

    /// Whether no run was looked at.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Adds the runs that follow.
    pub fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.draws.extend(other.draws);
    }
}

/// What a difference may be.
const DIFFERENCES: (f64, f64) = (-1.0, 1.0);

/// Changes of a difference and of its square, from an instant on.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    value: f64,
    square: f64,
}

/// Adds a run: from which instants on the condition was what, and from which on the control is over.
fn add_run(changes: &mut [Change], path: &[(usize, f64)], over: usize) {
    let mut before = 0.0;
    let mut tell = |index: usize, difference: f64| {
        if let Some(change) = changes.get_mut(index) {
            change.value += difference - before;
            change.square += difference * difference - before * before;
        }
        before = difference;
    };
    let (mut condition, mut control) = (0.0, 0.0);
    for (index, value) in path {
        if control == 0.0 && over <= *index {
            control = 1.0;
            tell(over, condition - control);
        }
        condition = *value;
        tell(*index, condition - control);
    }
    if control == 0.0 {
        tell(over, condition - 1.0);
    }
}

/// The sums at each instant.
fn sums_of(changes: &[Change], runs: u64) -> impl Iterator<Item = Sums> {
    changes.iter().scan(Sums { runs: runs as f64, value: 0.0, square: 0.0 }, |sums, change| {
        sums.value += change.value;
        sums.square += change.square;
        Some(*sums)
    })
}

/// The differences of many runs, and the present one's conditions.
#[derive(Clone, Debug)]
pub(super) struct Differences<'a> {
    controls: &'a [Controlled],
    instants: &'a Instants,
    /// Of each control from which instants on its condition was what: an entry an instant at most.
    paths: Vec<Vec<(usize, f64)>>,
    /// `[controls, instants]`.
    changes: Vec<Vec<Change>>,
    runs: u64,
}

impl<'a> Differences<'a> {
    pub fn new(controls: &'a [Controlled], instants: &'a Instants) -> Self {
        let changes = vec![vec![Change::default(); instants.count()]; controls.len()];
        Self { controls, instants, paths: vec![Vec::new(); controls.len()], changes, runs: 0 }
    }

    /// A run begins.
    pub fn begin(&mut self) {
        self.paths.iter_mut().for_each(Vec::clear);
    }

    /// Looks at the conditions behind an event.
    #[inline]
    pub fn settled(&mut self, tally: &Tally<'_>) {
        for (path, controlled) in self.paths.iter_mut().zip(self.controls) {
            let value = tally.value(controlled.control.condition);
            match path.last_mut() {
                Some((_, before)) if *before == value => {}
                Some((index, before)) if *index == tally.index() => *before = value,
                _ => path.push((tally.index(), value)),
            }
        }
    }

    /// The run is over.
    pub fn end(&mut self, program: &Program, state: &State) {
        self.runs += 1;
        for ((path, controlled), changes) in self.paths.iter().zip(self.controls).zip(&mut self.changes) {
            let shift = controlled.control.shift;
            // Behind the last instant it is all the same.
            let sum = program.counted_sum(state, controlled.slot, self.instants.last() - shift);
            add_run(changes, path, self.instants.index(sum + shift, 0));
        }
    }

    /// Adds the runs of others with the same controls.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for (own, theirs) in self.changes.iter_mut().zip(&other.changes).flat_map(|(own, theirs)| own.iter_mut().zip(theirs)) {
            own.value += theirs.value;
            own.square += theirs.square;
        }
    }

    /// Each control, and the probability of its condition at each instant.
    pub fn estimates(&self, by: Interval) -> impl Iterator<Item = (&Control, Vec<Estimate>)> {
        self.controls.iter().zip(&self.changes).map(move |(controlled, changes)| {
            let estimates = sums_of(changes, self.runs).zip(&controlled.known).map(|(sums, known)| {
                let difference = by.mean(sums, DIFFERENCES);
                let value = (known + difference.value).clamp(0.0, 1.0);
                let (low, high) = (known + difference.low, known + difference.high);
                Estimate { value, low: low.clamp(0.0, value), high: high.clamp(value, 1.0) }
            });
            (&controlled.control, estimates.collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every order in which a condition may come and go and a control be over, beside the difference at each instant.
    #[test]
    fn differences_are_what_they_are_at_each_instant() {
        let instants = 5;
        for over in 0..=instants {
            for (rise, fall) in (0..=instants).flat_map(|rise| (rise..=instants).map(move |fall| (rise, fall))) {
                let mut changes = vec![Change::default(); instants];
                add_run(&mut changes, &[(0, 0.0), (rise, 1.0), (fall, 0.0)], over);
                for (index, sums) in sums_of(&changes, 1).enumerate() {
                    let holds = f64::from(u8::from((rise..fall).contains(&index)));
                    let difference = holds - f64::from(u8::from(index >= over));
                    assert_eq!((sums.value, sums.square), (difference, difference * difference), "{rise} {fall} {over} at {index}");
                }
            }
        }
    }
}
