//! One operator on the bench, for tests.

use bodkin_broker::graph::{Emission, Event, Fault, Inputs, Operator, Shape};

use crate::{
    catalogue::{Input, Kind},
    parameters::{Parameters, Value},
};

pub struct Bench {
    pub shape: Shape,
    pub operator: Box<dyn Operator>,
    /// When the next events were made.
    pub now_ns: u64,
    /// Who made them.
    pub publisher: u64,
}

impl Bench {
    #[track_caller]
    pub fn new(kind: &Kind, parameters: &[(&str, Value)], inputs: &[Input]) -> Self {
        let mut parameters = Parameters::new(parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        let made = (kind.make)(&mut parameters, inputs).unwrap_or_else(|misfit| panic!("{}: {misfit}", kind.name));
        assert_eq!(parameters.unknown().next(), None, "every parameter is one");
        Self { shape: made.shape, operator: made.operator, now_ns: 0, publisher: 0 }
    }

    /// Runs on the payloads of each input; gives the payload of the result, if there is one.
    pub fn run(&mut self, inputs: &[&[&[u8]]]) -> Result<Option<Vec<u8>>, Fault> {
        let events: Vec<Event<'_>> =
            inputs.concat().into_iter().map(|payload| Event { payload, created_ns: self.now_ns, publisher: self.publisher }).collect();
        let counts: Vec<u16> = inputs.iter().map(|events| events.len() as u16).collect();
        let mut out = Vec::new();
        let emission = self.operator.run(&Inputs::new(&events, &counts), &mut out)?;
        if emission == Emission::Emit {
            assert!(self.shape.fits(out.len()), "{} bytes are no {}", out.len(), self.shape);
        }
        Ok((emission == Emission::Emit).then_some(out))
    }
}

/// An input of one event a round.
pub fn input(shape: &str) -> Input {
    Input { shape: shape.parse().expect("it is a shape"), events: 1 }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub fn number(number: f64) -> Value {
    Value::Number(number.to_string())
}

/// Numbers as the payload of `f64`.
pub fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The payload of `f64` as numbers.
pub fn numbers(payload: &[u8]) -> Vec<f64> {
    payload.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// The result of one event of one input.
pub fn run_one(operator: &mut dyn Operator, payload: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    operator.run(&Inputs::new(&[Event { payload, created_ns: 0, publisher: 0 }], &[1]), &mut out).map(|_| out)
}
