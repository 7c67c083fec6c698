//! `bodkin model check`.

use bodkin_petri::net::{Firing, Invariant, Net};
use serde_json::json;

use super::file::NetFile;
use crate::{
    DONE, USAGE,
    cli::{details::Details, printer::Printer},
};

/// Most invariants that people are shown.
const INVARIANTS_SHOWN: usize = 20;

/// Reads a net and tells what it is.
pub fn run(file: &NetFile, printer: Printer) -> anyhow::Result<u8> {
    let net = match file.read() {
        Ok(net) => net,
        Err(mistake) => {
            eprintln!("bodkin: {mistake}");
            return Ok(USAGE);
        }
    };
    let immediate = net.transitions().iter().filter(|transition| matches!(transition.firing, Firing::Immediate { .. })).count();
    let timed = net.transitions().len() - immediate;
    let invariants = net.invariants();
    let texts: Option<Vec<String>> =
        invariants.as_ref().map(|invariants| invariants.iter().map(|invariant| text(invariant, &net)).collect());
    let answer = json!({
        "net": net.name(),
        "time_unit": net.time_unit(),
        "places": net.places().len(),
        "timed_transitions": timed,
        "immediate_transitions": immediate,
        "invariants": texts,
    });
    let mut details = Details::default()
        .with("net", net.name())
        .with("time unit", net.time_unit())
        .with("places", net.places().len())
        .with("transitions", format!("{timed} timed, {immediate} immediate"));
    match &texts {
        None => details = details.with("invariants", "too many to find"),
        Some(texts) if texts.is_empty() => details = details.with("invariants", "none: no sum of tokens stays the same"),
        Some(texts) => {
            for (index, text) in texts.iter().take(INVARIANTS_SHOWN).enumerate() {
                details = details.with(if index == 0 { "invariants" } else { "" }, text);
            }
            let more = texts.len().saturating_sub(INVARIANTS_SHOWN);
            details = details.with_some("", (more > 0).then(|| format!("and {more} more")));
        }
    }
    printer.one(&answer, &details)?;
    Ok(DONE)
}

/// As in `A + 2 B = 3`.
fn text(invariant: &Invariant, net: &Net) -> String {
    let term = |(place, weight): &(usize, u64)| match weight {
        1 => net.places()[*place].name.clone(),
        weight => format!("{weight} {}", net.places()[*place].name),
    };
    let terms: Vec<String> = invariant.terms.iter().map(term).collect();
    format!("{} = {}", terms.join(" + "), invariant.total)
}
