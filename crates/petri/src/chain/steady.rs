//! Long-run probabilities of a Markov chain.
//!
//! States that are left for ever have none. Within each set that is never left they solve `p Q = 0`: directly where it is small,
//! by iteration where it is large. Either way the answer is certified afterwards. With `r = p Q` the rest of the equations, and `h`
//! no less than the expected time until the most probable state is met, from any state, the expectation of a reward is off by at most
//! `|r| max(h) range(reward)` (the reward's deviations, summed until that state is met, solve Poisson's equation). An `h` that was
//! found is such a bound if `-Q h` is 1 or more in every other state, which is checked. Where rates themselves are known to a doubt only,
//! it is counted against both.
//!
//! What is solved directly is right to a part of itself, however small it is: elimination adds, multiplies and divides positive numbers
//! only, so that it is exact for rates that are off by a part of themselves, and a chain whose rates are all off by a part `d` has
//! probabilities that are off by a part `2 n d` at most: they are quotients of sums of products of `n - 1` rates (the Markov chain tree theorem; O'Cinneide,
//! Numerische Mathematik 65, 1993).

use super::{Chain, ROUNDOFF, components::Components, dense::Rates};

/// Most states that are solved directly; a cube of it is the work.
pub const DIRECT_STATES_MAX: usize = 800;

/// Most sweeps of an iteration.
pub const SWEEPS_MAX: usize = 20_000;

/// Long-run probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// For each state.
    pub probabilities: Vec<f64>,
    /// For every probability of a set of states: no more than this away from the true one.
    pub error: f64,
    /// For every probability: no more than this part of it away from the true one; none where something was iterated, or is in doubt.
    pub part: Option<f64>,
    /// Whether an iteration was needed.
    pub is_iterative: bool,
}

/// Long-run probabilities that were not found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SteadyError {
    /// The iteration goes too slowly.
    #[error(
        "the iteration did not come to a bound of {error:e} within {SWEEPS_MAX} sweeps over {states} states; its last bound was {reached:e}"
    )]
    Slow {
        /// States of the set that is never left.
        states: usize,
        /// What was asked.
        error: f64,
        /// What was reached.
        reached: f64,
    },
}

/// Long-run probabilities from the chain's first ones, to about `error`.
///
/// # Errors
/// [`SteadyError`].
pub fn steady(chain: &Chain, error: f64) -> Result<Steady, SteadyError> {
    let components = Components::of(chain);
    let closed = components.closed();
    let (shares, mut total, mut part_off) =
        if closed.len() == 1 { (vec![1.0], 0.0, Some(0.0)) } else { absorbed(chain, &components, &closed, error)? };
    let mut probabilities = vec![0.0; chain.len()];
    let mut is_iterative = false;
    let mut largest_part = 0.0_f64;
    for (states, share) in closed.iter().zip(shares) {
        let part = Part::of(chain, states);
        let (solution, part_error) = if states.len() <= DIRECT_STATES_MAX {
            let solution = part.direct();
            let bound = part.bound(&solution, error)?;
            largest_part = largest_part.max(part_off_by_elimination(states.len()));
            part_off = part_off.filter(|_| part.doubts.iter().all(|doubt| *doubt == 0.0));
            (solution, bound)
        } else {
            is_iterative = true;
            part_off = None;
            part.iterate(error)?
        };
        states.iter().zip(solution).for_each(|(state, probability)| probabilities[*state] = share * probability);
        total += share * part_error;
    }
    Ok(Steady { probabilities, error: total, part: part_off.map(|part| part + largest_part), is_iterative })
}

/// By which part of itself a long-run probability of `states` states may be off that elimination finds: each of so many steps puts a few roundings more than
/// it has summands on every rate, and so does each of the sums behind it.
fn part_off_by_elimination(states: usize) -> f64 {
    let states = states as f64;
    3.0 * states * states * (states + 8.0) * ROUNDOFF
}

/// Probabilities of coming to each closed set, the bound on their error, and by which part of itself each is off.
type Absorbed = (Vec<f64>, f64, Option<f64>);

/// By elimination where few states lie between, otherwise by sweeps: then what stands between after them is what is missing.
fn absorbed(chain: &Chain, components: &Components, closed: &[Vec<usize>], error: f64) -> Result<Absorbed, SteadyError> {
    let mut order: Vec<usize> = (0..chain.len()).filter(|state| !components.is_closed[components.of[*state] as usize]).collect();
    if order.len() + closed.len() <= DIRECT_STATES_MAX && order.iter().all(|state| chain.doubt(*state) == 0.0) {
        let part = part_off_by_elimination(order.len() + closed.len());
        return Ok((absorbed_directly(chain, &order, closed), part, Some(part)));
    }
    let mut mass = chain.first();
    // Mass moves to lower components: from above, one sweep is enough but for the loops inside a component.
    order.sort_unstable_by_key(|state| std::cmp::Reverse(components.of[*state]));
    for sweep in 0.. {
        for state in &order {
            let moved = std::mem::take(&mut mass[*state]);
            if moved > 0.0 {
                chain.row(*state).for_each(|(other, rate)| mass[other] += moved * (rate / chain.exit(*state)));
            }
        }
        let rest: f64 = order.iter().map(|state| mass[*state]).sum();
        if rest <= 0.1 * error || order.is_empty() {
            let shares = closed.iter().map(|states| states.iter().map(|state| mass[*state]).sum()).collect();
            let operations = (sweep + 1) as f64 * (chain.row_len_max() + chain.column_len_max() + 4) as f64;
            return Ok((shares, rest + operations * ROUNDOFF, None));
        }
        if sweep == SWEEPS_MAX {
            return Err(SteadyError::Slow { states: order.len(), error, reached: rest });
        }
    }
    unreachable!("the sweeps are counted")
}

/// The long run of the chain that begins anew, at rate 1, wherever it has come to: the shares of its ends are those of the time in them.
fn absorbed_directly(chain: &Chain, between: &[usize], closed: &[Vec<usize>]) -> Vec<f64> {
    let mut number = vec![0; chain.len()];
    between.iter().enumerate().for_each(|(index, state)| number[*state] = closed.len() + index);
    closed.iter().enumerate().for_each(|(index, states)| states.iter().for_each(|state| number[*state] = index));
    let mut rates = Rates::zero(closed.len() + between.len());
    for (state, probability) in chain.first().into_iter().enumerate() {
        (0..closed.len()).for_each(|end| *rates.at(end, number[state]) += probability);
    }
    for state in between {
        chain.row(*state).for_each(|(other, rate)| *rates.at(number[*state], number[other]) += rate);
    }
    let mut shares = rates.stationary();
    shares.truncate(closed.len());
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}

/// One closed set of states, both by rows and by columns.
struct Part {
    rows: Vec<Vec<(u32, f64)>>,
    columns: Vec<Vec<(u32, f64)>>,
    exits: Vec<f64>,
    doubts: Vec<f64>,
}

impl Part {
    fn of(chain: &Chain, states: &[usize]) -> Self {
        let mut number = vec![0_u32; chain.len()];
        states.iter().zip(0..).for_each(|(state, index)| number[*state] = index);
        let mut columns = vec![Vec::new(); states.len()];
        let mut rows = Vec::with_capacity(states.len());
        for (from, state) in states.iter().enumerate() {
            let row: Vec<(u32, f64)> = chain.row(*state).map(|(other, rate)| (number[other], rate)).collect();
            row.iter().for_each(|(to, rate)| columns[*to as usize].push((from as u32, *rate)));
            rows.push(row);
        }
        let exits = states.iter().map(|state| chain.exit(*state)).collect();
        Self { rows, columns, exits, doubts: states.iter().map(|state| chain.doubt(*state)).collect() }
    }

    fn direct(&self) -> Vec<f64> {
        let mut rates = Rates::zero(self.rows.len());
        for (from, row) in self.rows.iter().enumerate() {
            row.iter().for_each(|(to, rate)| *rates.at(from, *to as usize) = *rate);
        }
        rates.stationary()
    }

    /// Gauss-Seidel sweeps until the bound is there.
    fn iterate(&self, error: f64) -> Result<(Vec<f64>, f64), SteadyError> {
        let mut solution = vec![1.0 / self.rows.len() as f64; self.rows.len()];
        let mut reached = f64::INFINITY;
        let mut sweeps = 0;
        while sweeps < SWEEPS_MAX {
            for _ in 0..sweeps.clamp(20, 500) {
                self.sweep(&mut solution);
                sweeps += 1;
            }
            // The bound costs an iteration of its own: not before the rest is small.
            if self.rest(&solution) / self.exit_max() > error {
                continue;
            }
            reached = self.bound(&solution, error)?;
            if reached <= error {
                return Ok((solution, reached));
            }
        }
        Err(SteadyError::Slow { states: self.rows.len(), error, reached })
    }

    fn exit_max(&self) -> f64 {
        self.exits.iter().copied().fold(0.0, f64::max)
    }

    fn sweep(&self, solution: &mut [f64]) {
        for state in 0..self.rows.len() {
            let inflow: f64 = self.columns[state].iter().map(|(from, rate)| solution[*from as usize] * rate).sum();
            solution[state] = inflow / self.exits[state];
        }
        let sum: f64 = solution.iter().sum();
        solution.iter_mut().for_each(|probability| *probability /= sum);
    }

    /// `|p Q|`, with what rounding and doubts can hide of it. A doubt counts twice: for where a rate leads and for what it leaves.
    fn rest(&self, solution: &[f64]) -> f64 {
        let rest = |state: usize| {
            let inflow: f64 = self.columns[state].iter().map(|(from, rate)| solution[*from as usize] * rate).sum();
            let outflow = solution[state] * self.exits[state];
            let doubt = 2.0 * solution[state] * self.doubts[state];
            (inflow - outflow).abs()
                + doubt
                + (self.columns[state].len() + self.rows[state].len() + 4) as f64 * ROUNDOFF * (inflow + outflow)
        };
        (0..self.rows.len()).map(rest).sum()
    }

    /// How far any probability of a set may be from the true one.
    fn bound(&self, solution: &[f64], error: f64) -> Result<f64, SteadyError> {
        if self.rows.len() == 1 {
            return Ok(0.0);
        }
        let target = (0..solution.len()).max_by(|a, b| solution[*a].total_cmp(&solution[*b])).expect("the set is not empty");
        let sum_error = solution.len() as f64 * ROUNDOFF;
        Ok(self.rest(solution) * self.hitting_time_bound(target, error)? + sum_error)
    }

    /// No less than the expected time until `target` is met, from any state.
    fn hitting_time_bound(&self, target: usize, error: f64) -> Result<f64, SteadyError> {
        let mut times = vec![0.0; self.rows.len()];
        for sweep in 1..=SWEEPS_MAX {
            for state in (0..self.rows.len()).filter(|state| *state != target) {
                times[state] = (1.0 + self.ahead(&times, state)) / self.exits[state];
            }
            if sweep % 10 != 0 {
                continue;
            }
            // The smallest drift towards the target: with it, times / drift is a bound.
            let longest = times.iter().copied().fold(0.0, f64::max);
            let drift = (0..self.rows.len()).filter(|state| *state != target).map(|state| {
                let (outflow, inflow) = (times[state] * self.exits[state], self.ahead(&times, state));
                outflow
                    - inflow
                    - 2.0 * self.doubts[state] * longest
                    - (2 * self.rows[state].len() + 6) as f64 * ROUNDOFF * (outflow + inflow)
            });
            let drift = drift.fold(f64::INFINITY, f64::min);
            if drift > 0.5 {
                return Ok(longest / drift);
            }
        }
        Err(SteadyError::Slow { states: self.rows.len(), error, reached: f64::INFINITY })
    }

    fn ahead(&self, times: &[f64], state: usize) -> f64 {
        self.rows[state].iter().map(|(to, rate)| times[*to as usize] * rate).sum()
    }
}
