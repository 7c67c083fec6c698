//! How often transitions fire, as places that count it: an impulse reward of 1 a firing, and of anything else by an expression.

use std::cell::RefCell;

use crate::{
    expression::{Expression, ExpressionError},
    net::{Arc, Net, Place},
};

/// What a name in an expression begins with that counts.
const FIRINGS: &str = "firings(";

/// A net with expressions over its places and over how often its transitions have fired: `firings(TRANSITION)`.
#[derive(Debug)]
pub struct Counters<'a> {
    net: &'a Net,
    /// Transitions that some expression counts; each has a place behind those of the net.
    counted: RefCell<Vec<usize>>,
}

impl<'a> Counters<'a> {
    /// None is counted yet.
    pub fn new(net: &'a Net) -> Self {
        Self { net, counted: RefCell::default() }
    }

    /// Reads an expression over places and counts.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn expression(&self, text: &str) -> Result<Expression, ExpressionError> {
        Expression::parse(text, &|name| self.place(name))
    }

    fn place(&self, name: &str) -> Option<usize> {
        let Some(transition) = name.strip_prefix(FIRINGS).and_then(|rest| rest.strip_suffix(')')) else { return self.net.place(name) };
        let transition = self.net.transition(transition)?;
        let mut counted = self.counted.borrow_mut();
        let index = counted.iter().position(|other| *other == transition).unwrap_or_else(|| {
            counted.push(transition);
            counted.len() - 1
        });
        Some(self.net.places().len() + index)
    }

    /// The net with a place for each count, behind its own. It does what the net does, and is for simulation: its markings never come back.
    pub fn net(&self) -> Net {
        let (mut places, mut transitions) = (self.net.places().to_vec(), self.net.transitions().to_vec());
        for transition in self.counted.borrow().iter() {
            let transition = &mut transitions[*transition];
            transition.outputs.push(Arc { place: places.len(), weight: 1 });
            places.push(Place { name: format!("{FIRINGS}{})", transition.name), initial: 0 });
        }
        Net::new(self.net.name(), self.net.time_unit(), places, transitions).expect("a place that nothing asks for changes nothing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        format::json,
        simulate::{Options, Question, simulate},
    };

    const NET: &str = r#"{"schema": "stpn-neutral-1", "name": "queue", "time_unit": "s", "places": [{"id": "Queue", "initial": 0}, {"id": "Room", "initial": 3}],
        "transitions": [
            {"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 2}, "inputs": [{"place": "Room"}], "outputs": [{"place": "Queue"}]},
            {"id": "take", "kind": "immediate", "inputs": [{"place": "Queue"}], "outputs": [{"place": "Room"}]}]}"#;

    /// Arrivals that are taken at once are Poisson's: of mean 2 a second, and none until `t` with probability `exp(-2 t)`.
    #[test]
    fn firings_of_timed_and_immediate_transitions_are_counted() {
        let net = json::read(NET).expect("it is right");
        let counters = Counters::new(&net);
        let texts = ["firings(arrive)", "0.5 * firings(take) + Room", "firings(arrive) == 0", "firings(arrive) - firings(take)"];
        let measures = texts.map(|text| counters.expression(text).expect("it is right")).into();
        let counted = counters.net();
        assert_eq!(counted.places().len(), net.places().len() + 2);
        let question = Question { instants: vec![0.5, 4.0], measures, target: None, tag: None };
        let answer = simulate(&counted, &question, &Options { runs: 20_000, confidence: 0.9999, ..Options::default() }).expect("an answer");
        for (index, expected) in [[1.0, 8.0], [3.5, 7.0], [(-1.0_f64).exp(), (-8.0_f64).exp()], [0.0, 0.0]].into_iter().enumerate() {
            for (instant, expected) in expected.into_iter().enumerate() {
                let found = answer.measures[index][instant];
                assert!(found.covers(expected), "{}: {found:?} for {expected}", texts[index]);
            }
        }
        let plain = simulate(&net, &Question { measures: Vec::new(), ..question }, &Options { runs: 20_000, ..Options::default() });
        let places = plain.expect("an answer").places;
        let values = |curves: &[Vec<crate::simulate::Estimate>]| curves.iter().flatten().map(|found| found.value).collect::<Vec<_>>();
        assert_eq!(values(&answer.places[..2]), values(&places), "the net does what it did");
    }

    #[test]
    fn what_is_no_transition_is_refused() {
        let net = json::read(NET).expect("it is right");
        let refused = |text: &str| Counters::new(&net).expression(text).expect_err(text).to_string();
        assert_eq!(refused("firings(leave)"), "column 1: firings(leave) is no place of the net, and counts none of its transitions");
        assert_eq!(
            refused("Queue + firings(Queue)"),
            "column 9: firings(Queue) is no place of the net, and counts none of its transitions"
        );
        assert_eq!(refused("firings(arrive"), "column 15: the end was found; expected )");
    }
}
