//! `bodkin simulate`: the broker's machines on a virtual clock and a faulty network, with every promise checked at every step.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bodkin_simulator::{Campaign, FAULT_KINDS, Failure, Report};
use clap::Args;
use serde_json::json;

use super::{details::Details, printer::Printer};
use crate::{DONE, FAILED};

/// Nanoseconds of an hour.
const HOUR_NS: f64 = 3.6e12;

/// What every step of a run was checked for, a few promises a line.
const CHECKED: [&str; 4] = [
    "losses in a row within L, nothing covered lost where L is 0, every loss told, nothing called excess",
    "no duplicate, order, deadlines where no fault is near",
    "never two leaders, no epoch twice, no act without a lease",
    "control commits, fail-over and recovery in their time",
];

/// Options of `bodkin simulate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "The simulation ends at the first of the limits that are given, or after one simulated hour where none is. \
                        Exit codes: 0 every promise was kept, 1 one was broken (the command that repeats it is printed), 2 usage.")]
pub struct SimulateOptions {
    /// Seed: the same one gives the same run; without it a fresh one is drawn and printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Hours to simulate
    #[arg(long, value_name = "H", value_parser = positive)]
    hours: Option<f64>,
    /// Crashes to simulate, of processes and hosts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    crashes: Option<u64>,
    /// Seconds of this machine's time to spend
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number greater than 0 is expected".to_owned()),
    }
}

impl SimulateOptions {
    fn is_over(&self, report: &Report, spent: Duration) -> bool {
        let default_hours = (self.crashes.is_none() && self.seconds.is_none()).then_some(1.0);
        let hours = self.hours.or(default_hours);
        hours.is_some_and(|hours| report.simulated_ns as f64 >= hours * HOUR_NS)
            || self.crashes.is_some_and(|crashes| report.crashes >= crashes)
            || self.seconds.is_some_and(|seconds| spent >= Duration::from_secs(seconds))
    }
}

/// Simulates and prints; gives the exit code.
pub fn run(options: SimulateOptions, printer: Printer) -> anyhow::Result<u8> {
    let seed = options.seed.unwrap_or_else(fresh_seed);
    if options.seed.is_none() {
        printer.remark(&format!("seed {seed}"))?;
    }
    let started = Instant::now();
    let mut campaign = Campaign::new(seed);
    let failure = loop {
        match campaign.simulate() {
            ControlFlow::Break(failure) => break Some(failure),
            ControlFlow::Continue(()) if options.is_over(campaign.report(), started.elapsed()) => break None,
            ControlFlow::Continue(()) => {}
        }
    };
    tell(seed, campaign.report(), failure.as_deref(), started.elapsed(), printer)?;
    Ok(if failure.is_some() { FAILED } else { DONE })
}

/// Any number: only that it differs from run to run matters.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() * 1_000 + u64::from(since.subsec_millis())
}

fn repeat_command(failure: &Failure) -> String {
    format!("bodkin simulate --seed {} --crashes 1", failure.seed)
}

fn tell(seed: u64, report: &Report, failure: Option<&Failure>, spent: Duration, printer: Printer) -> anyhow::Result<()> {
    let Report { clouds, simulated_ns, crashes, host_crashes, faults, tally } = report;
    let hours = *simulated_ns as f64 / HOUR_NS;
    let counts: serde_json::Map<_, _> =
        FAULT_KINDS.iter().zip(faults).map(|(kind, count)| (kind.to_string().replace(' ', "_"), json!(count))).collect();
    let answer = json!({
        "seed": seed,
        "clouds": clouds,
        "simulated_hours": hours,
        "seconds": spent.as_secs_f64(),
        "crashes": crashes,
        "host_crashes": host_crashes,
        "faults": counts,
        "created": tally.created,
        "delivered": tally.delivered,
        "late_near_faults": tally.late_near_faults,
        "lost": tally.lost,
        "shed": tally.shed,
        "longest_loss_run": tally.longest_run,
        "control_answered": tally.control_answered,
        "requests_answered": tally.requests_answered,
        "leads": tally.leads,
        "longest_gap_us": tally.longest_gap_ns / 1_000,
        "violation": failure.map(|failure| failure.violation.to_string()),
        "repeat": failure.map(repeat_command),
    });
    let faults = FAULT_KINDS.iter().zip(faults).map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ");
    let verdict = match failure {
        None => "every promise was kept".to_owned(),
        Some(failure) => format!("BROKEN: {}", failure.violation),
    };
    let [losses, order, leaders, times] = CHECKED;
    let details = Details::default()
        .with("seed", seed)
        .with("simulated", format!("{hours:.3} hours in {clouds} clouds, within {:.1} s", spent.as_secs_f64()))
        .with("crashes", format!("{crashes} of nodes, {host_crashes} of them with their hosts"))
        .with("faults", faults)
        .with("messages", format!("{} published, {} delivered", tally.created, tally.delivered))
        .with("losses", format!("{}, at most {} in a row", tally.lost, tally.longest_run))
        .with("late", format!("{} near faults, {} dropped as late", tally.late_near_faults, tally.shed))
        .with("leaders", tally.leads)
        .with("longest gap", format!("{:.3} ms from a Primary's death until another node led", tally.longest_gap_ns as f64 / 1e6))
        .with("control commits", format!("{} answered", tally.control_answered))
        .with("events numbered by nodes", format!("{} answered", tally.requests_answered))
        .with("checked", losses)
        .with("", order)
        .with("", leaders)
        .with("", times)
        .with("verdict", verdict)
        .with_some("repeat", failure.map(repeat_command));
    printer.one(&answer, &details)?;
    if let Some(failure) = failure.filter(|_| !printer.is_json()) {
        failure.trace.iter().try_for_each(|line| printer.remark(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_simulated_unless_another_limit_is_given() {
        let options = |hours, crashes, seconds| SimulateOptions { seed: None, hours, crashes, seconds };
        let report = |hours: f64, crashes| Report { simulated_ns: (hours * HOUR_NS) as u64, crashes, ..Report::default() };
        let spent = Duration::from_secs(5);
        assert!(!options(None, None, None).is_over(&report(0.9, 1_000), spent));
        assert!(options(None, None, None).is_over(&report(1.0, 0), spent));
        assert!(!options(None, Some(10), None).is_over(&report(9.0, 9), spent), "crashes alone decide");
        assert!(options(Some(9.0), Some(10), None).is_over(&report(1.0, 10), spent), "the first limit decides");
        assert!(options(Some(9.0), None, Some(5)).is_over(&report(1.0, 10), spent));
        assert!(!options(Some(9.0), None, Some(6)).is_over(&report(1.0, 10), spent));
    }
}
