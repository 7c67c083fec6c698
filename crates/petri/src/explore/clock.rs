//! What runs while a transition is enabled: nothing to be remembered, exponential stages, or an age that is counted in ticks.

use crate::{distribution::Distribution, expression::Expression};

/// Most stages of one distribution.
pub const STAGES_MAX: usize = 100_000;

/// A general clock that begins.
pub(crate) const FRESH: u32 = 0;

/// A general clock that goes on.
pub(crate) const AGED: u32 = 1;

/// The clock of a transition.
#[derive(Clone, Debug)]
pub(crate) enum Clock<'a> {
    /// An immediate transition's.
    None,
    /// Exponential: forgets how long it has run.
    Exponential(f64),
    /// Exponential, with a rate that depends on the marking.
    Rate(&'a Expression),
    /// Passes exponential stages; a state says in which it is.
    Stages(Stages),
    /// General: a state says how old it is.
    Ticks(Ticks),
    /// General, the only one that runs: a state says whether it begins there ([`FRESH`]) or goes on ([`AGED`]).
    General,
}

/// A distribution as exponential stages: exact, not an approximation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stages {
    /// Stages to begin in, with their probabilities.
    pub start: Vec<(u32, f64)>,
    /// For each stage where it goes and at what rate; `None` is firing.
    pub moves: Vec<Vec<(Option<u32>, f64)>>,
}

impl Stages {
    /// The stages of a distribution that has some.
    pub fn of(distribution: &Distribution) -> Option<Self> {
        match distribution {
            Distribution::Exponential(law) => Some(Self::chains([(1.0, vec![law.rate()])])),
            Distribution::Erlang(law) if law.shape() as usize <= STAGES_MAX => {
                Some(Self::chains([(1.0, vec![law.rate(); law.shape() as usize])]))
            }
            Distribution::HypoExponential(law) => Some(Self::chains([(1.0, law.rates().to_vec())])),
            Distribution::HyperExponential(law) => {
                Some(Self::chains(law.branches().iter().map(|(probability, law)| (*probability, vec![law.rate()]))))
            }
            Distribution::HyperErlang(law)
                if law.branches().iter().map(|(_, law)| law.shape() as usize).fold(0, usize::saturating_add) <= STAGES_MAX =>
            {
                let stages =
                    |(probability, law): &(f64, crate::distribution::Erlang)| (*probability, vec![law.rate(); law.shape() as usize]);
                Some(Self::chains(law.branches().iter().map(stages)))
            }
            Distribution::PhaseType(law) => Some(Self::phases(law.initial(), &law.generator())),
            _ => None,
        }
    }

    /// One of several chains of stages, taken by chance.
    fn chains(branches: impl IntoIterator<Item = (f64, Vec<f64>)>) -> Self {
        let (mut start, mut moves) = (Vec::new(), Vec::new());
        for (probability, rates) in branches.into_iter().filter(|(probability, _)| *probability > 0.0) {
            start.push((moves.len() as u32, probability));
            let end = moves.len() + rates.len();
            for rate in rates {
                let next = moves.len() + 1;
                moves.push(vec![((next < end).then_some(next as u32), rate)]);
            }
        }
        Self { start, moves }
    }

    fn phases(initial: &[f64], generator: &[Vec<f64>]) -> Self {
        let start =
            initial.iter().zip(0..).filter(|(probability, _)| **probability > 0.0).map(|(probability, phase)| (phase, *probability));
        let moves = generator.iter().enumerate().map(|(phase, row)| {
            let others = || row.iter().enumerate().filter(|(other, rate)| *other != phase && **rate > 0.0);
            let elsewhere: f64 = others().map(|(_, rate)| rate).sum();
            let leave = -row[phase];
            let exit = leave - elsewhere;
            let exit = (exit > 1e-12 * leave).then_some((None, exit));
            others().map(|(other, rate)| (Some(other as u32), *rate)).chain(exit).collect()
        });
        Self { start: start.collect(), moves: moves.collect() }
    }
}

/// How a clock's start lies to the ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At time 0, half a tick before the first one.
    First,
    /// At a tick, with what fires there.
    AtTick,
    /// At some time between two ticks, half a tick before the next one in the mean.
    Between,
}

/// Kinds of start: each has ages of its own.
const MOMENTS: u32 = 3;

/// A distribution on the ticks of a clock that runs everywhere at once.
///
/// An age is the number of ticks since the start and the kind of the start. Each age has the probability that the clock fires at the
/// next tick, having come to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    /// By kind of start: probability of firing as soon as it starts.
    at_once: [f64; MOMENTS as usize],
    /// By age: the probability of firing at the next tick. 1 at the end.
    hazards: Vec<f64>,
}

impl Ticks {
    /// The distribution on ticks that are `tick` apart. A tail of less than `tail` fires at once where it begins.
    pub fn of(distribution: &Distribution, tick: f64, tail: f64) -> Self {
        let grids = [
            Grid::of_cells(distribution, tick, tail),
            Grid::of_points(distribution, tick, tick, tail),
            Grid::of_points(distribution, tick, 0.5 * tick, tail),
        ];
        let length = grids.iter().map(|grid| grid.hazards.len()).max().unwrap_or(0);
        let hazard = |index: usize| grids[index % grids.len()].hazards.get(index / grids.len()).copied().unwrap_or(1.0);
        Self { at_once: [0, 1, 2].map(|kind: usize| grids[kind].at_once), hazards: (0..length * grids.len()).map(hazard).collect() }
    }

    /// The age of a clock that starts, and the probability that it fires at once.
    pub fn start(&self, moment: Moment) -> (u32, f64) {
        let kind = moment as u32;
        (kind, self.at_once[kind as usize])
    }

    /// The probability of firing at the next tick.
    pub fn hazard(&self, age: u32) -> f64 {
        self.hazards[age as usize]
    }

    /// The age behind the next tick, if it does not fire there.
    pub fn older(age: u32) -> u32 {
        age + MOMENTS
    }
}

/// Where a distribution's mass is put.
struct Grid {
    at_once: f64,
    hazards: Vec<f64>,
}

impl Grid {
    /// For a start that is known: what ends between two times of the grid fires at the tick in the middle, so that at the grid's own
    /// times no more and no less has fired than should.
    fn of_cells(distribution: &Distribution, tick: f64, tail: f64) -> Self {
        // A time on the grid belongs to the cell that it ends, in spite of rounding.
        let alive = |index: usize| distribution.survival(index as f64 * tick * (1.0 + 1e-12));
        let at_once = 1.0 - distribution.survival(0.0);
        let mut hazards = Vec::new();
        for index in 0.. {
            let (before, behind) = (alive(index), alive(index + 1));
            if behind <= tail {
                hazards.push(1.0);
                break;
            }
            hazards.push((1.0 - behind / before).max(0.0));
        }
        Self { at_once, hazards }
    }

    /// For a start that is known to a tick only: the mass at each time is shared by the two points beside it, 0 and `first` and those
    /// `tick` apart behind it, in such a way that the mean stays. What is left of the error is of second order in `tick`.
    fn of_points(distribution: &Distribution, tick: f64, first: f64, tail: f64) -> Self {
        let point = |index: usize| first + index as f64 * tick;
        // Differences of the mean survival over neighbouring cells are the integrals against hat functions.
        let mean_survival = |from: f64, to: f64| integral(distribution, from, to) / (to - from);
        let mut alive = mean_survival(0.0, first);
        let at_once = (1.0 - alive).max(0.0);
        let mut hazards = Vec::new();
        for index in 0.. {
            let next = mean_survival(point(index), point(index + 1));
            if next <= tail {
                hazards.push(1.0);
                break;
            }
            hazards.push((1.0 - next / alive).max(0.0));
            alive = next;
        }
        Self { at_once, hazards }
    }
}

/// The integral of the survival function, cut where it may have a corner or a jump.
fn integral(distribution: &Distribution, from: f64, to: f64) -> f64 {
    let mut cuts = vec![from];
    let (low, high) = distribution.support();
    let mut corners: Vec<f64> = match distribution {
        Distribution::Empirical(law) => law.values().to_vec(),
        _ => vec![low, high],
    };
    corners.retain(|corner| *corner > from && *corner < to);
    corners.dedup();
    cuts.extend(corners);
    cuts.push(to);
    cuts.windows(2).map(|cell| crate::quadrature::gauss(cell[0], cell[1], |x| distribution.survival(x))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Deterministic, Exponential, Gamma, Uniform};

    /// Mass and mean of what fires, for a start half a tick or a tick before the first one.
    fn moments(ticks: &Ticks, tick: f64, moment: Moment) -> (f64, f64) {
        let (mut age, at_once) = ticks.start(moment);
        let first = if moment == Moment::AtTick { tick } else { 0.5 * tick };
        let (mut alive, mut mass, mut mean) = (1.0 - at_once, at_once, 0.0);
        for index in 0.. {
            if age as usize >= ticks.hazards.len() {
                break;
            }
            mass += alive * ticks.hazard(age);
            mean += alive * ticks.hazard(age) * (first + f64::from(index) * tick);
            alive *= 1.0 - ticks.hazard(age);
            age = Ticks::older(age);
        }
        (mass, mean)
    }

    #[test]
    fn mass_and_mean_stay() {
        let laws = [
            Distribution::Uniform(Uniform::new(0.0, 1.0).expect("right")),
            Distribution::Uniform(Uniform::new(0.3, 0.77).expect("right")),
            Distribution::Deterministic(Deterministic::new(0.7).expect("right")),
            Distribution::Deterministic(Deterministic::new(0.0).expect("right")),
            Distribution::Gamma(Gamma::new(6.235, 2.683).expect("right")),
            Distribution::Exponential(Exponential::new(1.5).expect("right")),
        ];
        for law in laws {
            for tick in [1.0, 0.25, 0.1] {
                let ticks = Ticks::of(&law, tick, 1e-14);
                for moment in [Moment::First, Moment::AtTick, Moment::Between] {
                    let (mass, mean) = moments(&ticks, tick, moment);
                    let allowed = if moment == Moment::First { 0.5 * tick + 1e-12 } else { 1e-9 };
                    assert!((mass - 1.0).abs() < 1e-12, "{law:?} {tick} {moment:?}: {mass}");
                    assert!((mean - law.mean()).abs() < allowed, "{law:?} {tick} {moment:?}: {mean}");
                }
            }
        }
    }

    #[test]
    fn a_fixed_time_on_the_grid_stays_what_it_is() {
        let law = Distribution::Deterministic(Deterministic::new(0.75).expect("right"));
        let ticks = Ticks::of(&law, 0.25, 1e-14);
        for moment in [Moment::First, Moment::AtTick] {
            let (age, at_once) = ticks.start(moment);
            let hazards = [age, age + 3, age + 6].map(|age| ticks.hazard(age));
            assert_eq!((at_once, hazards), (0.0, [0.0, 0.0, 1.0]), "{moment:?}");
        }
    }

    #[test]
    fn erlang_stages_follow_each_other() {
        let law = crate::distribution::Erlang::new(3, 2.0).expect("right");
        let stages = Stages::of(&Distribution::Erlang(law)).expect("it has stages");
        assert_eq!(stages.start, [(0, 1.0)]);
        assert_eq!(stages.moves, [vec![(Some(1), 2.0)], vec![(Some(2), 2.0)], vec![(None, 2.0)]]);
    }
}
