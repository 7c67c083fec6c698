//! Files of topics (TOML), and the same tables in the main configuration: `docs/formats/topics.md`. What is wrong is told by file, line, key and what to write instead.

mod mistake;

use std::{
    borrow::Cow,
    fs::File,
    io::Read,
    num::NonZeroU32,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use bodkin_arrowhead::name::{EventType, NameError};
use bodkin_broker::topic::{
    Platform,
    form::{Field, FormError, FormProblem, TopicForm, platform_keys, read_platform, read_topic, topic_keys},
};
use bodkin_host::{DeclaredTopic, PublisherList};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use self::mistake::Mistake;
pub use self::mistake::Mistakes;
use crate::nearest::nearest;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a file declares.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicFile {
    /// What all topics count on.
    pub platform: Platform,
    /// In the order of the file.
    pub topics: Vec<Entry>,
}

/// One entry of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its event type; of topics alike, the name of them all.
    pub event_type: EventType,
    /// Where it begins, from 1 on.
    pub line: usize,
    /// What it says.
    pub form: TopicForm,
    /// Systems that may publish it.
    pub permitted: PublisherList,
}

impl TopicFile {
    /// Every topic by its own name: those of an entry with a count are numbered from 1 on.
    pub fn each(&self) -> Result<Vec<DeclaredTopic>, NameError> {
        let named = |topic: &Entry, number| match topic.form.count {
            1 => Ok(topic.event_type.clone()),
            _ => EventType::parse(&format!("{}-{number}", topic.event_type.as_str())),
        };
        let specs = self.topics.iter().map(|topic| (topic, Arc::new(topic.form.spec)));
        let numbered = specs.flat_map(|(topic, spec)| (1..=topic.form.count).map(move |number| (topic, spec.clone(), number)));
        numbered
            .map(|(topic, spec, number)| Ok(DeclaredTopic { event_type: named(topic, number)?, spec, permitted: topic.permitted.clone() }))
            .collect()
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<TopicFile, Mistakes> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    parse(&text).map_err(|found| Mistakes { path: PathBuf::from(path), text, found })
}

/// The text of a file of at most so many bytes.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, Mistakes> {
    let mut text = String::new();
    let opened = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_string(&mut text));
    let unread = |why: String| Mistakes { path: path.to_owned(), text: String::new(), found: vec![Mistake { at: None, what: why }] };
    match opened {
        Err(error) => Err(unread(format!("cannot be read: {error}"))),
        Ok(bytes) if bytes as u64 > bytes_max => Err(unread(format!("is longer than {} MiB", bytes_max >> 20))),
        Ok(_) => Ok(text),
    }
}

/// Reads the tables of the main configuration; what else it has is not looked at.
pub fn read_configuration(path: &Path, text: &str) -> Result<TopicFile, Mistakes> {
    parse_tables(text, |_, _| ()).map_err(|found| Mistakes { path: path.to_owned(), text: text.to_owned(), found })
}

/// The place in a file, and all mistakes that are found in it.
struct Reading {
    /// Where each line ends: counting them anew for each of many topics would take minutes.
    line_ends: Vec<usize>,
    found: Vec<Mistake>,
}

fn parse(text: &str) -> Result<TopicFile, Vec<Mistake>> {
    parse_tables(text, |reading, document| {
        for (key, _) in document {
            if !TABLES.contains(&key.get_ref().as_ref()) {
                reading.unknown(key, TABLES.into_iter());
            }
        }
    })
}

/// Keys of a topic that are names of the cloud.
const NAMES: [&str; 2] = ["event_type", "publisher"];

/// The tables that declare topics.
const TABLES: [&str; 2] = ["platform", "topic"];

/// Reads them; `check` looks at the whole document first.
fn parse_tables(text: &str, check: impl FnOnce(&mut Reading, &DeTable<'_>)) -> Result<TopicFile, Vec<Mistake>> {
    let document = DeTable::parse(text).map_err(|error| vec![Mistake { at: error.span(), what: error.message().to_owned() }])?;
    let line_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    let mut reading = Reading { line_ends, found: Vec::new() };
    check(&mut reading, document.get_ref());
    let platform = reading.platform(document.get_ref().get("platform"));
    let topics = reading.topics(document.get_ref().get("topic"), &platform);
    match reading.found.is_empty() {
        true => Ok(TopicFile { platform, topics }),
        false => Err(reading.found),
    }
}

impl Reading {
    fn wrong(&mut self, at: Range<usize>, what: impl Into<String>) {
        self.found.push(Mistake { at: Some(at), what: what.into() });
    }

    fn unknown<'k>(&mut self, key: &Spanned<Cow<'_, str>>, keys: impl Iterator<Item = &'k str>) {
        let mistaken = key.get_ref();
        let meant = nearest(mistaken, keys).map(|known| format!(": did you mean {known}?")).unwrap_or_default();
        self.wrong(key.span(), format!("{mistaken} is no key here{meant}"));
    }

    fn platform(&mut self, value: Option<&Spanned<DeValue<'_>>>) -> Platform {
        let empty = Spanned::new(0..0, DeTable::new());
        let (table, at) = match value.map(|value| (value.get_ref(), value.span())) {
            None => (empty.get_ref(), empty.span()),
            Some((DeValue::Table(table), at)) => (table, at),
            Some((_, at)) => {
                self.wrong(at, "platform must be a table: [platform]");
                return Platform::default();
            }
        };
        read_platform(fields(table)).unwrap_or_else(|errors| {
            errors.into_iter().for_each(|error| self.told(error, table, &at, platform_keys()));
            Platform::default()
        })
    }

    fn topics(&mut self, value: Option<&Spanned<DeValue<'_>>>, platform: &Platform) -> Vec<Entry> {
        let entries = match value.map(|value| (value.get_ref(), value.span())) {
            None => return Vec::new(),
            Some((DeValue::Array(entries), _)) => entries,
            Some((_, at)) => {
                self.wrong(at, "topic must be a list of tables, each with the head [[topic]]");
                return Vec::new();
            }
        };
        let mut topics: Vec<Entry> = Vec::with_capacity(entries.len());
        let mut lines = std::collections::HashMap::new();
        for entry in entries {
            let Some(table) = entry.get_ref().as_table() else {
                self.wrong(entry.span(), "a topic must be a table with the head [[topic]]");
                continue;
            };
            let line = 1 + self.line_ends.partition_point(|end| *end < entry.span().start);
            let event_type = self.event_type(table, &entry.span());
            if let Some(before) = event_type.as_ref().and_then(|event_type| lines.insert(event_type.clone(), line)) {
                let at = table.get("event_type").map_or(entry.span(), Spanned::span);
                self.wrong(at, format!("event_type is declared already, in line {before}: topics alike are one entry with a count"));
            }
            match read_topic(fields(table).filter(|(key, _)| !NAMES.contains(key)), platform) {
                Ok(form) => {
                    let permitted = self.permitted(table, form.spec.publishers);
                    let named = event_type.zip(permitted);
                    topics.extend(named.map(|(event_type, permitted)| Entry { event_type, line, form, permitted }));
                }
                Err(errors) => {
                    let keys = || topic_keys().chain(NAMES.map(str::to_owned));
                    errors.into_iter().for_each(|error| self.told(error, table, &entry.span(), keys()));
                }
            }
        }
        topics
    }

    fn event_type(&mut self, table: &DeTable<'_>, head: &Range<usize>) -> Option<EventType> {
        let Some(value) = table.get("event_type") else {
            self.wrong(head.clone(), "event_type is missing");
            return None;
        };
        let Some(name) = value.get_ref().as_str() else {
            self.wrong(value.span(), "event_type must be a text");
            return None;
        };
        EventType::parse(name)
            .map_err(|error| self.wrong(value.span(), format!("event_type {}", error.to_string().trim_end_matches('.'))))
            .ok()
    }

    /// Reads the systems that may publish a topic.
    fn permitted(&mut self, table: &DeTable<'_>, publishers: NonZeroU32) -> Option<PublisherList> {
        let Some(value) = table.get("publisher") else { return Some(PublisherList::default()) };
        let names: Option<Vec<&str>> = match value.get_ref() {
            DeValue::String(name) => Some(vec![name]),
            DeValue::Array(names) => names.iter().map(|name| name.get_ref().as_str()).collect(),
            _ => None,
        };
        let Some(names) = names else {
            self.wrong(value.span(), "publisher must be the name of a system, or a list of names");
            return None;
        };
        PublisherList::parse(names, publishers).map_err(|reason| self.wrong(value.span(), reason)).ok()
    }

    /// Puts an error of a table to the place in the text that it is about.
    fn told(&mut self, error: FormError, table: &DeTable<'_>, head: &Range<usize>, keys: impl Iterator<Item = String>) {
        match table.iter().find(|(key, _)| key.get_ref().as_ref() == error.key) {
            None => self.wrong(head.clone(), error.to_string()),
            Some((key, _)) if error.problem == FormProblem::Unknown => {
                let keys: Vec<String> = keys.collect();
                self.unknown(key, keys.iter().map(String::as_str));
            }
            Some((key, _)) if matches!(error.problem, FormProblem::NoUnit(_) | FormProblem::Twice(_)) => {
                self.wrong(key.span(), error.to_string());
            }
            Some((_, value)) => self.wrong(value.span(), error.to_string()),
        }
    }
}

/// The fields of a table, in the order of the text.
fn fields<'t>(table: &'t DeTable<'_>) -> impl Iterator<Item = (&'t str, Field<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| {
        let field = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => Field::Number(number.as_str()),
            DeValue::Float(number) => Field::Number(number.as_str()),
            DeValue::String(text) => Field::Text(text),
            DeValue::Boolean(boolean) => Field::Boolean(*boolean),
            _ => Field::Other,
        };
        (key.get_ref().as_ref(), field)
    })
}

#[cfg(test)]
mod tests;
