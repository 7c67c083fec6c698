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

/// When something happens, relative to the grid of times `0, tick, 2 tick ...` and the middles of its cells.
///
/// A general clock that starts at a time of the grid is known exactly. One that starts within a cell counts as started in the cell's
/// middle: exponential transitions fire at any time, and laws with a density fire in the middle of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At a time of the grid: time 0, and where fixed delays end that began on the grid.
    Grid,
    /// In a cell, before its middle.
    BeforeMiddle,
    /// In the middle of a cell.
    Middle,
    /// In a cell, after its middle.
    AfterMiddle,
}

/// Kinds of start, on the grid and in a cell: each has ages of its own.
const KINDS: u32 = 2;

/// A distribution on the ticks of a clock that runs everywhere at once.
///
/// A clock is a kind of start and an age: the number of ticks from the start to the next tick, or 0 for a clock that waits for the
/// middle of the cell in which it started. Each age has the probability that the clock fires at the next tick, having reached it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    /// All mass is at times of the grid: a clock that starts on the grid fires on the grid.
    is_fixed: bool,
    on_grid: Hazards,
    in_cell: Hazards,
}

impl Ticks {
    /// The distribution on ticks that are `tick` apart. A tail of less than `tail` fires at once where it begins. The values of a law
    /// without density are taken for multiples of `tick`.
    pub fn of(distribution: &Distribution, tick: f64, tail: f64) -> Self {
        match atoms(distribution) {
            Some(values) => {
                let hazards = Hazards::of_atoms(values, tick);
                Self { is_fixed: true, on_grid: hazards.clone(), in_cell: hazards }
            }
            None => Self {
                is_fixed: false,
                on_grid: Hazards::of_cells(distribution, tick, tail),
                in_cell: Hazards::of_shares(distribution, tick, tail),
            },
        }
    }

    /// Whether the law has fixed values only, and no density.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// A clock that starts, and the probability that it fires at once.
    pub fn start(&self, moment: Moment) -> (u32, f64) {
        match moment {
            Moment::Grid => (KINDS, self.on_grid.at_once),
            Moment::BeforeMiddle => (1, self.in_cell.at_once),
            Moment::Middle | Moment::AfterMiddle => (KINDS + 1, self.in_cell.at_once),
        }
    }

    /// The probability that a clock fires at a tick on the grid or in the middle of a cell; none where the clock does not count it.
    pub fn hazard(&self, clock: u32, tick: Moment) -> Option<f64> {
        let fires_on_grid = self.is_fixed && !Self::is_in_cell(clock);
        let hazards = if Self::is_in_cell(clock) { &self.in_cell } else { &self.on_grid };
        (fires_on_grid == (tick == Moment::Grid)).then(|| hazards.by_age[(clock / KINDS) as usize])
    }

    /// A clock after a tick that it counts, if it does not fire there.
    pub fn older(clock: u32) -> u32 {
        clock + KINDS
    }

    /// Whether a clock is known to a cell only.
    pub fn is_in_cell(clock: u32) -> bool {
        clock % KINDS == 1
    }

    /// A clock of fixed values that is stopped within a cell: its age is known to a cell only from then on.
    pub fn stopped(&self, clock: u32) -> u32 {
        if self.is_fixed && !Self::is_in_cell(clock) { clock + 1 } else { clock }
    }

    /// A clock of fixed values that was stopped on the grid and goes on at `moment`, within a cell.
    pub fn resumed(&self, clock: u32, moment: Moment) -> u32 {
        match moment {
            Moment::BeforeMiddle if self.is_fixed && !Self::is_in_cell(clock) => clock + 1 - KINDS,
            _ => self.stopped(clock),
        }
    }
}

/// The values of a law that has no density; none for any other.
pub(crate) fn atoms(distribution: &Distribution) -> Option<Vec<f64>> {
    match distribution {
        Distribution::Deterministic(law) => Some(vec![law.value()]),
        Distribution::Empirical(law) => Some(law.values().to_vec()),
        _ => None,
    }
}

/// Where the distribution function of a law is not smooth, in rising order: its finite corners, and its values where it has no density.
pub(crate) fn corners(distribution: &Distribution) -> Vec<f64> {
    let (low, high) = distribution.support();
    let mut corners = match distribution {
        Distribution::Empirical(law) => law.values().to_vec(),
        Distribution::Expolynomial(law) => law.pieces().iter().flat_map(|piece| [piece.min, piece.max]).collect(),
        _ => vec![low, high],
    };
    corners.retain(|corner| corner.is_finite());
    corners.dedup();
    corners
}

/// Where a distribution's mass is put.
#[derive(Clone, Debug, PartialEq)]
struct Hazards {
    at_once: f64,
    /// The probability of firing so many ticks after the start, not having fired before. 1 at the end.
    by_age: Vec<f64>,
}

impl Hazards {
    /// `alive` gives the probability of not having fired so many ticks after the start.
    fn of(tail: f64, alive: impl Fn(usize) -> f64) -> Self {
        let mut before = alive(0);
        let mut hazards = Self { at_once: (1.0 - before).max(0.0), by_age: vec![0.0] };
        for index in 1.. {
            let after = alive(index);
            if after <= tail {
                hazards.by_age.push(1.0);
                break;
            }
            hazards.by_age.push((1.0 - after / before).max(0.0));
            before = after;
        }
        hazards
    }

    /// For values that are multiples of `tick`, in rising order.
    fn of_atoms(values: Vec<f64>, tick: f64) -> Self {
        let ticks: Vec<usize> = values.iter().map(|value| (value / tick).round() as usize).collect();
        Self::of(0.0, |index| (ticks.len() - ticks.partition_point(|ticks| *ticks <= index)) as f64 / ticks.len() as f64)
    }

    /// For a start on the grid: what ends in a cell fires in its middle, so that at the grid's own times no more and no less has fired
    /// than should.
    fn of_cells(distribution: &Distribution, tick: f64, tail: f64) -> Self {
        Self::of(tail, |index| distribution.survival(index as f64 * tick))
    }

    /// For a start in a cell, at each of its times as likely: the mass at each time is shared by two cells in such a way that the mean
    /// stays. The error is of second order in `tick`.
    fn of_shares(distribution: &Distribution, tick: f64, tail: f64) -> Self {
        // Differences of the mean survival over neighboring cells are the integrals against hat functions.
        let corners = corners(distribution);
        Self::of(tail, |index| {
            let (from, to) = (index as f64 * tick, (index + 1) as f64 * tick);
            mean_survival(distribution, &corners, from, to)
        })
    }
}

/// The mean of the survival function over an interval, whose integral is cut at the corners.
fn mean_survival(distribution: &Distribution, corners: &[f64], from: f64, to: f64) -> f64 {
    let within = corners.iter().copied().filter(|corner| *corner > from && *corner < to);
    let cuts: Vec<f64> = std::iter::once(from).chain(within).chain([to]).collect();
    let integral: f64 = cuts.windows(2).map(|cell| crate::quadrature::gauss(cell[0], cell[1], |x| distribution.survival(x))).sum();
    integral / (to - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Deterministic, Empirical, Exponential, Gamma, Uniform};

    /// Mass and mean of the time until a clock fires that starts at `moment`, on the grid or in the middle of a cell.
    fn moments(ticks: &Ticks, tick: f64, moment: Moment) -> (f64, f64) {
        let (mut clock, at_once) = ticks.start(moment);
        let place = if moment == Moment::Grid && ticks.is_fixed() { Moment::Grid } else { Moment::Middle };
        let first = if moment == Moment::Grid && !ticks.is_fixed() { 0.5 * tick } else { tick };
        let (mut alive, mut mass, mut mean) = (1.0 - at_once, at_once, 0.0);
        for index in 0.. {
            if alive <= 0.0 {
                break;
            }
            let hazard = ticks.hazard(clock, place).expect("the clock counts this tick");
            mass += alive * hazard;
            mean += alive * hazard * (first + f64::from(index) * tick);
            alive *= 1.0 - hazard;
            clock = Ticks::older(clock);
        }
        (mass, mean)
    }

    #[test]
    fn mass_and_mean_stay() {
        let laws = [
            Distribution::Uniform(Uniform::new(0.0, 1.0).expect("right")),
            Distribution::Uniform(Uniform::new(0.3, 0.77).expect("right")),
            Distribution::Deterministic(Deterministic::new(0.0).expect("right")),
            Distribution::Deterministic(Deterministic::new(2.0).expect("right")),
            Distribution::Empirical(Empirical::new(vec![0.0, 1.0, 1.0, 3.0]).expect("right")),
            Distribution::Gamma(Gamma::new(6.235, 2.683).expect("right")),
            Distribution::Exponential(Exponential::new(1.5).expect("right")),
        ];
        for law in laws {
            for tick in [1.0, 0.25, 0.1] {
                let ticks = Ticks::of(&law, tick, 1e-14);
                for moment in [Moment::Grid, Moment::Middle, Moment::AfterMiddle] {
                    let (mass, mean) = moments(&ticks, tick, moment);
                    // Within a cell a density need not be centered; a fixed value is where it should be.
                    let allowed = if moment == Moment::Grid && !ticks.is_fixed() { tick * tick } else { 1e-9 };
                    assert!((mass - 1.0).abs() < 1e-12, "{law:?} {tick} {moment:?}: {mass}");
                    assert!((mean - law.mean()).abs() < allowed, "{law:?} {tick} {moment:?}: {mean}");
                }
            }
        }
    }

    #[test]
    fn fixed_delay_from_the_grid_fires_on_the_grid() {
        let law = Distribution::Deterministic(Deterministic::new(0.75).expect("right"));
        let ticks = Ticks::of(&law, 0.25, 1e-14);
        for (moment, tick, other) in [(Moment::Grid, Moment::Grid, Moment::Middle), (Moment::Middle, Moment::Middle, Moment::Grid)] {
            let (clock, at_once) = ticks.start(moment);
            let clocks = [clock, Ticks::older(clock), Ticks::older(Ticks::older(clock))];
            assert_eq!((at_once, clocks.map(|clock| ticks.hazard(clock, tick))), (0.0, [Some(0.0), Some(0.0), Some(1.0)]), "{moment:?}");
            assert_eq!(clocks.map(|clock| ticks.hazard(clock, other)), [None; 3], "{moment:?}");
        }
    }

    #[test]
    fn clock_started_before_the_middle_does_not_fire_there() {
        let law = Distribution::Uniform(Uniform::new(0.0, 1.0).expect("right"));
        let ticks = Ticks::of(&law, 0.25, 1e-14);
        let (early, late) = (ticks.start(Moment::BeforeMiddle), ticks.start(Moment::AfterMiddle));
        assert_eq!(ticks.hazard(early.0, Moment::Middle), Some(0.0));
        assert_eq!((Ticks::older(early.0), early.1), late);
        assert!((early.1 - 0.125).abs() < 1e-12, "half of the first cell's mass: {}", early.1);
    }

    #[test]
    fn erlang_stages_follow_each_other() {
        let law = crate::distribution::Erlang::new(3, 2.0).expect("right");
        let stages = Stages::of(&Distribution::Erlang(law)).expect("it has stages");
        assert_eq!(stages.start, [(0, 1.0)]);
        assert_eq!(stages.moves, [vec![(Some(1), 2.0)], vec![(Some(2), 2.0)], vec![(None, 2.0)]]);
    }
}
