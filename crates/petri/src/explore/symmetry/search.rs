//! Which parts of a net may be exchanged.
//!
//! Two places are exchanged on trial, and then what has to follow: transitions beside them, places beside those. What comes out counts
//! only if it is an automorphism of the whole net that leaves the measures alone, which is checked in full; a symmetry that is not
//! found costs states, never an answer.

use super::{Block, Orbit, Symmetry};
use crate::{
    explore::Rules,
    expression::{Expression, Operator},
    measure::Measure,
    net::{Arc, Delay, Firing, Net, Timed, Transition},
};

/// Most places of a net that is searched: pairs of them are tried.
const PLACES_MAX: usize = 300;

impl Rules<'_> {
    /// Finds the symmetry that leaves `measures` alone.
    pub fn find_symmetry(&mut self, measures: &[Measure]) {
        let places = self.net.places();
        if places.len() > PLACES_MAX {
            return;
        }
        let mut orbits: Vec<Vec<Exchange>> = Vec::new();
        let mut taken = vec![false; places.len()];
        for first in 0..places.len() {
            let mut orbit: Vec<Exchange> = Vec::new();
            for second in first + 1..places.len() {
                if taken[first] || taken[second] || places[first].initial != places[second].initial {
                    continue;
                }
                let Some(exchange) = Exchange::of(self.net, first, second) else { continue };
                let is_new = exchange.places.iter().all(|(a, b)| !taken[*a] && !taken[*b]);
                let fits = orbit.first().is_none_or(|other| exchange.fits(other)) && orbit.iter().all(|other| exchange.is_apart(other));
                if is_new && fits && !exchange.is_idle() && exchange.is_automorphism(self.net) && self.is_left_alone(&exchange, measures) {
                    orbit.push(exchange);
                }
            }
            for (a, b) in orbit.iter().flat_map(|exchange| &exchange.places) {
                (taken[*a], taken[*b]) = (true, true);
            }
            orbits.push(orbit);
        }
        let orbits = orbits.into_iter().filter(|orbit| !orbit.is_empty()).map(|exchanges| self.orbit(&exchanges)).collect();
        self.symmetry = Symmetry { orbits };
    }

    fn orbit(&self, exchanges: &[Exchange]) -> Orbit {
        let block = |places: Vec<usize>, transitions: Vec<usize>| Block {
            places,
            slots: transitions.into_iter().filter_map(|transition| self.slot_of[transition]).collect(),
        };
        let first = &exchanges[0];
        let own = block(first.places.iter().map(|(a, _)| *a).collect(), first.transitions.iter().map(|(a, _)| *a).collect());
        let others = exchanges.iter().map(|exchange| {
            block(exchange.places.iter().map(|(_, b)| *b).collect(), exchange.transitions.iter().map(|(_, b)| *b).collect())
        });
        std::iter::once(own).chain(others).collect()
    }

    fn is_left_alone(&self, exchange: &Exchange, measures: &[Measure]) -> bool {
        let same = |expression: &Expression| exchange.maps_expression(expression, expression);
        self.until.iter().all(same)
            && measures.iter().all(|measure| match measure {
                Measure::Reward(expression) => same(expression),
                Measure::Throughput(impulse) | Measure::Firings(impulse) => {
                    exchange.transition(impulse.transition) == impulse.transition && impulse.each.iter().all(same)
                }
            })
    }
}

/// Places and transitions that change their parts with each other, sorted.
struct Exchange {
    places: Vec<(usize, usize)>,
    transitions: Vec<(usize, usize)>,
}

impl Exchange {
    /// Follows from the exchange of two places.
    fn of(net: &Net, first: usize, second: usize) -> Option<Self> {
        let mut exchange = Self { places: vec![(first, second)], transitions: Vec::new() };
        while let Some(transition) = exchange.next_open(net) {
            let partner = (0..net.transitions().len()).find_map(|other| exchange.matched(net, transition, other).map(|more| (other, more)));
            let (other, more) = partner?;
            exchange.transitions.push((transition, other));
            exchange.places.extend(more);
        }
        let mut seen: Vec<usize> = exchange.places.iter().flat_map(|(a, b)| [*a, *b]).collect();
        seen.sort_unstable();
        let is_disjoint = seen.windows(2).all(|pair| pair[0] != pair[1]);
        exchange.places.sort_unstable();
        exchange.transitions.sort_unstable();
        is_disjoint.then_some(exchange)
    }

    /// A transition beside the first places that has no partner yet, and is not its own.
    fn next_open(&self, net: &Net) -> Option<usize> {
        let is_beside = |transition: &Transition| {
            lists(transition).iter().any(|list| list.iter().any(|arc| self.places.iter().any(|(a, _)| *a == arc.place)))
        };
        let is_open = |index: &usize| {
            let transition = &net.transitions()[*index];
            let has_partner = self.transitions.iter().any(|(a, b)| a == index || b == index);
            is_beside(transition) && !has_partner && !self.maps(transition, transition)
        };
        (0..net.transitions().len()).find(is_open)
    }

    /// The further exchanges of places that make `other` the partner of `transition`, if there are some.
    fn matched(&self, net: &Net, transition: usize, other: usize) -> Option<Vec<(usize, usize)>> {
        let has_partner = self.transitions.iter().any(|(a, b)| *a == other || *b == other);
        if other == transition || has_partner {
            return None;
        }
        let (from, to) = (&net.transitions()[transition], &net.transitions()[other]);
        let is_rate = |transition: &Transition| matches!(transition.timed().map(|timed| &timed.delay), Some(Delay::Rate(_)));
        // Whether rates that depend on the marking fit is known when all is exchanged.
        if from.firing != to.firing && !(is_rate(from) && is_rate(to)) {
            return None;
        }
        let mut more: Vec<(usize, usize)> = Vec::new();
        for (from, to) in lists(from).into_iter().zip(lists(to)) {
            if from.len() != to.len() {
                return None;
            }
            let wanted: Vec<Arc> = from.iter().map(|arc| Arc { place: self.place(arc.place), ..*arc }).collect();
            let open: Vec<&Arc> = wanted.iter().filter(|arc| !to.contains(arc)).collect();
            let free: Vec<&Arc> = to.iter().filter(|arc| !wanted.contains(arc)).collect();
            for (arc, image) in open.into_iter().zip(free) {
                let is_moved = [arc.place, image.place].iter().any(|place| self.place(*place) != *place);
                if arc.weight != image.weight || is_moved || net.places()[arc.place].initial != net.places()[image.place].initial {
                    return None;
                }
                if !more.contains(&(arc.place, image.place)) {
                    more.push((arc.place, image.place));
                }
            }
        }
        Some(more)
    }

    /// Whether it moves places only: such have the same arcs and the same tokens at first, hence at any time, and to exchange them makes one state of no two.
    fn is_idle(&self) -> bool {
        self.transitions.is_empty()
    }

    fn place(&self, place: usize) -> usize {
        image(&self.places, place)
    }

    fn transition(&self, transition: usize) -> usize {
        image(&self.transitions, transition)
    }

    /// Whether it moves the same first block as another one.
    fn fits(&self, other: &Self) -> bool {
        let firsts = |pairs: &[(usize, usize)]| pairs.iter().map(|(a, _)| *a).collect::<Vec<_>>();
        firsts(&self.places) == firsts(&other.places) && firsts(&self.transitions) == firsts(&other.transitions)
    }

    /// Whether its second block is another than that of `other`.
    fn is_apart(&self, other: &Self) -> bool {
        self.places.iter().all(|(_, b)| other.places.iter().all(|(_, c)| b != c))
    }

    fn is_automorphism(&self, net: &Net) -> bool {
        let places = self.places.iter().all(|(a, b)| net.places()[*a].initial == net.places()[*b].initial);
        let transitions = net.transitions();
        places && (0..transitions.len()).all(|index| self.maps(&transitions[index], &transitions[self.transition(index)]))
    }

    /// Whether the exchange makes `to` of `from`.
    fn maps(&self, from: &Transition, to: &Transition) -> bool {
        let arcs = lists(from).into_iter().zip(lists(to)).all(|(from, to)| {
            let mut image: Vec<Arc> = from.iter().map(|arc| Arc { place: self.place(arc.place), ..*arc }).collect();
            let mut to = to.to_vec();
            image.sort_unstable();
            to.sort_unstable();
            image == to
        });
        let guards = match (&from.guard, &to.guard) {
            (Some(a), Some(b)) => self.maps_expression(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        arcs && guards && self.maps_firing(from, to)
    }

    fn maps_firing(&self, from: &Transition, to: &Transition) -> bool {
        match (&from.firing, &to.firing) {
            (Firing::Timed(a @ Timed { delay: Delay::Rate(from), .. }), Firing::Timed(b @ Timed { delay: Delay::Rate(to), .. })) => {
                let same = (a.servers, a.memory, a.priority) == (b.servers, b.memory, b.priority) && a.weight == b.weight;
                same && self.maps_expression(from, to)
            }
            (from, to) => from == to,
        }
    }

    fn maps_expression(&self, from: &Expression, to: &Expression) -> bool {
        Normal::of(from, &|place| self.place(place)) == Normal::of(to, &|place| place)
    }
}

fn lists(transition: &Transition) -> [&[Arc]; 4] {
    [&transition.inputs, &transition.outputs, &transition.inhibitors, &transition.tests]
}

fn image(pairs: &[(usize, usize)], index: usize) -> usize {
    let partner = pairs.iter().find_map(|(a, b)| match index {
        index if index == *a => Some(*b),
        index if index == *b => Some(*a),
        _ => None,
    });
    partner.unwrap_or(index)
}

/// An expression in a form that does not depend on the order of what is added up, multiplied or joined.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Normal {
    Number(u64),
    Place(usize),
    Negate(Box<Normal>),
    Not(Box<Normal>),
    Joined(u8, Vec<Normal>),
}

impl Normal {
    /// The normal form behind `image` of its places.
    fn of(expression: &Expression, image: &dyn Fn(usize) -> usize) -> Self {
        match expression {
            Expression::Number(number) => Self::Number(number.to_bits()),
            Expression::Place(place) => Self::Place(image(*place)),
            Expression::Negate(operand) => Self::Negate(Box::new(Self::of(operand, image))),
            Expression::Not(operand) => Self::Not(Box::new(Self::of(operand, image))),
            Expression::Binary(operator, left, right) => {
                use Operator::{Add, And, Equal, Max, Min, Multiply, Or, Unequal};
                let mut operands = Vec::new();
                let is_chain = matches!(operator, Add | Multiply | And | Or | Min | Max);
                for operand in [left, right] {
                    match (Self::of(operand, image), is_chain) {
                        (Self::Joined(inner, parts), true) if inner == *operator as u8 => operands.extend(parts),
                        (operand, _) => operands.push(operand),
                    }
                }
                if is_chain || matches!(operator, Equal | Unequal) {
                    operands.sort_unstable();
                }
                Self::Joined(*operator as u8, operands)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{explore::General, format::json};

    const EVENT_HANDLER: &str = include_str!("../../../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json");

    fn blocks(text: &str, measure: &str) -> Vec<Vec<Vec<String>>> {
        let net = json::read(text).expect("it is right");
        let mut rules = Rules::new(&net, None, General::OnTicks { tick: 0.5, tail: 1e-9 }).expect("ticks take any delay");
        rules.find_symmetry(&[Measure::parse(measure, &net).expect(measure)]);
        let names = |block: &Block| block.places.iter().map(|place| net.places()[*place].name.clone()).collect();
        rules.symmetry.orbits.iter().map(|orbit| orbit.iter().map(names).collect()).collect()
    }

    #[test]
    fn the_cores_of_a_processor_are_alike() {
        let cores = |numbers: &[u32]| numbers.iter().map(|number| vec![format!("Executing_Thread_Core{number}")]).collect::<Vec<_>>();
        assert_eq!(blocks(EVENT_HANDLER, "Subscriber"), [cores(&[1, 2, 3, 4])]);
        let faster = EVENT_HANDLER.replacen("\"max\": 1.0", "\"max\": 2.0", 1);
        assert_eq!(blocks(&faster, "Subscriber"), [cores(&[2, 3, 4])], "the first core is another one");
    }

    #[test]
    fn a_measure_of_one_core_takes_it_out() {
        let cores = [2, 3, 4].map(|number| vec![format!("Executing_Thread_Core{number}")]);
        assert_eq!(blocks(EVENT_HANDLER, "Executing_Thread_Core1"), [cores.to_vec()]);
        assert_eq!(blocks(EVENT_HANDLER, "throughput(executing_Core1)"), [cores.to_vec()]);
    }

    /// As the tickets of the two middle cells of a kanban system: to sort them would cost every state of it time, and save none.
    #[test]
    fn places_that_always_hold_the_same_are_left_alone() {
        let transition = |name: &str, rate: f64, from: &[&str], to: &[&str]| {
            let arcs = |places: &[&str]| places.iter().map(|place| format!(r#"{{"place": "{place}"}}"#)).collect::<Vec<_>>().join(",");
            format!(
                r#"{{"id": "{name}", "kind": "timed", "distribution": {{"type": "exponential", "rate": {rate}}},
                    "inputs": [{}], "outputs": [{}]}}"#,
                arcs(from),
                arcs(to)
            )
        };
        let places = [("A", 2), ("B", 2), ("C", 0)].map(|(name, initial)| format!(r#"{{"id": "{name}", "initial": {initial}}}"#));
        let transitions = [transition("take", 1.0, &["A", "B"], &["C"]), transition("give", 2.0, &["C"], &["A", "B"])];
        let text = format!(
            r#"{{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{}], "transitions": [{}]}}"#,
            places.join(","),
            transitions.join(",")
        );
        assert_eq!(blocks(&text, "C"), Vec::<Vec<Vec<String>>>::new());
    }

    #[test]
    fn parts_of_several_places_are_exchanged_whole() {
        let transition = |name: &str, from: &str, to: &str| {
            format!(
                r#"{{"id": "{name}", "kind": "timed", "distribution": {{"type": "erlang", "shape": 2, "rate": 1}},
                    "inputs": [{{"place": "{from}"}}], "outputs": [{{"place": "{to}"}}]}}"#
            )
        };
        let places = ["S", "A1", "B1", "A2", "B2", "E"].map(|name| format!(r#"{{"id": "{name}", "initial": {}}}"#, u32::from(name == "S")));
        let ways = [("a1", "S", "A1"), ("b1", "A1", "B1"), ("c1", "B1", "E"), ("a2", "S", "A2"), ("b2", "A2", "B2"), ("c2", "B2", "E")];
        let transitions = ways.map(|(name, from, to)| transition(name, from, to));
        let text = format!(
            r#"{{"schema": "stpn-neutral-1", "name": "n", "time_unit": "s", "places": [{}], "transitions": [{}]}}"#,
            places.join(","),
            transitions.join(",")
        );
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        assert_eq!(blocks(&text, "E"), [vec![names(["A1", "B1"]), names(["A2", "B2"])]]);
    }
}
