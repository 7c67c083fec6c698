//! The cases, and what was asked of each.

use std::fmt;

use serde_json::Value;

use crate::cli::model::reproduce::{EVENT_HANDLER, FOUR_MESSAGES, FOUR_MESSAGES_AT_ONCE, INTERCLOUD, INTRACLOUD, LISTING};

const KANBAN: &str = include_str!("../../../../../../vectors/petri/nets/kanban.json");

/// The gambler's ruin of an M/M/1 queue: 29 before 0, from 1, with probability `2 / (3^29 - 1)`.
const RUIN: &str = r#"{"schema": "stpn-neutral-1", "name": "queue", "time_unit": "s", "places": [{"id": "Queue", "initial": 1}], "transitions": [
    {"id": "arrive", "kind": "timed", "distribution": {"type": "exponential", "rate": 1}, "outputs": [{"place": "Queue"}]},
    {"id": "serve", "kind": "timed", "distribution": {"type": "exponential", "rate": 3}, "inputs": [{"place": "Queue"}]}]}"#;

/// Shape of the thesis's latencies, to the digits that are known.
const SHAPE: f64 = 10.070_253_82;

/// A case: a file, what is asked of it, and the goals.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    pub file: &'static str,
    pub text: String,
    pub parameters: Vec<(String, f64)>,
    /// The command of `bodkin model`, and its options behind the file.
    pub arguments: Vec<String>,
    pub goals: Vec<Goal>,
    of: Of,
}

/// Where a case's answer says what was reached.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// A solution's error.
    Solution,
    /// A rare event's probability, computed.
    Probability,
    /// A simulation's half-width.
    HalfWidth,
    /// A simulation of so many messages a run.
    Messages(u32),
    /// A rare event's interval.
    Interval,
    /// A fit's shape.
    Shape,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Processor seconds.
    Cpu(f64),
    /// Seconds.
    Wall(f64),
    /// Largest error or half-width, of the value itself where it is a rare event's or a fit's.
    Error(f64),
    /// Messages a processor second.
    Messages(f64),
    /// Megabytes.
    Memory(f64),
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(seconds) => write!(f, "cpu {seconds} s"),
            Self::Wall(seconds) => write!(f, "wall {seconds} s"),
            Self::Error(error) => write!(f, "{error:e}"),
            Self::Messages(count) => write!(f, "{:.1} million/s", count / 1e6),
            Self::Memory(mb) => write!(f, "{mb} MB"),
        }
    }
}

impl Goal {
    pub fn is_met(self, told: &Told) -> bool {
        match self {
            Self::Cpu(seconds) => told.cpu_s <= seconds,
            Self::Wall(seconds) => told.wall_s <= seconds,
            Self::Error(error) => told.error <= error,
            Self::Messages(count) => told.messages / told.cpu_s >= count,
            Self::Memory(mb) => told.largest_mb <= mb,
        }
    }
}

/// What a case took and reached.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub cpu_s: f64,
    pub wall_s: f64,
    pub largest_mb: f64,
    /// Error, half-width, or how far a value is off as a part of it.
    pub error: f64,
    pub messages: f64,
    /// In words: states, runs, method.
    pub more: String,
}

impl Case {
    fn new(name: &'static str, file: &'static str, text: String, arguments: &[&str], goals: &[Goal], of: Of) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { name, file, text, parameters: Vec::new(), arguments, goals: goals.to_vec(), of }
    }

    /// Reads an answer; none where it lacks something.
    pub fn told(&self, answer: &Value) -> Option<Told> {
        let number = |name: &str| answer[name].as_f64();
        let told = Told::default();
        Some(match self.of {
            Of::Solution => {
                let more = format!("{} of {}, {} states", answer["certainty"].as_str()?, answer["method"].as_str()?, answer["states"]);
                Told { error: number("error")?, more, ..told }
            }
            Of::Probability => {
                let exact = 2.0 / (3_f64.powi(29) - 1.0);
                let value = answer["values"][0].as_array()?.last()?.as_f64()?;
                let bound = answer["errors"].as_array()?.last()?.as_f64()?;
                let error = (value / exact - 1.0).abs().max(bound / exact);
                Told { error, more: format!("of {value:.6e}, exact {exact:.6e}"), ..told }
            }
            Of::HalfWidth => Told { error: number("half_width")?, more: format!("half-width, {} runs", answer["runs"]), ..told },
            Of::Messages(messages) => Told { messages: f64::from(messages) * number("runs")?, ..told },
            Of::Interval => {
                let end = |name: &str| answer["probability"][name].as_f64();
                let (value, low, high) = (end("value")?, end("low")?, end("high")?);
                Told { error: (high - value).max(value - low) / value, more: format!("of {value:.3e}, {low:.3e} to {high:.3e}"), ..told }
            }
            Of::Shape => {
                let shape = answer["fits"][0]["parameters"]["shape"].as_f64()?;
                let fits = if answer["any_fits"] == false { "told that it does not fit" } else { "told that it fits" };
                Told { error: (shape - SHAPE).abs(), more: format!("shape {shape:.8}, {fits}"), ..told }
            }
        })
    }

    /// What was reached besides the time.
    pub fn said(&self, told: &Told) -> String {
        match self.of {
            Of::Messages(_) => format!("{:.2} million/s", told.messages / told.cpu_s / 1e6),
            _ => format!("{:.1e} {}", told.error, told.more),
        }
    }
}

/// The names of all cases.
pub fn names() -> Vec<&'static str> {
    all().iter().map(|case| case.name).collect()
}

/// A net of the Event Handler with so many messages, and so many threads in the pool.
fn event_handler(of: &str, had: u32, messages: u32, pool: u32) -> String {
    let (before, after) = (format!("\"initial\": {had}"), format!("\"initial\": {messages}"));
    of.replacen(&before, &after, 1).replacen("< 4\"", &format!("< {pool}\""), 1)
}

/// The published net with the shapes that its author rounded.
fn real_shapes() -> String {
    let gamma = |shape: f64, rate: f64| serde_json::json!({ "type": "gamma", "shape": shape, "rate": rate });
    let mut net: Value = serde_json::from_str(EVENT_HANDLER).expect("the net is right");
    for transition in net["transitions"].as_array_mut().expect("it has transitions") {
        match transition["id"].as_str() {
            Some("publish") => transition["distribution"] = gamma(13.235, 2.088),
            Some("notify") => transition["distribution"] = gamma(6.235, 2.683),
            _ => {}
        }
    }
    net.to_string()
}

/// Every case, in the order of `docs/experiments/petri.md`.
pub fn all() -> Vec<Case> {
    use Goal::{Cpu, Error, Memory, Messages, Wall};
    let solve = |name, file, text: &str, grid: &str, error: &str, goals: &[Goal]| {
        Case::new(name, file, text.to_owned(), &["solve", "--transient", grid, "--error", error], goals, Of::Solution)
    };
    let mut cases = vec![
        solve("intracloud", "intracloud.json", INTRACLOUD, "0:0.5:500", "1e-9", &[Cpu(0.05), Error(1e-9)]),
        solve("intercloud", "intercloud.json", INTERCLOUD, "0:5:4000", "1e-9", &[Cpu(0.2), Error(1e-9)]),
        solve("event-handler-1", "k1.json", EVENT_HANDLER, "0:0.1:20", "1e-9", &[Cpu(0.02), Error(1e-9)]),
        solve("event-handler-1-gamma", "k1-gamma.json", &real_shapes(), "0:0.1:20", "1e-8", &[Cpu(0.02), Error(1e-8)]),
    ];
    let few: [(&str, &str, &str, u32, &str); 6] = [
        ("event-handler-2", "k2.json", FOUR_MESSAGES, 2, "0:0.5:50"),
        ("event-handler-3", "k3.json", FOUR_MESSAGES, 3, "0:0.5:50"),
        ("event-handler-4", "k4.json", FOUR_MESSAGES, 4, "0:0.5:50"),
        ("event-handler-2-at-once", "k2-at-once.json", FOUR_MESSAGES_AT_ONCE, 2, "0:0.5:25"),
        ("event-handler-3-at-once", "k3-at-once.json", FOUR_MESSAGES_AT_ONCE, 3, "0:0.5:25"),
        ("event-handler-4-at-once", "k4-at-once.json", FOUR_MESSAGES_AT_ONCE, 4, "0:0.5:25"),
    ];
    for (name, file, of, messages, grid) in few {
        cases.push(solve(name, file, &event_handler(of, 4, messages, 4), grid, "1e-5", &[Cpu(5.0), Error(1e-5)]));
    }
    for (name, file, pool) in [("event-handler-10", "k10.json", 4), ("event-handler-10-pool-64", "k10-pool64.json", 64)] {
        cases.push(solve(name, file, &event_handler(FOUR_MESSAGES, 4, 10, pool), "0:1:100", "1e-4", &[Cpu(60.0), Error(1e-4)]));
    }
    let hundred: [(&str, &str, u32, &str); 4] = [
        ("event-handler-100-share", "k100.json", 4, "Subscriber / 100"),
        ("event-handler-100-all", "k100.json", 4, "Subscriber == 100"),
        ("event-handler-100-pool-64-share", "k100-pool64.json", 64, "Subscriber / 100"),
        ("event-handler-100-pool-64-all", "k100-pool64.json", 64, "Subscriber == 100"),
    ];
    for (name, file, pool, measure) in hundred {
        let arguments = ["simulate", "--transient", "0:10:750", "--measure", measure, "--half-width", "0.001", "--threads", "2"];
        cases.push(Case::new(
            name,
            file,
            event_handler(FOUR_MESSAGES, 4, 100, pool),
            &arguments,
            &[Wall(30.0), Error(1e-3)],
            Of::HalfWidth,
        ));
    }
    let speeds: [(&str, &str, u32, &str); 4] = [
        ("simulator-1", "k1.json", 1, "3000000"),
        ("simulator-4", "k4.json", 4, "750000"),
        ("simulator-10", "k10.json", 10, "300000"),
        ("simulator-100", "k100.json", 100, "30000"),
    ];
    for (name, file, messages, runs) in speeds {
        let text = if messages == 1 { EVENT_HANDLER.to_owned() } else { event_handler(FOUR_MESSAGES, 4, messages, 4) };
        // Until the last message has certainly come: 301 instants in any case.
        let grid = if messages > 10 { "0:3:900" } else { "0:0.4:120" };
        let arguments = ["simulate", "--transient", grid, "--runs", runs, "--threads", "1"];
        cases.push(Case::new(name, file, text, &arguments, &[Messages(1.5e6)], Of::Messages(messages)));
    }
    let kanban: [(&str, &str, f64, &str, &[Goal]); 3] = [
        ("kanban-3", "kanban3.json", 3.0, "10", &[Cpu(0.4), Error(1e-9)]),
        ("kanban-5-building", "kanban5.json", 5.0, "0", &[Cpu(5.0), Memory(1_000.0)]),
        ("kanban-5", "kanban5.json", 5.0, "10", &[Cpu(25.0), Error(1e-9), Memory(1_000.0)]),
    ];
    for (name, file, tickets, time, goals) in kanban {
        let case = Case::new(name, file, KANBAN.to_owned(), &["solve", "--at", time, "--error", "1e-9"], goals, Of::Solution);
        cases.push(Case { parameters: vec![("tickets".to_owned(), tickets)], ..case });
    }
    let until = "Queue == 0 or Queue >= 29";
    let arguments = ["solve", "--steady", "--until", until, "--measure", "Queue >= 29", "--error", "1e-9"];
    cases.push(Case::new("rare", "ruin.json", RUIN.to_owned(), &arguments, &[Error(1e-9)], Of::Probability));
    let arguments = "simulate --at 1e6 --rare Queue --levels 2:1:28 --particles 2000 --replicates 20 --within 5 --until";
    let arguments: Vec<&str> = arguments.split(' ').chain(["Queue >= 29", "--stop", "Queue == 0"]).collect();
    cases.push(Case::new("rare-splitting", "ruin.json", RUIN.to_owned(), &arguments, &[Error(0.05)], Of::Interval));
    cases.push(Case::new("gamma-fit", "listing-6-1.csv", LISTING.to_owned(), &["fit", "--family", "gamma"], &[Error(1e-8)], Of::Shape));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodkin_petri::format::json;

    #[test]
    fn every_case_has_a_net_of_its_own_and_a_name() {
        let cases = all();
        let mut names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cases.len());
        let tokens = |name: &str| {
            let case = cases.iter().find(|case| case.name == name).expect(name);
            json::read_with(&case.text, &case.parameters).unwrap_or_else(|error| panic!("{name}: {error}")).initial().iter().sum::<u32>()
        };
        let expected = [
            ("event-handler-2", 2),
            ("event-handler-3-at-once", 3),
            ("event-handler-10-pool-64", 10),
            ("kanban-5", 20),
            ("simulator-100", 100),
        ];
        expected.iter().for_each(|(name, count)| assert_eq!(tokens(name), *count, "{name}"));
        let wide = cases.iter().find(|case| case.name == "event-handler-100-pool-64-all").expect("it is there");
        assert!(wide.text.contains("< 64\"") && !wide.text.contains("< 4\""), "the pool");
        assert!(cases.iter().all(|case| !case.file.ends_with(".json") || json::read_with(&case.text, &case.parameters).is_ok()));
    }

    #[test]
    fn goals_are_compared_with_what_was_reached() {
        let told = Told { cpu_s: 2.0, wall_s: 3.0, largest_mb: 400.0, error: 1e-6, messages: 5e6, more: String::new() };
        let met = [Goal::Cpu(2.0), Goal::Wall(3.5), Goal::Error(1e-5), Goal::Messages(2.5e6), Goal::Memory(1_000.0)];
        let missed = [Goal::Cpu(1.9), Goal::Wall(2.9), Goal::Error(1e-7), Goal::Messages(2.6e6), Goal::Memory(399.0)];
        assert!(met.iter().all(|goal| goal.is_met(&told)) && !missed.iter().any(|goal| goal.is_met(&told)));
    }
}
