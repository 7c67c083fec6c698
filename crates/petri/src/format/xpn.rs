//! Nets of the ORIS tool, version 2 (`.xpn`): read only.
//!
//! ORIS has one clock a transition and forgets it when the transition is disabled. What has no meaning here is refused: updates of
//! markings, resets of other transitions, densities that are piecewise formulas.

use super::xml::{self, Element, XmlError};
use crate::{
    distribution::{Deterministic, Distribution, Erlang, Exponential, Uniform},
    expression::Expression,
    net::{Arc, Delay, Firing, Memory, Net, NetError, Place, Servers, Timed, Transition},
};

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

/// Reads a net. ORIS's files have neither a name nor a unit of time; `name` and `time_unit` are taken.
///
/// # Errors
/// What is wrong, with its line or with the part of the net that it is in.
pub fn read(text: &str, name: &str, time_unit: &str) -> Result<Net, XpnError> {
    let root = xml::read(text)?;
    if root.name != "tpn-editor" {
        return Err(refused(&root, "a tpn-editor document is expected").into());
    }
    let (mut places, mut place_ids) = (Vec::new(), Vec::new());
    for element in root.all("place") {
        let tokens = property(element, "default.marking").and_then(|property| property.attribute("marking")).unwrap_or("0");
        let initial = tokens.trim().parse().map_err(|_| refused(element, format!("its marking is {tokens}; expected a whole number")))?;
        places.push(Place { name: title(element)?, initial });
        place_ids.push(uuid(element)?);
    }
    let (mut transitions, mut transition_ids) = (Vec::new(), Vec::new());
    for element in root.all("transition") {
        transitions.push(transition(element, &places)?);
        transition_ids.push(uuid(element)?);
    }
    let joints: Vec<&str> = root.all("joint").into_iter().filter_map(|joint| joint.attribute("uuid")).collect();
    let arcs = [root.all("arc"), root.all("inhibitor-arc")].concat();
    for element in &arcs {
        let from = attribute(element, "from")?;
        let Some(end) = end(element, &arcs, &joints)? else { continue };
        let index = |ids: &[&str], id: &str| ids.iter().position(|other| *other == id);
        match (index(&place_ids, from), index(&transition_ids, end), index(&transition_ids, from), index(&place_ids, end)) {
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
    Ok(Net::new(name, time_unit, places, transitions)?)
}

fn refused(element: &Element, reason: impl std::fmt::Display) -> NetError {
    let name = property(element, "0.default.name").and_then(|property| property.attribute("name")).unwrap_or_default();
    NetError::new(format!("line {}, {} {name}", element.line, element.name).trim_end().to_owned(), reason.to_string())
}

fn attribute<'a>(element: &'a Element, name: &str) -> Result<&'a str, NetError> {
    element.attribute(name).ok_or_else(|| refused(element, format!("it has no {name}")))
}

fn uuid(element: &Element) -> Result<&str, NetError> {
    attribute(element, "uuid")
}

fn property<'a>(element: &'a Element, id: &str) -> Option<&'a Element> {
    element.child("properties")?.children.iter().find(|property| property.attribute("id") == Some(id))
}

fn title(element: &Element) -> Result<String, NetError> {
    let property = property(element, "0.default.name").ok_or_else(|| refused(element, "it has no name"))?;
    Ok(attribute(property, "name")?.to_owned())
}

/// Where an arc leads in the end: what was drawn by way of joints is several arcs. None for those that begin at a joint.
fn end<'a>(element: &'a Element, arcs: &[&'a Element], joints: &[&str]) -> Result<Option<&'a str>, NetError> {
    if joints.contains(&attribute(element, "from")?) {
        return Ok(None);
    }
    let mut end = attribute(element, "to")?;
    for _ in 0..=joints.len() {
        if !joints.contains(&end) {
            return Ok(Some(end));
        }
        let next = arcs.iter().find(|arc| arc.attribute("from") == Some(end));
        end = attribute(next.ok_or_else(|| refused(element, "it ends at a joint"))?, "to")?;
    }
    Err(refused(element, "its joints lead in a circle"))
}

/// An arc's weight, where one is written.
fn weight(element: &Element) -> Result<u32, NetError> {
    let written = element.all("property").into_iter().chain([element]).find_map(|property| property.attribute("multiplicity"));
    written.map_or(Ok(1), |text| text.parse().map_err(|_| refused(element, format!("its multiplicity is {text}; expected a whole number"))))
}

fn transition(element: &Element, places: &[Place]) -> Result<Transition, NetError> {
    for id in ["10.default.enablingFunction", "11.default.markingUpdate", "12.default.resetTransitions"] {
        let Some(property) = property(element, id) else { continue };
        for name in ["marking-update", "reset-transitions"] {
            if property.attribute(name).is_some_and(|text| !text.trim().is_empty()) {
                return Err(refused(element, format!("its {name} has no meaning here")));
            }
        }
    }
    let guard = property(element, "10.default.enablingFunction").and_then(|property| property.attribute("enabling-function"));
    let guard = guard.filter(|text| !text.trim().is_empty()).map(|text| {
        let place = |name: &str| places.iter().position(|place| place.name == name);
        Expression::parse(text, &place).map_err(|error| refused(element, format!("enabling function: {error}")))
    });
    let law = property(element, "transition.stochastic").ok_or_else(|| refused(element, "it has no transition.stochastic property"))?;
    Ok(Transition {
        name: title(element)?,
        inputs: Vec::new(),
        outputs: Vec::new(),
        inhibitors: Vec::new(),
        tests: Vec::new(),
        guard: guard.transpose()?,
        firing: firing(element, law)?,
    })
}

fn firing(element: &Element, law: &Element) -> Result<Firing, NetError> {
    let number = |name: &str| -> Result<f64, NetError> {
        let text = attribute(law, name).map_err(|_| refused(element, format!("its distribution has no {name}")))?;
        text.trim().parse().map_err(|_| refused(element, format!("{name} is {text}; expected a number")))
    };
    let or = |name: &str, default: f64| if law.attribute(name).is_some() { number(name) } else { Ok(default) };
    let weight = or("weight", 1.0)?;
    let priority = or("priority", 0.0)? as u32;
    let wrong = |error: crate::distribution::DistributionError| refused(element, error);
    let distribution = match attribute(law, "property-data-type").map_err(|_| refused(element, "its distribution has no type"))? {
        "0.type.immediate" => return Ok(Firing::Immediate { priority, weight }),
        "1.type.uniform" => Distribution::Uniform(Uniform::new(number("eft")?, number("lft")?).map_err(wrong)?),
        "2.type.deterministic" => Distribution::Deterministic(Deterministic::new(number("value")?).map_err(wrong)?),
        "3.type.exponential" => Distribution::Exponential(Exponential::new(number("lambda")?).map_err(wrong)?),
        "4.type.erlang" => Distribution::Erlang(Erlang::new(number("k")? as u32, number("lambda")?).map_err(wrong)?),
        other => {
            return Err(refused(element, format!("a delay of {other} is not read; write it as expolynomial in a net of the own format")));
        }
    };
    let delay = Delay::Distribution(distribution);
    Ok(Firing::Timed(Timed { delay, servers: Servers::SINGLE, memory: Memory::Enabling, priority, weight }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(law: &str, arcs: &str) -> String {
        format!(
            r#"<?xml version="1.0"?><tpn-editor xmlns="http://www.oris-tool.org"><tpn-entities><joint uuid="j"/>
            <place uuid="a" x="1" y="2"><properties><property id="0.default.name" name="A"/><property id="default.marking" marking="2"/></properties></place>
            <place uuid="b"><properties><property id="0.default.name" name="B"/></properties></place>
            <transition uuid="t"><features/><properties><property id="0.default.name" name="T"/>
            <property id="10.default.enablingFunction" enabling-function="A &gt; 0 &amp;&amp; B == 0"/>
            <property id="transition.stochastic" {law}/></properties></transition>{arcs}</tpn-entities></tpn-editor>"#
        )
    }

    const ARCS: &str = r#"<arc from="a" to="j"/><arc from="j" to="t"/><arc from="t" to="b"/><inhibitor-arc from="b" to="t"/>"#;

    fn check(law: &str, expected: &str) {
        let net = read(&document(law, ARCS), "n", "s").unwrap_or_else(|error| panic!("{law}: {error}"));
        let transition = &net.transitions()[0];
        assert_eq!((net.places()[0].initial, transition.inputs.len(), transition.outputs.len(), transition.inhibitors.len()), (2, 1, 1, 1));
        assert_eq!((net.degree(0, &[2, 0]), net.degree(0, &[2, 1])), (1, 0));
        let found = match &transition.firing {
            Firing::Immediate { priority, weight } => format!("immediate {priority} {weight}"),
            Firing::Timed(Timed { delay: Delay::Distribution(law), .. }) => format!("{} {}", law.name(), law.mean()),
            Firing::Timed(_) => "rate".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn every_kind_of_transition_is_read() {
        check(r#"property-data-type="0.type.immediate" priority="3" weight="2""#, "immediate 3 2");
        check(r#"property-data-type="1.type.uniform" eft="1.0" lft="3.0""#, "uniform 2");
        check(r#"property-data-type="2.type.deterministic" value="4" weight="1""#, "deterministic 4");
        check(r#"property-data-type="3.type.exponential" lambda="0.5""#, "exponential 2");
        check(r#"property-data-type="4.type.erlang" k="3" lambda="1.5""#, "erlang 2");
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let law = r#"property-data-type="3.type.exponential" lambda="1""#;
        for (law, arcs, reason) in [
            (r#"property-data-type="5.type.expolynomial""#, ARCS, "line 4, transition T: a delay of 5.type.expolynomial"),
            (r#"property-data-type="3.type.exponential""#, ARCS, "its distribution has no lambda"),
            (law, r#"<arc from="a" to="x"/>"#, "line 6, arc: it does not lead"),
            (law, r#"<arc from="a" to="j"/>"#, "it ends at a joint"),
        ] {
            let error = read(&document(law, arcs), "n", "s").expect_err(reason).to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }
}
