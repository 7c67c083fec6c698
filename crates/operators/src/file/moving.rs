//! The version of a placed file in which an operator runs on another edge. Nothing but keys `edge` changes, so that whoever makes the same move of the same text has the same version.

use std::ops::Range;

use bodkin_broker::graph::{OperatorId, Source};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::GraphFile;

/// Why an operator cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveFault {
    /// The file names no edges.
    #[error("the graph has no [[edge]]: all of it is on one host")]
    Unplaced,
    /// It has no such operator.
    #[error("there is no operator {0}")]
    Operator(String),
    /// It has no such edge.
    #[error("there is no edge {edge}: there are {edges}")]
    Edge {
        /// What was named.
        edge: String,
        /// What the file names.
        edges: String,
    },
    /// It is there.
    #[error("{operator} is on the edge {edge} already")]
    Here {
        /// Which operator.
        operator: String,
        /// Where.
        edge: String,
    },
}

/// The text of a whole file with an operator on another edge. What has no place of its own stays where it is.
pub fn moved(file: &GraphFile, operator: &str, to: &str) -> Result<String, MoveFault> {
    let placement = file.placement.as_ref().ok_or(MoveFault::Unplaced)?;
    let graph = &file.graph;
    let at = graph.operators().iter().position(|known| known.name == operator);
    let id = OperatorId::of(at.ok_or_else(|| MoveFault::Operator(operator.to_owned()))?);
    let name = |edge: usize| placement.hosts[edge].name.as_str();
    if !placement.hosts.iter().any(|host| host.name == to) {
        let edges: Vec<&str> = placement.hosts.iter().map(|host| host.name.as_str()).collect();
        return Err(MoveFault::Edge { edge: to.to_owned(), edges: edges.join(", ") });
    }
    let from = name(placement.operators[id.index()].index());
    if from == to {
        return Err(MoveFault::Here { operator: operator.to_owned(), edge: to.to_owned() });
    }
    let document = DeTable::parse(&file.text).expect("it was read before");
    let tables = match document.get_ref().get("operator").map(Spanned::get_ref) {
        Some(DeValue::Array(tables)) => tables,
        _ => unreachable!("a file that was read has operators"),
    };
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let follows = || graph.operators()[index].inputs[0].from == Source::Operator(id);
        let DeValue::Table(fields) = table.get_ref() else { unreachable!("an operator is a table") };
        let place = match fields.get("edge") {
            _ if index != id.index() && (fields.contains_key("edge") || !follows()) => continue,
            Some(edge) => (edge.span(), quoted(to)),
            None => {
                let edge = if index == id.index() { to } else { name(placement.operators[index].index()) };
                let between = if file.text[table.span()].starts_with('{') { ", " } else { "\n" };
                let behind = fields.get("name").expect("an operator has a name").span().end;
                (behind..behind, format!("{between}edge = {}", quoted(edge)))
            }
        };
        changes.push(place);
    }
    let mut text = file.text.to_string();
    changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    changes.into_iter().for_each(|(place, with)| text.replace_range(place, &with));
    Ok(text)
}

/// A name as TOML writes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue::KINDS, file::parse};

    const LINE: &str = r#"
[graph]
name = "line"
[[edge]]
name = "press"
[[edge]]
name = "yard \"B\""
[[supplier]]
topic = "A"
shape = "f64"
period_ms = 1
[[operator]]
name = "smooth" # the first one
kind = "moving_average"
inputs = ["A"]
window = 2
[[operator]]
name = "mean"
kind = "moving_average"
inputs = ["smooth"]
window = 2
[[link]]
from = "A"
[[link]]
from = "smooth"
topic = "OVER"
[[output]]
topic = "MEAN"
from = "mean"
"#;

    fn read(text: &str) -> GraphFile {
        parse(text, KINDS, |name| Ok(name.to_owned())).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
    }

    fn places(text: &str) -> Vec<usize> {
        read(text).placement.expect("it has edges").operators.iter().map(|edge| edge.index()).collect()
    }

    #[test]
    fn one_operator_is_elsewhere_and_all_others_stay() {
        let there = moved(&read(LINE), "smooth", "yard \"B\"").expect("it moves");
        assert_eq!(places(&there), [1, 0], "{there}");
        assert!(there.contains("# the first one"), "{there}");
        let back = moved(&read(&there), "smooth", "press").expect("it moves back");
        assert_eq!(places(&back), [0, 0]);
        assert_eq!(places(&moved(&read(&back), "mean", "yard \"B\"").expect("it moves")), [0, 1]);
        assert_eq!(moved(&read(LINE), "smooth", "yard \"B\""), Ok(there), "the same move makes the same file");
    }

    #[test]
    fn tables_on_one_line_are_moved_too() {
        let inline = "operator = [{ name = \"smooth\", kind = \"moving_average\", inputs = [\"A\"], window = 2 }]\n[graph]\nname = \"l\"\n\
            [[edge]]\nname = \"press\"\n[[edge]]\nname = \"yard\"\n[[supplier]]\ntopic = \"A\"\nshape = \"f64\"\nperiod_ms = 1\n\
            [[output]]\ntopic = \"MEAN\"\nfrom = \"smooth\"\n";
        assert_eq!(places(&moved(&read(inline), "smooth", "yard").expect("it moves")), [1]);
    }

    #[test]
    fn what_cannot_be_moved_is_told() {
        let told = |operator: &str, to: &str| moved(&read(LINE), operator, to).expect_err("it cannot").to_string();
        assert_eq!(told("rough", "press"), "there is no operator rough");
        assert_eq!(told("mean", "office"), "there is no edge office: there are press, yard \"B\"");
        assert_eq!(told("mean", "press"), "mean is on the edge press already");
    }
}
