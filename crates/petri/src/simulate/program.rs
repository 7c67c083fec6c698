//! A net compiled for simulation: dense arrays, and for each transition the list of those whose enabling its firing may change.

use super::stack::StackProgram;
use crate::{
    distribution::{Distribution, Sampler},
    expression::Expression,
    net::{self, Arc, Delay, Firing, Memory, Net, Servers, Transition},
};

/// A place and the tokens that it may have for a transition to be enabled: at least `least`, and at most `span` more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub place: u32,
    pub least: u32,
    pub span: u32,
}

/// What firing does to a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    pub place: u32,
    pub change: i32,
}

/// How a transition fires.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// At once; its place in the order of priorities.
    Immediate { rank: u32 },
    /// When a clock runs out.
    Timed(Timed),
}

/// A timed transition's clocks.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    /// Its index among the timed ones.
    pub slot: u32,
    pub delay: Draw,
    pub memory: Memory,
    /// Where its clocks are if it may have several; none for a single server.
    pub pool: Option<u32>,
    pub priority: u32,
    pub weight: f64,
    /// Of how many of a run's delays, from the first on, the sum is kept.
    pub counted: u32,
}

impl Timed {
    /// Whether what is left of a clock does not depend on how long it has run.
    pub fn forgets(&self) -> bool {
        match self.delay {
            Draw::Rate(_) => true,
            Draw::Law(Sampler::Exponential(_)) => !matches!(self.memory, Memory::RepeatIdentical),
            Draw::Law(_) => false,
        }
    }
}

/// Where a delay comes from.
#[derive(Clone, Debug)]
pub(super) enum Draw {
    Law(Sampler),
    /// An exponential delay of this rate in the present marking.
    Rate(StackProgram),
}

/// A transition.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// What has to hold of places: inputs, tests and inhibitors.
    pub conditions: Vec<Condition>,
    /// Place and weight of the inputs, whose quotients are the degree of a transition with several servers; of others empty.
    pub inputs: Vec<(u32, u32)>,
    pub guard: Option<StackProgram>,
    /// Most clocks at once.
    pub servers: u32,
    pub effects: Vec<Effect>,
    /// Transitions to look at again after firing, among them the transition itself.
    pub affects: Vec<u32>,
    pub kind: Kind,
}

/// A compiled net.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub initial: Vec<u32>,
    pub codes: Vec<Code>,
    /// The transition of each slot.
    pub timed: Vec<u32>,
    /// Immediate transitions from the highest priority on.
    pub ranks: Vec<Ranked>,
    pub pools: usize,
    /// Whether two clocks may run out at the same instant with a probability above 0.
    pub has_ties: bool,
    /// What places and transitions are called, for whoever is told of one.
    pub places: Vec<String>,
    pub transitions: Vec<String>,
}

/// An immediate transition in the order of priorities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    pub transition: u32,
    pub weight: f64,
    /// The first rank of a lower priority.
    pub class_end: u32,
}

impl Program {
    pub fn new(net: &Net) -> Self {
        let ranks = ranked(net);
        let mut rank_of = vec![0; net.transitions().len()];
        for (rank, ranked) in ranks.iter().enumerate() {
            rank_of[ranked.transition as usize] = rank as u32;
        }
        let askers = askers(net);
        let (mut timed, mut pools) = (Vec::new(), 0);
        let mut codes = Vec::new();
        for (index, transition) in net.transitions().iter().enumerate() {
            let effects = effects(transition);
            let affects = affects(&askers, index, &effects);
            let kind = match &transition.firing {
                Firing::Immediate { .. } => Kind::Immediate { rank: rank_of[index] },
                Firing::Timed(own) => {
                    timed.push(index as u32);
                    let pool = (servers(transition) > 1).then_some(pools as u32);
                    pools += usize::from(pool.is_some());
                    let delay = match &own.delay {
                        Delay::Distribution(distribution) => Draw::Law(Sampler::new(distribution)),
                        Delay::Rate(rate) => Draw::Rate(StackProgram::new(rate)),
                    };
                    let slot = timed.len() as u32 - 1;
                    let (memory, priority, weight) = (own.memory, own.priority, own.weight);
                    Kind::Timed(Timed { slot, delay, memory, pool, priority, weight, counted: 0 })
                }
            };
            codes.push(Code {
                conditions: conditions(transition),
                inputs: if servers(transition) > 1 { weights(transition) } else { Vec::new() },
                guard: transition.guard.as_ref().map(StackProgram::new),
                servers: servers(transition),
                effects,
                affects,
                kind,
            });
        }
        let has_ties = net.transitions().iter().any(may_tie);
        let places = net.places().iter().map(|place| place.name.clone()).collect();
        let transitions = net.transitions().iter().map(|transition| transition.name.clone()).collect();
        Self { initial: net.initial(), codes, timed, ranks, pools, has_ties, places, transitions }
    }
}

impl Program {
    /// Keeps the sum of the first `delays` delays of a slot in every run.
    pub fn count_delays(&mut self, slot: usize, delays: u32) {
        if let Kind::Timed(timed) = &mut self.codes[self.timed[slot] as usize].kind {
            timed.counted = delays;
        }
    }
}

fn conditions(transition: &Transition) -> Vec<Condition> {
    let at_least = |arc: &Arc| Condition { place: arc.place as u32, least: arc.weight, span: u32::MAX - arc.weight };
    let below = |arc: &Arc| Condition { place: arc.place as u32, least: 0, span: arc.weight - 1 };
    let needs = transition.inputs.iter().chain(&transition.tests).map(at_least);
    needs.chain(transition.inhibitors.iter().map(below)).collect()
}

fn weights(transition: &Transition) -> Vec<(u32, u32)> {
    transition.inputs.iter().map(|arc| (arc.place as u32, arc.weight)).collect()
}

/// Transitions that ask for a place that firing changes, and the one that fires.
fn affects(askers: &[Vec<u32>], fired: usize, effects: &[Effect]) -> Vec<u32> {
    let mut others: Vec<u32> = effects.iter().flat_map(|effect| askers[effect.place as usize].iter().copied()).collect();
    others.push(fired as u32);
    others.sort_unstable();
    others.dedup();
    others
}

fn rate(timed: &net::Timed) -> Option<&Expression> {
    match &timed.delay {
        Delay::Rate(rate) => Some(rate),
        Delay::Distribution(_) => None,
    }
}

fn servers(transition: &Transition) -> u32 {
    match transition.timed() {
        Some(timed) if !transition.inputs.is_empty() => match timed.servers {
            Servers::Count(count) => count.get(),
            Servers::Infinite => u32::MAX,
        },
        _ => 1,
    }
}

fn effects(transition: &Transition) -> Vec<Effect> {
    let mut places: Vec<usize> = transition.inputs.iter().chain(&transition.outputs).map(|arc| arc.place).collect();
    places.sort_unstable();
    places.dedup();
    let effects = places.into_iter().map(|place| Effect { place: place as u32, change: transition.effect(place) as i32 });
    effects.filter(|effect| effect.change != 0).collect()
}

/// For each place the transitions whose enabling or rate asks for it.
fn askers(net: &Net) -> Vec<Vec<u32>> {
    let mut askers = vec![Vec::new(); net.places().len()];
    for (index, transition) in net.transitions().iter().enumerate() {
        let arcs = transition.inputs.iter().chain(&transition.tests).chain(&transition.inhibitors).map(|arc| arc.place);
        let rate = transition.timed().and_then(rate);
        let expressions = transition.guard.iter().chain(rate).flat_map(|expression| expression.places());
        for place in arcs.chain(expressions) {
            askers[place].push(index as u32);
        }
    }
    askers
}

fn ranked(net: &Net) -> Vec<Ranked> {
    let immediates = net.transitions().iter().enumerate().filter_map(|(index, transition)| match transition.firing {
        Firing::Immediate { priority, weight } => Some((index as u32, priority, weight)),
        Firing::Timed(_) => None,
    });
    let mut immediates: Vec<(u32, u32, f64)> = immediates.collect();
    immediates.sort_by_key(|(_, priority, _)| std::cmp::Reverse(*priority));
    let class_end = |priority: u32| immediates.partition_point(|(_, other, _)| *other >= priority) as u32;
    let ranked = |(transition, priority, weight): &(u32, u32, f64)| Ranked {
        transition: *transition,
        weight: *weight,
        class_end: class_end(*priority),
    };
    immediates.iter().map(ranked).collect()
}

/// Whether the transition's clocks run out at some instants with a probability above 0.
fn may_tie(transition: &Transition) -> bool {
    transition.timed().is_some_and(|timed| match &timed.delay {
        Delay::Distribution(Distribution::Deterministic(_) | Distribution::Empirical(_)) => true,
        Delay::Distribution(_) => timed.memory == Memory::RepeatIdentical,
        Delay::Rate(_) => false,
    })
}
