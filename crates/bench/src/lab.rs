//! `bench lab`: the full series in one report. It is a list of the bench's own commands, so that each section of the report
//! can be repeated by itself.

use std::path::PathBuf;

use anyhow::bail;
use clap::Parser;

use crate::options::{BenchCommand, LabOptions};
use crate::report::Document;
use crate::threshold::Threshold;

/// The works' experiments and the project's goals. Thresholds are the goals that a table of numbers sets.
const SERIES: &[&str] = &[
    "start --repeat 5 --threshold idle_rss_mb<60",
    // Deliorman 2020, chapter 6.
    "register --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold mean<600ms --threshold errors<1 --threshold peak_rss_mb<250",
    "authorize --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold mean<600ms --threshold errors<1 --threshold peak_rss_mb<250",
    "orchestrate --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold mean<600ms --threshold errors<1 --threshold peak_rss_mb<250",
    "orchestrate-store --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold errors<1",
    "query --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold errors<1",
    "unregister --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold errors<1",
    "list --simultaneous 100,500,1000,5000 --services 10000 --repeat 5 --threshold errors<1",
    "token --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold errors<1",
    "subscribe --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold errors<1",
    "unsubscribe --simultaneous 100,500,1000,5000,10000 --repeat 5 --threshold errors<1",
    "register --find-limit --below 0.1s --repeat 5",
    "register --find-limit --below 1s --repeat 5",
    "register --find-limit --below 10s --repeat 5",
    "authorize --find-limit --below 0.1s --repeat 5",
    "authorize --find-limit --below 1s --repeat 5",
    "orchestrate --find-limit --below 0.1s --repeat 5",
    "orchestrate --find-limit --below 1s --repeat 5",
    "orchestrate --find-limit --below 10s --repeat 5",
    // The small computers of the works.
    "register --simultaneous 100,500,1000 --repeat 3 --cpu 0.25 --memory 64M --threshold errors<1",
    "authorize --simultaneous 100,500,1000 --repeat 3 --cpu 0.25 --memory 64M --threshold errors<1",
    "orchestrate --simultaneous 100,500,1000 --repeat 3 --cpu 0.25 --memory 64M --threshold errors<1",
    "register --find-limit --below 10s --repeat 3 --cpu 0.25 --memory 64M",
    "orchestrate --find-limit --below 10s --repeat 3 --cpu 0.25 --memory 64M",
    // Rocha 2019, chapter 5 and 7.
    "orchestrate --rate 1 --count 100 --repeat 1 --threshold errors<1",
    "register --sequential --count 5000 --repeat 5 --threshold errors<1",
    "query --sequential --count 5000 --repeat 5 --threshold errors<1 --threshold p50<200us",
    "orchestrate --sequential --count 5000 --repeat 5 --threshold errors<1 --threshold p50<200us",
    "query --sequential --count 10000 --services 1000,100000 --repeat 3",
    "orchestrate --sequential --count 10000 --services 1000,100000 --repeat 3",
    "event --scenario A --repeat 5 --threshold lost<1",
    "event --scenario A --core 0 --repeat 5 --threshold lost<1 --threshold p50_ratio<1.15",
    "event --scenario B1 --repeat 3 --threshold lost<1",
    "event --scenario B6 --repeat 3 --threshold lost<1",
    "event --scenario B6 --core 0 --repeat 3 --threshold lost<1 --threshold p50_ratio<1.3",
    "event --scenario C --repeat 3 --threshold lost<1 --threshold out_of_order<1",
    "event --scenario D --threads 1,2,4,8,16,32,64 --repeat 3 --threshold lost<1",
    "event --scenario E --threads 4,32,64 --repeat 3 --threshold lost<1",
    "event --scenario D --connections 1,2,4,8,16 --repeat 3 --threshold lost<1",
    // The Event Handler beside bad subscribers, and what it keeps for them.
    "event --scenario C --dead 10% --slow 10% --repeat 5 --threshold p99_ratio<1.2 --threshold lost<1",
    "event --scenario C --transport push --repeat 3 --threshold lost<1",
    "event --scenario C --transport push --dead 10% --slow 10% --repeat 5 --threshold p99_ratio<1.2 --threshold lost<1",
    "replay --events 1000000 --repeat 5 --threshold events_per_s>100000 --threshold lost<1 --threshold out_of_order<1",
    "dead-letters --events 100000 --repeat 3 --threshold events_per_s>20000 --threshold lost<1",
    "page --services 100000 --repeat 5 --threshold rows_per_s>50000 --threshold errors<1",
    // Wang 2019, chapters 3 and 4, each a part that can be waited for.
    "zmtp --scenario A --sockets dealer --repeat 5 --threshold lost<1 --threshold p50_ratio<1.05 --threshold mean_ratio<1.15",
    "zmtp --scenario C --rate 4000 --repeat 5 --threshold lost<1",
    "cover --repeat 5 --threshold p50_ratio<1.3",
    "durable --repeat 5 --threshold refused<1 --threshold appended_p50_ratio<1.3",
    "frame --short --configurations bodkin --seconds 20 --runs 2 --threshold c0_loss_success_percent>99.9 --threshold c1_loss_success_percent>99.9 --threshold c2_loss_success_percent>99.9 --threshold c3_loss_success_percent>99.9 --threshold c5_loss_success_percent>99.9",
    "frame --topics 7525 --configurations frame,frame-plus,fcfs,fcfs-minus --seconds 20 --runs 1",
    "frame --topics 7525 --configurations bodkin --cloud --fault none --seconds 30 --runs 1 --threshold lost<1",
    "arrec --topics 1200 --groups large --strategies all,li,retransmission,periodic-25,periodic-50 --processing-us 20 --seconds 20 --runs 1",
    "crash --dealer-only --fault kill --times 20 --seconds 0.3 --streams 5 --lease-ms 10 --heartbeat-ms 2 --detect-jitter-ms 6 --redirect-ms 5 --threshold broken_promises<1 --threshold gaps_beyond_x<1",
    "crash --dealer-only --fault none --times 1 --undisturbed-seconds 1800 --streams 30 --threshold broken_promises<1",
    // Deliorman 2020, section 5.6.2, and Rocha 2019, section 5.3: a neighbor with fixed answers, and one that asks.
    "intercloud --repeat 5 --threshold errors<1 --threshold mean<2s",
    // Müller 2019, chapter 5.
    "taskfarm --part tables,beyond --threshold failed<1",
    "taskfarm --part grain --workers 1,2,4,8,10 --threshold failed<1 --threshold efficiency_percent>90",
    // What security costs: the Java peer takes 2.1 times as long for 10,000 registrations.
    "handshake --repeat 5",
    "register --simultaneous 10000 --secure --repeat 5 --threshold errors<1 --threshold cpu_to_floor<1.3",
    "authorize --simultaneous 10000 --secure --repeat 5 --threshold errors<1 --threshold cpu_to_floor<1.3",
    "orchestrate --simultaneous 10000 --secure --repeat 5 --threshold errors<1",
    "query --simultaneous 10000 --secure --repeat 5 --threshold errors<1 --threshold cpu_to_floor<1.3",
    "register --simultaneous 10000 --secure --resume --repeat 3 --threshold errors<1",
    "register --sequential --count 5000 --secure --repeat 5 --threshold errors<1 --threshold p50_ratio<1.3",
    "query --sequential --count 5000 --secure --repeat 5 --threshold errors<1 --threshold p50_ratio<1.3",
    "orchestrate --sequential --count 5000 --secure --repeat 5 --threshold errors<1 --threshold p50_ratio<1.3",
    "event --scenario A --secure --repeat 5 --threshold lost<1 --threshold p50_ratio<1.3",
    "event --scenario C --secure --repeat 3 --threshold lost<1 --threshold p50_ratio<1.3",
];

/// One of each kind, as small as it can be.
const QUICK: &[&str] = &[
    "start --services 100 --repeat 1",
    "register --simultaneous 20,50 --repeat 2 --threshold errors<1",
    "authorize --simultaneous 20,50 --repeat 1 --threshold errors<1",
    "orchestrate --simultaneous 20,50 --repeat 1 --threshold errors<1",
    "orchestrate-store --simultaneous 20 --repeat 1 --threshold errors<1",
    "query --simultaneous 20,50 --repeat 1 --threshold errors<1",
    "unregister --simultaneous 20 --repeat 1 --threshold errors<1",
    "list --simultaneous 20 --repeat 1 --threshold errors<1",
    "token --simultaneous 20 --repeat 1 --threshold errors<1",
    "subscribe --simultaneous 20 --repeat 1 --threshold errors<1",
    "unsubscribe --simultaneous 20 --repeat 1 --threshold errors<1",
    "query --find-limit --below 1s --services 50 --up-to 200 --repeat 1",
    "register --simultaneous 50 --repeat 1 --cpu 0.5 --memory 128M --threshold errors<1",
    "query --rate 200 --count 50 --services 50 --repeat 1 --threshold errors<1",
    "query --sequential --count 200 --services 50 --repeat 1 --threshold errors<1",
    "event --scenario A --seconds 1 --repeat 1 --threshold lost<1",
    "event --scenario D --threads 1,2 --seconds 1 --repeat 1 --threshold lost<1",
    "event --scenario D --connections 1,4 --seconds 1 --repeat 1 --threshold lost<1",
    "event --scenario E --seconds 1 --repeat 1 --threshold lost<1",
    "event --scenario C --dead 10% --slow 10% --seconds 1 --repeat 1 --threshold lost<1",
    "event --scenario C --transport push --dead 10% --slow 10% --rate 50 --seconds 1 --repeat 1 --threshold lost<1",
    "replay --events 2000 --repeat 1 --threshold lost<1",
    "dead-letters --events 200 --repeat 1 --threshold lost<1",
    "zmtp --scenario A --seconds 1 --repeat 1 --threshold lost<1",
    "cover --rate 100 --seconds 1 --repeat 1",
    "durable --publishers 2 --seconds 1 --repeat 1 --threshold refused<1",
    "frame --topics 60 --configurations bodkin,fcfs-minus --cloud --fault crash --seconds 2 --warm-up-seconds 1 --runs 1",
    "arrec --topics 301 --strategies all,periodic-25 --groups small --processing-us 1 --fault none --seconds 2 --warm-up-seconds 1 --runs 1",
    "page --services 500 --item-per-page 100 --repeat 1 --threshold errors<1",
    "intercloud --simultaneous 5 --sequential 10 --services 5 --repeat 1 --threshold errors<1",
    "handshake --count 50 --repeat 1",
    "register --simultaneous 20 --secure --repeat 1 --threshold errors<1",
    "orchestrate --simultaneous 20 --secure --repeat 1 --threshold errors<1",
    "authorize --sequential --count 50 --services 20 --secure --repeat 1 --threshold errors<1",
    "query --sequential --count 50 --services 20 --secure --repeat 1 --threshold errors<1",
    "event --scenario A --seconds 1 --secure --repeat 1 --threshold lost<1",
];

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchCommand,
}

/// The commands that the options ask for, without `bodkin bench`.
pub fn commands(options: &LabOptions) -> Vec<String> {
    let series = if options.quick { QUICK } else { SERIES };
    let wanted = |line: &&&str| options.only.as_ref().is_none_or(|only| line.split(' ').next() == Some(only));
    series.iter().filter(wanted).map(|line| format!("{line}{}", places(line, options))).collect()
}

/// Where this command keeps what it makes: the one without a server has no data, and only what is secure has certificates.
fn places(line: &str, options: &LabOptions) -> String {
    let place =
        |option: &str, path: &Option<PathBuf>| path.as_ref().map(|path| format!(" --{option} {}", path.display())).unwrap_or_default();
    let is_handshake = line.starts_with("handshake");
    let has_data = !is_handshake && !line.starts_with("taskfarm");
    let data = if has_data { place("data", &options.data) } else { String::new() };
    let is_secure = is_handshake || line.starts_with("intercloud") || line.contains("--secure");
    data + &if is_secure { place("certificates", &options.certificates) } else { String::new() }
}

/// Runs them one after the other. One that cannot be run is told in the report and does not end the series.
///
/// # Errors
/// No command is left by `--only`.
pub fn run(options: &LabOptions, thresholds: &[Threshold]) -> anyhow::Result<Document> {
    let commands = commands(options);
    if commands.is_empty() {
        bail!("no experiment of the series is called `{}`", options.only.as_deref().unwrap_or_default());
    }
    let mut document = Document::series(if options.quick { "Quick series" } else { "The full series" }.into());
    for (n, line) in commands.iter().enumerate() {
        eprintln!("{} of {}: bodkin bench {line}", n + 1, commands.len());
        match section(line, thresholds) {
            Ok(report) => document.reports.push(report),
            Err(error) => {
                eprintln!("could not be run: {error:#}");
                document.failures.push((format!("bodkin bench {line}"), format!("{error:#}")));
            }
        }
    }
    Ok(document)
}

fn section(line: &str, thresholds: &[Threshold]) -> anyhow::Result<crate::report::Report> {
    let bench = Line::try_parse_from(std::iter::once("bench").chain(line.split(' ')))?.bench;
    let thresholds: Vec<Threshold> = bench.output.threshold.into_iter().chain(thresholds.iter().cloned()).collect();
    let mut report = crate::one(bench.experiment, &thresholds)?;
    if let Some(conditions) = &mut report.conditions {
        conditions.command = format!("bodkin bench {line}");
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(quick: bool, only: Option<&str>) -> LabOptions {
        LabOptions { quick, only: only.map(String::from), list: false, data: None, certificates: None }
    }

    #[test]
    fn every_command_of_the_series_is_understood() {
        for line in [true, false].into_iter().flat_map(|quick| commands(&options(quick, None))) {
            if let Err(error) = Line::try_parse_from(std::iter::once("bench").chain(line.split(' '))) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn each_command_is_told_only_of_the_places_it_has() {
        let options = LabOptions { data: Some("/d".into()), certificates: Some("/c".into()), ..options(true, None) };
        for line in commands(&options) {
            let (is_handshake, is_secure) = (line.starts_with("handshake"), line.starts_with("intercloud") || line.contains("--secure"));
            assert_eq!(line.contains("--data /d"), !is_handshake, "{line}");
            assert_eq!(line.contains("--certificates /c"), is_handshake || is_secure, "{line}");
            assert!(Line::try_parse_from(std::iter::once("bench").chain(line.split(' '))).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_part_of_the_series_is_named_by_its_experiment() {
        assert!(commands(&options(false, Some("page"))).iter().all(|line| line.starts_with("page ")));
        let error = run(&options(true, Some("pages")), &[]).err().unwrap();
        assert!(error.to_string().contains("`pages`"), "{error}");
    }
}
