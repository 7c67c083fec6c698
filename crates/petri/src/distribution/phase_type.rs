//! Times to absorption of Markov chains.

use super::{DistributionError, Law, checked::Check};
use crate::{random::Draws, special::poisson_weight};

/// Most phases: moments solve a dense system of this size.
const PHASES_MAX: usize = 512;

/// Most expected steps of the uniformized chain to absorption. What a function of the law costs grows with it.
const STEPS_MAX: f64 = 1e4;

/// Below this a Poisson weight is taken for 0, and so is what is not absorbed.
const TINY: f64 = 1e-290;

/// The time that a Markov chain takes to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseType {
    initial: Vec<f64>,
    phases: Vec<Phase>,
    /// The largest rate of leaving a phase.
    fastest: f64,
    mean: f64,
    variance: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Phase {
    /// Other phases and the rates to them.
    moves: Vec<(usize, f64)>,
    exit_rate: f64,
    /// All of them together.
    leave_rate: f64,
}

impl PhaseType {
    /// 1 to 512 phases. `initial` are the probabilities to begin in each, 1 altogether within 1e-9. `generator` has a row for each
    /// phase: rates to other phases, at least 0, and on the diagonal minus the rate of leaving, which is at least their sum; what
    /// it is more is the rate of the end. The end must be reached from everywhere where the chain comes, within 10,000 expected
    /// steps of the fastest phase.
    pub fn new(initial: &[f64], generator: &[Vec<f64>]) -> Result<Self, DistributionError> {
        let check = Check { law: "phase_type" };
        let count = generator.len();
        if count == 0 || count > PHASES_MAX || initial.len() != count || generator.iter().any(|row| row.len() != count) {
            let given = format!("{count} rows beside {} initial probabilities", initial.len());
            return Err(check.error("generator", given, format!("a square of 1 to {PHASES_MAX} rows, one for each initial probability")));
        }
        let initial = check.probabilities("initial", initial.iter().copied())?;
        let phases = generator.iter().enumerate().map(|(phase, row)| Phase::of_row(check, phase, row)).collect::<Result<_, _>>()?;
        Self::of_chain(check, initial, phases)
    }

    fn of_chain(check: Check, initial: Vec<f64>, phases: Vec<Phase>) -> Result<Self, DistributionError> {
        let fastest = phases.iter().map(|phase| phase.leave_rate).fold(0.0, f64::max);
        let endless = || check.error("generator", "a chain without an end", "one that ends, within 10,000 steps of its fastest phase");
        let expected = expected_times(&phases, &vec![1.0; phases.len()]).ok_or_else(endless)?;
        let squared = expected_times(&phases, &expected.iter().map(|time| 2.0 * time).collect::<Vec<_>>()).ok_or_else(endless)?;
        let mean = dot(&initial, &expected);
        if !mean.is_finite() || mean * fastest > STEPS_MAX {
            return Err(endless());
        }
        let variance = (dot(&initial, &squared) - mean * mean).max(0.0);
        Ok(Self { initial, phases, fastest, mean, variance })
    }

    /// The probabilities to begin in each phase.
    pub fn initial(&self) -> &[f64] {
        &self.initial
    }

    /// The generator's rows, as [`PhaseType::new`] takes them.
    pub fn generator(&self) -> Vec<Vec<f64>> {
        let rows = self.phases.iter().enumerate().map(|(index, phase)| {
            let mut row = vec![0.0; self.phases.len()];
            row[index] = -phase.leave_rate;
            for (to, rate) in &phase.moves {
                row[*to] = *rate;
            }
            row
        });
        rows.collect()
    }

    /// The sum over steps `k` of the uniformized chain of its Poisson weight at `x` times `value(what is absorbed by then, what is
    /// not, phases' probabilities)`: all terms are at least 0, so that small results are exact too.
    fn uniformized(&self, x: f64, value: impl Fn(f64, f64, &[f64]) -> f64) -> f64 {
        let events = self.fastest * x.max(0.0);
        let mut now = self.initial.clone();
        let mut next = vec![0.0; now.len()];
        let (mut absorbed, mut sum, mut weights) = (0.0, 0.0, 0.0);
        for step in 0_u64.. {
            let step = step as f64;
            let alive: f64 = now.iter().sum();
            let weight = poisson_weight(step, events);
            let term = weight * value(absorbed, alive, &now);
            sum += term;
            weights += weight;
            let behind = step > events && (weight < TINY || term < sum * (f64::EPSILON / 64.0) && weight < f64::EPSILON / 64.0);
            if behind {
                break;
            }
            if alive < TINY {
                // From here on all is absorbed.
                return sum + value(1.0, 0.0, &vec![0.0; now.len()]) * (1.0 - weights).max(0.0);
            }
            absorbed += self.step(&now, &mut next);
            std::mem::swap(&mut now, &mut next);
        }
        sum
    }

    /// One step of the uniformized chain; what it absorbs.
    fn step(&self, now: &[f64], next: &mut [f64]) -> f64 {
        next.fill(0.0);
        let mut absorbed = 0.0;
        for (index, (phase, mass)) in self.phases.iter().zip(now).enumerate() {
            let share = mass / self.fastest;
            next[index] += share * (self.fastest - phase.leave_rate);
            for (to, rate) in &phase.moves {
                next[*to] += share * rate;
            }
            absorbed += share * phase.exit_rate;
        }
        absorbed
    }
}

impl Phase {
    fn of_row(check: Check, phase: usize, row: &[f64]) -> Result<Self, DistributionError> {
        let mut moves = Vec::new();
        for (to, rate) in row.iter().enumerate().filter(|(to, rate)| *to != phase && **rate != 0.0) {
            moves.push((to, check.not_negative("generator", *rate)?));
        }
        let elsewhere: f64 = moves.iter().map(|(_, rate)| rate).sum();
        let leave_rate = check.positive("generator", -row[phase])?;
        let exit_rate = leave_rate - elsewhere;
        // A row that is meant to add up to 0 does so within rounding.
        let exit_rate = if exit_rate.abs() < 1e-12 * leave_rate { 0.0 } else { exit_rate };
        Ok(Self { moves, exit_rate: check.not_negative("generator", exit_rate)?, leave_rate })
    }
}

/// Expected reward to the end from each phase, with `rewards` earned in a unit of time: elimination that subtracts nothing but what
/// leads back (Grassmann, Taksar and Heyman). None where there is no end.
fn expected_times(phases: &[Phase], rewards: &[f64]) -> Option<Vec<f64>> {
    let count = phases.len();
    let mut rates = vec![vec![0.0; count]; count];
    let mut exits: Vec<f64> = phases.iter().map(|phase| phase.exit_rate).collect();
    let mut rewards = rewards.to_vec();
    for (row, phase) in rates.iter_mut().zip(phases) {
        for (to, rate) in &phase.moves {
            row[*to] = *rate;
        }
    }
    // Phase by phase from the last: who goes there goes on to where it goes.
    for gone in (0..count).rev() {
        let out: f64 = rates[gone][..gone].iter().sum::<f64>() + exits[gone];
        if out <= 0.0 {
            return None;
        }
        let (before, rest) = rates.split_at_mut(gone);
        let from = &rest[0];
        for (index, row) in before.iter_mut().enumerate() {
            let share = row[gone] / out;
            if share > 0.0 {
                for (to, rate) in row[..gone].iter_mut().enumerate().filter(|(to, _)| *to != index) {
                    *rate += share * from[to];
                }
                exits[index] += share * exits[gone];
                rewards[index] += share * rewards[gone];
            }
        }
    }
    let mut expected = vec![0.0; count];
    for phase in 0..count {
        let out: f64 = rates[phase][..phase].iter().sum::<f64>() + exits[phase];
        expected[phase] = (rewards[phase] + dot(&rates[phase][..phase], &expected[..phase])) / out;
    }
    Some(expected)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Law for PhaseType {
    fn mean(&self) -> f64 {
        self.mean
    }

    fn variance(&self) -> f64 {
        self.variance
    }

    fn support(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        let exit_rate = |now: &[f64]| self.phases.iter().zip(now).map(|(phase, mass)| phase.exit_rate * mass).sum();
        Some(if x < 0.0 { 0.0 } else { self.uniformized(x, |_, _, now| exit_rate(now)) })
    }

    fn cdf(&self, x: f64) -> f64 {
        self.uniformized(x, |absorbed, _, _| absorbed).min(1.0)
    }

    fn survival(&self, x: f64) -> f64 {
        self.uniformized(x, |_, alive, _| alive).min(1.0)
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        // The chain that may be stopped at rate s in every phase: the probability that it is not.
        let stopped = self.phases.iter().map(|phase| Phase { leave_rate: phase.leave_rate + s, ..phase.clone() });
        let mut phases: Vec<Phase> = stopped.collect();
        let rewards: Vec<f64> = phases.iter().map(|phase| phase.exit_rate).collect();
        for phase in &mut phases {
            phase.exit_rate += s;
        }
        expected_times(&phases, &rewards).map(|reached| dot(&self.initial, &reached))
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        let mut phase = taken(self.initial.iter().copied().enumerate(), draws.uniform()).expect("initial probabilities add up to 1");
        let mut time = 0.0;
        loop {
            let Phase { moves, leave_rate, exit_rate } = &self.phases[phase];
            time -= draws.uniform().ln() / leave_rate;
            let way = draws.uniform() * leave_rate;
            match taken(moves.iter().copied(), way - exit_rate) {
                Some(next) if way >= *exit_rate => phase = next,
                _ => return time,
            }
        }
    }
}

/// The first of `shares` where their sum is above `at`, or the last one with any: rounding leaves no gap at the end.
fn taken(shares: impl Iterator<Item = (usize, f64)>, at: f64) -> Option<usize> {
    let mut left = at;
    let mut last = None;
    for (index, share) in shares.filter(|(_, share)| *share > 0.0) {
        left -= share;
        last = Some(index);
        if left < 0.0 {
            break;
        }
    }
    last
}

/// Exponential stages one behind the other, each of its own rate.
#[derive(Clone, Debug, PartialEq)]
pub struct HypoExponential {
    rates: Vec<f64>,
    chain: PhaseType,
}

impl HypoExponential {
    /// The rates of 1 to 512 stages, each above 0. All stages together take at most 10,000 times as long as the shortest.
    pub fn new(rates: &[f64]) -> Result<Self, DistributionError> {
        let check = Check { law: "hypo_exponential" };
        if rates.is_empty() || rates.len() > PHASES_MAX {
            return Err(check.error("rates", format!("a list of {}", rates.len()), format!("a list of 1 to {PHASES_MAX}")));
        }
        let mut phases = Vec::new();
        for (stage, rate) in rates.iter().enumerate() {
            let rate = check.positive("rates", *rate)?;
            let last = stage + 1 == rates.len();
            let moves = if last { Vec::new() } else { vec![(stage + 1, rate)] };
            phases.push(Phase { moves, exit_rate: if last { rate } else { 0.0 }, leave_rate: rate });
        }
        let initial = (0..rates.len()).map(|stage| if stage == 0 { 1.0 } else { 0.0 }).collect();
        Ok(Self { rates: rates.to_vec(), chain: PhaseType::of_chain(check, initial, phases)? })
    }

    /// The stages' rates in their order.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }
}

impl Law for HypoExponential {
    fn mean(&self) -> f64 {
        self.rates.iter().map(|rate| 1.0 / rate).sum()
    }

    fn variance(&self) -> f64 {
        self.rates.iter().map(|rate| 1.0 / (rate * rate)).sum()
    }

    fn support(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        self.chain.pdf(x)
    }

    fn cdf(&self, x: f64) -> f64 {
        self.chain.cdf(x)
    }

    fn survival(&self, x: f64) -> f64 {
        self.chain.survival(x)
    }

    fn laplace(&self, s: f64) -> Option<f64> {
        Some(self.rates.iter().map(|rate| rate / (rate + s)).product())
    }

    fn sample(&self, draws: &mut Draws) -> f64 {
        self.rates.iter().map(|rate| -draws.uniform().ln() / rate).sum()
    }
}
