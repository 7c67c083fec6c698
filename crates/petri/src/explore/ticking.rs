//! States of a net in which general clocks run on ticks, found as probability comes to them: what happens between two ticks, and what
//! at one.
//!
//! What a state does is worked out when it first has a probability that counts. A net of four cores has most of its states where all
//! four are busy, and where that hardly ever happens they are never met.

use super::{Clock, DUE, ExploreError, Frontier, Mass, Moment, Rules, State, clock::Ticks};
use crate::states::States;

/// The row of a state that was not worked out yet.
const UNKNOWN: (u32, u32) = (u32::MAX, u32::MAX);

/// For each state, states that follow and a number for each.
#[derive(Default)]
struct Rows {
    /// Where a state's row begins and ends.
    spans: Vec<(u32, u32)>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    fn is_known(&self, state: usize) -> bool {
        self.spans.get(state).is_some_and(|span| *span != UNKNOWN)
    }

    /// Entries of one column are added up; `row` comes back empty.
    fn set(&mut self, state: usize, row: &mut Vec<(u32, f64)>) {
        row.sort_unstable_by_key(|(column, _)| *column);
        let start = self.columns.len();
        for (column, value) in row.drain(..) {
            if self.columns.len() > start && self.columns.last() == Some(&column) {
                *self.values.last_mut().expect("a column has its value") += value;
            } else {
                self.columns.push(column);
                self.values.push(value);
            }
        }
        if self.spans.len() <= state {
            self.spans.resize(state + 1, UNKNOWN);
        }
        let at = |index: usize| u32::try_from(index).expect("rows have fewer entries than a u32 counts");
        self.spans[state] = (at(start), at(self.columns.len()));
    }

    fn row(&self, state: usize) -> (&[u32], &[f64]) {
        let (start, end) = self.spans[state];
        let range = start as usize..end as usize;
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// Half of a cell of the ticks' grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// From a time of the grid to the middle of the cell.
    First,
    /// From the middle of the cell to the next time of the grid.
    Second,
}

impl Half {
    fn moment(self) -> Moment {
        match self {
            Self::First => Moment::BeforeMiddle,
            Self::Second => Moment::AfterMiddle,
        }
    }
}

/// Exponential transitions in half a cell: rates, and the rate at which a state is left.
#[derive(Default)]
struct Rates {
    rows: Rows,
    exits: Vec<f64>,
}

/// A net's states and moves, as far as they were needed.
pub(crate) struct Ticking<'a> {
    frontier: Frontier<'a>,
    /// By half of a cell.
    rates: [Rates; 2],
    exit_max: f64,
    /// Probabilities at a tick, on the grid and in the middle of a cell.
    on_grid: Rows,
    in_middle: Rows,
    /// Whether a delay has fixed values, and whether one has a density.
    has_fixed: bool,
    has_density: bool,
    row: Vec<(u32, f64)>,
}

impl<'a> Ticking<'a> {
    /// The states at time 0.
    pub fn new(rules: Rules<'a>, states_max: usize) -> Result<Self, ExploreError> {
        let (has_fixed, has_density) = rules.kinds_on_ticks();
        let frontier = Frontier::new(rules, states_max)?;
        let rates = [Rates::default(), Rates::default()];
        let (on_grid, in_middle) = (Rows::default(), Rows::default());
        Ok(Self { frontier, rates, exit_max: 0.0, on_grid, in_middle, has_fixed, has_density, row: Vec::new() })
    }

    /// Probabilities at time 0.
    pub fn first(&self) -> Mass {
        Mass::of(&self.frontier.initial, self.states().len())
    }

    /// The rules of the net.
    pub fn rules(&self) -> &Rules<'a> {
        &self.frontier.rules
    }

    /// All states that were met.
    pub fn states(&self) -> &States {
        &self.frontier.states
    }

    /// The largest rate at which a state is left whose moves are known.
    pub fn exit_max(&self) -> f64 {
        self.exit_max
    }

    /// Whether no clock was met so far that is known to a cell only: then ticks add no error, at any time.
    pub fn is_exact(&self) -> bool {
        !self.has_density && !self.frontier.has_cells
    }

    /// Whether something can fire at ticks on the grid.
    pub fn has_grid_ticks(&self) -> bool {
        self.has_fixed
    }

    /// Works out how the states with more than `cutoff` are left between ticks.
    pub fn meet(&mut self, half: Half, mass: &Mass, cutoff: f64) -> Result<(), ExploreError> {
        for state in mass.first..mass.values.len() {
            if mass.values[state] > cutoff && !self.rates[half as usize].rows.is_known(state) {
                self.find_rates(half, state)?;
            }
        }
        Ok(())
    }

    /// One step of the uniformized chain, `after = before (I + Q / rate)`. Probabilities up to `cutoff` are left out, and given back
    /// added up. If [`Self::exit_max`] is above `rate` behind it, `after` means nothing.
    pub fn step(&mut self, half: Half, rate: f64, before: &Mass, after: &mut Mass, cutoff: f64) -> Result<f64, ExploreError> {
        after.clear(self.states().len());
        let mut lost = 0.0;
        for (state, probability) in before.values.iter().enumerate().skip(before.first) {
            if *probability <= cutoff {
                lost += probability;
                continue;
            }
            if !self.rates[half as usize].rows.is_known(state) {
                self.find_rates(half, state)?;
                after.grow(self.states().len());
            }
            let share = probability / rate;
            let Rates { rows, exits } = &self.rates[half as usize];
            after.add(state, share * (rate - exits[state]));
            let (columns, rates) = rows.row(state);
            after.add_row(share, columns, rates);
        }
        Ok(lost)
    }

    /// What a tick on the grid makes of the probabilities; up to `cutoff` they are left out, and given back added up.
    pub fn tick_on_grid(&mut self, before: &Mass, after: &mut Mass, cutoff: f64) -> Result<f64, ExploreError> {
        let mut rows = std::mem::take(&mut self.on_grid);
        let lost = self.tick(Moment::Grid, &mut rows, before, after, cutoff);
        self.on_grid = rows;
        lost
    }

    /// What a tick in the middle of a cell makes of the probabilities, as [`Self::tick_on_grid`].
    pub fn tick_in_middle(&mut self, before: &Mass, after: &mut Mass, cutoff: f64) -> Result<f64, ExploreError> {
        let mut rows = std::mem::take(&mut self.in_middle);
        let lost = self.tick(Moment::Middle, &mut rows, before, after, cutoff);
        self.in_middle = rows;
        lost
    }

    fn tick(&mut self, moment: Moment, rows: &mut Rows, before: &Mass, after: &mut Mass, cutoff: f64) -> Result<f64, ExploreError> {
        after.clear(self.states().len());
        let mut lost = 0.0;
        for (state, mass) in before.values.iter().enumerate().skip(before.first) {
            if *mass <= cutoff {
                lost += mass;
                continue;
            }
            if !rows.is_known(state) {
                self.frontier.tick(moment, state, &mut self.row)?;
                rows.set(state, &mut self.row);
                after.grow(self.states().len());
            }
            let (columns, probabilities) = rows.row(state);
            after.add_row(*mass, columns, probabilities);
        }
        Ok(lost)
    }

    fn find_rates(&mut self, half: Half, state: usize) -> Result<(), ExploreError> {
        self.frontier.rates(state, half.moment(), &mut self.row)?;
        self.row.retain(|(column, _)| *column as usize != state);
        let exit = self.row.iter().map(|(_, rate)| rate).sum();
        let Rates { rows, exits } = &mut self.rates[half as usize];
        rows.set(state, &mut self.row);
        if exits.len() <= state {
            exits.resize(state + 1, 0.0);
        }
        exits[state] = exit;
        self.exit_max = self.exit_max.max(exit);
        Ok(())
    }
}

impl Frontier<'_> {
    /// Puts what a state becomes at a tick on the grid or in the middle of a cell into `row`.
    fn tick(&mut self, moment: Moment, number: usize, row: &mut Vec<(u32, f64)>) -> Result<(), ExploreError> {
        let mut state = State::default();
        self.rules.unpack(self.states.get(number), &mut state);
        if self.rules.is_over(&state.marking) {
            row.push((number as u32, 1.0));
            return Ok(());
        }
        let mut outcomes = vec![(1.0, state)];
        for slot in 0..self.rules.slots.len() {
            if let Clock::Ticks(ticks) = &self.rules.clocks[self.rules.slots[slot].transition] {
                outcomes = aged(&self.rules, slot, (ticks, moment), outcomes);
            }
        }
        self.rules.settle(&mut outcomes, moment)?;
        for (probability, mut state) in outcomes {
            let next = self.number(&mut state)?;
            row.push((next, probability));
        }
        Ok(())
    }
}

/// Every clock of a slot that runs and counts the tick gets older, or is due.
fn aged(rules: &Rules, slot: usize, (ticks, moment): (&Ticks, Moment), mut outcomes: Vec<(f64, State)>) -> Vec<(f64, State)> {
    let running = outcomes.first().map_or(0, |(_, state)| rules.running_clocks(slot, state).len());
    for clock in 0..running {
        let mut split = Vec::with_capacity(outcomes.len() * 2);
        for (probability, mut state) in outcomes {
            let age = state.clocks[slot][clock];
            let Some(hazard) = ticks.hazard(age, moment) else {
                split.push((probability, state));
                continue;
            };
            if hazard > 0.0 {
                let mut due = state.clone();
                due.clocks[slot][clock] = DUE;
                split.push((probability * hazard, due));
            }
            if hazard < 1.0 {
                state.clocks[slot][clock] = Ticks::older(age);
                split.push((probability * (1.0 - hazard), state));
            }
        }
        outcomes = split;
    }
    outcomes.iter_mut().for_each(|(_, state)| rules.sort_clocks(slot, state));
    outcomes
}
