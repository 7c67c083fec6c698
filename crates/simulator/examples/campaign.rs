//! Simulates whole clouds from a seed on until a promise is broken: `campaign CLOUDS [SEED]`. Exits with 1 at the first violation, and names its seed.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a program, not part of the machines")]

use std::{ops::ControlFlow, process::ExitCode};

use bodkin_simulator::{Campaign, FAULT_KINDS, Report};

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(clouds)), seed) = (numbers.next(), numbers.next().unwrap_or(Ok(1))) else {
        eprintln!("usage: campaign CLOUDS [SEED]");
        return ExitCode::from(2);
    };
    let Ok(seed) = seed else {
        eprintln!("the seed is a whole number");
        return ExitCode::from(2);
    };
    let mut campaign = Campaign::new(seed);
    for _ in 0..clouds {
        if let ControlFlow::Break(failure) = campaign.simulate() {
            println!("seed {}: {}", failure.seed, failure.violation);
            failure.trace.iter().for_each(|line| println!("{line}"));
            return ExitCode::FAILURE;
        }
    }
    println!("{clouds} clouds kept every promise");
    let Report { simulated_ns, crashes, faults, tally, .. } = campaign.report();
    let hours = *simulated_ns as f64 / 3.6e12;
    println!("{hours:.3} simulated hours, {crashes} crashes, {} events, {} leads", tally.created, tally.leads);
    FAULT_KINDS.iter().zip(faults).for_each(|(kind, count)| println!("{count:>9} {kind}"));
    ExitCode::SUCCESS
}
