//! The inputs of an operator, and which of them must fit each other.

use std::{num::NonZeroU16, ops::Range};

use bodkin_broker::{
    graph::{EVENTS_MAX, Edge, INPUTS_MAX, RelativeValidity, Use},
    timing::Span,
};
use toml::{Spanned, de::DeValue};

use super::{Reading, table::Table};

/// What `use` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Consume,
    Latest,
    Window,
}

impl Reading {
    /// The inputs, and where each stands; none at all where one is wrong.
    pub(super) fn inputs(&mut self, table: &mut Table<'_>) -> (Vec<Edge>, Vec<Range<usize>>) {
        let Some(value) = table.value("inputs") else {
            self.wrong(table.head(), "inputs is missing");
            return Default::default();
        };
        let entries = match value.get_ref() {
            DeValue::Array(entries) if (1..=INPUTS_MAX).contains(&entries.len()) => entries,
            _ => {
                self.wrong(value.span(), format!("inputs must be a list of 1 to {INPUTS_MAX} topics and operators"));
                return Default::default();
            }
        };
        let before = self.found.len();
        let edges: Vec<Edge> = entries.iter().filter_map(|entry| self.edge(entry)).collect();
        if self.found.len() > before { Default::default() } else { (edges, entries.iter().map(Spanned::span).collect()) }
    }

    fn edge(&mut self, entry: &Spanned<DeValue<'_>>) -> Option<Edge> {
        match entry.get_ref() {
            DeValue::String(name) => Some(Edge { from: self.source(name, entry.span())?, usage: Use::Consume }),
            DeValue::Table(fields) => {
                let mut table = Table::new(fields, entry.span());
                let from = table.text(self, "from").and_then(|name| self.source(&name, table.place("from")));
                let words = [("consume", Word::Consume), ("latest", Word::Latest), ("window", Word::Window)];
                let word = table.word(self, "use", &words).unwrap_or(Word::Consume);
                let usage = if word == Word::Window {
                    self.window(&mut table)
                } else {
                    Some(if word == Word::Latest { Use::Latest } else { Use::Consume })
                };
                table.finish(self);
                Some(Edge { from: from?, usage: usage? })
            }
            _ => {
                self.wrong(entry.span(), "an input must be a name, or a table such as { from = \"name\", use = \"latest\" }");
                None
            }
        }
    }

    fn window(&mut self, table: &mut Table<'_>) -> Option<Use> {
        let number = |number: u32| u16::try_from(number).ok().and_then(NonZeroU16::new);
        let events = table.whole(self, "events", 1..=EVENTS_MAX as u32, None)?;
        let step = table.whole(self, "step", 1..=events, Some(1))?;
        Some(Use::Window { events: number(events)?, step: number(step)? })
    }

    /// Relative validity: of all inputs (`relative_validity`), or of sets of them (`relative`).
    pub(super) fn relative(&mut self, table: &mut Table<'_>, inputs: &[Edge]) -> Vec<RelativeValidity> {
        let mut found = Vec::new();
        if let Some(Span::Finite(within)) = table.time(self, "relative_validity") {
            if inputs.len() == 1 {
                self.wrong(table.time_place("relative_validity"), "relative_validity needs two inputs at least");
            }
            found.push(RelativeValidity { inputs: (0..inputs.len() as u8).collect(), within });
        }
        for mut set in table.tables(self, "relative", INPUTS_MAX) {
            let within = set.needed_time(self, "within").and_then(Span::finite);
            let of = self.set(&mut set, inputs);
            set.finish(self);
            found.extend(of.zip(within).map(|(inputs, within)| RelativeValidity { inputs, within }));
        }
        found
    }

    /// Names of inputs, by their places.
    fn set(&mut self, table: &mut Table<'_>, inputs: &[Edge]) -> Option<Vec<u8>> {
        let Some(value) = table.value("of") else {
            self.wrong(table.head(), "of is missing");
            return None;
        };
        let names = match value.get_ref() {
            DeValue::Array(names) if names.len() >= 2 => names,
            _ => {
                self.wrong(value.span(), "of must be a list of two inputs at least");
                return None;
            }
        };
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            let source = name.get_ref().as_str().and_then(|text| self.source(text, name.span()));
            let place = source.and_then(|source| inputs.iter().position(|edge| edge.from == source));
            match place {
                Some(place) if !places.contains(&(place as u8)) => places.push(place as u8),
                // An operator whose inputs are wrong has told so.
                _ if inputs.is_empty() => return None,
                _ => self.wrong(name.span(), "of must name inputs of this operator, each once"),
            }
        }
        Some(places)
    }
}
