//! PNML (ISO/IEC 15909-2), place/transition nets.
//!
//! PNML has no time. What a transition is besides its input and output arcs stands in a `toolspecific` element of ours, as the JSON of
//! the own format; other programs leave it alone. A transition without one is timed, exponential with rate 1. Inhibitor and test arcs
//! of other programs are read where an arc has `<type value="inhibitor"/>` (or `test`, `read`), or TAPAAL's attribute `type`. PIPE's
//! files are read too: `value` for `text`, one kind of token, and transitions that are `timed` or immediate.
//!
//! What a document has besides, and what may change the net's meaning, is refused: another type of net, labels and attributes that are
//! not those of place/transition nets, arcs of other kinds. `toolspecific` elements of other programs and ProM's final markings are
//! passed over, and reported.

mod parts;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use self::parts::{Node, Parts};
pub use self::write::write;
use super::{
    json,
    xml::{self, Element, XmlError},
};
use crate::{
    distribution::{Distribution, Exponential},
    net::{Arc, Delay, Firing, Ids, Memory, Net, NetError, Place, Servers, Timed, Transition},
};

const GRAMMAR: &str = "http://www.pnml.org/version-2009/grammar/pnml";

/// The type of the nets that are written.
const TYPE: &str = "www.pnml.org/version-2009/grammar/ptnet";

/// Types of nets that are read, without the protocol: place/transition nets of the standard, with special arcs, and from before it; and
/// the core model, which some programs name for such nets; and PIPE's.
const TYPES: [&str; 8] = [
    TYPE,
    "www.pnml.org/version-2009/grammar/pnmlcoremodel",
    "www.pnml.org/version-2009/extensions/inhibitorptnet",
    "www.pnml.org/version-2009/extensions/resetptnet",
    "www.pnml.org/version-2009/extensions/resetinhibitorptnet",
    "www.informatik.hu-berlin.de/top/pntd/ptNetb",
    "www.yasper.org/specs/epnml-1.1",
    "P/T net",
];

/// Most nets of a document that a mistake names.
const NETS_NAMED: usize = 20;

/// The only version of our own element.
const VERSION: &str = "1";

/// A net of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The net.
    pub net: Net,
    /// Whose `toolspecific` elements were passed over, and how many of each there are.
    pub passed_over: BTreeMap<String, usize>,
}

/// A file that is no net.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PnmlError {
    /// It is not XML.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// There is a mistake in it.
    #[error(transparent)]
    Net(#[from] NetError),
    /// There are several nets, and none was chosen; or there is none of the id that was.
    #[error("{found}; expected {expected}")]
    Choice {
        /// The nets of the document.
        found: String,
        /// What was asked.
        expected: String,
    },
}

fn refused(element: &Element, reason: impl std::fmt::Display) -> NetError {
    let id = element.attribute("id").map(|id| format!(" {id}")).unwrap_or_default();
    NetError::new(format!("line {}, {}{id}", element.line, element.name), reason.to_string())
}

/// Reads the only net of a document, all its pages as one. What was passed over is not told: [`document`] does.
///
/// # Errors
/// As for [`document`].
pub fn read(text: &str) -> Result<Net, PnmlError> {
    document(text, None).map(|document| document.net)
}

/// Reads a net of a document, all its pages as one: the one with the id `which`, or the only one.
///
/// # Errors
/// What is wrong, with its line or with the part of the net that it is in; that it is not said which of several nets is meant.
pub fn document(text: &str, which: Option<&str>) -> Result<Document, PnmlError> {
    let root = xml::read(text)?;
    if root.name != "pnml" {
        return Err(refused(&root, "a pnml document is expected").into());
    }
    parts::check_attributes(&root)?;
    let mut parts = Parts::default();
    root.children.iter().filter(|child| child.name != "net").try_for_each(|child| parts.label(&root, child, &[]))?;
    let net = chosen(&root, which)?;
    check_type(net)?;
    parts.collect(net)?;
    let nodes = parts.nodes()?;
    let (place_names, place_ids) = names(&parts.places)?;
    let (transition_names, transition_ids) = names(&parts.transitions)?;
    let place = |(element, name): (&&Element, String)| -> Result<Place, NetError> {
        Ok(Place { name, initial: number(element, "initialMarking")?.unwrap_or(0) })
    };
    let places = parts.places.iter().zip(place_names).map(place).collect::<Result<Vec<_>, NetError>>()?;
    let named = parts.transitions.iter().zip(transition_names);
    let mut transitions = named.map(|(element, name)| transition(element, name, &places)).collect::<Result<Vec<_>, NetError>>()?;
    parts.arcs.iter().try_for_each(|element| arc(element, &nodes, &mut transitions))?;
    let unit = own(net).and_then(|own| own.attribute("time_unit")).unwrap_or("s");
    let ids = Ids { places: place_ids, transitions: transition_ids };
    let net = Net::new(name(net)?, unit, places, transitions)?.with_ids(ids);
    Ok(Document { net, passed_over: parts.passed_over })
}

/// The net that is meant.
fn chosen<'a>(root: &'a Element, which: Option<&str>) -> Result<&'a Element, PnmlError> {
    let nets: Vec<&Element> = root.children.iter().filter(|child| child.name == "net").collect();
    let ids = || -> Vec<&str> { nets.iter().map(|net| net.attribute("id").unwrap_or("(one without an id)")).collect() };
    let found = || {
        let (ids, more) = (ids(), nets.len().saturating_sub(NETS_NAMED));
        let named = ids[..ids.len().min(NETS_NAMED)].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("the document has {} net{}: {named}{more}", ids.len(), if ids.len() == 1 { "" } else { "s" })
    };
    let choice = |expected: String| Err(PnmlError::Choice { found: found(), expected });
    match (which, nets.as_slice()) {
        (_, []) => Err(refused(root, "a pnml document with a net is expected").into()),
        (None, [only]) => Ok(only),
        (None, _) => choice("one of them to be chosen by its id".to_owned()),
        (Some(which), nets) => match nets.iter().filter(|net| net.attribute("id") == Some(which)).collect::<Vec<_>>().as_slice() {
            [net] => Ok(net),
            [] => choice(format!("one with the id {which}")),
            _ => choice(format!("one only with the id {which}")),
        },
    }
}

fn check_type(net: &Element) -> Result<(), NetError> {
    let expected = || format!("expected a place/transition net, as http://{TYPE}");
    let Some(found) = net.attribute("type") else { return Err(refused(net, format!("it has no type; {}", expected()))) };
    let plain = found.trim();
    let plain = plain.strip_prefix("https://").or_else(|| plain.strip_prefix("http://")).unwrap_or(plain);
    let plain = plain.strip_suffix(".pntd").unwrap_or(plain);
    if TYPES.contains(&plain) { Ok(()) } else { Err(refused(net, format!("its type is {found}; {}", expected()))) }
}

fn id(element: &Element) -> Result<&str, NetError> {
    element.attribute("id").ok_or_else(|| refused(element, "it has no id"))
}

/// The text of a label, if it has any: in `text`, or in PIPE's `value`.
fn content(label: &Element) -> Option<&str> {
    let text = label.child("text").or_else(|| label.child("value"))?;
    Some(text.text.trim()).filter(|text| !text.is_empty())
}

fn label<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    element.child(name).and_then(content)
}

fn name(element: &Element) -> Result<String, NetError> {
    let attribute = || element.attribute("name").map(str::trim).filter(|name| !name.is_empty());
    Ok(label(element, "name").or_else(attribute).map_or(id(element)?, |name| name).to_owned())
}

/// The names of places or of transitions, and the numbers of those that are found by their ids too. Labels may repeat, ids do not: a
/// label that several have is completed by the id.
fn names(elements: &[&Element]) -> Result<(Vec<String>, BTreeMap<String, usize>), NetError> {
    let labels = elements.iter().map(|element| name(element)).collect::<Result<Vec<_>, NetError>>()?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    labels.iter().for_each(|label| *counts.entry(label).or_default() += 1);
    let (mut names, mut ids) = (Vec::new(), BTreeMap::new());
    for (number, (element, label)) in elements.iter().zip(&labels).enumerate() {
        if counts[label.as_str()] == 1 {
            names.push(label.clone());
            continue;
        }
        let id = id(element)?;
        names.push(format!("{label} ({id})"));
        ids.insert(id.to_owned(), number);
    }
    Ok((names, ids))
}

/// What a label and an attribute of the same name say, which is the same.
fn written<'a>(element: &'a Element, name: &str) -> Result<Option<&'a str>, NetError> {
    let (label, attribute) = (label(element, name), element.attribute(name).map(str::trim));
    match (label, attribute) {
        (Some(label), Some(attribute)) if label != attribute => {
            Err(refused(element, format!("its {name} is {label}, and its attribute {name} is {attribute}; expected one of them")))
        }
        _ => Ok(label.or(attribute)),
    }
}

fn whole(element: &Element, name: &str, text: &str) -> Result<u32, NetError> {
    // PIPE names the kind of token before the number.
    let number = text.strip_prefix(parts::TOKEN).and_then(|rest| rest.strip_prefix(',')).unwrap_or(text);
    number.trim().parse().map_err(|_| refused(element, format!("{name} is {text}; expected a whole number")))
}

fn number(element: &Element, name: &str) -> Result<Option<u32>, NetError> {
    written(element, name)?.map(|text| whole(element, name, text)).transpose()
}

/// Our own `toolspecific` element.
fn own(element: &Element) -> Option<&Element> {
    element.children.iter().find(|child| child.name == "toolspecific" && child.attribute("tool") == Some("bodkin"))
}

fn transition(element: &Element, name: String, places: &[Place]) -> Result<Transition, NetError> {
    if let Some(own) = own(element) {
        let transition = json::read_transition(&own.text, places).map_err(|error| refused(element, error))?;
        return Ok(Transition { name, ..transition });
    }
    let firing = firing(element)?;
    Ok(Transition { name, inputs: Vec::new(), outputs: Vec::new(), inhibitors: Vec::new(), tests: Vec::new(), guard: None, firing })
}

/// When a transition of another program fires: with rate 1, or as PIPE's labels say.
fn firing(element: &Element) -> Result<Firing, NetError> {
    let of_pipe = |name: &str| label(element, name);
    let is = |name: &str| match of_pipe(name).unwrap_or("false") {
        "true" => Ok(true),
        "false" => Ok(false),
        text => Err(refused(element, format!("{name} is {text}; expected true or false"))),
    };
    let rate = of_pipe("rate").unwrap_or("1");
    let rate: f64 = rate.parse().map_err(|_| refused(element, format!("rate is {rate}; expected a number")))?;
    if of_pipe("timed").is_some() && !is("timed")? {
        let priority = of_pipe("priority").map_or(Ok(1), |text| whole(element, "priority", text))?;
        return Ok(Firing::Immediate { priority, weight: rate });
    }
    let rate = Exponential::new(rate).map_err(|error| refused(element, error))?;
    Ok(Firing::Timed(Timed {
        delay: Delay::Distribution(Distribution::Exponential(rate)),
        servers: if is("infiniteServer")? { Servers::Infinite } else { Servers::SINGLE },
        memory: Memory::Enabling,
        priority: 0,
        weight: 1.0,
    }))
}

/// What kind of arc it is: `<type value="inhibitor"/>`, `<arctype><text>inhibitor</text></arctype>`, or an attribute `type`, as TAPAAL
/// writes it.
fn kind(element: &Element) -> Result<&str, NetError> {
    let by_value = element.child("type").and_then(|kind| kind.attribute("value"));
    let written = [by_value, label(element, "type"), label(element, "arctype"), element.attribute("type")];
    let mut kinds = written.into_iter().flatten().map(|kind| match kind.trim() {
        "timed" => "normal",
        "tapnInhibitor" => "inhibitor",
        kind => kind,
    });
    let first = kinds.next().unwrap_or("normal");
    match kinds.find(|other| *other != first) {
        Some(other) => Err(refused(element, format!("its type is {first}, and it is {other}; expected one of them"))),
        None => Ok(first),
    }
}

/// TAPAAL's inscription of an arc that takes tokens of any age.
const ANY_AGE: &str = "[0,inf)";

/// The weight of an arc: the inscription of the standard, or TAPAAL's attribute, beside which an inscription says the ages of tokens.
fn weight(element: &Element) -> Result<u32, NetError> {
    let weight = element.attribute("weight").map(|text| whole(element, "weight", text)).transpose()?;
    let plain: Option<String> = written(element, "inscription")?.map(|text| text.chars().filter(|c| !c.is_whitespace()).collect());
    match (plain.as_deref(), weight) {
        (None | Some(ANY_AGE), weight) => Ok(weight.unwrap_or(1)),
        (Some(text), None) => whole(element, "inscription", text),
        (Some(text), Some(weight)) => match whole(element, "inscription", text)? {
            1 => Ok(weight),
            other if other == weight => Ok(weight),
            other => Err(refused(element, format!("its inscription is {other}, and its weight is {weight}; expected one of them"))),
        },
    }
}

fn arc(element: &Element, nodes: &BTreeMap<&str, Node<'_>>, found: &mut [Transition]) -> Result<(), NetError> {
    let weight = weight(element)?;
    let end = |name: &str| element.attribute(name).ok_or_else(|| refused(element, format!("it has no {name}")));
    let (source, target) = (end("source")?, end("target")?);
    let kind = kind(element)?;
    match (parts::resolved(nodes, source), parts::resolved(nodes, target)) {
        (Some(Node::Place(place)), Some(Node::Transition(transition))) => {
            let transition = &mut found[transition];
            // Each of several inhibitor arcs inhibits, and each of several test arcs has to hold.
            let (list, together): (_, fn(u32, u32) -> u32) = match kind {
                "inhibitor" => (&mut transition.inhibitors, u32::min),
                "test" | "read" => (&mut transition.tests, u32::max),
                "normal" => (&mut transition.inputs, u32::saturating_add),
                kind => return Err(refused(element, format!("its type is {kind}; expected normal, inhibitor, test or read"))),
            };
            add(list, Arc { place, weight }, together);
            Ok(())
        }
        (Some(Node::Transition(transition)), Some(Node::Place(place))) if kind == "normal" => {
            add(&mut found[transition].outputs, Arc { place, weight }, u32::saturating_add);
            Ok(())
        }
        (Some(Node::Transition(_)), Some(Node::Place(_))) => {
            Err(refused(element, format!("its type is {kind}, and it leads from a transition to a place; expected normal")))
        }
        _ => Err(refused(element, format!("it leads from {source} to {target}; expected a place and a transition of the net"))),
    }
}

/// Of several arcs of a kind between the same two: one, whose weight `together` makes of theirs.
fn add(list: &mut Vec<Arc>, arc: Arc, together: fn(u32, u32) -> u32) {
    match list.iter_mut().find(|other| other.place == arc.place) {
        Some(other) => other.weight = together(other.weight, arc.weight),
        None => list.push(arc),
    }
}
