//! Events of several inputs as one JSON object.

use std::io::Write;

use bodkin_broker::graph::{Count, Element, Emission, Event, Fault, Inputs, Operator, Shape, Trigger};

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::{Parameters, error},
    points::read,
};

/// Bytes of the longest number, `-2.2250738585072014e-308`, and the comma behind it.
const NUMBER_BYTES_MAX: usize = 25;

/// `join`: a JSON object with one member for each input, named by `names` in the order of the inputs. A json event is taken as it is, one point is a number, several are a list
/// of numbers; what is NaN or infinite is `null`.
///
/// Inputs: 1 or more, of real points or json, event by event; which events belong together the input's `use` and `relative_validity` say. Result: `json`, at most as
/// long as the longest numbers make it. A json input that is no JSON text is refused. No state.
pub const JOIN: Kind = Kind { name: "join", inputs: 1..=16, trigger: Trigger::All, make };

struct Join {
    /// `"name":`, with the brace or comma in front of it, and the type of its points.
    members: Vec<(Vec<u8>, Element, bool)>,
    points: Vec<f64>,
}

fn make(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let names = parameters.texts("names")?;
    let is_new = |(at, name): (usize, &String)| !names[..at].contains(name);
    if names.len() != inputs.len() || !names.iter().enumerate().all(is_new) {
        return Err(error("names", format!("must be {} different names, one for each input", inputs.len())).into());
    }
    let fits = |input: &Input| input.events == 1 && (input.shape.element().is_real() || input.shape.element() == Element::Json);
    demand(inputs, fits, "join takes real points and json, event by event")?;
    let members: Vec<_> = names
        .iter()
        .zip(inputs)
        .enumerate()
        .map(|(at, (name, input))| {
            let name = serde_json::Value::from(name.as_str());
            let is_list = input.shape.count() != Count::Exactly(1);
            (format!("{}{name}:", if at == 0 { "{" } else { "," }).into_bytes(), input.shape.element(), is_list)
        })
        .collect();
    let bytes = members.iter().zip(inputs).map(|((head, element, _), input)| {
        let each = if *element == Element::Json { 1 } else { NUMBER_BYTES_MAX };
        head.len() + input.shape.points_max() * each + 2
    });
    let bytes = bytes.sum::<usize>() + 1;
    let shape = Shape::new(Element::Json, Count::AtMost(u32::try_from(bytes).unwrap_or(u32::MAX))).map_err(Misfit::Result)?;
    let points = inputs.iter().map(|input| input.shape.points_max()).max().unwrap_or(0);
    Ok(Made::new(Join { members, points: Vec::with_capacity(points) }, shape))
}

impl Operator for Join {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        for (input, (head, element, is_list)) in self.members.iter().enumerate() {
            let [event] = inputs.of(input) else { return Err(Fault::Input { input, what: "has no event" }) };
            out.extend_from_slice(head);
            match element {
                Element::Json => embed(input, event, out)?,
                element => {
                    read(*element, std::slice::from_ref(event), &mut self.points);
                    numbers(&self.points, *is_list, out);
                }
            }
        }
        out.push(b'}');
        Ok(Emission::Emit)
    }
}

/// A JSON text that is one is part of another one as it is.
fn embed(input: usize, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let text = serde_json::from_slice::<serde::de::IgnoredAny>(event.payload);
    text.map_err(|_| Fault::Input { input, what: "is no JSON text" })?;
    out.extend_from_slice(event.payload);
    Ok(())
}

/// Shortest decimal texts, with an exponent: as long for the largest number as for others.
fn numbers(points: &[f64], is_list: bool, out: &mut Vec<u8>) {
    if is_list {
        out.push(b'[');
    }
    for (at, point) in points.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let written = if point.is_finite() { write!(out, "{point:e}") } else { write!(out, "null") };
        written.expect("a vector takes everything");
    }
    if is_list {
        out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        parameters::Value,
        testing::{Bench, bytes, input, text},
    };

    fn names(names: &[&str]) -> Value {
        Value::List(names.iter().map(|name| text(name)).collect())
    }

    #[test]
    fn inputs_are_the_members_of_an_object() {
        let inputs = [input("f64"), input("u8[<=3]"), input("json[<=20]")];
        let mut bench = Bench::new(&JOIN, &[("names", names(&["load", "q\"", "c"]))], &inputs);
        let found = bench.run(&[&[&bytes(&[f64::NAN])], &[&[1, 2]], &[b"{\"d\": []}"]]).expect("it runs").expect("there is a result");
        let json: serde_json::Value = serde_json::from_slice(&found).expect("it is JSON");
        assert_eq!(json, serde_json::json!({"load": null, "q\"": [1.0, 2.0], "c": {"d": []}}));
        assert_eq!(bench.run(&[&[&bytes(&[1.0])], &[&[]], &[b"{]"]]), Err(Fault::Input { input: 2, what: "is no JSON text" }));
    }

    #[test]
    fn the_longest_numbers_have_room() {
        let longest = [-f64::MAX, -f64::MIN_POSITIVE, f64::MIN_POSITIVE / 3.0, -2.225_073_858_507_201_4e-308];
        let mut bench = Bench::new(&JOIN, &[("names", names(&["n"]))], &[input("f64[4]")]);
        let found = bench.run(&[&[&bytes(&longest)]]).expect("it runs").expect("there is a result");
        let json: serde_json::Value = serde_json::from_slice(&found).expect("it is JSON");
        let read: Vec<f64> = json["n"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_f64).collect();
        assert_eq!(read, longest);
    }

    #[test]
    fn names_must_be_as_many_as_inputs_and_differ() {
        for wrong in [names(&["a"]), names(&["a", "a"]), names(&["a", "b", "c"])] {
            let refused = make(&mut Parameters::new([("names".to_owned(), wrong)]), &[input("f64"), input("f64")]).map(drop);
            assert_eq!(refused.map_err(|misfit| misfit.to_string()), Err("names must be 2 different names, one for each input".to_owned()));
        }
    }
}
