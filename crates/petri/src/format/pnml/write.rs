//! Nets as PNML documents.

use std::fmt::Write;

use super::{GRAMMAR, TYPE};
use crate::{
    format::{json, xml::escaped},
    net::Net,
};

/// Writes a net.
pub fn write(net: &Net) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<pnml xmlns=\"{GRAMMAR}\">\n<net id=\"net\" type=\"http://{TYPE}\">\n\
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
