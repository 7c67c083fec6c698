//! One event behind the other.

use bodkin_broker::graph::{Count, Element, Emission, Fault, Inputs, Operator, Shape, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::Parameters,
};

/// `concatenate`: the points of all inputs in their order, of a window the oldest event first.
///
/// Inputs: 1 or more of one type of point. Result: as many points as all together; where an input's number varies, at most so many. JSON is not a type that can be put
/// together. No state. Source: Wang 2019, section 2.6 (CAT).
pub const KIND: Kind = Kind { name: "concatenate", inputs: 1..=16, trigger: Trigger::All, make };

struct Concatenate;

fn make(_: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let element = inputs[0].shape.element();
    demand(
        inputs,
        |input| input.shape.element() == element && element != Element::Json,
        "concatenate takes points of one type, and no json",
    )?;
    let points: usize = inputs.iter().map(|input| input.shape.points_max() * input.events).sum();
    let points = u32::try_from(points).unwrap_or(u32::MAX);
    let is_exact = inputs.iter().all(|input| matches!(input.shape.count(), Count::Exactly(_)));
    let count = if is_exact { Count::Exactly(points) } else { Count::AtMost(points) };
    Ok(Made::new(Concatenate, Shape::new(element, count).map_err(Misfit::Result)?))
}

impl Operator for Concatenate {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        inputs.all().iter().for_each(|event| out.extend_from_slice(event.payload));
        Ok(Emission::Emit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, input};

    #[test]
    fn points_keep_the_order_of_inputs_and_windows() {
        let window = Input { events: 2, ..input("u8[2]") };
        let mut bench = Bench::new(&KIND, &[], &[input("u8[1]"), window]);
        assert_eq!(bench.shape.to_string(), "u8[5]");
        assert_eq!(bench.run(&[&[&[1]], &[&[2, 3], &[4, 5]]]), Ok(Some(vec![1, 2, 3, 4, 5])));
    }

    #[test]
    fn points_of_two_types_are_refused() {
        let refused =
            |inputs: &[Input]| make(&mut Parameters::default(), inputs).map(|made| made.shape).map_err(|misfit| misfit.to_string());
        assert_eq!(
            refused(&[input("u8[2]"), input("f64")]),
            Err("input 1 is f64: concatenate takes points of one type, and no json".to_owned())
        );
        assert_eq!(refused(&[input("u8[<=2]"), input("u8[3]")]).map(|shape| shape.to_string()), Ok("u8[<=5]".to_owned()));
        assert!(refused(&[input("json[9]")]).is_err() && refused(&[input("u8[1048576]"), input("u8[1]")]).is_err());
    }
}
