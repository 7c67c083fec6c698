//! Nets of the ORIS tool, version 2 (`.xpn`): read only.
//!
//! ORIS has one clock a transition and forgets it when the transition is disabled. A rate may be an expression over places; a number
//! may be one too, where it is made of places that no arc leads to or from, which ORIS's users take for constants. What has no meaning
//! here is refused: updates of markings, resets of other transitions, weights that depend on the marking, densities of several pieces.

mod density;
mod law;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::law::firing;
use super::{
    attributes::{
        self, Table,
        Use::{Any, Only},
    },
    xml::{self, Element, XmlError},
};
use crate::{
    expression::Expression,
    net::{Arc, Net, NetError, Place, Transition},
};

/// Most joints that an arc is drawn by way of.
const JOINTS_MAX: usize = 1_000;

/// Attributes of ORIS's elements, and of the properties by their ids. A property of another id is an arc's.
const ATTRIBUTES: &Table = &[
    ("place", &[("uuid", Any), ("x", Any), ("y", Any)]),
    ("transition", &[("uuid", Any), ("x", Any), ("y", Any), ("rotation-angle", Any)]),
    ("arc", &[("uuid", Any), ("from", Any), ("to", Any), ("multiplicity", Any)]),
    ("inhibitor-arc", &[("uuid", Any), ("from", Any), ("to", Any), ("multiplicity", Any)]),
    ("joint", &[("uuid", Any), ("x", Any), ("y", Any)]),
    ("feature", &[("id", Only(&["transition.stochastic"]))]),
    ("property", &[("id", Any), ("multiplicity", Any), ("satellite-x", Any), ("satellite-y", Any)]),
    ("0.default.name", &[("id", Any), ("name", Any), ("satellite-x", Any), ("satellite-y", Any)]),
    ("default.marking", &[("id", Any), ("marking", Any), ("satellite-x", Any), ("satellite-y", Any)]),
    ("10.default.enablingFunction", &[("id", Any), ("enabling-function", Any), ("satellite-x", Any), ("satellite-y", Any)]),
    ("11.default.markingUpdate", &[("id", Any), ("marking-update", Any), ("satellite-x", Any), ("satellite-y", Any)]),
    ("12.default.resetTransitions", &[("id", Any), ("reset-transitions", Any), ("satellite-x", Any), ("satellite-y", Any)]),
    (
        "transition.stochastic",
        &[
            ("id", Any),
            ("property-data-type", Any),
            ("priority", Any),
            ("weight", Any),
            ("value", Any),
            ("eft", Any),
            ("lft", Any),
            ("efts", Any),
            ("lfts", Any),
            ("expressions", Any),
            ("normalizationFactor", Any),
            ("lambda", Any),
            ("k", Any),
            ("satellite-x", Any),
            ("satellite-y", Any),
        ],
    ),
];

/// A file that is no net.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XpnError {
    /// It is not XML.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// There is a mistake in it, or what has no meaning here.
    #[error(transparent)]
    Net(#[from] NetError),
}

/// The places of a file, as its expressions name them.
struct Marking<'a> {
    places: &'a [Place],
    /// Those that no arc leads to or from.
    is_fixed: &'a [bool],
}

impl Marking<'_> {
    fn expression(&self, text: &str) -> Result<Expression, String> {
        let place = |name: &str| self.places.iter().position(|place| place.name == name);
        Expression::parse(text, &place).map_err(|error| error.to_string())
    }

    /// The number that an expression always is, if it is one.
    fn constant(&self, expression: &Expression) -> Option<f64> {
        let initial = || self.places.iter().map(|place| place.initial).collect::<Vec<u32>>();
        expression.places().all(|place| self.is_fixed[place]).then(|| expression.value(&initial()))
    }
}

/// What a file is made of.
#[derive(Default)]
struct Parts<'a> {
    places: Vec<&'a Element>,
    transitions: Vec<&'a Element>,
    arcs: Vec<&'a Element>,
    joints: BTreeSet<&'a str>,
}

/// Reads a net. ORIS's files have neither a name nor a unit of time; `name` and `time_unit` are taken.
///
/// # Errors
/// What is wrong, with its line or with the part of the net that it is in.
pub fn read(text: &str, name: &str, time_unit: &str) -> Result<Net, XpnError> {
    let root = xml::read(text)?;
    let parts = Parts::of(&root)?;
    let mut places = Vec::new();
    let mut place_numbers = BTreeMap::new();
    for (number, element) in parts.places.iter().enumerate() {
        check_properties(element, &OF_PLACES)?;
        let tokens = property(element, "default.marking").and_then(|property| property.attribute("marking")).unwrap_or("0");
        let tokens = Some(tokens.trim()).filter(|tokens| !tokens.is_empty()).unwrap_or("0");
        let initial = tokens.parse().map_err(|_| refused(element, format!("its marking is {tokens}; expected a whole number")))?;
        places.push(Place { name: title(element)?, initial });
        numbered(&mut place_numbers, element, number)?;
    }
    let is_fixed = parts.fixed(&place_numbers);
    let marking = Marking { places: &places, is_fixed: &is_fixed };
    let mut transitions = Vec::new();
    let mut transition_numbers = BTreeMap::new();
    for (number, element) in parts.transitions.iter().enumerate() {
        transitions.push(transition(element, &marking)?);
        numbered(&mut transition_numbers, element, number)?;
    }
    let mut from_joints = BTreeMap::new();
    for element in &parts.arcs {
        from_joints.entry(attribute(element, "from")?).or_insert(*element);
    }
    for element in &parts.arcs {
        let from = attribute(element, "from")?;
        if parts.joints.contains(from) {
            continue;
        }
        let to = end(element, &from_joints, &parts.joints)?;
        let found = |numbers: &BTreeMap<&str, usize>, uuid: &str| numbers.get(uuid).copied();
        match (found(&place_numbers, from), found(&transition_numbers, to), found(&transition_numbers, from), found(&place_numbers, to)) {
            (Some(place), Some(transition), ..) => {
                let transition = &mut transitions[transition];
                let list = if element.name == "arc" { &mut transition.inputs } else { &mut transition.inhibitors };
                list.push(Arc { place, weight: weight(element)? });
            }
            (.., Some(transition), Some(place)) if element.name == "arc" => {
                transitions[transition].outputs.push(Arc { place, weight: weight(element)? });
            }
            _ => return Err(refused(element, "it does not lead from a place to a transition, or back").into()),
        }
    }
    check_document(&root)?;
    Ok(Net::new(name, time_unit, places, transitions)?)
}

impl<'a> Parts<'a> {
    fn of(root: &'a Element) -> Result<Self, NetError> {
        let entities = root.child("tpn-entities").filter(|_| root.name == "tpn-editor");
        let entities = entities.ok_or_else(|| refused(root, "a tpn-editor document with tpn-entities is expected"))?;
        if let Some(second) = root.children.iter().filter(|child| child.name == "tpn-entities").nth(1) {
            return Err(refused(second, "it is a second net: a file with one net is expected, so save each in a file of its own"));
        }
        let mut parts = Self::default();
        for element in &entities.children {
            match element.name.as_str() {
                "place" => parts.places.push(element),
                "transition" => parts.transitions.push(element),
                "arc" | "inhibitor-arc" => parts.arcs.push(element),
                "joint" => {
                    parts.joints.insert(attribute(element, "uuid")?);
                }
                "note" => {}
                other => {
                    let expected = "place, transition, arc, inhibitor-arc, joint or note";
                    return Err(refused(element, format!("{other} is not understood; expected {expected}")));
                }
            }
        }
        Ok(parts)
    }

    /// For each place whether no arc moves its tokens.
    fn fixed(&self, places: &BTreeMap<&str, usize>) -> Vec<bool> {
        let mut is_fixed = vec![true; places.len()];
        for arc in self.arcs.iter().filter(|arc| arc.name == "arc") {
            let ends = ["from", "to"].into_iter().filter_map(|end| places.get(arc.attribute(end)?));
            ends.for_each(|place| is_fixed[*place] = false);
        }
        is_fixed
    }
}

/// Refuses attributes that may change what the net means, last of all: what is wrong with an element is more to the point. Notes say
/// nothing.
fn check_document(root: &Element) -> Result<(), NetError> {
    check_attributes(root, root)?;
    for entities in &root.children {
        check_attributes(entities, entities)?;
        entities.children.iter().filter(|element| element.name != "note").try_for_each(|element| check_all_attributes(element, element))?;
    }
    Ok(())
}

/// Refuses an attribute of `part` that may change what `element` means.
fn check_attributes(element: &Element, part: &Element) -> Result<(), NetError> {
    let id = part.attribute("id").filter(|id| part.name == "property" && ATTRIBUTES.iter().any(|(kind, _)| kind == id));
    attributes::check(part, id.unwrap_or(&part.name), ATTRIBUTES).map_err(|reason| refused(element, reason))
}

/// The same for `part` and all that is inside.
fn check_all_attributes(element: &Element, part: &Element) -> Result<(), NetError> {
    check_attributes(element, part)?;
    part.children.iter().try_for_each(|child| check_all_attributes(element, child))
}

fn numbered<'a>(numbers: &mut BTreeMap<&'a str, usize>, element: &'a Element, number: usize) -> Result<(), NetError> {
    match numbers.insert(attribute(element, "uuid")?, number) {
        None => Ok(()),
        Some(_) => Err(refused(element, "its uuid is there twice")),
    }
}

fn refused(element: &Element, reason: impl std::fmt::Display) -> NetError {
    let name = property(element, "0.default.name").and_then(|property| property.attribute("name")).unwrap_or_default();
    NetError::new(format!("line {}, {} {name}", element.line, element.name).trim_end().to_owned(), reason.to_string())
}

fn attribute<'a>(element: &'a Element, name: &str) -> Result<&'a str, NetError> {
    element.attribute(name).ok_or_else(|| refused(element, format!("it has no {name}")))
}

fn properties(element: &Element) -> &[Element] {
    element.child("properties").map_or(&[], |properties| &properties.children)
}

fn property<'a>(element: &'a Element, id: &str) -> Option<&'a Element> {
    properties(element).iter().find(|property| property.attribute("id") == Some(id))
}

fn title(element: &Element) -> Result<String, NetError> {
    let property = property(element, "0.default.name").ok_or_else(|| refused(element, "it has no name"))?;
    Ok(attribute(property, "name")?.to_owned())
}

/// Where an arc leads in the end: what was drawn by way of joints is several arcs.
fn end<'a>(element: &'a Element, from_joints: &BTreeMap<&str, &'a Element>, joints: &BTreeSet<&str>) -> Result<&'a str, NetError> {
    let mut end = attribute(element, "to")?;
    for _ in 0..=joints.len().min(JOINTS_MAX) {
        if !joints.contains(end) {
            return Ok(end);
        }
        let next = from_joints.get(end).ok_or_else(|| refused(element, "it ends at a joint"))?;
        end = attribute(next, "to")?;
    }
    Err(refused(element, format!("its joints lead in a circle, or are more than {JOINTS_MAX}")))
}

/// An arc's weight, where one is written.
fn weight(element: &Element) -> Result<u32, NetError> {
    if let Some(property) = properties(element).iter().find(|property| property.attribute("multiplicity").is_none()) {
        let id = property.attribute("id").unwrap_or(&property.name);
        return Err(refused(element, format!("its property {id} is not understood; expected a multiplicity")));
    }
    let written = properties(element).iter().chain([element]).find_map(|part| part.attribute("multiplicity"));
    written.map_or(Ok(1), |text| {
        text.trim().parse().map_err(|_| refused(element, format!("its multiplicity is {text}; expected a whole number")))
    })
}

/// What a transition says of itself, by the names of its properties.
const OF_TRANSITIONS: [&str; 5] =
    ["0.default.name", "10.default.enablingFunction", "11.default.markingUpdate", "12.default.resetTransitions", "transition.stochastic"];

/// What a place says of itself.
const OF_PLACES: [&str; 2] = ["0.default.name", "default.marking"];

fn check_properties(element: &Element, known: &[&str]) -> Result<(), NetError> {
    let mut ids = properties(element).iter().map(|property| property.attribute("id").unwrap_or_default());
    match ids.find(|id| !known.contains(id)) {
        Some(id) => Err(refused(element, format!("its property {id} is not understood; expected one of {}", known.join(", ")))),
        None => Ok(()),
    }
}

fn transition(element: &Element, marking: &Marking<'_>) -> Result<Transition, NetError> {
    check_properties(element, &OF_TRANSITIONS)?;
    for property in properties(element) {
        for name in ["marking-update", "reset-transitions"] {
            if property.attribute(name).is_some_and(|text| !text.trim().is_empty()) {
                return Err(refused(element, format!("its {name} has no meaning here")));
            }
        }
    }
    let guard = property(element, "10.default.enablingFunction").and_then(|property| property.attribute("enabling-function"));
    let guard = guard.filter(|text| !text.trim().is_empty());
    let guard = guard.map(|text| marking.expression(text).map_err(|error| refused(element, format!("enabling function: {error}"))));
    let law = property(element, "transition.stochastic").ok_or_else(|| refused(element, "it has no transition.stochastic property"))?;
    Ok(Transition {
        name: title(element)?,
        inputs: Vec::new(),
        outputs: Vec::new(),
        inhibitors: Vec::new(),
        tests: Vec::new(),
        guard: guard.transpose()?,
        firing: firing(element, law, marking)?,
    })
}
