//! What a graph file says to an operator: keys and values, each read once, with its bounds.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use bodkin_broker::{
    timing::Nanos,
    topic::{parse_span, parse_whole},
};

use crate::cipher::Keys;

/// A value as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The decimal text of a number.
    Number(String),
    /// A text.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// Values in order.
    List(Vec<Value>),
    /// A table, a date: nothing that a key takes.
    Other,
}

/// A key, and what is wrong with its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {problem}")]
pub struct ParameterError {
    /// The key as it was written; where it is missing, as it could be.
    pub key: String,
    /// What is wrong.
    pub problem: String,
}

/// Units of a time, by the end of its key.
pub(crate) const UNITS: [(&str, u64); 3] = [("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];

/// Keys and values of an operator.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: BTreeMap<String, Value>,
    asked: BTreeSet<String>,
    graph: String,
    operator: String,
    keys: Option<Keys>,
}

impl Parameters {
    /// Takes them as they were written.
    pub fn new(values: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self { values: values.into_iter().collect(), ..Self::default() }
    }

    /// The same for an operator of a graph.
    pub fn at(self, graph: &str, operator: &str) -> Self {
        Self { graph: graph.to_owned(), operator: operator.to_owned(), ..self }
    }

    /// The same with the keys of a deployment; none while a graph is only looked at.
    pub fn with_keys(self, keys: Option<Keys>) -> Self {
        Self { keys, ..self }
    }

    /// Whether both say the same, wherever they do.
    pub fn says_like(&self, other: &Self) -> bool {
        self.values == other.values
    }

    /// The names of the graph and the operator.
    pub fn place(&self) -> (&str, &str) {
        (&self.graph, &self.operator)
    }

    /// The keys of the deployment.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Keys that nobody has asked for, and those that were asked for.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.values.keys().filter(|key| !self.asked.contains(*key)).map(String::as_str)
    }

    /// Every key that was asked for, there or not.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(String::as_str)
    }

    fn value(&mut self, key: &str) -> Option<&Value> {
        self.asked.insert(key.to_owned());
        self.values.get(key)
    }

    /// A whole number within bounds.
    pub fn whole(&mut self, key: &str, within: RangeInclusive<u32>, default: Option<u32>) -> Result<u32, ParameterError> {
        let expected = || format!("must be a whole number from {} to {}", within.start(), within.end());
        match (self.value(key), default) {
            (Some(Value::Number(text)), _) => {
                let number = parse_whole(text).ok().and_then(|number| u32::try_from(number).ok()).filter(|number| within.contains(number));
                number.ok_or_else(|| error(key, expected()))
            }
            (Some(_), _) => Err(error(key, expected())),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(missing(key)),
        }
    }

    /// A finite number.
    pub fn number(&mut self, key: &str, default: Option<f64>) -> Result<f64, ParameterError> {
        match (self.value(key), default) {
            (Some(value), _) => finite(value).ok_or_else(|| error(key, "must be a number")),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(missing(key)),
        }
    }

    /// A finite number greater than 0.
    pub fn positive(&mut self, key: &str, default: Option<f64>) -> Result<f64, ParameterError> {
        let number = self.number(key, default)?;
        if number > 0.0 { Ok(number) } else { Err(error(key, "must be a number greater than 0")) }
    }

    /// A length of time greater than 0, under the key with its unit. `key` is without one.
    pub fn time(&mut self, key: &str, default: Option<Nanos>) -> Result<Nanos, ParameterError> {
        let mut found = None;
        for (unit, unit_ns) in UNITS {
            let key = format!("{key}{unit}");
            let Some(value) = self.value(&key) else { continue };
            let time = match value {
                Value::Number(text) => parse_span(text, unit_ns).map_err(|problem| error(&key, problem.to_string()))?.finite(),
                _ => None,
            };
            let time = time.filter(|time| *time > Nanos::ZERO).ok_or_else(|| error(&key, "must be a number greater than 0"))?;
            if found.replace(time).is_some() {
                return Err(error(&key, "says again what is said in another unit"));
            }
        }
        found.or(default).ok_or_else(|| missing(&format!("{key}_ms")))
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Result<String, ParameterError> {
        match self.value(key) {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(_) => Err(error(key, "must be a text")),
            None => Err(missing(key)),
        }
    }

    /// One of some words; the first where it is left out and `is_needed` is not set.
    pub fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)], is_needed: bool) -> Result<T, ParameterError> {
        let expected = || {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            format!("must be {}", words.join(" or "))
        };
        match self.value(key) {
            Some(Value::Text(text)) => {
                words.iter().find(|(word, _)| word == text).map(|(_, meant)| *meant).ok_or_else(|| error(key, expected()))
            }
            Some(_) => Err(error(key, expected())),
            None if is_needed => Err(missing(key)),
            None => Ok(words[0].1),
        }
    }

    /// True or false; false where it is left out.
    pub fn boolean(&mut self, key: &str) -> Result<bool, ParameterError> {
        match self.value(key) {
            Some(Value::Boolean(boolean)) => Ok(*boolean),
            Some(_) => Err(error(key, "must be true or false")),
            None => Ok(false),
        }
    }

    /// Finite numbers, `lengths` of them.
    pub fn numbers(&mut self, key: &str, lengths: RangeInclusive<usize>) -> Result<Vec<f64>, ParameterError> {
        let expected = || match lengths.start() == lengths.end() {
            true => format!("must be a list of {} numbers", lengths.start()),
            false => format!("must be a list of {} to {} numbers", lengths.start(), lengths.end()),
        };
        match self.value(key) {
            Some(Value::List(values)) => {
                let numbers: Option<Vec<f64>> = values.iter().map(finite).collect();
                numbers.filter(|numbers| lengths.contains(&numbers.len())).ok_or_else(|| error(key, expected()))
            }
            Some(_) => Err(error(key, expected())),
            None => Err(missing(key)),
        }
    }

    /// How many rows a matrix has.
    pub fn rows(&mut self, key: &str, within: RangeInclusive<usize>) -> Result<usize, ParameterError> {
        match self.value(key) {
            Some(Value::List(rows)) if within.contains(&rows.len()) => Ok(rows.len()),
            Some(_) => Err(error(key, format!("must be a list of {} to {} rows", within.start(), within.end()))),
            None => Err(missing(key)),
        }
    }

    /// A matrix of finite numbers, a list of its rows.
    pub fn matrix(&mut self, key: &str, rows: usize, columns: usize) -> Result<Vec<f64>, ParameterError> {
        let row = |row: &Value| match row {
            Value::List(values) if values.len() == columns => values.iter().map(finite).collect::<Option<Vec<f64>>>(),
            _ => None,
        };
        match self.value(key) {
            Some(Value::List(values)) if values.len() == rows => {
                values.iter().map(row).collect::<Option<Vec<_>>>().map(|rows| rows.concat()).ok_or_else(|| matrix_error(key, rows, columns))
            }
            Some(_) => Err(matrix_error(key, rows, columns)),
            None => Err(missing(key)),
        }
    }

    /// Texts, one at least.
    pub fn texts(&mut self, key: &str) -> Result<Vec<String>, ParameterError> {
        let text = |value: &Value| if let Value::Text(text) = value { Some(text.clone()) } else { None };
        match self.value(key) {
            Some(Value::List(values)) if !values.is_empty() => {
                values.iter().map(text).collect::<Option<_>>().ok_or_else(|| error(key, "must be a list of texts"))
            }
            Some(_) => Err(error(key, "must be a list of texts")),
            None => Err(missing(key)),
        }
    }
}

fn finite(value: &Value) -> Option<f64> {
    match value {
        Value::Number(text) => text.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn missing(key: &str) -> ParameterError {
    error(key, "is missing")
}

fn matrix_error(key: &str, rows: usize, columns: usize) -> ParameterError {
    error(key, format!("must be a list of {rows} rows of {columns} numbers each"))
}

/// What an operator has to say against a value.
pub fn error(key: &str, problem: impl Into<String>) -> ParameterError {
    ParameterError { key: key.to_owned(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        let number = |text: &str| Value::Number(text.to_owned());
        let row = |a: &str, b: &str| Value::List(vec![number(a), number(b)]);
        let values = [
            ("n", number("7")),
            ("x", number("-0.5")),
            ("inf", number("inf")),
            ("word", Value::Text("two".to_owned())),
            ("flag", Value::Boolean(true)),
            ("gap_ms", number("0.25")),
            ("twice_ms", number("1")),
            ("twice_us", number("1")),
            ("m", Value::List(vec![row("1", "2"), row("3", "4")])),
        ];
        Parameters::new(values.map(|(key, value)| (key.to_owned(), value)))
    }

    #[test]
    fn values_are_read_within_their_bounds() {
        let mut read = parameters();
        assert_eq!(read.whole("n", 1..=7, None), Ok(7));
        assert_eq!(read.whole("absent", 1..=7, Some(3)), Ok(3));
        assert_eq!((read.number("x", None), read.number("absent", Some(1.5))), (Ok(-0.5), Ok(1.5)));
        assert_eq!(read.time("gap", None), Ok(Nanos::from_micros(250)));
        assert_eq!(read.word("word", &[("one", 1), ("two", 2)], true), Ok(2));
        assert_eq!(read.word("absent", &[("one", 1), ("two", 2)], false), Ok(1));
        assert_eq!((read.boolean("flag"), read.boolean("absent")), (Ok(true), Ok(false)));
        assert_eq!(read.matrix("m", 2, 2), Ok(vec![1.0, 2.0, 3.0, 4.0]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        let mut read = parameters();
        let told = [
            read.whole("n", 8..=9, None).map(drop),
            read.whole("x", 0..=9, None).map(drop),
            read.whole("absent", 0..=9, None).map(drop),
            read.number("inf", None).map(drop),
            read.positive("x", None).map(drop),
            read.time("absent", None).map(drop),
            read.time("twice", None).map(drop),
            read.word("word", &[("one", 1), ("three", 2)], true).map(drop),
            read.matrix("m", 2, 3).map(drop),
            read.numbers("n", 1..=2).map(drop),
        ];
        let told: Vec<String> = told.into_iter().filter_map(|told| told.err().map(|error| error.to_string())).collect();
        let expected = [
            "n must be a whole number from 8 to 9",
            "x must be a whole number from 0 to 9",
            "absent is missing",
            "inf must be a number",
            "x must be a number greater than 0",
            "absent_ms is missing",
            "twice_ms says again what is said in another unit",
            "word must be \"one\" or \"three\"",
            "m must be a list of 2 rows of 3 numbers each",
            "n must be a list of 1 to 2 numbers",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn keys_that_nobody_asks_for_are_known() {
        let mut read = parameters();
        for key in ["n", "x", "inf", "word", "flag", "m"] {
            let _ = read.text(key);
        }
        let _ = read.time("gap", None);
        assert_eq!(read.unknown().collect::<Vec<_>>(), ["twice_ms", "twice_us"]);
    }
}
