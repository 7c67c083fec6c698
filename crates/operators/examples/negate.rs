//! An operator of one's own, made and run: `cargo run --example negate -p bodkin-operators`. `docs/design/operators.md` has it line by line.

use bodkin_broker::graph::{Element, Emission, Event, Fault, Inputs, Operator, Shape, Trigger};
use bodkin_operators::catalogue::{Input, Kind, Made, Misfit};
use bodkin_operators::parameters::Parameters;

/// `negate`: every point with the other sign. Input: one, of real points. Result: `f64`, as many. No state.
const NEGATE: Kind = Kind { name: "negate", inputs: 1..=1, trigger: Trigger::All, make };

struct Negate {
    element: Element,
    points: Vec<f64>,
}

fn make(_: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let shape = inputs[0].shape;
    if !shape.element().is_real() || inputs[0].events != 1 {
        return Err(Misfit::Input { input: 0, shape, needed: "negate takes real points, event by event" });
    }
    let result = Shape::new(Element::F64, shape.count()).map_err(Misfit::Result)?;
    Ok(Made::new(Negate { element: shape.element(), points: Vec::with_capacity(shape.points_max()) }, result))
}

impl Operator for Negate {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        self.points.clear();
        inputs.all().iter().for_each(|event| self.element.read(event.payload, &mut self.points));
        self.points.iter().for_each(|point| out.extend_from_slice(&(-point).to_le_bytes()));
        Ok(Emission::Emit)
    }
}

#[expect(clippy::disallowed_macros, reason = "a program for people, not part of the operator")]
fn main() {
    let input = Input { shape: "i16[3]".parse().expect("it is a shape"), events: 1 };
    let mut made = (NEGATE.make)(&mut Parameters::default(), &[input]).unwrap_or_else(|misfit| panic!("{misfit}"));
    let payload: Vec<u8> = [1i16, -2, 3].into_iter().flat_map(i16::to_le_bytes).collect();
    let event = Event { payload: &payload, created_ns: 0, publisher: 0 };
    let mut result = Vec::new();
    made.operator.run(&Inputs::new(&[event], &[1]), &mut result).expect("the payload has the input's shape");
    let points: Vec<f64> = result.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    println!("{} makes {} of i16[3]: {points:?}", NEGATE.name, made.shape);
}
