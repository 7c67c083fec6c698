//! Sums over runs of what places and measures are at each instant.
//!
//! A run writes down only its changes, at the instant from which on they count: the sums over time are taken once, at the end. So an
//! instant costs a run nothing where nothing happens. Sums of whole numbers are exact, whatever their order.

use super::{estimate::Sums, stack::StackProgram, state::Watch};

/// The instants that are asked for, in rising order.
#[derive(Clone, Debug)]
pub(super) struct Instants {
    times: Vec<f64>,
    /// How many a unit of time has, if they are evenly spaced.
    density: f64,
}

impl Instants {
    /// Rising times.
    pub fn new(times: Vec<f64>) -> Self {
        let span = times[times.len() - 1] - times[0];
        let density = if span > 0.0 { (times.len() - 1) as f64 / span } else { 0.0 };
        let even = times.iter().enumerate().all(|(index, time)| ((time - times[0]) * density - index as f64).abs() < 0.5);
        Self { density: if even { density } else { 0.0 }, times }
    }

    pub fn count(&self) -> usize {
        self.times.len()
    }

    pub fn times(&self) -> &[f64] {
        &self.times
    }

    pub fn last(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    /// The first instant at or behind `time`, or how many there are; `from` is not behind it.
    #[inline]
    pub fn index(&self, time: f64, from: usize) -> usize {
        if self.density == 0.0 {
            return from + self.times[from..].partition_point(|instant| *instant < time);
        }
        // Where even spacing says; rounding may be off by one.
        let guess = ((time - self.times[0]) * self.density).max(0.0) as usize;
        let mut index = guess.clamp(from, self.times.len());
        while index > from && self.times[index - 1] >= time {
            index -= 1;
        }
        while index < self.times.len() && self.times[index] < time {
            index += 1;
        }
        index
    }
}

/// What is looked at: a place's tokens have the first indices, then come measures.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub instants: Instants,
    pub initial: Vec<u32>,
    pub measures: Vec<StackProgram>,
    /// For each transition the measures that its firing may change.
    pub touched: Vec<Vec<u32>>,
}

impl Plan {
    fn columns(&self) -> usize {
        self.initial.len() + self.measures.len()
    }
}

/// Changes of a value and of its square.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    value: f64,
    square: f64,
}

/// The changes of many runs, and what is needed of the present one.
#[derive(Clone, Debug)]
pub(super) struct Tally<'a> {
    plan: &'a Plan,
    /// `[instants, columns]`.
    changes: Vec<Change>,
    /// Smallest and largest value of each column.
    pub ranges: Vec<(f64, f64)>,
    pub runs: u64,
    /// The instant from which on what happens now counts.
    index: usize,
    /// Present values of the measures.
    values: Vec<f64>,
    /// Measures to look at when the marking has settled.
    dirty: Vec<u32>,
    stack: Vec<f64>,
}

impl<'a> Tally<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let columns = plan.columns();
        Self {
            plan,
            changes: vec![Change::default(); plan.instants.times.len() * columns],
            ranges: vec![(f64::INFINITY, f64::NEG_INFINITY); columns],
            runs: 0,
            index: 0,
            values: vec![0.0; plan.measures.len()],
            dirty: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// A run begins in the first marking, with which nothing has happened yet.
    pub fn begin(&mut self, marking: &[u32]) {
        self.runs += 1;
        self.index = 0;
        for (column, tokens) in self.plan.initial.iter().enumerate() {
            self.change(column, 0.0, f64::from(*tokens));
        }
        for measure in 0..self.values.len() {
            let value = self.plan.measures[measure].value(marking, &mut self.stack);
            self.values[measure] = value;
            self.change(self.plan.initial.len() + measure, 0.0, value);
        }
        self.dirty.clear();
    }

    /// The marking has settled: time passes in it.
    #[inline]
    pub fn settled(&mut self, marking: &[u32]) {
        while let Some(measure) = self.dirty.pop() {
            let value = self.plan.measures[measure as usize].value(marking, &mut self.stack);
            let before = std::mem::replace(&mut self.values[measure as usize], value);
            if value != before {
                self.change(self.plan.initial.len() + measure as usize, before, value);
            }
        }
    }

    /// The present value of a measure.
    pub fn value(&self, measure: usize) -> f64 {
        self.values[measure]
    }

    /// The instant from which on what happens now counts.
    pub fn index(&self) -> usize {
        self.index
    }

    #[inline]
    fn change(&mut self, column: usize, before: f64, after: f64) {
        let (low, high) = &mut self.ranges[column];
        (*low, *high) = (low.min(after), high.max(after));
        if self.index < self.plan.instants.times.len() {
            let change = &mut self.changes[self.index * self.plan.columns() + column];
            change.value += after - before;
            change.square += (after - before) * (after + before);
        }
    }

    /// Adds the runs of another tally of the same plan.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for (own, theirs) in self.changes.iter_mut().zip(&other.changes) {
            own.value += theirs.value;
            own.square += theirs.square;
        }
        for (own, theirs) in self.ranges.iter_mut().zip(&other.ranges) {
            *own = (own.0.min(theirs.0), own.1.max(theirs.1));
        }
    }

    /// Of each column the sums at each instant.
    pub fn sums(&self) -> Vec<Vec<Sums>> {
        let columns = self.plan.columns();
        let column = |column: usize| {
            let mut sums = Sums { runs: self.runs as f64, value: 0.0, square: 0.0 };
            let instants = 0..self.plan.instants.times.len();
            let at = |instant: usize| {
                let change = self.changes[instant * columns + column];
                sums.value += change.value;
                sums.square += change.square;
                sums
            };
            instants.map(at).collect()
        };
        (0..columns).map(column).collect()
    }
}

impl Watch for Tally<'_> {
    #[inline]
    fn at(&mut self, time: f64) {
        self.index = self.plan.instants.index(time, self.index);
    }

    #[inline]
    fn changed(&mut self, place: u32, before: u32, after: u32) {
        self.change(place as usize, f64::from(before), f64::from(after));
    }

    #[inline]
    fn fired(&mut self, transition: u32, _: f64, _: usize) {
        for measure in &self.plan.touched[transition as usize] {
            if !self.dirty.contains(measure) {
                self.dirty.push(*measure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_counts_from_the_next_instant_on() {
        for times in [vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 0.1, 2.0, 30.0], vec![5.0], vec![0.0, 1.0, 2.0000001, 3.0, 4.0]] {
            let instants = Instants::new(times.clone());
            for step in 0..400 {
                let time = f64::from(step) * 0.1;
                let expected = times.iter().position(|instant| *instant >= time).unwrap_or(times.len());
                for from in 0..=expected {
                    assert_eq!(instants.index(time, from), expected, "{time} in {times:?} from {from}");
                }
            }
        }
    }
}
