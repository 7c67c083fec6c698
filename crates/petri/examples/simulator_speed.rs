//! Simulates one of the Event Handler's nets on one core. Time it from outside:
//!
//! ```text
//! cargo build --release -p bodkin-petri --example simulator_speed
//! time target/release/examples/simulator_speed k4_ss 500000
//! ```
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "an example reads its arguments and prints")]

use bodkin_petri::{
    format::json,
    simulate::{Options, Question, simulate},
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    const TEN: &str = include_str!("../../../vectors/petri/nets/event_handler_k10_p4_c4_ss.json");
    let (messages, text) = match arguments.next().as_deref() {
        Some("k1") => (1, include_str!("../../../vectors/petri/nets/event_handler_k1.json").to_owned()),
        Some("k4_ss") => (4, include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json").to_owned()),
        Some("k4_is") => (4, include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json").to_owned()),
        Some("k10_ss") => (10, TEN.to_owned()),
        Some("k100_ss") => (100, TEN.replace("\"initial\": 10", "\"initial\": 100")),
        _ => panic!("one of k1, k4_ss, k4_is, k10_ss, k100_ss, then the number of runs"),
    };
    let runs = arguments.next().and_then(|runs| runs.parse().ok()).expect("the number of runs");
    let net = json::read(&text).expect("the net is right");
    // Until the last message has certainly come.
    let step = if messages > 10 { 3.0 } else { 0.4 };
    let instants = (0..=300).map(|index| f64::from(index) * step).collect();
    let question = Question { instants, measures: Vec::new(), target: None, tag: None };
    let answer = simulate(&net, &question, &Options { runs, ..Options::default() }).expect("an answer");
    println!("{}: {} messages, {} firings, half-width {:.1e}", net.name(), messages * runs, answer.events, answer.half_width);
}
