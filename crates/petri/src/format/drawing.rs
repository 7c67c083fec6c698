//! Nets to look at: DOT for Graphviz, SVG for a browser.

mod layout;
mod svg;

use std::fmt::Write;

pub use self::svg::svg;
use crate::net::{Arc, Delay, Firing, Memory, Net, Servers, Timed, Transition};

/// An arc of a drawing: between a place and a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Input,
    Output,
    Inhibitor,
    Test,
}

/// All arcs of a net: transition, arc, kind.
fn arcs(net: &Net) -> impl Iterator<Item = (usize, Arc, Kind)> {
    net.transitions().iter().enumerate().flat_map(|(index, transition)| {
        let lists = [
            (&transition.inputs, Kind::Input),
            (&transition.outputs, Kind::Output),
            (&transition.inhibitors, Kind::Inhibitor),
            (&transition.tests, Kind::Test),
        ];
        lists.into_iter().flat_map(move |(list, kind)| list.iter().map(move |arc| (index, *arc, kind)))
    })
}

/// What is written beside a transition: when it fires, and where it may.
fn caption(transition: &Transition, net: &Net) -> Vec<String> {
    let name = |place: usize| net.places()[place].name.clone();
    let mut lines = Vec::new();
    match &transition.firing {
        Firing::Immediate { priority, weight } => {
            lines.extend((*priority != 1).then(|| format!("priority {priority}")));
            lines.extend((*weight != 1.0).then(|| format!("weight {weight}")));
        }
        Firing::Timed(timed) => lines.push(delay(timed, &name)),
    }
    lines.extend(transition.guard.iter().map(|guard| format!("[{}]", guard.text(&name))));
    lines
}

fn delay(timed: &Timed, name: &dyn Fn(usize) -> String) -> String {
    let law = match &timed.delay {
        Delay::Distribution(law) => format!("{}, mean {}", law.name(), short(law.mean())),
        Delay::Rate(rate) => format!("rate {}", rate.text(name)),
    };
    let servers = match timed.servers {
        Servers::SINGLE => String::new(),
        Servers::Infinite => ", a clock a token".to_owned(),
        Servers::Count(count) => format!(", {count} servers"),
    };
    let memory = match timed.memory {
        Memory::Enabling => "",
        Memory::Age => ", age memory",
        Memory::RepeatIdentical => ", repeats",
    };
    law + &servers + memory
}

/// Four digits.
fn short(number: f64) -> String {
    let digits = (3 - number.abs().log10().floor().clamp(-12.0, 3.0) as i32).max(0) as usize;
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The net as a graph for Graphviz: places are circles, timed transitions boxes, immediate ones bars.
pub fn dot(net: &Net) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    let mut text = format!("digraph \"{}\" {{\n  rankdir=LR;\n", quoted(net.name()));
    for (index, place) in net.places().iter().enumerate() {
        let tokens = if place.initial > 0 { place.initial.to_string() } else { String::new() };
        let _ = writeln!(text, "  p{index} [shape=circle, label=\"{tokens}\", xlabel=\"{}\"];", quoted(&place.name));
    }
    for (index, transition) in net.transitions().iter().enumerate() {
        let shape = match transition.firing {
            Firing::Immediate { .. } => "style=filled, fillcolor=black, width=0.08, height=0.5",
            Firing::Timed(_) => "width=0.25, height=0.5",
        };
        let lines: Vec<String> =
            std::iter::once(transition.name.clone()).chain(caption(transition, net)).map(|line| quoted(&line)).collect();
        let _ = writeln!(text, "  t{index} [shape=box, {shape}, label=\"\", xlabel=\"{}\"];", lines.join("\\n"));
    }
    for (transition, Arc { place, weight }, kind) in arcs(net) {
        let label = if weight == 1 { String::new() } else { format!(", label=\"{weight}\"") };
        let _ = match kind {
            Kind::Input => writeln!(text, "  p{place} -> t{transition} [arrowhead=normal{label}];"),
            Kind::Output => writeln!(text, "  t{transition} -> p{place} [arrowhead=normal{label}];"),
            Kind::Inhibitor => writeln!(text, "  p{place} -> t{transition} [arrowhead=odot{label}];"),
            Kind::Test => writeln!(text, "  p{place} -> t{transition} [style=dashed, arrowhead=none{label}];"),
        };
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json;

    fn event_handler() -> Net {
        json::read(include_str!("../../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json")).expect("it is right")
    }

    #[test]
    fn dot_names_every_part_and_arc() {
        let (net, text) = (event_handler(), dot(&event_handler()));
        for name in net.places().iter().map(|place| &place.name).chain(net.transitions().iter().map(|transition| &transition.name)) {
            assert!(text.contains(name.as_str()), "{name}");
        }
        assert_eq!((text.matches("->").count(), text.matches("arrowhead=odot").count()), (26, 4));
        assert!(text.contains("erlang, mean 6.226") && text.contains("Ready_to_Send"), "{text}");
    }

    #[test]
    fn svg_is_well_formed_and_names_every_part() {
        let net = event_handler();
        let text = svg(&net);
        let root = crate::format::xml::read(&text).expect("it is well-formed");
        assert_eq!((root.name.as_str(), root.all("circle").len()), ("svg", 9 + 4), "places, and the rings of inhibitor arcs");
        for name in net.places().iter().map(|place| &place.name) {
            assert!(text.contains(name.as_str()), "{name}");
        }
    }

    #[test]
    fn numbers_have_four_digits() {
        let numbers = [0.5, 6.226_053, 1_234_567.0, 0.000_123_456, 0.0, 100.0];
        assert_eq!(numbers.map(short), ["0.5", "6.226", "1234567", "0.0001235", "0", "100"]);
    }
}
