//! An expression, point by point.

use bodkin_broker::graph::{Count, Element, Emission, Fault, Inputs, Operator, Shape, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    expression::{Expression, parse},
    parameters::{Parameters, error},
    points::write,
};

/// Steps that a round may take: points times steps of the expression.
const ROUND_STEPS_MAX: usize = 1 << 20;

/// `map`: an expression for every point. `x0` to `x15` are the points of the inputs (`x`, where there is one), `i` is the number of the point from 0 on; an input of one point is the
/// same for all. Functions: abs, sqrt, exp, ln, sin, cos, tan, atan2, floor, round, min, max, if(condition, then, else); `+ - * / % ^`, comparisons, `&& || !`.
///
/// Inputs: 1 to 16, of real points, all of one fixed number or of one point. Result: `f64`, as many. An expression has 256 steps at most, and steps times points are at
/// most 2^20. Arithmetic is that of IEEE 754, NaN and infinities included. No state.
pub const MAP: Kind = Kind { name: "map", inputs: 1..=16, trigger: Trigger::All, make };

struct Map {
    elements: Vec<Element>,
    expression: Expression,
    points: usize,
    inputs: Vec<Vec<f64>>,
}

fn make(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let text = parameters.text("expression")?;
    let expression = parse(&text, inputs.len()).map_err(|wrong| error("expression", format!("is wrong: {wrong}")))?;
    let points = inputs.iter().map(|input| input.shape.points_max()).max().unwrap_or(1);
    let fits = |input: &Input| {
        let count = input.shape.count();
        input.shape.element().is_real() && input.events == 1 && (count == Count::Exactly(1) || count == Count::Exactly(points as u32))
    };
    demand(inputs, fits, "map takes events of real points one by one, all of one fixed number of points or of one")?;
    if points * expression.steps() > ROUND_STEPS_MAX {
        let most = ROUND_STEPS_MAX / expression.steps();
        return Err(
            error("expression", format!("has {} steps: for so many at most {most} points can be mapped", expression.steps())).into()
        );
    }
    let shape = Shape::new(Element::F64, Count::Exactly(points as u32)).map_err(Misfit::Result)?;
    let elements = inputs.iter().map(|input| input.shape.element()).collect();
    let buffers = inputs.iter().map(|input| Vec::with_capacity(input.shape.points_max())).collect();
    Ok(Made::new(Map { elements, expression, points, inputs: buffers }, shape))
}

impl Operator for Map {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        for (input, (element, points)) in self.elements.iter().zip(&mut self.inputs).enumerate() {
            crate::points::read(*element, inputs.of(input), points);
            if points.len() != 1 && points.len() != self.points {
                return Err(Fault::Input { input, what: "has another number of points" });
            }
        }
        for index in 0..self.points {
            let input = |number: usize| if self.inputs[number].len() == 1 { self.inputs[number][0] } else { self.inputs[number][index] };
            write(out, &[self.expression.value(index, input)]);
        }
        Ok(Emission::Emit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, bytes, input, numbers, text};

    #[test]
    fn every_point_is_mapped() {
        let mut bench = Bench::new(&MAP, &[("expression", text("x0 * x1 + i"))], &[input("u8[3]"), input("f64")]);
        let found = bench.run(&[&[&[1, 2, 3]], &[&bytes(&[10.0])]]).expect("it runs").expect("there is a result");
        assert_eq!(numbers(&found), [10.0, 21.0, 32.0]);
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let refused = |expression: &str, shapes: &[&str]| {
            let inputs: Vec<Input> = shapes.iter().map(|shape| input(shape)).collect();
            let mut parameters = Parameters::new([("expression".to_owned(), text(expression))]);
            make(&mut parameters, &inputs).err().map(|misfit| misfit.to_string()).unwrap_or_default()
        };
        assert_eq!(refused("x + 1", &["f64[5]"]), "");
        assert_eq!(refused("x +", &["f64[5]"]), "expression is wrong: expected a number, x, i, pi or a function at character 4");
        assert!(refused("x0 + x1", &["f64[5]", "f64[4]"]).starts_with("input 1 is f64[4]: map takes"));
        assert!(refused("x", &["f64[<=5]"]).starts_with("input 0 is"));
        let long = vec!["x"; 100].join("+");
        assert_eq!(refused(&long, &["u8[65536]"]), "expression has 199 steps: for so many at most 5269 points can be mapped");
    }
}
