//! One token, followed through the net: where it stands, and how many tokens of its place are in front of it.
//!
//! The order is that of the simulator (`simulate::tag`): tokens of a place stand in a queue, and of a firing each clock holds those at its own place in the
//! order of the clocks, so that the oldest clock takes the first one. A state has two numbers behind its marking: where the token is, and what is in front of it.
//! Of clocks without a memory each is as likely to end first.

use super::rules::{State, Unsuited};
use crate::net::{Arc, Net};

/// Where the token is while it has not come yet; from 1 on it is in the place of the number before.
const NOWHERE: u32 = 0;

/// Numbers of a state that say where the token is.
pub(crate) const NUMBERS: usize = 2;

/// What becomes of a token that is followed, in each firing.
#[derive(Clone, Debug)]
pub(crate) struct Tagging {
    /// The place whose reaching ends it.
    to: usize,
    /// The place in which it begins.
    from: usize,
    /// Places of the net.
    places: usize,
    /// Whether the next token that comes into the first place is the one that is followed.
    begins: bool,
    /// For each transition: whether a token that it puts into the first place begins there.
    starts: Vec<bool>,
    /// For each transition: the place from which it takes the token on, and that into which it puts it.
    carries: Vec<Option<(usize, usize)>>,
}

impl Tagging {
    /// What there is to follow of tokens that come into the place `from`, until they come into `to`.
    ///
    /// # Errors
    /// A transition of which the order of tokens does not tell which one goes on.
    pub fn new(net: &Net, from: usize, to: usize) -> Result<Self, Unsuited> {
        let begun = Begun::of(net, from, to);
        let carriers: Vec<Vec<usize>> = (0..net.transitions().len()).map(|transition| begun.carriers(net, transition)).collect();
        let is_on_the_way = on_the_way(net, &carriers, to);
        let mut tagging = Self { to, from, places: net.places().len(), begins: false, starts: Vec::new(), carries: Vec::new() };
        for (index, transition) in net.transitions().iter().enumerate() {
            let refused = |reason: String| Err(Unsuited { transition: transition.name.clone(), reason });
            let name = |place: usize| net.places()[place].name.as_str();
            let taken: Vec<&Arc> = transition.inputs.iter().filter(|arc| is_on_the_way[arc.place]).collect();
            let given: Vec<&Arc> = transition.outputs.iter().filter(|arc| arc.place == to || is_on_the_way[arc.place]).collect();
            let carry = match (taken.as_slice(), carriers[index].as_slice()) {
                ([], _) => None,
                ([taken], [carrier]) if taken.place == *carrier => match given.as_slice() {
                    [given] if given.weight == 1 && taken.weight == 1 => Some((taken.place, given.place)),
                    [] => return refused(format!("it takes tokens of {} off the way to {}", name(taken.place), name(to))),
                    _ => return refused(format!("it takes or gives several tokens on the way to {}, and one is followed", name(to))),
                },
                (several, _) => {
                    let names: Vec<&str> = several.iter().map(|arc| name(arc.place)).collect();
                    return refused(format!(
                        "the times of tokens of {} may all go on in what it makes: let its first input be the one that is followed",
                        names.join(" and ")
                    ));
                }
            };
            let into = transition.outputs.iter().find(|arc| arc.place == from);
            let starts = match (into, begun.of_inputs(net, index)) {
                (None, _) | (Some(_), Some(true)) => false,
                (Some(arc), Some(false)) if arc.weight == 1 => true,
                (Some(_), Some(false)) => {
                    return refused(format!("it puts several tokens into {} at once, and one is followed", name(from)));
                }
                (Some(_), None) => {
                    return refused(format!("whether a time begins with its token in {} depends on the marking", name(from)));
                }
            };
            tagging.carries.push(carry);
            tagging.starts.push(starts);
        }
        Ok(tagging)
    }

    /// The same in front of its beginning: the next token that comes into the first place is the one that is followed.
    pub fn awaited(&self) -> Self {
        Self { begins: true, ..self.clone() }
    }

    /// The numbers behind a marking in which the token has not come yet.
    pub fn nowhere() -> [u32; NUMBERS] {
        [NOWHERE, 0]
    }

    /// Those of a marking in which it is the last one of its first place.
    pub fn last(&self, marking: &[u32]) -> [u32; NUMBERS] {
        [self.from as u32 + 1, marking[self.from] - 1]
    }

    /// Whether the token has come.
    pub fn is_there(&self, state: &State) -> bool {
        state.marking[self.places] != NOWHERE
    }

    /// Whether it has come to its end.
    pub fn is_over(&self, marking: &[u32]) -> bool {
        marking[self.places] == self.to as u32 + 1
    }

    /// Whether two tokens have come in one instant, of which one only is followed.
    pub fn are_two(&self, state: &State) -> bool {
        state.marking[self.places] == self.places as u32 + 1
    }

    /// What a firing makes of the two numbers of `before`, with the share of each alternative; `after` is the marking behind it. `clock` is the number of older clocks of
    /// the transition that go on; none: any of `degree` clocks, as many as ran before, is as likely.
    pub fn follow(
        &self,
        transition: usize,
        (clock, degree): (Option<usize>, u32),
        before: &[u32],
        after: &[u32],
    ) -> Vec<(f64, [u32; NUMBERS])> {
        let (at, ahead) = (before[self.places], before[self.places + 1]);
        let stays = vec![(1.0, [at, ahead])];
        if at == NOWHERE {
            let begins = self.begins && self.starts[transition];
            return if begins { vec![(1.0, [self.from as u32 + 1, after[self.from] - 1])] } else { stays };
        }
        if self.begins && self.starts[transition] {
            return vec![(1.0, [self.places as u32 + 1, 0])];
        }
        let place = at as usize - 1;
        let Some((_, to)) = self.carries[transition].filter(|(from, _)| *from == place) else { return stays };
        let moved = [to as u32 + 1, after[to] - 1];
        let in_front = || [at, ahead - 1];
        match clock.map(|older| (older as u32).cmp(&ahead)) {
            Some(std::cmp::Ordering::Equal) => vec![(1.0, moved)],
            Some(std::cmp::Ordering::Less) => vec![(1.0, in_front())],
            Some(std::cmp::Ordering::Greater) => stays,
            None => {
                let part = |clocks: u32| f64::from(clocks) / f64::from(degree);
                let alternatives = [
                    (part(u32::from(ahead < degree)), moved),
                    (part(ahead.min(degree)), if ahead > 0 { in_front() } else { moved }),
                    (part(degree.saturating_sub(ahead + 1)), [at, ahead]),
                ];
                alternatives.into_iter().filter(|(share, _)| *share > 0.0).collect()
            }
        }
    }
}

/// Which places hold tokens whose time has begun: some, or all of them.
struct Begun {
    may: Vec<bool>,
    all: Vec<bool>,
}

impl Begun {
    fn of(net: &Net, from: usize, to: usize) -> Self {
        let mut may = vec![false; net.places().len()];
        may[from] = true;
        let mut grows = true;
        while grows {
            grows = false;
            for transition in net.transitions() {
                let is_begun = transition.inputs.iter().any(|arc| may[arc.place]);
                for arc in transition.outputs.iter().filter(|arc| is_begun && arc.place != to) {
                    grows |= !std::mem::replace(&mut may[arc.place], true);
                }
            }
        }
        // Whatever comes into the first place has begun there at the latest.
        let mut all: Vec<bool> =
            net.places().iter().enumerate().map(|(index, place)| index == from || may[index] && place.initial == 0).collect();
        let mut shrinks = true;
        while shrinks {
            shrinks = false;
            for transition in net.transitions() {
                let may_be_new = !transition.inputs.iter().any(|arc| all[arc.place]);
                for arc in transition.outputs.iter().filter(|arc| may_be_new && arc.place != from) {
                    shrinks |= std::mem::replace(&mut all[arc.place], false);
                }
            }
        }
        Self { may, all }
    }

    /// Places whose tokens' time a firing may take on: that of the first one of them which has begun.
    fn carriers(&self, net: &Net, transition: usize) -> Vec<usize> {
        let mut carriers = Vec::new();
        for arc in net.transitions()[transition].inputs.iter().filter(|arc| self.may[arc.place]) {
            carriers.push(arc.place);
            if self.all[arc.place] {
                break;
            }
        }
        carriers
    }

    /// Whether what a firing makes has begun: always, never, or it depends.
    fn of_inputs(&self, net: &Net, transition: usize) -> Option<bool> {
        let inputs = &net.transitions()[transition].inputs;
        match inputs.iter().any(|arc| self.all[arc.place]) {
            true => Some(true),
            false if inputs.iter().any(|arc| self.may[arc.place]) => None,
            false => Some(false),
        }
    }
}

/// Places from which a token's time may come to `to`.
fn on_the_way(net: &Net, carriers: &[Vec<usize>], to: usize) -> Vec<bool> {
    let mut leads = vec![false; net.places().len()];
    let mut grows = true;
    while grows {
        grows = false;
        for (transition, carriers) in net.transitions().iter().zip(carriers) {
            if transition.outputs.iter().any(|arc| arc.place == to || leads[arc.place]) {
                carriers.iter().for_each(|place| grows |= !std::mem::replace(&mut leads[*place], true));
            }
        }
    }
    leads
}
