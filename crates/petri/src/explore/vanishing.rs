//! States in which no time passes: where they lead, and with which probabilities.
//!
//! They are taken out one by one. What comes into one is sent where it would go, divided by the probability of going on at all, which
//! is a sum and not a difference, so that loops lose no digits. A set of them that is never left has no meaning, and is refused.

use std::collections::BTreeMap;

use super::{
    clock::{Clock, Moment},
    rules::{DUE, Rules, State},
};
use crate::{
    measure::Impulse,
    net::{Firing, Timed},
};

/// Most states without time between two with it.
pub const VANISHING_MAX: usize = 5_000;

/// Firings without time that do not end as they should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VanishingError {
    /// Once there, only immediate transitions fire, for ever.
    #[error("immediate transitions fire for ever, without time passing: {0} is one of them")]
    Endless(String),
    /// More than [`VANISHING_MAX`] states.
    #[error("more than {VANISHING_MAX} states follow each other without time passing, {0} among their transitions")]
    TooMany(String),
    /// A place holds more than `u32::MAX`.
    #[error("transition {0} puts more tokens into a place than can be counted")]
    TooManyTokens(String),
}

impl Rules<'_> {
    /// The states that `outcomes` come to before time passes, with their probabilities; they replace `outcomes`.
    pub fn settle(&self, outcomes: &mut Vec<(f64, State)>, moment: Moment) -> Result<(), VanishingError> {
        if outcomes.iter().all(|(_, state)| !self.is_vanishing(state)) {
            return Ok(());
        }
        let (vanishing, tangible): (Vec<_>, Vec<_>) = outcomes.drain(..).partition(|(_, state)| self.is_vanishing(state));
        outcomes.extend(tangible);
        let mut elimination = Elimination { rules: self, moment, numbers: BTreeMap::new(), nodes: Vec::new(), tangible: BTreeMap::new() };
        let entries = vanishing.into_iter().map(|(probability, state)| Ok((elimination.number(state)?, probability)));
        let entries = entries.collect::<Result<Vec<_>, VanishingError>>()?;
        elimination.explore()?;
        elimination.eliminate(entries, outcomes)
    }

    /// What firings without time earn on the way from `outcomes` to where time passes, and how many states they pass.
    pub fn earned_without_time(
        &self,
        outcomes: Vec<(f64, State)>,
        impulse: &Impulse,
        moment: Moment,
    ) -> Result<(f64, usize), VanishingError> {
        let mut elimination = Elimination { rules: self, moment, numbers: BTreeMap::new(), nodes: Vec::new(), tangible: BTreeMap::new() };
        let vanishing = outcomes.into_iter().filter(|(_, state)| self.is_vanishing(state));
        let entries = vanishing.map(|(probability, state)| Ok((elimination.number(state)?, probability)));
        let entries = entries.collect::<Result<Vec<_>, VanishingError>>()?;
        elimination.explore()?;
        let mut earned: Vec<f64> = elimination.nodes.iter().map(|node| self.earned_next(&node.state, impulse)).collect();
        elimination.take_out(&mut earned)?;
        // Each node leads to lower ones, whose sums are whole already.
        for number in 0..earned.len() {
            let later: f64 = elimination.nodes[number].vanishing.iter().map(|(to, probability)| probability * earned[*to]).sum();
            earned[number] += later;
        }
        Ok((entries.iter().map(|(number, probability)| probability * earned[*number]).sum(), earned.len()))
    }

    /// What the next firing without time earns on average.
    fn earned_next(&self, state: &State, impulse: &Impulse) -> f64 {
        let choices = self.enabled_immediates(state);
        let total: f64 = choices.iter().map(|(.., weight)| weight).sum();
        let asked = choices.iter().filter(|(transition, ..)| *transition == impulse.transition);
        asked.map(|(.., weight)| weight / total * impulse.earned(&state.marking)).sum()
    }

    fn is_vanishing(&self, state: &State) -> bool {
        if self.is_over(&state.marking) {
            return false;
        }
        (0..self.slots.len()).any(|slot| self.running_clocks(slot, state).contains(&DUE))
            || self.immediates.iter().any(|transition| self.net.degree(*transition, &state.marking) > 0)
    }

    /// The states one firing further, with their probabilities.
    fn next_without_time(&self, state: &State, moment: Moment, found: &mut Vec<(f64, State)>) -> Result<(), VanishingError> {
        let mut choices = self.enabled_immediates(state);
        if choices.is_empty() {
            choices = self.due(state);
        }
        let total: f64 = choices.iter().map(|(.., weight)| weight).sum();
        for (transition, clock, weight) in choices {
            let fired = self.fire(state, transition, clock, weight / total, moment, found);
            fired.ok_or_else(|| VanishingError::TooManyTokens(self.net.transitions()[transition].name.clone()))?;
        }
        Ok(())
    }

    /// Enabled immediate transitions of the highest priority, and their weights.
    fn enabled_immediates(&self, state: &State) -> Vec<(usize, Option<usize>, f64)> {
        let mut found = Vec::new();
        let mut highest = None;
        for transition in &self.immediates {
            let Firing::Immediate { priority, weight } = self.net.transitions()[*transition].firing else { continue };
            if highest.is_some_and(|highest| highest != priority) {
                break;
            }
            if self.net.degree(*transition, &state.marking) > 0 {
                highest = Some(priority);
                found.push((*transition, None, weight));
            }
        }
        found
    }

    /// Clocks that have run out and may fire next: of the highest priority, unless a density is among them. With a density, two clocks
    /// run out in one instant with probability 0; here both did within a cell, and each is the first one as likely.
    fn due(&self, state: &State) -> Vec<(usize, Option<usize>, f64)> {
        let mut found = Vec::new();
        let mut is_fixed = true;
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(Timed { priority, weight, .. }) = self.net.transitions()[slot.transition].timed() else { continue };
            let due = self.running_clocks(index, state).iter().enumerate().filter(|(_, clock)| **clock == DUE);
            let count = found.len();
            found.extend(due.map(|(clock, _)| (*priority, (slot.transition, Some(clock), *weight))));
            let has_density = matches!(&self.clocks[slot.transition], Clock::Ticks(ticks) if !ticks.is_fixed());
            is_fixed &= count == found.len() || !has_density;
        }
        if !is_fixed {
            return found.into_iter().map(|(_, (transition, clock, _))| (transition, clock, 1.0)).collect();
        }
        let highest = found.iter().map(|(priority, _)| *priority).max();
        found.into_iter().filter(|(priority, _)| Some(*priority) == highest).map(|(_, choice)| choice).collect()
    }
}

/// A vanishing state's ways on.
#[derive(Default)]
struct Node {
    state: State,
    /// To vanishing states, by number, and to tangible ones.
    vanishing: Vec<(usize, f64)>,
    tangible: Vec<(usize, f64)>,
}

struct Elimination<'a, 'b> {
    rules: &'a Rules<'b>,
    moment: Moment,
    numbers: BTreeMap<State, usize>,
    nodes: Vec<Node>,
    tangible: BTreeMap<State, usize>,
}

impl Elimination<'_, '_> {
    fn number(&mut self, state: State) -> Result<usize, VanishingError> {
        let next = self.nodes.len();
        if next >= VANISHING_MAX {
            return Err(VanishingError::TooMany(self.a_transition(&state)));
        }
        let number = *self.numbers.entry(state.clone()).or_insert(next);
        if number == next {
            self.nodes.push(Node { state, ..Node::default() });
        }
        Ok(number)
    }

    fn a_transition(&self, state: &State) -> String {
        let mut choices = self.rules.enabled_immediates(state);
        choices.extend(self.rules.due(state));
        choices.first().map_or_else(String::new, |(transition, ..)| self.rules.net.transitions()[*transition].name.clone())
    }

    fn explore(&mut self) -> Result<(), VanishingError> {
        let mut found = Vec::new();
        let mut number = 0;
        while number < self.nodes.len() {
            let state = self.nodes[number].state.clone();
            self.rules.next_without_time(&state, self.moment, &mut found)?;
            for (probability, next) in found.drain(..) {
                if self.rules.is_vanishing(&next) {
                    let next = self.number(next)?;
                    add(&mut self.nodes[number].vanishing, next, probability);
                } else {
                    let count = self.tangible.len();
                    let next = *self.tangible.entry(next).or_insert(count);
                    add(&mut self.nodes[number].tangible, next, probability);
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// Takes the nodes out from the last to the first, so that each leads to lower ones and to tangible states only. What each `earned` goes
    /// the same way: then it is what is earned from there until a lower node or a tangible state is met.
    fn take_out(&mut self, earned: &mut [f64]) -> Result<(), VanishingError> {
        for number in (0..self.nodes.len()).rev() {
            self.nodes[number].vanishing.retain(|(to, _)| *to != number);
            let node = &self.nodes[number];
            let on: f64 = node.vanishing.iter().chain(&node.tangible).map(|(_, probability)| probability).sum();
            if on <= 0.0 {
                return Err(VanishingError::Endless(self.a_transition(&node.state)));
            }
            let node = Node {
                state: State::default(),
                vanishing: node.vanishing.iter().map(|(to, probability)| (*to, probability / on)).collect(),
                tangible: node.tangible.iter().map(|(to, probability)| (*to, probability / on)).collect(),
            };
            earned[number] /= on;
            for (lower, before) in self.nodes[..number].iter_mut().enumerate() {
                let Some(index) = before.vanishing.iter().position(|(to, _)| *to == number) else { continue };
                let (_, into) = before.vanishing.swap_remove(index);
                earned[lower] += into * earned[number];
                node.vanishing.iter().for_each(|(to, probability)| add(&mut before.vanishing, *to, into * probability));
                node.tangible.iter().for_each(|(to, probability)| add(&mut before.tangible, *to, into * probability));
            }
            self.nodes[number] = node;
        }
        Ok(())
    }

    /// Then the entries lead to tangible states only.
    fn eliminate(mut self, entries: Vec<(usize, f64)>, outcomes: &mut Vec<(f64, State)>) -> Result<(), VanishingError> {
        let mut mass = vec![0.0; self.nodes.len()];
        entries.iter().for_each(|(number, probability)| mass[*number] += probability);
        let mut nothing = vec![0.0; self.nodes.len()];
        self.take_out(&mut nothing)?;
        let mut reached = vec![0.0; self.tangible.len()];
        for number in (0..self.nodes.len()).rev() {
            let arrived = mass[number];
            let node = &self.nodes[number];
            node.vanishing.iter().for_each(|(to, probability)| mass[*to] += arrived * probability);
            node.tangible.iter().for_each(|(to, probability)| reached[*to] += arrived * probability);
        }
        outcomes
            .extend(self.tangible.into_iter().filter(|(_, number)| reached[*number] > 0.0).map(|(state, number)| (reached[number], state)));
        Ok(())
    }
}

fn add(entries: &mut Vec<(usize, f64)>, to: usize, probability: f64) {
    match entries.iter_mut().find(|(other, _)| *other == to) {
        Some((_, sum)) => *sum += probability,
        None => entries.push((to, probability)),
    }
}
