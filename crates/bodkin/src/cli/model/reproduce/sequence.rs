//! A net of one token as a sequence diagram: who has the token when, and which transition hands it on.

use std::fmt::Write;

use bodkin_petri::{
    distribution::Distribution,
    net::{Delay, Net, Transition},
};

/// Pixels between two lifelines, between two messages, and around everything.
const COLUMN: f64 = 190.0;
const ROW: f64 = 30.0;
const MARGIN: f64 = 80.0;
/// How far a message to oneself goes out.
const LOOP: f64 = 26.0;

/// Where a place's name goes on behind the name of its system: the published nets have several places of each.
const STATES: [&str; 6] = ["_Begin", "_End", "_Pre_", "_Post_", "_GSD_", "_ICN_"];

/// Draws the way of the one token of a net without choices, until no transition takes it; names have no characters that mean something in SVG.
pub fn svg(net: &Net) -> String {
    let way = way(net);
    let system = |place: usize| system_of(&net.places()[place].name);
    let mut systems: Vec<&str> = Vec::new();
    for place in way.iter().flat_map(|(_, from, to)| [*from, *to]) {
        if !systems.contains(&system(place)) {
            systems.push(system(place));
        }
    }
    let x = |place: usize| {
        let column = systems.iter().position(|own| *own == system(place)).expect("every place of the way was looked at");
        MARGIN + COLUMN * column as f64
    };
    let width = 2.0 * MARGIN + COLUMN * systems.len().saturating_sub(1) as f64 + COLUMN;
    let height = 90.0 + ROW * way.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>{}</title>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        net.name()
    );
    for (column, name) in systems.iter().enumerate() {
        let at = MARGIN + COLUMN * column as f64;
        let _ = writeln!(
            text,
            "<text x=\"{at}\" y=\"24\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\
             <path d=\"M{at} 34V{}\" stroke=\"#888888\" stroke-dasharray=\"4 3\"/>",
            name.replace('_', " "),
            height - 20.0
        );
    }
    for (row, (transition, from, to)) in way.into_iter().enumerate() {
        let (from, to, y) = (x(from), x(to), 64.0 + ROW * row as f64);
        let path = if from == to { format!("h{LOOP}v10h-{LOOP}") } else { format!("H{to}") };
        let at = if from == to { from + LOOP + 6.0 } else { from.min(to) + 8.0 };
        let _ = writeln!(
            text,
            "<path d=\"M{from} {y}{path}\" fill=\"none\" stroke=\"black\" marker-end=\"url(#head)\"/><text x=\"{at}\" y=\"{}\">{}: {}</text>",
            y - 4.0,
            transition.name,
            law_of(transition)
        );
    }
    text + "</svg>\n"
}

/// The transitions that the token passes, each with the places before and behind it.
fn way(net: &Net) -> Vec<(&Transition, usize, usize)> {
    let mut at = net.places().iter().position(|place| place.initial > 0).expect("the published nets have a token");
    let mut way = Vec::new();
    let takes = |transition: &&Transition, place: usize| transition.inputs.iter().any(|arc| arc.place == place);
    while let Some(transition) = net.transitions().iter().find(|transition| takes(transition, at)) {
        let to = transition.outputs.first().expect("the token of the published nets is never lost").place;
        way.push((transition, at, to));
        assert!(way.len() <= net.transitions().len(), "the token of the published nets comes nowhere twice");
        at = to;
    }
    way
}

fn system_of(place: &str) -> &str {
    let end = STATES.iter().filter_map(|state| place.find(state)).min();
    &place[..end.unwrap_or(place.len())]
}

/// As the thesis writes laws, with rates by the net's unit of time.
fn law_of(transition: &Transition) -> String {
    match transition.timed().map(|timed| &timed.delay) {
        Some(Delay::Distribution(Distribution::Exponential(law))) => format!("Exp({})", law.rate()),
        Some(Delay::Distribution(Distribution::Erlang(law))) => format!("Erl({}, {})", law.shape(), law.rate()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::model::reproduce::{INTERCLOUD, INTRACLOUD, net};

    #[test]
    fn every_transition_is_a_message_between_the_systems_whose_places_it_joins() {
        for (text, systems, messages, queries) in [(INTRACLOUD, 4, 8, 2), (INTERCLOUD, 8, 27, 5)] {
            let net = net(text);
            let drawn = svg(&net);
            assert_eq!(drawn.matches("stroke-dasharray").count(), systems, "{drawn}");
            assert_eq!(drawn.matches("marker-end").count(), messages, "{drawn}");
            assert_eq!(drawn.matches(&format!("h{LOOP}v")).count(), queries, "{drawn}");
        }
        let drawn = svg(&net(INTRACLOUD));
        assert!(drawn.contains(">service_request: Exp(0.0582)<") && drawn.contains(">auth_query: Erl(13, 0.2042)<"), "{drawn}");
        let (consumer, orchestrator) = (MARGIN, MARGIN + COLUMN);
        assert!(drawn.contains(&format!("M{consumer} 64H{orchestrator}")), "the first message goes to the Orchestrator: {drawn}");
    }
}
