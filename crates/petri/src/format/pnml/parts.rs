//! The parts of a net's pages, and what else stands there: what is known, what is passed over, and what is refused.

use std::collections::BTreeMap;

use super::{VERSION, content, id, refused};
use crate::{
    format::{
        attributes::{
            self, Table,
            Use::{Any, Only},
        },
        xml::Element,
    },
    net::NetError,
};

/// Labels and drawing instructions that say nothing of what a net does: of the standard, and of PIPE.
const HARMLESS: [&str; 6] = ["name", "graphics", "description", "labels", "arcpath", "orientation"];

/// PIPE's labels that say nothing as long as they have this value: no limit of tokens, and not tagged.
const HARMLESS_VALUES: [(&str, &str); 2] = [("capacity", "0"), ("tagged", "false")];

/// PIPE's labels of transitions, whose meaning depends on `timed`.
const OF_PIPE: [&str; 4] = ["timed", "rate", "priority", "infiniteServer"];

/// PIPE's kind of token, where there is only one.
pub const TOKEN: &str = "Default";

/// What stands in a label besides its text; `value` is PIPE's.
const OF_LABELS: [&str; 5] = ["text", "value", "graphics", "name", "offset"];

/// Attributes of the standard and of TAPAAL.
const ATTRIBUTES: &Table = &[
    ("pnml", &[]),
    ("net", &[("id", Any), ("type", Any), ("name", Any), ("active", Only(&["true"]))]),
    ("page", &[("id", Any), ("name", Any)]),
    (
        "place",
        &[
            ("id", Any),
            ("name", Any),
            ("initialMarking", Any),
            ("capacity", Only(&["0"])),
            ("invariant", Only(&["<inf"])),
            ("displayName", Any),
            ("nameOffsetX", Any),
            ("nameOffsetY", Any),
            ("markingOffsetX", Any),
            ("markingOffsetY", Any),
            ("positionX", Any),
            ("positionY", Any),
        ],
    ),
    (
        "transition",
        &[
            ("id", Any),
            ("name", Any),
            ("urgent", Only(&["false"])),
            ("infiniteServer", Only(&["false"])),
            ("player", Only(&["0"])),
            ("priority", Only(&["0"])),
            ("angle", Any),
            ("displayName", Any),
            ("nameOffsetX", Any),
            ("nameOffsetY", Any),
            ("positionX", Any),
            ("positionY", Any),
        ],
    ),
    (
        "arc",
        &[
            ("id", Any),
            ("source", Any),
            ("target", Any),
            ("type", Any),
            ("inscription", Any),
            ("weight", Any),
            ("nameOffsetX", Any),
            ("nameOffsetY", Any),
        ],
    ),
    ("referencePlace", &[("id", Any), ("ref", Any), ("name", Any)]),
    ("referenceTransition", &[("id", Any), ("ref", Any), ("name", Any)]),
    ("type", &[("value", Any)]),
];

/// Where an arc's end leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// A place, by its number.
    Place(usize),
    /// A transition, by its number.
    Transition(usize),
    /// A stand-in on another page for the node of this id.
    Reference(&'a str),
}

/// The elements of a net, whichever page they are on, in their order.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    pub places: Vec<&'a Element>,
    pub transitions: Vec<&'a Element>,
    pub arcs: Vec<&'a Element>,
    /// Stand-ins for places and transitions of other pages.
    references: Vec<&'a Element>,
    /// By tool, how many of its elements were passed over.
    pub passed_over: BTreeMap<String, usize>,
}

impl<'a> Parts<'a> {
    /// Takes the parts of a net or of a page. Pages are nested no deeper than elements are.
    pub fn collect(&mut self, element: &'a Element) -> Result<(), NetError> {
        check_attributes(element)?;
        for child in &element.children {
            match child.name.as_str() {
                "page" => self.collect(child)?,
                "place" => {
                    self.labels(child, &["initialMarking"])?;
                    self.places.push(child);
                }
                "transition" => {
                    self.labels(child, if child.child("timed").is_some() { &OF_PIPE } else { &[] })?;
                    self.transitions.push(child);
                }
                "arc" => {
                    self.labels(child, &["inscription", "type", "arctype"])?;
                    self.arcs.push(child);
                }
                "referencePlace" | "referenceTransition" => {
                    self.labels(child, &[])?;
                    self.references.push(child);
                }
                _ => self.label(element, child, &[])?,
            }
        }
        Ok(())
    }

    fn labels(&mut self, element: &'a Element, known: &[&str]) -> Result<(), NetError> {
        check_attributes(element)?;
        element.children.iter().try_for_each(|child| self.label(element, child, known))
    }

    /// Looks at something that stands in `element` and is no part of a net.
    pub fn label(&mut self, element: &Element, child: &Element, known: &[&str]) -> Result<(), NetError> {
        let name = child.name.as_str();
        match name {
            "toolspecific" => return self.tool(child),
            name if HARMLESS.contains(&name) => return Ok(()),
            "finalmarkings" if element.name == "net" => {
                *self.passed_over.entry("ProM (finalmarkings)".to_owned()).or_default() += 1;
                return Ok(());
            }
            "token" if element.name == "net" && child.attribute("id") == Some(TOKEN) => return Ok(()),
            name if HARMLESS_VALUES.iter().any(|known| content(child) == Some(known.1) && name == known.0) => return Ok(()),
            name if !known.contains(&name) => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let reason = format!(
                    "its {name} is not understood and may change what it means; expected {known} besides name, graphics and toolspecific"
                );
                return Err(refused(element, reason));
            }
            _ => {}
        }
        if !element.child(name).is_some_and(|first| std::ptr::eq(first, child)) {
            return Err(refused(element, format!("it has more than one {name}")));
        }
        check_attributes(child)?;
        for part in &child.children {
            match part.name.as_str() {
                "toolspecific" => self.tool(part)?,
                part if OF_LABELS.contains(&part) => {}
                part => return Err(refused(element, format!("its {name} has a {part}; expected a text"))),
            }
        }
        if child.child("text").or_else(|| child.child("value")).is_none() && child.attribute("value").is_none() {
            return Err(refused(element, format!("its {name} has no text")));
        }
        Ok(())
    }

    fn tool(&mut self, element: &Element) -> Result<(), NetError> {
        let tool = element.attribute("tool").unwrap_or("an unnamed tool");
        if tool != "bodkin" {
            *self.passed_over.entry(tool.to_owned()).or_default() += 1;
            return Ok(());
        }
        match element.attribute("version") {
            None | Some(VERSION) => Ok(()),
            Some(version) => Err(refused(element, format!("version {version} of bodkin's own element was found; expected {VERSION}"))),
        }
    }

    /// What an arc's end may lead to, by its id.
    pub fn nodes(&self) -> Result<BTreeMap<&'a str, Node<'a>>, NetError> {
        let places = self.places.iter().enumerate().map(|(index, element)| (*element, Node::Place(index)));
        let transitions = self.transitions.iter().enumerate().map(|(index, element)| (*element, Node::Transition(index)));
        let mut nodes = BTreeMap::new();
        let mut add = |element: &'a Element, node: Node<'a>| match nodes.insert(id(element)?, node) {
            None => Ok(()),
            Some(_) => Err(refused(element, "its id is there twice")),
        };
        places.chain(transitions).try_for_each(|(element, node)| add(element, node))?;
        for element in &self.references {
            let to = element.attribute("ref").ok_or_else(|| refused(element, "it has no ref"))?;
            add(element, Node::Reference(to))?;
        }
        for element in &self.references {
            let fits = match resolved(&nodes, id(element)?) {
                Some(Node::Place(_)) => element.name == "referencePlace",
                Some(Node::Transition(_)) => element.name == "referenceTransition",
                Some(Node::Reference(_)) | None => false,
            };
            if !fits {
                let (to, kind) =
                    (element.attribute("ref").unwrap_or_default(), element.name.trim_start_matches("reference").to_lowercase());
                return Err(refused(element, format!("it stands for {to}; expected a {kind} of the net")));
            }
        }
        Ok(nodes)
    }
}

/// Refuses an attribute that may change what an element means.
pub fn check_attributes(element: &Element) -> Result<(), NetError> {
    attributes::check(element, &element.name, ATTRIBUTES).map_err(|reason| refused(element, reason))
}

/// The place or transition of that id, by way of stand-ins. None where there is none, or where they lead in a circle.
pub fn resolved<'a>(nodes: &BTreeMap<&'a str, Node<'a>>, id: &str) -> Option<Node<'a>> {
    let mut node = *nodes.get(id)?;
    for _ in 0..=REFERENCES_MAX {
        match node {
            Node::Reference(to) => node = *nodes.get(to)?,
            found => return Some(found),
        }
    }
    None
}

/// Longest chain of stand-ins that is followed; a longer one is taken for a circle.
const REFERENCES_MAX: usize = 64;
