//! Solves one reference net on the grid that the published figures have. Time it from outside:
//!
//! ```text
//! cargo build --release -p bodkin-petri --example references
//! perf stat target/release/examples/references intracloud
//! ```
//!
//! `references build kanban5` makes the chain only, which is all states and their rates, by asking for its first moment.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "an example reads its arguments and prints")]

#[path = "../tests/nets/mod.rs"]
mod nets;

use bodkin_petri::{
    format::json,
    measure::Measure,
    net::Net,
    solve::{Question, When, solve},
};

/// Multiples of `step` from 0 to `last`.
fn grid(step: f64, last: f64) -> Vec<f64> {
    (0..=(last / step).round() as usize).map(|index| index as f64 * step).collect()
}

/// The Event Handler's net for so many messages, threads in the pool, and single servers.
fn event_handler(messages: u32, pool: u32) -> Net {
    let text = include_str!("../../../vectors/petri/nets/event_handler_k10_p4_c4_ss.json");
    let (tokens, guard) = (format!("\"initial\": {messages}"), format!("< {pool}\""));
    json::read(&text.replacen("\"initial\": 10", &tokens, 1).replacen("< 4\"", &guard, 1)).expect("the reference nets are right")
}

fn case(name: &str) -> (Net, Vec<f64>, f64) {
    let read = |text: &str| json::read(text).expect("the reference nets are right");
    match name {
        "intracloud" => (read(include_str!("../../../vectors/petri/nets/intracloud.json")), grid(0.5, 500.0), 1e-9),
        "intercloud" => (read(include_str!("../../../vectors/petri/nets/intercloud.json")), grid(5.0, 4000.0), 1e-9),
        "event_handler_k1" => (read(include_str!("../../../vectors/petri/nets/event_handler_k1.json")), grid(0.1, 20.0), 1e-9),
        "event_handler_k4_ss" => (read(include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_ss.json")), grid(0.5, 50.0), 1e-5),
        "event_handler_k4_is" => (read(include_str!("../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json")), grid(0.5, 25.0), 1e-5),
        "event_handler_k10" => (event_handler(10, 4), grid(1.0, 100.0), 1e-4),
        "event_handler_k10_pool64" => (event_handler(10, 64), grid(1.0, 100.0), 1e-4),
        // Of a hundred tokens a ten-thousandth is a hundredth.
        "event_handler_k100" => (event_handler(100, 4), grid(10.0, 750.0), 1e-2),
        "event_handler_k100_pool64" => (event_handler(100, 64), grid(10.0, 750.0), 1e-2),
        kanban => {
            let tickets = kanban.strip_prefix("kanban").and_then(|tickets| tickets.parse().ok()).expect("a case of this example");
            (nets::kanban(tickets), vec![10.0], 1e-9)
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (name, is_build) = match &words[..] {
        [name] => (name, false),
        [build, name] if build == "build" => (name, true),
        _ => panic!("the name of a case, or `build` and its name"),
    };
    let (net, mut times, error) = case(name);
    if is_build {
        times = vec![0.0];
    }
    // Where there are messages, the probability that all were delivered.
    let messages: u32 = net.places().iter().map(|place| place.initial).sum();
    let delivered = net.place("Subscriber").map(|_| Measure::parse(&format!("Subscriber == {messages}"), &net).expect("a condition"));
    let measures = delivered.into_iter().collect();
    let answer = solve(&Question { error, measures, ..Question::new(&net, When::At(times)) }).expect("it can be solved");
    println!("{name}: {}, {} states, {} steps, error {:.2e}", answer.method.name(), answer.states, answer.steps, answer.error());
    println!("of the last column {:.2e}", answer.errors.last().expect("there is a column"));
    println!("{:?}", answer.values.last().expect("there is one time or more"));
}
