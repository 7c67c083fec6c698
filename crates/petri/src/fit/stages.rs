//! Stages of their own rates, one behind the other, by expectation maximization (Asmussen, Nerman and Olsson, "Fitting phase-type distributions via the
//! EM algorithm", Scandinavian Journal of Statistics 23, 1996; in the canonical form, Okamura, Dohi and Trivedi, Performance Evaluation 68, 2011).
//!
//! Where any stage may be the first these are all acyclic phase-type laws of as many phases (Cumani 1982), and where the first one is, the hypo-exponential
//! ones. Whoever begins in a stage passes all behind it, so that only the time in each stage has to be expected. Between two values forward and backward
//! probabilities are uniformized, in steps that are short beside the fastest stage; all sums are of positive terms.
//!
//! After each round the law's mean is the sample's.

use super::{FitError, Sample};
use crate::distribution::{HypoExponential, PhaseType};

/// Most phases of an acyclic law, and most stages of a hypo-exponential one.
const PHASES_MAX: usize = 5;
const STAGES_MAX: usize = 12;
/// Most rounds, and the least that one adds to the logarithm of the likelihood, in all.
const ROUNDS_MAX: u32 = 2_000;
const GAIN_MIN: f64 = 1e-6;
/// Most stages of a mean that the fastest rate does: one that is faster is none.
const RATE_MAX: f64 = 1e3;
/// Poisson's weights below this are left out.
const WEIGHT_MIN: f64 = 1e-18;
/// Most terms of a step: with one expected event further ones are below that.
const TERMS_MAX: usize = 24;
/// Rates within this part of each other are those of an Erlang law.
const SAME: f64 = 0.02;

/// A number for each stage; behind the last one 0.
type Vector = [f64; STAGES_MAX];

/// Stages, of which each may be the first and the last one is the end.
#[derive(Clone, Debug)]
struct Line {
    initial: Vec<f64>,
    rates: Vec<f64>,
}

/// What a round expects of all values together.
struct Expected {
    log_likelihood: f64,
    /// How many begin in each stage.
    begins: Vec<f64>,
    /// The time that all spend in each stage.
    times: Vec<f64>,
}

/// The likeliest acyclic law, of as many phases as Schwarz's criterion pays for: 2 to 5. Maxima may be local ones.
pub(super) fn phase_type(sample: &Sample) -> Result<PhaseType, FitError> {
    let best = (2..=PHASES_MAX)
        .filter_map(|count| climbed(sample, &[vec![1.0 / count as f64; count]], (2 * count - 1) as f64))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, line) = best.ok_or(FitError::NoMaximum("a value is too far from the others for the likelihood to be told"))?;
    let line = line.in_order();
    let count = line.rates.len();
    let row = |stage: usize| {
        let mut row = vec![0.0; count];
        row[stage] = -line.rates[stage];
        if stage + 1 < count {
            row[stage + 1] = line.rates[stage];
        }
        row
    };
    Ok(PhaseType::new(&line.initial, &(0..count).map(row).collect::<Vec<_>>())?)
}

/// The likeliest stages, each of its own rate, as many as Schwarz's criterion pays for: 2 to 12.
pub(super) fn hypo_exponential(sample: &Sample) -> Result<HypoExponential, FitError> {
    if sample.variance() >= sample.mean() * sample.mean() {
        return Err(FitError::NoMaximum("the values vary as much as exponential ones: one stage is enough"));
    }
    let mut best: Option<(f64, Line)> = None;
    for count in 2..=STAGES_MAX {
        let first = (0..count).map(|stage| if stage == 0 { 1.0 } else { 0.0 }).collect();
        let Some((criterion, line)) = climbed(sample, &[first], count as f64) else { continue };
        if best.as_ref().is_some_and(|(least, _)| criterion >= *least) {
            break;
        }
        best = Some((criterion, line));
    }
    let (_, line) = best.ok_or(FitError::NoMaximum("a value is too far from the others for the likelihood to be told"))?;
    let mut rates = line.rates;
    rates.sort_by(f64::total_cmp);
    if rates[rates.len() - 1] <= rates[0] * (1.0 + SAME) {
        return Err(FitError::NoMaximum("the values vary less than those of stages of different rates: an Erlang law is likelier"));
    }
    Ok(HypoExponential::new(&rates)?)
}

/// The likeliest of what rounds make of starts with these initial probabilities, and Schwarz's criterion with so many free parameters; none where the
/// likelihood is too small for a number.
fn climbed(sample: &Sample, initials: &[Vec<f64>], free: f64) -> Option<(f64, Line)> {
    let data = counted(sample);
    // Rates that are near each other, and rates far apart, for tails.
    let spreads: [fn(usize) -> f64; 2] = [|stage| 1.0 + 0.5 * stage as f64, |stage| 4_f64.powi(stage.min(4) as i32)];
    let starts = initials.iter().flat_map(|initial| spreads.map(|spread| (initial, spread)));
    let lines = starts.filter_map(|(initial, spread)| {
        let rates = (0..initial.len()).map(spread).collect();
        let mut line = Line { initial: initial.clone(), rates };
        let factor = line.mean() / sample.mean();
        line.rates.iter_mut().for_each(|rate| *rate *= factor);
        line.likeliest(&data, sample.mean())
    });
    let (log_likelihood, line) = lines.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((free * (sample.count() as f64).ln() - 2.0 * log_likelihood, line))
}

/// The values and how often each was measured, in rising order.
fn counted(sample: &Sample) -> Vec<(f64, f64)> {
    let mut counted: Vec<(f64, f64)> = Vec::new();
    for value in sample.values() {
        match counted.last_mut().filter(|(last, _)| last == value) {
            Some((_, times)) => *times += 1.0,
            None => counted.push((*value, 1.0)),
        }
    }
    counted
}

impl Line {
    fn mean(&self) -> f64 {
        let mut passed = 0.0;
        self.initial.iter().zip(&self.rates).fold(0.0, |mean, (initial, rate)| {
            passed += initial;
            mean + passed / rate
        })
    }

    /// Rounds until nothing is gained any more, and the logarithm of the likelihood.
    fn likeliest(mut self, data: &[(f64, f64)], mean: f64) -> Option<(f64, Self)> {
        let mut before = f64::NEG_INFINITY;
        for _ in 0..ROUNDS_MAX {
            let expected = self.expected(data)?;
            if expected.log_likelihood - before < GAIN_MIN {
                return Some((expected.log_likelihood, self));
            }
            before = expected.log_likelihood;
            self = self.maximized(&expected, RATE_MAX / mean);
        }
        Some((before, self))
    }

    fn maximized(&self, expected: &Expected, rate_max: f64) -> Self {
        let count: f64 = expected.begins.iter().sum();
        let mut passes = 0.0;
        let rate = |((begins, time), old): ((&f64, &f64), &f64)| {
            passes += begins;
            // A stage that nobody comes to keeps its rate.
            if *time > 0.0 && passes > 0.0 { (passes / time).min(rate_max) } else { *old }
        };
        let rates = expected.begins.iter().zip(&expected.times).zip(&self.rates).map(rate).collect();
        Self { initial: expected.begins.iter().map(|begins| begins / count).collect(), rates }
    }

    /// What is expected of the stages given the values; none where a value's density is no number above 0.
    fn expected(&self, data: &[(f64, f64)]) -> Option<Expected> {
        let count = self.rates.len();
        let chain = Chain::of(&self.rates);
        let exit_rate = self.rates[count - 1];
        let mut now = [0.0; STAGES_MAX];
        now[..count].copy_from_slice(&self.initial);
        // In front of each value, and what it weighs.
        let (mut forward, mut weights) = (Vec::with_capacity(data.len()), Vec::with_capacity(data.len()));
        let (mut log_likelihood, mut at) = (0.0, 0.0);
        for (value, times) in data {
            forward.push(now);
            let (step, steps) = Step::of(value - at, chain.fastest);
            for _ in 0..steps {
                now = step.sum(&chain.powers(&now, Chain::ahead, step.terms));
            }
            let density = now[count - 1] * exit_rate;
            if !(density > 0.0 && density.is_finite()) {
                return None;
            }
            log_likelihood += times * density.ln();
            weights.push(times / density);
            at = *value;
        }
        // Backward what every value is worth to whoever is in a stage.
        let (mut worth, mut times) = ([0.0; STAGES_MAX], [0.0; STAGES_MAX]);
        let mut begins = Vec::new();
        for (index, (value, _)) in data.iter().enumerate().rev() {
            worth[count - 1] += weights[index] * exit_rate;
            let before = if index == 0 { 0.0 } else { data[index - 1].0 };
            let (step, steps) = Step::of(value - before, chain.fastest);
            begins.clear();
            begins.push(chain.powers(&forward[index], Chain::ahead, step.terms));
            for _ in 1..steps {
                let begin = step.sum(begins.last().expect("it begins with one"));
                begins.push(chain.powers(&begin, Chain::ahead, step.terms));
            }
            for ahead in begins.iter().rev() {
                let behind = chain.powers(&worth, Chain::behind, step.terms);
                step.add_times(ahead, &behind, &chain, &mut times);
                worth = step.sum(&behind);
            }
        }
        let begins = self.initial.iter().zip(&worth).map(|(initial, worth)| initial * worth).collect();
        Some(Expected { log_likelihood, begins, times: times[..count].to_vec() })
    }

    /// The same law with the slowest stage first. Of two neighbours whoever begins in the slower one passes the faster one, too, with the probability
    /// that makes the law the same.
    fn in_order(mut self) -> Self {
        let count = self.rates.len();
        for round in 1..count {
            for stage in 0..count - round {
                let (fast, slow) = (self.rates[stage], self.rates[stage + 1]);
                if fast > slow {
                    let also = self.initial[stage + 1] * (1.0 - slow / fast);
                    self.initial[stage] += also;
                    self.initial[stage + 1] -= also;
                    self.rates.swap(stage, stage + 1);
                }
            }
        }
        self
    }
}

/// The uniformized chain: what a stage keeps of a step, and what it gives to the next one.
struct Chain {
    count: usize,
    fastest: f64,
    stays: Vector,
    moves: Vector,
}

impl Chain {
    fn of(rates: &[f64]) -> Self {
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let (mut stays, mut moves) = ([0.0; STAGES_MAX], [0.0; STAGES_MAX]);
        for (stage, rate) in rates.iter().enumerate() {
            moves[stage] = rate / fastest;
            stays[stage] = 1.0 - moves[stage];
        }
        Self { count: rates.len(), fastest, stays, moves }
    }

    /// Probabilities a step later.
    fn ahead(&self, now: &Vector, next: &mut Vector) {
        let mut moved = 0.0;
        for (((next, now), stays), moves) in next.iter_mut().zip(now).zip(&self.stays).zip(&self.moves).take(self.count) {
            *next = now * stays + moved;
            moved = now * moves;
        }
    }

    /// What a value is worth a step earlier.
    fn behind(&self, worth: &Vector, next: &mut Vector) {
        // Behind the last stage there is nothing to be worth anything.
        let later = worth[1..].iter().copied().chain([0.0]);
        let chain = self.stays.iter().zip(&self.moves);
        for (((next, worth), later), (stays, moves)) in next.iter_mut().zip(worth).zip(later).zip(chain).take(self.count) {
            *next = worth * stays + later * moves;
        }
    }

    /// What so many steps make of a vector, itself the first.
    fn powers(&self, vector: &Vector, step: fn(&Self, &Vector, &mut Vector), terms: usize) -> [Vector; TERMS_MAX] {
        let mut powers = [[0.0; STAGES_MAX]; TERMS_MAX];
        powers[0] = *vector;
        for term in 1..terms {
            let (before, next) = powers.split_at_mut(term);
            step(self, &before[term - 1], &mut next[0]);
        }
        powers
    }
}

/// A time in which the fastest stage ends once at most, and Poisson's weights of its uniformized events.
struct Step {
    weights: [f64; TERMS_MAX],
    terms: usize,
}

impl Step {
    /// A step, and how many of it a time is made of.
    fn of(time: f64, fastest: f64) -> (Self, u64) {
        let count = (time * fastest).ceil().max(1.0);
        let events = time * fastest / count;
        let mut weights = [0.0; TERMS_MAX];
        let mut weight = (-events).exp();
        let mut terms = 0;
        while terms < TERMS_MAX && (terms < 2 || weight > WEIGHT_MIN) {
            weights[terms] = weight;
            terms += 1;
            weight *= events / terms as f64;
        }
        (Self { weights, terms }, count as u64)
    }

    /// The weighted sum of powers: a vector at the step's other end.
    fn sum(&self, powers: &[Vector; TERMS_MAX]) -> Vector {
        let mut sum = [0.0; STAGES_MAX];
        for (power, weight) in powers[..self.terms].iter().zip(self.weights) {
            sum.iter_mut().zip(power).for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }

    /// Adds the time in each stage within the step, weighted by what it is worth at its end: of `j` events before an instant and `k` behind it the integral
    /// over all instants is Poisson's weight of `j + k + 1` over the rate.
    fn add_times(&self, ahead: &[Vector; TERMS_MAX], behind: &[Vector; TERMS_MAX], chain: &Chain, times: &mut Vector) {
        for (before, ahead) in ahead[..self.terms - 1].iter().enumerate() {
            for (weight, behind) in self.weights[before + 1..self.terms].iter().zip(behind) {
                let weight = weight / chain.fastest;
                for ((time, ahead), behind) in times.iter_mut().zip(ahead).zip(behind).take(chain.count) {
                    *time += weight * ahead * behind;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Distribution, Sampler};
    use crate::random::{Draws, Place};

    fn drawn(law: &Distribution, count: u32, seed: u64) -> Sample {
        let sampler = Sampler::new(law);
        let value = |draw| sampler.sample(&mut Draws::at(seed, Place { run: 0, stream: 0, draw }));
        Sample::new((0..count).map(value).collect()).expect("times")
    }

    /// A law of one stage has closed forms: `n` values of an exponential law spend their sum in it, and the likelihood is `n ln rate - rate sum`.
    #[test]
    fn one_stage_has_its_time_and_likelihood() {
        let (rate, data) = (0.7, [(0.1, 1.0), (2.0, 3.0), (9.0, 1.0)]);
        let expected = Line { initial: vec![1.0], rates: vec![rate] }.expected(&data).expect("densities");
        let sum = 0.1 + 6.0 + 9.0;
        assert!((expected.times[0] / sum - 1.0).abs() < 1e-13, "{}", expected.times[0]);
        assert!((expected.begins[0] - 5.0).abs() < 1e-12);
        assert!((expected.log_likelihood - (5.0 * rate.ln() - rate * sum)).abs() < 1e-12);
    }

    /// Two equal stages: given the sum, the time in each is half of it. Two different ones: the first one's has a truncated exponential law.
    #[test]
    fn two_stages_share_a_value_as_their_rates_say() {
        let of = |rates: [f64; 2], value: f64| {
            let line = Line { initial: vec![1.0, 0.0], rates: rates.to_vec() };
            line.expected(&[(value, 1.0)]).expect("a density").times
        };
        let same = of([3.0, 3.0], 5.0);
        assert!((same[0] - 2.5).abs() < 1e-12 && (same[1] - 2.5).abs() < 1e-12, "{same:?}");
        let (a, b, value) = (4.0, 0.5, 3.0);
        let difference: f64 = a - b;
        let first = 1.0 / difference - value / (difference * value).exp_m1();
        let found = of([a, b], value);
        assert!((found[0] - first).abs() < 1e-12 && (found[1] - (value - first)).abs() < 1e-12, "{found:?} beside {first}");
    }

    #[test]
    fn every_round_is_likelier_and_keeps_the_samples_mean() {
        let line = Line { initial: vec![0.2, 0.3, 0.5], rates: vec![2.0, 9.0, 0.6] };
        let law = Distribution::HypoExponential(HypoExponential::new(&[1.0, 0.4, 3.0]).expect("a law"));
        let sample = drawn(&law, 300, 2);
        let data = counted(&sample);
        let (mut now, mut before) = (line, f64::NEG_INFINITY);
        for _ in 0..30 {
            let expected = now.expected(&data).expect("densities");
            assert!(expected.log_likelihood >= before, "{} behind {before}", expected.log_likelihood);
            before = expected.log_likelihood;
            now = now.maximized(&expected, f64::INFINITY);
            assert!((now.mean() / sample.mean() - 1.0).abs() < 1e-12, "{} beside {}", now.mean(), sample.mean());
        }
    }

    #[test]
    fn in_order_the_law_is_the_same() {
        let line = Line { initial: vec![0.2, 0.3, 0.5], rates: vec![9.0, 2.0, 0.6] };
        let data = [(0.01, 1.0), (0.5, 1.0), (4.0, 1.0)];
        let ordered = line.clone().in_order();
        assert!(ordered.rates.is_sorted() && ordered.initial.iter().all(|initial| *initial >= 0.0), "{ordered:?}");
        let [found, expected] = [&ordered, &line].map(|line| line.expected(&data).expect("densities").log_likelihood);
        assert!((found - expected).abs() < 1e-12, "{found} beside {expected}");
        assert!((ordered.mean() - line.mean()).abs() < 1e-12);
    }
}
