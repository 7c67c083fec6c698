//! PNML (ISO/IEC 15909-2), place/transition nets.
//!
//! PNML has no time. What a transition is besides its input and output arcs stands in a `toolspecific` element of ours, as the JSON of
//! the own format; other programs leave it alone. A transition without one is timed, exponential with rate 1. Inhibitor and test arcs
//! of other programs are read where an arc has `<type value="inhibitor"/>` (or `test`, `read`).

use std::fmt::Write;

use super::{
    json,
    xml::{self, Element, XmlError, escaped},
};
use crate::{
    distribution::{Distribution, Exponential},
    net::{Arc, Delay, Firing, Memory, Net, NetError, Place, Servers, Timed, Transition},
};

const NAMESPACE: &str = "http://www.pnml.org/version-2009/grammar/pnml";
const TYPE: &str = "http://www.pnml.org/version-2009/grammar/ptnet";

/// A file that is no net.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PnmlError {
    /// It is not XML.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// There is a mistake in it.
    #[error(transparent)]
    Net(#[from] NetError),
}

fn refused(element: &Element, reason: impl std::fmt::Display) -> NetError {
    let id = element.attribute("id").map(|id| format!(" {id}")).unwrap_or_default();
    NetError::new(format!("line {}, {}{id}", element.line, element.name), reason.to_string())
}

/// Reads the first net of a document, all its pages as one.
///
/// # Errors
/// What is wrong, with its line or with the part of the net that it is in.
pub fn read(text: &str) -> Result<Net, PnmlError> {
    let root = xml::read(text)?;
    let net = root.child("net").filter(|_| root.name == "pnml");
    let net = net.ok_or_else(|| refused(&root, "a pnml document with a net is expected"))?;
    let (mut places, mut place_ids) = (Vec::new(), Vec::new());
    for element in net.all("place") {
        let initial = number(element, "initialMarking")?.unwrap_or(0);
        places.push(Place { name: name(element)?, initial });
        place_ids.push(id(element)?);
    }
    let (mut transitions, mut transition_ids) = (Vec::new(), Vec::new());
    for element in net.all("transition") {
        transitions.push(transition(element, &places)?);
        transition_ids.push(id(element)?);
    }
    for element in net.all("arc") {
        arc(element, &place_ids, &transition_ids, &mut transitions)?;
    }
    let own = own(net);
    let unit = own.and_then(|own| own.attribute("time_unit")).unwrap_or("s");
    let title = name(net)?;
    Ok(Net::new(title, unit, places, transitions)?)
}

fn id(element: &Element) -> Result<&str, NetError> {
    element.attribute("id").ok_or_else(|| refused(element, "it has no id"))
}

fn label<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    element.child(name).and_then(|label| label.child("text")).map(|text| text.text.trim())
}

fn name(element: &Element) -> Result<String, NetError> {
    Ok(label(element, "name").filter(|name| !name.is_empty()).map_or(id(element)?, |name| name).to_owned())
}

fn number(element: &Element, name: &str) -> Result<Option<u32>, NetError> {
    let number = |text: &str| text.parse().map_err(|_| refused(element, format!("{name} is {text}; expected a whole number")));
    label(element, name).map(number).transpose()
}

/// Our own `toolspecific` element.
fn own(element: &Element) -> Option<&Element> {
    element.children.iter().find(|child| child.name == "toolspecific" && child.attribute("tool") == Some("bodkin"))
}

fn transition(element: &Element, places: &[Place]) -> Result<Transition, NetError> {
    let name = name(element)?;
    if let Some(own) = own(element) {
        let transition = json::read_transition(&own.text, places).map_err(|error| refused(element, error))?;
        return Ok(Transition { name, ..transition });
    }
    let rate = Exponential::new(1.0).map_err(|error| refused(element, error))?;
    let timed = Timed {
        delay: Delay::Distribution(Distribution::Exponential(rate)),
        servers: Servers::SINGLE,
        memory: Memory::Enabling,
        priority: 0,
        weight: 1.0,
    };
    let firing = Firing::Timed(timed);
    Ok(Transition { name, inputs: Vec::new(), outputs: Vec::new(), inhibitors: Vec::new(), tests: Vec::new(), guard: None, firing })
}

fn arc(element: &Element, places: &[&str], transitions: &[&str], found: &mut [Transition]) -> Result<(), NetError> {
    let weight = number(element, "inscription")?.unwrap_or(1);
    let end = |name: &str| element.attribute(name).ok_or_else(|| refused(element, format!("it has no {name}")));
    let (source, target) = (end("source")?, end("target")?);
    let index = |ids: &[&str], id: &str| ids.iter().position(|other| *other == id);
    let kind = element.child("type").and_then(|kind| kind.attribute("value")).unwrap_or("normal");
    if let (Some(place), Some(transition)) = (index(places, source), index(transitions, target)) {
        let transition = &mut found[transition];
        // Each of several inhibitor arcs inhibits, and each of several test arcs has to hold.
        let (list, together): (_, fn(u32, u32) -> u32) = match kind {
            "inhibitor" => (&mut transition.inhibitors, u32::min),
            "test" | "read" => (&mut transition.tests, u32::max),
            "normal" => (&mut transition.inputs, u32::saturating_add),
            kind => return Err(refused(element, format!("its type is {kind}; expected normal, inhibitor, test or read"))),
        };
        add(list, Arc { place, weight }, together);
        return Ok(());
    }
    match (index(transitions, source), index(places, target)) {
        (Some(transition), Some(place)) if kind == "normal" => {
            add(&mut found[transition].outputs, Arc { place, weight }, u32::saturating_add);
            Ok(())
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

/// Writes a net.
pub fn write(net: &Net) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<pnml xmlns=\"{NAMESPACE}\">\n<net id=\"net\" type=\"{TYPE}\">\n\
         <name><text>{}</text></name>\n<toolspecific tool=\"bodkin\" version=\"1\" time_unit=\"{}\"/>\n<page id=\"page\">\n",
        escaped(net.name()),
        escaped(net.time_unit())
    );
    for (index, place) in net.places().iter().enumerate() {
        let _ = write!(text, "<place id=\"p{index}\"><name><text>{}</text></name>", escaped(&place.name));
        if place.initial > 0 {
            let _ = write!(text, "<initialMarking><text>{}</text></initialMarking>", place.initial);
        }
        text.push_str("</place>\n");
    }
    let mut arcs = String::new();
    for (index, transition) in net.transitions().iter().enumerate() {
        let own = json::write_transition(transition, net);
        let _ = writeln!(
            text,
            "<transition id=\"t{index}\"><name><text>{}</text></name><toolspecific tool=\"bodkin\" version=\"1\">{}</toolspecific></transition>",
            escaped(&transition.name),
            escaped(&own)
        );
        for arc in &transition.inputs {
            write_arc(&mut arcs, &format!("p{}", arc.place), &format!("t{index}"), arc.weight);
        }
        for arc in &transition.outputs {
            write_arc(&mut arcs, &format!("t{index}"), &format!("p{}", arc.place), arc.weight);
        }
    }
    text + &arcs + "</page>\n</net>\n</pnml>\n"
}

fn write_arc(text: &mut String, source: &str, target: &str, weight: u32) {
    let inscription = if weight == 1 { String::new() } else { format!("<inscription><text>{weight}</text></inscription>") };
    let _ = writeln!(text, "<arc id=\"{source}-{target}\" source=\"{source}\" target=\"{target}\">{inscription}</arc>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_the_same() {
        for text in [
            include_str!("../../../../vectors/petri/nets/intracloud.json"),
            include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json"),
        ] {
            let net = json::read(text).expect("it is right");
            assert_eq!(read(&write(&net)).expect("what is written is right"), net);
        }
    }

    #[test]
    fn a_net_of_another_program_is_read() {
        let text = r#"<pnml xmlns="http://www.pnml.org/version-2009/grammar/pnml"><net id="n" type="x"><page id="a">
            <place id="p"><initialMarking><text> 3 </text></initialMarking></place><place id="q"><name><text>Q</text></name></place>
            <transition id="t"/><arc id="1" source="p" target="t"><inscription><text>2</text></inscription></arc>
            <arc id="2" source="t" target="q"/><arc id="3" source="q" target="t"><type value="inhibitor"/></arc></page></net></pnml>"#;
        let net = read(text).expect("it is right");
        let transition = &net.transitions()[0];
        assert_eq!((net.places()[0].initial, net.places()[1].name.as_str()), (3, "Q"));
        assert_eq!((&transition.inputs, &transition.inhibitors), (&vec![Arc { place: 0, weight: 2 }], &vec![Arc { place: 1, weight: 1 }]));
    }

    #[test]
    fn several_arcs_between_the_same_two_mean_what_each_of_them_does() {
        let arc = |kind: &str, weight: u32| {
            format!(
                "<arc id=\"{kind}{weight}\" source=\"p\" target=\"t\"><inscription><text>{weight}</text></inscription><type value=\"{kind}\"/></arc>"
            )
        };
        let arcs: String = [("normal", [2, 3]), ("inhibitor", [9, 7]), ("test", [2, 3])]
            .iter()
            .flat_map(|(kind, weights)| weights.map(|weight| arc(kind, weight)))
            .collect();
        let net = read(&format!("<pnml><net id=\"n\"><place id=\"p\"/><transition id=\"t\"/>{arcs}</net></pnml>")).expect("it is right");
        let weights =
            [&net.transitions()[0].inputs, &net.transitions()[0].inhibitors, &net.transitions()[0].tests].map(|list| list[0].weight);
        assert_eq!(weights, [5, 7, 3], "both are taken, seven inhibit already, three have to be there");
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let net = |parts: &str| format!("<pnml><net id=\"n\">\n{parts}</net></pnml>");
        for (parts, reason) in [
            ("<place/>", "line 2, place: it has no id"),
            ("<place id=\"p\"/><arc id=\"a\" source=\"p\" target=\"x\"/>", "line 2, arc a: it leads from p to x"),
            ("<place id=\"p\"><initialMarking><text>-1</text></initialMarking></place>", "line 2, place p: initialMarking is -1"),
            ("<place id=\"p\"/><transition id=\"t\"><toolspecific tool=\"bodkin\">{}</toolspecific></transition>", "line 2, transition t"),
        ] {
            let error = read(&net(parts)).expect_err(parts).to_string();
            assert!(error.contains(reason), "{parts}: {error}");
        }
    }
}
