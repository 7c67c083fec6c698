//! Continuous-time Markov chains as sparse rows.

pub mod absorption;
pub mod accumulated;
mod components;
mod dense;
pub(crate) mod pairwise;
pub mod poisson;
pub mod steady;
pub mod transient;

/// Unit roundoff of `f64`.
pub(crate) const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// A Markov chain: the rates out of every state, row behind row.
///
/// Entries off the diagonal only, each above 0, at most one for a pair of states; a state without any is absorbing.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Where the row of each state ends.
    ends: Vec<usize>,
    columns: Vec<u32>,
    rates: Vec<f64>,
    /// Sum of each row: the rate at which the state is left.
    exits: Vec<f64>,
    /// For each row, how far all its rates together may be from the true ones; rows behind the last are exact.
    doubts: Vec<f64>,
    /// First probabilities, those above 0, by rising state; their sum is 1 but for rounding.
    initial: Vec<(u32, f64)>,
}

impl Chain {
    /// A chain without any state, which starts as `initial` says once it has them.
    pub fn starting(initial: Vec<(u32, f64)>) -> Self {
        Self { initial, ..Self::default() }
    }

    /// Appends the next state's row. Entries to one state are added up, those to the state itself left out; `row` comes back empty.
    pub fn push_row(&mut self, row: &mut Vec<(u32, f64)>) {
        let state = u32::try_from(self.ends.len()).expect("a chain has fewer states than a u32 counts");
        row.sort_unstable_by_key(|(column, _)| *column);
        let start = self.columns.len();
        let mut exit = 0.0;
        for (column, rate) in row.drain(..).filter(|(column, _)| *column != state) {
            exit += rate;
            if self.columns.len() > start && self.columns.last() == Some(&column) {
                *self.rates.last_mut().expect("a column has its rate") += rate;
            } else {
                self.columns.push(column);
                self.rates.push(rate);
            }
        }
        self.ends.push(self.columns.len());
        self.exits.push(exit);
    }

    /// Says that the rates of the last row may be `doubt` off, added up.
    pub(crate) fn doubt_last_row(&mut self, doubt: f64) {
        self.doubts.resize(self.ends.len(), 0.0);
        *self.doubts.last_mut().expect("there is a row") = doubt;
    }

    /// How far all rates out of a state together may be from the true ones.
    fn doubt(&self, state: usize) -> f64 {
        self.doubts.get(state).copied().unwrap_or(0.0)
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no state.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of transitions between states.
    pub fn transitions(&self) -> usize {
        self.columns.len()
    }

    /// States that can be reached in one step, and the rates.
    pub fn row(&self, state: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.range(state);
        self.columns[range.clone()].iter().map(|column| *column as usize).zip(self.rates[range].iter().copied())
    }

    /// The rate at which a state is left; 0 for an absorbing one.
    pub fn exit(&self, state: usize) -> f64 {
        self.exits[state]
    }

    /// The largest rate at which any state is left.
    pub fn exit_max(&self) -> f64 {
        self.exits.iter().copied().fold(0.0, f64::max)
    }

    /// First probabilities of all states.
    pub fn first(&self) -> Vec<f64> {
        let mut first = vec![0.0; self.len()];
        self.initial.iter().for_each(|(state, probability)| first[*state as usize] += probability);
        first
    }

    fn range(&self, state: usize) -> std::ops::Range<usize> {
        let start = if state == 0 { 0 } else { self.ends[state - 1] };
        start..self.ends[state]
    }

    /// The most entries that any row has.
    fn row_len_max(&self) -> usize {
        (0..self.len()).map(|state| self.range(state).len()).max().unwrap_or(0)
    }

    /// The most entries that any column has.
    fn column_len_max(&self) -> usize {
        let mut counts = vec![0_usize; self.len()];
        self.columns.iter().for_each(|column| counts[*column as usize] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// One step of the uniformized chain: `after = before (I + Q / rate)`. Probabilities up to `cutoff` are left out, and given back
    /// added up. None where a state with more is left faster than `rate`; then `after` means nothing.
    pub(crate) fn step(&self, rate: f64, before: &[f64], after: &mut [f64], cutoff: f64) -> Option<f64> {
        after.fill(0.0);
        let mut lost = 0.0;
        let mut start = 0;
        for (state, (probability, end)) in before.iter().zip(&self.ends).enumerate() {
            let range = start..*end;
            start = *end;
            if *probability <= cutoff {
                lost += probability;
                continue;
            }
            let exit = self.exits[state];
            if exit > rate {
                return None;
            }
            let share = probability / rate;
            after[state] += share * (rate - exit);
            for (column, rate) in self.columns[range.clone()].iter().zip(&self.rates[range]) {
                after[*column as usize] += share * rate;
            }
        }
        Some(lost)
    }
}
