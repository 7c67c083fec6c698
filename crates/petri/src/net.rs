//! A net: places, transitions, arcs, and the first marking; when a transition may fire, and what that does to a marking.
//!
//! [`Net::new`] is the one way to make one. It refuses what has no meaning, so that no method has to ask again.

mod check;
mod invariant;

use std::{collections::BTreeMap, num::NonZeroU32};

pub use self::{check::NetError, invariant::Invariant};
use crate::{distribution::Distribution, expression::Expression};

/// A place and the tokens that it holds at first.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Unique among the places.
    pub name: String,
    /// Tokens at time 0.
    pub initial: u32,
}

/// An arc between a transition and a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arc {
    /// Index of the place in [`Net::places`].
    pub place: usize,
    /// Tokens that the arc moves or asks for, 1 or more.
    pub weight: u32,
}

/// How many clocks of a timed transition run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// As many as the enabling degree, but no more than this.
    Count(NonZeroU32),
    /// As many as the enabling degree.
    Infinite,
}

impl Servers {
    /// One clock, however many tokens wait.
    pub const SINGLE: Self = Self::Count(NonZeroU32::MIN);
}

/// What becomes of a running clock when its transition is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It is forgotten; the next one starts anew.
    Enabling,
    /// It stops, and goes on from there when the transition is enabled again.
    Age,
    /// It is set back, and the same delay starts again.
    RepeatIdentical,
}

/// How long a timed transition takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// A distribution that does not depend on the marking.
    Distribution(Distribution),
    /// Exponential, with this rate of one server in the present marking. A marking where it is not above 0 is refused by the analyses.
    Rate(Expression),
}

/// A timed transition's clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// The time from enabling to firing.
    pub delay: Delay,
    /// How many clocks run at once.
    pub servers: Servers,
    /// What becomes of a clock when the transition is disabled.
    pub memory: Memory,
    /// Of clocks that run out at the same instant those of the highest priority fire first.
    pub priority: u32,
    /// Among those of one priority the next to fire is drawn in proportion to the weights; above 0.
    pub weight: f64,
}

/// When a transition fires.
#[derive(Clone, Debug, PartialEq)]
pub enum Firing {
    /// As soon as it is enabled, before any time passes.
    Immediate {
        /// Only the enabled ones of the highest priority may fire.
        priority: u32,
        /// Among those of one priority the next to fire is drawn in proportion to the weights; above 0.
        weight: f64,
    },
    /// When a clock runs out.
    Timed(Timed),
}

/// A transition and its arcs. No two arcs of one list go to the same place.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Unique among the transitions.
    pub name: String,
    /// What firing takes.
    pub inputs: Vec<Arc>,
    /// What firing gives.
    pub outputs: Vec<Arc>,
    /// The transition is disabled where a place holds the arc's weight or more.
    pub inhibitors: Vec<Arc>,
    /// The transition is disabled where a place holds less than the arc's weight; firing leaves it alone.
    pub tests: Vec<Arc>,
    /// Enabling function: the transition is disabled where this is false.
    pub guard: Option<Expression>,
    /// When it fires.
    pub firing: Firing,
}

impl Transition {
    /// The clocks of a timed transition.
    pub fn timed(&self) -> Option<&Timed> {
        match &self.firing {
            Firing::Timed(timed) => Some(timed),
            Firing::Immediate { .. } => None,
        }
    }

    /// Tokens that firing adds to `place`, negative where it takes more than it gives.
    pub fn effect(&self, place: usize) -> i64 {
        let of = |arcs: &[Arc]| arcs.iter().find(|arc| arc.place == place).map_or(0, |arc| i64::from(arc.weight));
        of(&self.outputs) - of(&self.inputs)
    }
}

/// A stochastic Petri net, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    name: String,
    time_unit: String,
    places: Vec<Place>,
    transitions: Vec<Transition>,
    /// Other names of places and transitions: their ids in the file that they are from.
    ids: Ids,
}

/// By another name, the number of a place or of a transition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ids {
    /// Of places.
    pub places: BTreeMap<String, usize>,
    /// Of transitions.
    pub transitions: BTreeMap<String, usize>,
}

impl Net {
    /// A net of these parts. `time_unit` is a label of all times and, inverted, of all rates.
    ///
    /// # Errors
    /// The first mistake that is found, with the part it is in: [`NetError`].
    pub fn new(
        name: impl Into<String>,
        time_unit: impl Into<String>,
        places: Vec<Place>,
        transitions: Vec<Transition>,
    ) -> Result<Self, NetError> {
        check::check(&places, &transitions)?;
        Ok(Self { name: name.into(), time_unit: time_unit.into(), places, transitions, ids: Ids::default() })
    }

    /// The same net, whose places and transitions are found by these ids too. A name goes before an id.
    #[must_use]
    pub fn with_ids(self, ids: Ids) -> Self {
        Self { ids, ..self }
    }

    /// What the net is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The unit of all times, as in `ms`.
    pub fn time_unit(&self) -> &str {
        &self.time_unit
    }

    /// All places; arcs and expressions name them by their index here.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// All transitions.
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// The place of that name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.iter().position(|place| place.name == name).or_else(|| self.ids.places.get(name).copied())
    }

    /// The transition of that name.
    pub fn transition(&self, name: &str) -> Option<usize> {
        self.transitions.iter().position(|transition| transition.name == name).or_else(|| self.ids.transitions.get(name).copied())
    }

    /// Tokens of every place at time 0.
    pub fn initial(&self) -> Vec<u32> {
        self.places.iter().map(|place| place.initial).collect()
    }

    /// How many clocks of the transition run in `marking`: the enabling degree, up to its servers; 0 where it is disabled. Of an
    /// immediate transition it is 1 where it may fire. The degree of a transition without inputs is 1.
    pub fn degree(&self, transition: usize, marking: &[u32]) -> u32 {
        let transition = &self.transitions[transition];
        let is_disabled = transition.inhibitors.iter().any(|arc| marking[arc.place] >= arc.weight)
            || transition.tests.iter().any(|arc| marking[arc.place] < arc.weight);
        if is_disabled {
            return 0;
        }
        let limit = match &transition.firing {
            Firing::Immediate { .. } => 1,
            Firing::Timed(Timed { servers: Servers::Count(count), .. }) => count.get(),
            Firing::Timed(_) if transition.inputs.is_empty() => 1,
            Firing::Timed(_) => u32::MAX,
        };
        let degree = match limit {
            // One clock at most: nothing has to be divided.
            1 => u32::from(transition.inputs.iter().all(|arc| marking[arc.place] >= arc.weight)),
            _ => transition.inputs.iter().fold(limit, |degree, arc| degree.min(marking[arc.place] / arc.weight)),
        };
        let degree = if transition.inputs.is_empty() { degree.min(1) } else { degree };
        match &transition.guard {
            Some(guard) if degree > 0 && !guard.holds(marking) => 0,
            _ => degree,
        }
    }

    /// Moves the tokens that one firing moves. The transition has to be enabled. False where a place would hold more than
    /// `u32::MAX`; the marking is spoilt then.
    #[must_use]
    pub fn fire(&self, transition: usize, marking: &mut [u32]) -> bool {
        let transition = &self.transitions[transition];
        for arc in &transition.inputs {
            marking[arc.place] -= arc.weight;
        }
        transition.outputs.iter().all(|arc| match marking[arc.place].checked_add(arc.weight) {
            Some(sum) => {
                marking[arc.place] = sum;
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json;

    /// A net of places `A` (3 tokens) and `B`, and the transitions given as JSON.
    fn net(transitions: &str) -> Result<Net, String> {
        let text = format!(
            r#"{{"schema": "stpn-neutral-1", "name": "n", "time_unit": "ms",
                "places": [{{"id": "A", "initial": 3}}, {{"id": "B", "initial": 0}}], "transitions": [{transitions}]}}"#
        );
        json::read(&text).map_err(|error| error.to_string())
    }

    fn timed(members: &str) -> String {
        format!(r#"{{"id": "t", "kind": "timed", "distribution": {{"type": "exponential", "rate": 2}}, {members}}}"#)
    }

    #[test]
    fn the_degree_is_what_the_arcs_the_guard_and_the_servers_allow() {
        let degree = |members: &str, marking: [u32; 2]| net(&timed(members)).expect(members).degree(0, &marking);
        let from_a = r#""inputs": [{"place": "A"}]"#;
        for (members, marking, expected) in [
            (from_a.to_owned(), [3, 0], 1),
            (format!(r#"{from_a}, "servers": "infinite""#), [3, 0], 3),
            (format!(r#"{from_a}, "servers": 2"#), [3, 0], 2),
            (format!(r#"{from_a}, "servers": 2"#), [1, 0], 1),
            (r#""inputs": [{"place": "A", "weight": 2}], "servers": "infinite""#.to_owned(), [5, 0], 2),
            (format!(r#"{from_a}, "inhibitors": [{{"place": "B", "weight": 2}}]"#), [1, 1], 1),
            (format!(r#"{from_a}, "inhibitors": [{{"place": "B", "weight": 2}}]"#), [1, 2], 0),
            (format!(r#"{from_a}, "tests": [{{"place": "B", "weight": 2}}]"#), [1, 1], 0),
            (format!(r#"{from_a}, "tests": [{{"place": "B", "weight": 2}}]"#), [1, 2], 1),
            (format!(r#"{from_a}, "guard": "A + B < 4""#), [3, 1], 0),
            (r#""outputs": [{"place": "B"}], "servers": "infinite""#.to_owned(), [0, 0], 1),
        ] {
            assert_eq!(degree(&members, marking), expected, "{members} in {marking:?}");
        }
    }

    #[test]
    fn firing_moves_the_tokens_of_input_and_output_arcs() {
        let net = net(&timed(
            r#""inputs": [{"place": "A", "weight": 2}], "outputs": [{"place": "A"}, {"place": "B", "weight": 4}], "tests": [{"place": "A"}]"#,
        ));
        let net = net.expect("it is right");
        let mut marking = net.initial();
        assert!(net.fire(0, &mut marking));
        assert_eq!(marking, [2, 4]);
        let mut full = [2, u32::MAX - 3];
        assert!(!net.fire(0, &mut full), "more than a place can hold");
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let refused = |transitions: &str, expected: &str| {
            let error = net(transitions).expect_err(transitions);
            assert!(error.contains(expected), "{transitions}: {error}");
        };
        refused(&timed(r#""inputs": [{"place": "C"}]"#), "transition t, input 1: C is no place");
        refused(&timed(r#""inputs": [{"place": "A", "weight": 0}]"#), "transition t, input 1: its weight is 0");
        refused(&timed(r#""outputs": [{"place": "A"}, {"place": "A"}]"#), "transition t, output 2: the place has such an arc");
        refused(&timed(r#""guard": "A + < 2""#), "transition t, guard: column 5");
        refused(&timed(r#""guard": "A + B""#), "transition t, guard: it is a number");
        refused(&timed(r#""weight": -1"#), "transition t, weight: -1");
        refused(&timed(r#""servers": "many""#), "expected single, infinite or a number");
        refused(&timed(r#""rate": "2 * A""#), "a distribution or a rate, not both");
        refused(&timed(r#""colour": 1"#), "unknown field `colour`");
        refused(&timed(r#""inputs": [{"place": "A"}], "inhibitors": [{"place": "A"}]"#), "it can never be enabled");
        refused(r#"{"id": "t", "kind": "timed"}"#, "a timed transition needs one, or a rate");
        refused(r#"{"id": "t", "kind": "timed", "rate": "A > 1"}"#, "transition t, rate: it is a condition");
        refused(r#"{"id": "t", "kind": "timed", "distribution": {"type": "erlang", "shape": 0, "rate": 1}}"#, "transition t, distribution");
        refused(r#"{"id": "t", "kind": "immediate", "servers": 2}"#, "transition t, servers: an immediate transition has none");
        refused(r#"{"id": "t", "kind": "immediate", "inputs": [{"place": "A"}], "outputs": [{"place": "A"}]}"#, "moves no token");
        refused(&format!("{0}, {0}", timed(r#""priority": 1"#)), "transition t: there are two of this name");
        refused("", "transitions: there are 0");
    }

    #[test]
    fn invariants_of_the_event_handler_are_its_messages_and_cores() {
        let net = json::read(include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json")).expect("it is right");
        let invariants = net.invariants().expect("there are few");
        let all: Vec<(usize, u64)> = (0..net.places().len()).map(|place| (place, 1)).collect();
        assert_eq!(invariants, [Invariant { terms: all, total: 4 }]);
    }

    #[test]
    fn invariants_are_minimal_and_weighted() {
        let net = net(&timed(r#""inputs": [{"place": "A", "weight": 2}], "outputs": [{"place": "B", "weight": 3}]"#)).expect("it is right");
        assert_eq!(net.invariants(), Some(vec![Invariant { terms: vec![(0, 3), (1, 2)], total: 9 }]));
    }
}
