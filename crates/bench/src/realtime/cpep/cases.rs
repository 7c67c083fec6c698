//! The rows of each set: which graph, how it is run, how its events arrive.

use super::figures::Figure;
use super::graph_file::Terms;
use super::streams::Arrivals;
use crate::options::{CpepOptions, Precedence, Processor};

/// What suppliers' events of set 4 are valid for.
const VALIDITY_NS: u64 = 10_000_000;
/// What events of the high and the low level were made within, in set 5.
const RELATIVE_NS: u64 = 5_000_000;
/// The same of the middle level, one after the other.
const RELATIVE_MIDDLE_NS: [u64; 4] = [5_500_000, 7_000_000, 8_500_000, 10_000_000];
/// Per cent of the cores that the kernel lets real-time threads have, unless it is told otherwise.
const LOAD_MAX_PERCENT: u32 = 95;
/// What suppliers and consumers take of them at the most, where they are real-time threads.
const SIDES_PERCENT: u32 = 10;
/// What sporadic events of set 2 are early or late by.
const JITTER_NS: u64 = 2_500_000;

/// Which graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Figure 2.6, with so many streams of the middle level.
    Separate { relative_ns: [Option<u64>; 3] },
    /// Figure 2.7.
    InCommon,
}

/// One row but for its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// 1 to 6.
    pub set: u32,
    /// What is different from other rows of the set, but for the size.
    pub name: String,
    /// Streams of the middle level, or copies of the graph.
    pub size: u32,
    /// What processes it.
    pub processor: Processor,
    /// How.
    pub terms: Terms,
    /// Streams of the high and the low level.
    pub beside: [u32; 2],
    /// Whether suppliers and consumers go in front of it.
    sides: Precedence,
    shape: Shape,
    arrivals: Arrivals,
    validity_ns: Option<u64>,
}

impl Case {
    /// The graph of a run, whose phases are its own.
    pub fn figure(&self, run: u32) -> Figure {
        let arrivals = Arrivals { seed: u64::from(run) + 1, ..self.arrivals };
        let [high, low] = self.beside;
        match self.shape {
            Shape::Separate { relative_ns } => Figure::separate([high, self.size, low], arrivals, self.validity_ns, relative_ns),
            Shape::InCommon => Figure::in_common(self.size, arrivals, self.validity_ns),
        }
    }

    /// What its rows are called, but for the size.
    pub fn configuration(&self) -> String {
        let sides = if self.sides == Precedence::First { "" } else { ", sides beside" };
        format!("set {}, {}{sides}", self.set, self.name)
    }

    /// What its outcome is called.
    pub fn label(&self) -> String {
        let what = if self.shape == Shape::InCommon { "copies" } else { "middle streams" };
        format!("{}, {} {what}", self.configuration(), self.size)
    }
}

/// The rows that the options name.
pub fn cases(options: &CpepOptions) -> Vec<Case> {
    let is_wanted = |case: &Case| options.only.as_ref().is_none_or(|text| case.label().contains(text));
    options.sets.iter().flat_map(|set| of_set(*set, options)).filter(is_wanted).collect()
}

fn of_set(set: u32, options: &CpepOptions) -> Vec<Case> {
    let load_max_percent = if options.sides == Precedence::First { LOAD_MAX_PERCENT - SIDES_PERCENT } else { LOAD_MAX_PERCENT };
    let terms = Terms { is_prioritised: true, is_shared: true, sheds: true, cores: options.cores, load_max_percent };
    let plain = Case {
        set,
        name: String::new(),
        size: 0,
        processor: Processor::Bodkin,
        terms,
        beside: [options.high, options.low],
        sides: options.sides,
        shape: Shape::Separate { relative_ns: [None; 3] },
        arrivals: Arrivals::TOGETHER,
        validity_ns: None,
    };
    let in_common = Case { shape: Shape::InCommon, ..plain.clone() };
    let (middle, copies) = (options.middle(), options.copies());
    match set {
        1 => of_sizes(
            &middle,
            options.processors.iter().map(|processor| Case { name: processor.name().into(), processor: *processor, ..plain.clone() }),
        ),
        2 => of_sizes(&middle, prioritised(&plain).into_iter().flat_map(|case| sporadic(&case))),
        3 => of_sizes(&copies, shared(&in_common)),
        4 => {
            let valid = Case { validity_ns: Some(VALIDITY_NS), ..in_common };
            of_sizes(&copies, shared(&valid).into_iter().flat_map(|case| shedding(&case)))
        }
        5 => {
            let within = if options.short { &RELATIVE_MIDDLE_NS[1..2] } else { &RELATIVE_MIDDLE_NS[..] };
            let related = within.iter().flat_map(|middle_ns| {
                let relative_ns = [Some(RELATIVE_NS), Some(*middle_ns), Some(RELATIVE_NS)];
                let name = format!("middle within {:.1} ms, ", *middle_ns as f64 / 1e6);
                let arrivals = Arrivals { are_together: false, ..Arrivals::TOGETHER };
                shedding(&Case { name, shape: Shape::Separate { relative_ns }, arrivals, ..plain.clone() })
            });
            of_sizes(&middle, related)
        }
        _ => of_sizes(&copies[copies.len() / 2..=copies.len() / 2], prioritised(&in_common)),
    }
}

fn of_sizes(sizes: &[u32], cases: impl IntoIterator<Item = Case>) -> Vec<Case> {
    cases.into_iter().flat_map(|case| sizes.iter().map(move |size| Case { size: *size, ..case.clone() })).collect()
}

/// A case in two forms, the second of which is changed.
fn two(case: &Case, names: [&str; 2], change: impl Fn(&mut Case)) -> [Case; 2] {
    let named = |name: &str| Case { name: format!("{}{name}", case.name), ..case.clone() };
    let mut changed = named(names[1]);
    change(&mut changed);
    [named(names[0]), changed]
}

fn prioritised(case: &Case) -> [Case; 2] {
    two(case, ["prioritised", "not prioritised"], |case| case.terms.is_prioritised = false)
}

fn sporadic(case: &Case) -> [Case; 2] {
    two(case, [", periodic", ", sporadic"], |case| case.arrivals.jitter_ns = JITTER_NS)
}

fn shared(case: &Case) -> [Case; 2] {
    two(case, ["shared", "not shared"], |case| case.terms.is_shared = false)
}

fn shedding(case: &Case) -> [Case; 2] {
    let comma = if case.name.is_empty() || case.name.ends_with(", ") { "" } else { ", " };
    two(case, [&format!("{comma}shedding"), &format!("{comma}no shedding")], |case| case.terms.sheds = false)
}

impl Processor {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodkin => "bodkin",
            Self::Flink => "flink",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: CpepOptions,
    }

    fn of(line: &str) -> Vec<Case> {
        cases(&Line::parse_from(std::iter::once("cpep").chain(line.split(' '))).options)
    }

    #[test]
    fn each_set_differs_in_what_it_is_about() {
        let labels = |line: &str| of(line).iter().map(Case::label).collect::<Vec<_>>();
        assert_eq!(labels("--sets 1 --middle 3"), ["set 1, bodkin, 3 middle streams", "set 1, flink, 3 middle streams"]);
        let two = labels("--sets 2 --middle 3,6");
        assert_eq!((two.len(), two[3].as_str()), (8, "set 2, prioritised, sporadic, 6 middle streams"));
        assert_eq!(labels("--sets 1 --middle 3 --sides beside")[0], "set 1, bodkin, sides beside, 3 middle streams");
        assert_eq!(labels("--sets 3 --copies 5"), ["set 3, shared, 5 copies", "set 3, not shared, 5 copies"]);
        assert_eq!(
            labels("--sets 4 --copies 5"),
            ["shared, shedding", "shared, no shedding", "not shared, shedding", "not shared, no shedding"]
                .map(|name| format!("set 4, {name}, 5 copies"))
        );
        assert_eq!(
            labels("--sets 5 --middle 3 --short"),
            ["shedding", "no shedding"].map(|name| format!("set 5, middle within 7.0 ms, {name}, 3 middle streams"))
        );
        assert_eq!(
            labels("--sets 4 --copies 5 --only not"),
            ["shedding", "no shedding"].map(|name| format!("set 4, not shared, {name}, 5 copies"))
        );
        assert_eq!(labels("--sets 6"), ["set 6, prioritised, 7 copies", "set 6, not prioritised, 7 copies"]);
    }

    #[test]
    fn what_is_switched_off_is_off() {
        let terms = |case: &Case| [case.terms.is_prioritised, case.terms.is_shared, case.terms.sheds];
        let all = of("--sets 4 --copies 5");
        assert_eq!(
            all.iter().map(terms).collect::<Vec<_>>(),
            [[true, true, true], [true, true, false], [true, false, true], [true, false, false]]
        );
        assert!(all.iter().all(|case| case.figure(0).streams.validity_ns == Some(VALIDITY_NS)));
        let sporadic = of("--sets 2 --middle 3");
        assert_eq!(sporadic.iter().map(|case| case.figure(0).streams.jitter_ns).collect::<Vec<_>>(), [0, JITTER_NS, 0, JITTER_NS]);
        let apart = of("--sets 5 --middle 1 --short");
        assert_eq!(apart[0].figure(0).streams.timers.len(), 3 * 2 + 4 + 12 * 2);
        assert_ne!(apart[0].figure(0).streams.timers, apart[0].figure(1).streams.timers, "a run has phases of its own");
    }
}
