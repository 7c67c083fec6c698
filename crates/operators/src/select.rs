//! One field of a JSON text.

use bodkin_broker::graph::{Count, Element, Emission, Fault, Inputs, Operator, Shape, Trigger};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::{Parameters, error},
    points::write,
};

/// Parts of the longest path.
const PATH_MAX: usize = 16;

/// `select`: the number at `path` in a JSON text: names and places from 0 on with dots between them, `"motors.2.speed"`. `true` is 1, `false` is 0.
///
/// Input: one, of json. Result: `f64`. A text that is no JSON is refused; where there is no such field, or no number in it, the result is NaN (`missing = "nan"`, the
/// default), or there is none (`"nothing"`). Of a key that comes twice the first counts. No state. Source: RFC 8259; paths as in RFC 6901 with dots.
pub const SELECT: Kind = Kind { name: "select", inputs: 1..=1, trigger: Trigger::All, make };

struct Select {
    path: Vec<Part>,
    emits_missing: bool,
}

/// A part of a path: a name, and the place that it may be in a list.
struct Part {
    name: String,
    place: Option<usize>,
}

fn make(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let text = parameters.text("path")?;
    let path: Vec<Part> = text.split('.').map(|name| Part { name: name.to_owned(), place: name.parse().ok() }).collect();
    if path.len() > PATH_MAX || path.iter().any(|part| part.name.is_empty()) {
        return Err(error("path", format!("must be 1 to {PATH_MAX} names or places with dots between them")).into());
    }
    let emits_missing = parameters.word("missing", &[("nan", true), ("nothing", false)], false)?;
    demand(inputs, |input| input.shape.element() == Element::Json && input.events == 1, "select takes json, event by event")?;
    let shape = Shape::new(Element::F64, Count::Exactly(1)).map_err(Misfit::Result)?;
    Ok(Made::new(Select { path, emits_missing }, shape))
}

impl Operator for Select {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let [event] = inputs.all() else { return Err(Fault::Input { input: 0, what: "has no event" }) };
        let mut text = serde_json::Deserializer::from_slice(event.payload);
        let found = Way(&self.path).deserialize(&mut text).and_then(|found| text.end().map(|()| found));
        match found.map_err(|_| Fault::Input { input: 0, what: "is no JSON text" })? {
            None if !self.emits_missing => Ok(Emission::Nothing),
            found => {
                write(out, &[found.unwrap_or(f64::NAN)]);
                Ok(Emission::Emit)
            }
        }
    }
}

/// Goes the rest of a path, and passes over all else: nothing of the text is kept.
struct Way<'p>(&'p [Part]);

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = Option<f64>;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<Option<f64>, D::Error> {
        match self.0 {
            [] => Ok(number(<&RawValue>::deserialize(text)?.get())),
            _ => text.deserialize_any(self),
        }
    }
}

/// Returns the double nearest to a JSON number. serde_json's own `f64` is only near it.
fn number(text: &str) -> Option<f64> {
    match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => text.parse().ok().filter(|_| text.starts_with(|first: char| first == '-' || first.is_ascii_digit())),
    }
}

impl<'de> Visitor<'de> for Way<'_> {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON text")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<f64>, A::Error> {
        let mut found = None;
        while let Some(is_meant) = map.next_key_seed(Name(self.0.first()))? {
            match self.0 {
                [_, rest @ ..] if is_meant && found.is_none() => found = Some(map.next_value_seed(Way(rest))?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<f64>, A::Error> {
        let meant = self.0.first().and_then(|part| part.place);
        let mut found = None;
        for place in 0.. {
            let is_there = match self.0 {
                [_, rest @ ..] if meant == Some(place) => list.next_element_seed(Way(rest))?.map(|value| found = value).is_some(),
                _ => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !is_there {
                break;
            }
        }
        Ok(found)
    }
}

/// Whether a key is the name of a part.
struct Name<'p>(Option<&'p Part>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<bool, D::Error> {
        text.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        Ok(self.0.is_some_and(|part| part.name == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, input, numbers, text};

    fn select(path: &str, json: &str) -> Result<f64, Fault> {
        let mut bench = Bench::new(&SELECT, &[("path", text(path))], &[input("json[<=200]")]);
        bench.run(&[&[json.as_bytes()]]).map(|found| numbers(&found.expect("there is a result"))[0])
    }

    #[test]
    fn a_field_is_found_by_its_path() {
        let json = r#"{"a": {"b": [1, {"c": -2.5e1}, true]}, "a.b": 9, "é": "7", "a": 5}"#;
        for (path, expected) in [("a.b.0", 1.0), ("a.b.1.c", -25.0), ("a.b.2", 1.0)] {
            assert_eq!(select(path, json), Ok(expected), "{path}");
        }
        for path in ["a", "a.b", "a.b.3", "a.b.1.d", "b", "é", "a.b.0.0"] {
            assert!(select(path, json).expect("it is JSON").is_nan(), "{path}");
        }
        assert_eq!((select("x", r#"{"\u0078":18446744073709551615}"#), select("0", "[-9]")), (Ok(18_446_744_073_709_551_615.0), Ok(-9.0)));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for wrong in ["", "{", "{\"a\":1}x", "{\"a\":}", "\u{0}", &"[".repeat(200)] {
            assert_eq!(select("a", wrong), Err(Fault::Input { input: 0, what: "is no JSON text" }), "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_may_be_nothing() {
        let mut bench = Bench::new(&SELECT, &[("path", text("a")), ("missing", text("nothing"))], &[input("json[<=200]")]);
        assert_eq!((bench.run(&[&[b"{}"]]), bench.run(&[&[b"{\"a\":0}"]])), (Ok(None), Ok(Some(vec![0; 8]))));
    }
}
