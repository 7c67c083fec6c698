//! `bodkin doctor`: is this machine fit for what `bodkin up` with the same options would do? It only looks.

mod certificates;
mod client_certificate;
mod clocks;
mod data;
mod dns_sd;
mod finding;
mod fleet;
mod network;
mod node_events;
mod processes;
mod reach;
mod rights;
mod shared;
mod stalls;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use serde_json::json;

pub use self::finding::{Finding, Verdict};
use crate::{
    DONE, FAILED, USAGE,
    cli::{Printer, write_out},
    settings::{Settings, relaxed_options},
};

/// Options of `bodkin doctor`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "The options are those of `bodkin up`: give the same. Exit codes: 0 no problem, 1 a problem, 2 usage.")]
pub struct DoctorOptions {
    /// Configuration file (TOML) of the local cloud
    #[arg(long, env = "BODKIN_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Seconds to measure how late this machine wakes a thread that is due
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    stall_s: u64,
    /// Where NATS servers are monitored (http_port), which say there whether they sync before they acknowledge: http://HOST:PORT, in a comma list
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    nats_monitors: Vec<String>,
    #[command(flatten)]
    settings: Settings,
}

/// Examines and prints; gives the exit code.
pub async fn run(options: DoctorOptions, printer: Printer) -> anyhow::Result<u8> {
    let settings = match options.settings.complete(options.config.as_deref()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("bodkin: {error:#}");
            return Ok(USAGE);
        }
    };
    let mut findings = Vec::new();
    let mut tell = |found: Vec<Finding>| {
        if !printer.is_json() {
            found.iter().try_for_each(|finding| write_out(&finding.to_string()))?;
        }
        findings.extend(found);
        anyhow::Ok(())
    };
    tell(options_fit(&settings))?;
    tell(clocks::examine())?;
    tell(rights::examine(&settings))?;
    tell(stalls::examine(&settings, Duration::from_secs(options.stall_s)))?;
    tell(network::examine(&settings).await)?;
    tell(certificates::examine(&settings, bodkin_trust::tls::now()))?;
    tell(reach::examine(&settings))?;
    tell(dns_sd::examine(&settings))?;
    tell(data::examine(&settings))?;
    tell(shared::examine(&settings))?;
    tell(node_events::examine(&settings))?;
    tell(fleet::examine(&settings, &options.nats_monitors))?;
    tell(fleet::monitoring::examine(&options.nats_monitors))?;
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (warnings, problems) = (count(Verdict::Warning), count(Verdict::Problem));
    let several = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let sentence = format!("{}, {}, {} in order", several(problems, "problem"), several(warnings, "warning"), count(Verdict::Ok));
    printer.done(&json!({"verdict": worst, "findings": findings}), &sentence)?;
    Ok(if worst == Verdict::Problem { FAILED } else { DONE })
}

/// Whether `bodkin up` would take the options as they are, and which of them remove a protection.
fn options_fit(settings: &Settings) -> Vec<Finding> {
    match settings.clone().config() {
        Ok(config) => {
            let relaxed = relaxed_options(&config).into_iter();
            let relaxed = relaxed.map(|option| Finding::warning("options", format!("{}: {}", option.key, option.effect), option.remedy));
            [Finding::ok("options", "bodkin up takes them")].into_iter().chain(relaxed).collect()
        }
        Err(error) => vec![Finding::problem(
            "options",
            format!("bodkin up refuses them: {error:#}"),
            "correct them: bodkin.example.toml explains every one",
        )],
    }
}
