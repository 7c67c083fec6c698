//! Named numbers of a net's file: what a sweep varies.
//!
//! `"parameters": {"pool": 4}` names them. Guards and rates use them as they use places, and wherever the form has a number there may be
//! a text in its place that begins with `=`, as in `"initial": "=2 * pool"`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};

use super::JsonError;
use crate::{expression::Expression, net::NetError};

/// Names and values.
#[derive(Default)]
pub(super) struct Parameters {
    names: Vec<String>,
    values: Vec<f64>,
}

/// The one member that is looked for.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    parameters: BTreeMap<String, f64>,
}

impl Parameters {
    /// Those of a file, with other values for the ones in `set`.
    pub fn of(text: &str, set: &[(String, f64)]) -> Result<Self, JsonError> {
        let Named { mut parameters } = serde_json::from_str(text)?;
        for (name, value) in set {
            let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
            let refused = || {
                let known = if known.is_empty() { "the net has none".to_owned() } else { format!("the net has {}", known.join(", ")) };
                NetError::new("parameters", format!("there is no {name}: {known}"))
            };
            if !known.contains(&name.as_str()) {
                return Err(refused().into());
            }
            parameters.insert(name.clone(), *value);
        }
        Ok(Self { names: parameters.keys().cloned().collect(), values: parameters.into_values().collect() })
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name that is a place's, too.
    pub fn name_in<'a>(&'a self, mut places: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        places.find(|place| self.names.iter().any(|name| name == place))
    }

    /// Reads an expression over places and parameters; the latter are numbers in it.
    pub fn expression(&self, text: &str, place: &dyn Fn(&str) -> Option<usize>) -> Result<Expression, String> {
        // Behind all places.
        const FIRST: usize = u32::MAX as usize;
        let index = |name: &str| place(name).or_else(|| self.names.iter().position(|own| own == name).map(|index| FIRST + index));
        let expression = Expression::parse(text, &index).map_err(|error| error.to_string())?;
        Ok(expression.with_numbers(&|place| place.checked_sub(FIRST).map(|index| self.values[index])))
    }

    /// Puts numbers in the place of texts that begin with `=`; `location` is the member's.
    pub fn apply(&self, value: &mut Value, location: &str) -> Result<(), NetError> {
        match value {
            Value::String(text) => {
                let Some(formula) = text.strip_prefix('=') else { return Ok(()) };
                let expression = self.expression(formula, &|_| None).map_err(|reason| NetError::new(location, reason))?;
                let found = expression.value(&[]);
                *value = number(found).ok_or_else(|| NetError::new(location, format!("{formula} is {found}; expected a finite number")))?;
                Ok(())
            }
            Value::Array(values) => {
                values.iter_mut().enumerate().try_for_each(|(index, value)| self.apply(value, &format!("{location} {}", index + 1)))
            }
            Value::Object(members) => {
                let location = |name: &str| if location.is_empty() { name.to_owned() } else { format!("{location}, {name}") };
                members.iter_mut().try_for_each(|(name, value)| self.apply(value, &location(name)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
}

/// Whole numbers stay whole: tokens and weights are.
fn number(value: f64) -> Option<Value> {
    let is_count = value.fract() == 0.0 && (0.0..9e15).contains(&value);
    if is_count { Some(Value::from(value as u64)) } else { Number::from_f64(value).map(Value::Number) }
}
