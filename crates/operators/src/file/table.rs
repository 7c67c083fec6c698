//! One table of a file: its keys are asked for one by one, and what nobody has asked for is told.

use std::{
    collections::BTreeSet,
    ops::{Range, RangeInclusive},
};

use bodkin_broker::{timing::Span, topic::parse_span};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Reading;
use crate::parameters::{Parameters, UNITS, Value};

pub(super) struct Table<'t> {
    /// None: a table that is left out.
    fields: Option<&'t DeTable<'t>>,
    head: Range<usize>,
    asked: BTreeSet<String>,
}

impl<'t> Table<'t> {
    pub fn new(fields: &'t DeTable<'t>, head: Range<usize>) -> Self {
        Self { fields: Some(fields), head, asked: BTreeSet::new() }
    }

    /// Where it begins.
    pub fn head(&self) -> Range<usize> {
        self.head.clone()
    }

    /// Where the value of a key is; where there is none, the head.
    pub fn place(&self, key: &str) -> Range<usize> {
        self.fields.and_then(|fields| fields.get(key)).map_or_else(|| self.head(), Spanned::span)
    }

    /// Where a time is, whatever its unit.
    pub fn time_place(&self, key: &str) -> Range<usize> {
        let written = UNITS.iter().map(|(unit, _)| format!("{key}{unit}")).find(|key| self.has(key));
        written.map_or_else(|| self.head(), |key| self.place(&key))
    }

    pub fn has(&self, key: &str) -> bool {
        self.fields.is_some_and(|fields| fields.contains_key(key))
    }

    pub fn value(&mut self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.insert(key.to_owned());
        self.fields?.get(key)
    }

    /// Tells of the keys that nobody has asked for.
    pub fn finish(self, reading: &mut Reading) {
        for (key, _) in self.fields.into_iter().flatten() {
            let name = key.get_ref().as_ref();
            if self.asked.contains(name) {
                continue;
            }
            let without_unit = UNITS.iter().any(|(unit, _)| self.asked.contains(&format!("{name}{unit}")));
            let what = match without_unit {
                true => format!("{name} needs its unit: {name}_us, {name}_ms or {name}_s"),
                false => {
                    format!("{name} is no key here: there are {}", self.asked.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
                }
            };
            reading.wrong(key.span(), what);
        }
    }

    /// What is left for an operator to read.
    pub fn parameters(&mut self) -> Parameters {
        let fields = self.fields.into_iter().flatten();
        let left = fields.filter(|(key, _)| !self.asked.contains(key.get_ref().as_ref()));
        Parameters::new(left.map(|(key, field)| (key.get_ref().to_string(), value(field.get_ref()))))
    }

    /// Marks keys as known.
    pub fn know<'k>(&mut self, keys: impl Iterator<Item = &'k str>) {
        self.asked.extend(keys.map(str::to_owned));
    }

    pub fn table(&mut self, reading: &mut Reading, key: &str) -> Self {
        match self.value(key).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::Table(table), head)) => Self::new(table, head),
            other => {
                let at = other.map_or(0..0, |(_, at)| at);
                reading.wrong(at, format!("{key} must be a table: [{key}]"));
                Self { fields: None, head: self.head(), asked: BTreeSet::new() }
            }
        }
    }

    pub fn tables(&mut self, reading: &mut Reading, key: &str, most: usize) -> Vec<Self> {
        let entries = match self.value(key).map(|value| (value.get_ref(), value.span())) {
            None => return Vec::new(),
            Some((DeValue::Array(entries), _)) if entries.len() <= most => entries,
            Some((DeValue::Array(entries), at)) => {
                reading.exceeds_limit = true;
                reading.wrong(at, format!("there are {} of [[{key}]], and at most {most} are allowed", entries.len()));
                return Vec::new();
            }
            Some((_, at)) => {
                reading.wrong(at, format!("{key} must be a list of tables, each with the head [[{key}]]"));
                return Vec::new();
            }
        };
        let tables = entries.iter().filter_map(|entry| match entry.get_ref() {
            DeValue::Table(table) => Some(Self::new(table, entry.span())),
            _ => {
                reading.wrong(entry.span(), format!("{key} must be a table with the head [[{key}]]"));
                None
            }
        });
        tables.collect()
    }

    pub fn text(&mut self, reading: &mut Reading, key: &str) -> Option<String> {
        match self.value(key).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::String(text), _)) if !text.is_empty() => Some(text.to_string()),
            Some((_, at)) => {
                reading.wrong(at, format!("{key} must be a text"));
                None
            }
            None => {
                // A table that is not there was told of already.
                if self.fields.is_some() {
                    reading.wrong(self.head(), format!("{key} is missing"));
                }
                None
            }
        }
    }

    pub fn topic(&mut self, reading: &mut Reading, key: &str) -> Option<String> {
        let topic = self.text(reading, key)?;
        (reading.topic_name)(&topic).map_err(|what| reading.wrong(self.place(key), format!("{key} {what}"))).ok()
    }

    pub fn boolean(&mut self, reading: &mut Reading, key: &str, default: bool) -> bool {
        match self.value(key).map(|value| (value.get_ref(), value.span())) {
            None => default,
            Some((DeValue::Boolean(boolean), _)) => *boolean,
            Some((_, at)) => {
                reading.wrong(at, format!("{key} must be true or false"));
                default
            }
        }
    }

    pub fn word<T: Copy>(&mut self, reading: &mut Reading, key: &str, words: &[(&str, T)]) -> Option<T> {
        let (value, at) = self.value(key).map(|value| (value.get_ref(), value.span()))?;
        let found = value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
        if found.is_none() {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            reading.wrong(at, format!("{key} must be {}", words.join(" or ")));
        }
        found.map(|(_, meant)| *meant)
    }

    pub fn whole(&mut self, reading: &mut Reading, key: &str, within: RangeInclusive<u32>, default: Option<u32>) -> Option<u32> {
        let value = self.value(key).map(|field| (key.to_owned(), value(field.get_ref())));
        let at = self.place(key);
        Parameters::new(value).whole(key, within, default).map_err(|error| reading.wrong(at, error.to_string())).ok()
    }

    /// A length of time, under the key with its unit, or `inf`.
    pub fn time(&mut self, reading: &mut Reading, key: &str) -> Option<Span> {
        let mut found = None;
        for (unit, unit_ns) in UNITS {
            let written = format!("{key}{unit}");
            let Some(field) = self.value(&written) else { continue };
            let time = match value(field.get_ref()) {
                Value::Number(text) => parse_span(&text, unit_ns).map_err(|error| error.to_string()),
                Value::Text(text) if text == "inf" => Ok(Span::Infinite),
                _ => Err("must be a number or inf".to_owned()),
            };
            let time = time
                .and_then(|time| if time < Span::Finite(Default::default()) { Err("must not be negative".to_owned()) } else { Ok(time) });
            match (time, found) {
                (Ok(_), Some(_)) => reading.wrong(field.span(), format!("{written} says again what is said in another unit")),
                (Ok(time), None) => found = Some(time),
                (Err(what), _) => reading.wrong(field.span(), format!("{written} {what}")),
            }
        }
        found
    }

    pub fn needed_time(&mut self, reading: &mut Reading, key: &str) -> Option<Span> {
        let before = reading.found.len();
        let time = self.time(reading, key);
        // What has no unit is told of as such.
        if time.is_none() && reading.found.len() == before && !self.has(key) {
            reading.wrong(self.head(), format!("{key}_ms is missing"));
        }
        time
    }
}

/// A value of the file as an operator reads it.
pub(super) fn value(field: &DeValue<'_>) -> Value {
    match field {
        DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str().to_owned()),
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Array(values) => Value::List(values.iter().map(|entry| value(entry.get_ref())).collect()),
        _ => Value::Other,
    }
}
