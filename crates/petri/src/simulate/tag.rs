//! How long a token takes from one point of the net to another, seen from the token.
//!
//! Tokens of a place stand in a queue. A firing takes the first one that no older clock of its transition holds, and the tokens that
//! it makes carry on when the tagged time began. Responses of one run depend on each other: their spread is that between runs.

use std::collections::VecDeque;

use super::{
    estimate::{Estimate, Interval, Sums},
    state::Watch,
    tally::Instants,
};
use crate::net::{Arc, Net};

/// From where to where the time is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// When it begins.
    pub from: TagStart,
    /// The place whose reaching ends it, by its index.
    pub to: usize,
    /// Whose time goes on where a firing takes several tokens.
    pub joins: Joins,
}

/// Whose time goes on where a firing takes several tokens whose times have begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Joins {
    /// That of the first one, in the order of the transition's inputs.
    #[default]
    First,
    /// That which began last: a result is as old as the newest of what it is made of.
    Newest,
}

impl Tag {
    /// From there to this place; where a firing takes several tokens, the time of the first one goes on.
    pub fn new(from: TagStart, to: usize) -> Self {
        Self { from, to, joins: Joins::First }
    }
}

/// When a token's time begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagStart {
    /// When the clock of this transition starts that then fires, and makes it.
    Service(usize),
    /// When it comes into this place; of those that are there at first at time 0.
    Arrival(usize),
}

/// What the responses were.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Share of the responses that took at most each instant.
    pub cdf: Vec<Estimate>,
    /// What the share at each instant may be off: by the spread between the runs, and no less than if all responses were independent.
    pub half_widths: Vec<f64>,
    /// Their mean.
    pub mean: Estimate,
    /// How many there were.
    pub count: u64,
}

/// The tagged tokens of a run, and sums over runs.
#[derive(Clone, Debug)]
pub(super) struct Tags<'a> {
    plan: &'a TagPlan,
    now: f64,
    /// Of each place's tokens when their time began; not a number where it has not.
    queues: Vec<VecDeque<f64>>,
    responses: Vec<f64>,
    sums: TagSums,
}

/// What is to be known of the net.
#[derive(Clone, Debug)]
pub(super) struct TagPlan {
    tag: Tag,
    initial: Vec<u32>,
    /// Inputs and outputs of each transition.
    arcs: Vec<(Vec<Arc>, Vec<Arc>)>,
    instants: Instants,
}

/// Sums over runs: of a run, `n` is the number of its responses, and `c` that of those up to an instant.
#[derive(Clone, Debug, Default)]
struct TagSums {
    count: f64,
    squared_count: f64,
    time: f64,
    squared_time: f64,
    time_by_count: f64,
    /// At each instant the changes of `c`, `c^2` and `c n`.
    changes: Vec<[f64; 3]>,
    runs: f64,
}

impl TagPlan {
    pub fn new(net: &Net, tag: Tag, instants: Instants) -> Self {
        let arcs = net.transitions().iter().map(|transition| (transition.inputs.clone(), transition.outputs.clone())).collect();
        Self { tag, initial: net.initial(), arcs, instants }
    }
}

impl<'a> Tags<'a> {
    pub fn new(plan: &'a TagPlan) -> Self {
        let sums = TagSums { changes: vec![[0.0; 3]; plan.instants.count()], ..TagSums::default() };
        Self { plan, now: 0.0, queues: vec![VecDeque::new(); plan.initial.len()], responses: Vec::new(), sums }
    }

    pub fn begin(&mut self) {
        self.now = 0.0;
        for (place, (queue, tokens)) in self.queues.iter_mut().zip(&self.plan.initial).enumerate() {
            let began = if self.plan.tag.from == TagStart::Arrival(place) { 0.0 } else { f64::NAN };
            queue.clear();
            queue.extend(std::iter::repeat_n(began, *tokens as usize));
        }
    }

    /// Counts the run's responses.
    pub fn end(&mut self) {
        self.responses.sort_unstable_by(f64::total_cmp);
        let count = self.responses.len() as f64;
        let time: f64 = self.responses.iter().sum();
        let sums = &mut self.sums;
        let mut index = 0;
        for (before, response) in self.responses.drain(..).enumerate() {
            index = self.plan.instants.index(response, index);
            if let Some(changes) = sums.changes.get_mut(index) {
                let gained = (2 * before + 1) as f64;
                *changes = [changes[0] + 1.0, changes[1] + gained, changes[2] + count];
            }
        }
        sums.runs += 1.0;
        sums.count += count;
        sums.squared_count += count * count;
        sums.time += time;
        sums.squared_time += time * time;
        sums.time_by_count += time * count;
    }

    /// Adds the runs of another lane.
    pub fn add(&mut self, other: &Tags<'_>) {
        let (own, theirs) = (&mut self.sums, &other.sums);
        for (own, theirs) in own.changes.iter_mut().zip(&theirs.changes) {
            *own = [own[0] + theirs[0], own[1] + theirs[1], own[2] + theirs[2]];
        }
        own.runs += theirs.runs;
        own.count += theirs.count;
        own.squared_count += theirs.squared_count;
        own.time += theirs.time;
        own.squared_time += theirs.squared_time;
        own.time_by_count += theirs.time_by_count;
    }

    /// None where there was no response.
    pub fn response(&self, interval: Interval) -> Option<Response> {
        let sums = &self.sums;
        if sums.count == 0.0 {
            return None;
        }
        let mut reached = [0.0; 3];
        let few = interval.of_few(sums.runs.max(2.0));
        let ratio = |interval: Interval, value, square, by_count| {
            let value = Sums { runs: sums.runs, value, square };
            interval.ratio(value, Sums { runs: sums.runs, value: sums.count, square: sums.squared_count }, by_count)
        };
        let (mut cdf, mut half_widths) = (Vec::with_capacity(sums.changes.len()), Vec::with_capacity(sums.changes.len()));
        for changes in &sums.changes {
            reached = [reached[0] + changes[0], reached[1] + changes[1], reached[2] + changes[2]];
            let [share, between] = [interval, few].map(|interval| ratio(interval, reached[0], reached[1], reached[2]));
            let between = between.half_width();
            half_widths.push(between.max(interval.reach_of_share(share.value, sums.count)));
            cdf.push(interval.share(share, sums.runs));
        }
        Some(Response { cdf, half_widths, mean: ratio(few, sums.time, sums.squared_time, sums.time_by_count), count: sums.count as u64 })
    }
}

impl Watch for Tags<'_> {
    fn at(&mut self, time: f64) {
        self.now = time;
    }

    fn changed(&mut self, _: u32, _: u32, _: u32) {}

    fn fired(&mut self, transition: u32, started: f64, older: usize) {
        let TagPlan { tag, arcs, .. } = self.plan;
        let (inputs, outputs) = &arcs[transition as usize];
        let mut began = f64::NAN;
        for arc in inputs {
            let held = older * arc.weight as usize;
            for _ in 0..arc.weight {
                let queue = &mut self.queues[arc.place];
                let token = queue.remove(held.min(queue.len() - 1)).expect("an enabled transition has its tokens");
                began = match tag.joins {
                    Joins::First if began.is_nan() => token,
                    Joins::First => began,
                    // What is no number is not greater than any.
                    Joins::Newest => began.max(token),
                };
            }
        }
        if tag.from == TagStart::Service(transition as usize) {
            began = started;
        }
        for arc in outputs {
            for _ in 0..arc.weight {
                let mut token = began;
                if arc.place == tag.to && !began.is_nan() {
                    self.responses.push(self.now - began);
                    token = f64::NAN;
                } else if tag.from == TagStart::Arrival(arc.place) && began.is_nan() {
                    token = self.now;
                }
                self.queues[arc.place].push_back(token);
            }
        }
    }
}
