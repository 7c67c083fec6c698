//! `bench register|query|authorize|orchestrate`: the same requests, let go in one of three ways.

use std::collections::BTreeMap;

use anyhow::Context;

use crate::client::Client;
use crate::cloud::Cloud;
use crate::disk_flush;
use crate::expectation::Faults;
use crate::lanes::{OPEN_LOOP_LANES, drive};
use crate::listen_drops;
use crate::machine::Conditions;
use crate::options::{LoadOptions, Mode};
use crate::published;
use crate::report::{Outcome, Report};
use crate::request::RunTag;
use crate::scene::{Batch, Operation, Scene};
use crate::simultaneous;
use crate::stages::{Stage, Stages};
use crate::statistics::{Figure, Latencies, Unit};

/// Requests of a warm-up, unless the run itself has fewer.
const WARM_UP_REQUESTS: u32 = 500;

/// One run's figures and what stands behind them.
struct Run {
    figures: Vec<Figure>,
    latencies: Latencies,
    faults: Faults,
}

/// Runs the load and reports it.
///
/// # Errors
/// The cloud does not start, cannot be filled, or does not answer at all. Single failed requests are in the report.
pub fn run(operation: Operation, options: &LoadOptions) -> anyhow::Result<Report> {
    let mode = options.mode();
    if let Mode::Simultaneous { count } = mode {
        simultaneous::allow_connections(count)?;
    }
    let warm_up = format!("{} requests of the same kind", mode.count().min(WARM_UP_REQUESTS));
    let mut scene = open(options)?;
    let placement = "placed by the kernel; load generator on the same machine as an own server".to_string();
    let mut conditions = Conditions::begin(placement, scene.cloud.description(), warm_up, options.repeat);
    let mut report = Report::new(format!("{} {}", operation.name(), mode.description()));
    if let Mode::Simultaneous { .. } = mode {
        report.note("no answer is taken before the last request is released: release_ms is part of the latencies".into());
    }
    if let Some(directory) = scene.cloud.directory() {
        conditions.data_on(&directory.data());
    }
    // What a load wrote would be in the memory and the tables of the next repeat; an own server starts again instead.
    let fresh_each = operation.writes() && options.target.target.is_none();
    for services in options.services() {
        let mut outcome = Outcome::new(label(operation, services));
        for repeat in 0..options.repeat {
            let mut warm = repeat > 0;
            if fresh_each && repeat > 0 {
                scene.cloud.close()?;
                scene = open(options)?;
                warm = false;
            }
            if !warm {
                scene.fill(operation, services)?;
                let batch = scene.requests(operation, mode.count().min(WARM_UP_REQUESTS))?;
                one(mode, &batch)?;
            }
            measured(&mut scene, operation, mode, &mut outcome)?;
        }
        report.outcomes.push(outcome);
    }
    scene.cloud.close()?;
    compare(&mut report);
    report.published = published::of_load(operation, mode);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn open(options: &LoadOptions) -> anyhow::Result<Scene> {
    Ok(Scene::new(Cloud::open(&options.target)?, RunTag::now(), &options.target.provider_address))
}

fn label(operation: Operation, services: u32) -> String {
    match operation {
        Operation::Register => "fresh names".to_string(),
        Operation::Query | Operation::Authorize => format!("{services} services"),
        Operation::Orchestrate => format!("{services} services and rules"),
    }
}

fn measured(scene: &mut Scene, operation: Operation, mode: Mode, outcome: &mut Outcome) -> anyhow::Result<()> {
    let batch = scene.requests(operation, mode.count())?;
    let resident = scene.cloud.resident();
    if let Some(resident) = resident {
        resident.reset_peak()?;
    }
    let flush =
        scene.cloud.directory().filter(|_| operation.writes()).map(|directory| disk_flush::measure(&directory.data())).transpose()?;
    let refused_before = listen_drops::read();
    let watched = scene.cloud.monitor.as_ref().filter(|_| matches!(mode, Mode::OpenLoop { .. }));
    let before = watched.map(Stages::read).transpose()?;
    let mut run = one(mode, &batch)?;
    if let (Some(monitor), Some(before)) = (watched, before) {
        outcome.add_stages(Stages::read(monitor)?.since(&before));
    }
    if let (Mode::Simultaneous { .. }, Some(before), Some(after)) = (mode, refused_before, listen_drops::read()) {
        run.figures.push(Figure::sum("listen_drops", after.saturating_sub(before)));
    }
    if let Some(flush) = flush {
        run.figures.push(Figure::median("disk_flush_p50_ms", flush.percentile(50.0, Unit::Ms)));
    }
    if let Some(resident) = resident {
        run.figures.push(Figure::max("peak_rss_mb", resident.peak_mb()?));
    }
    run.figures.push(Figure::sum("answered", run.latencies.count()));
    outcome.push(run.figures, &run.latencies, run.faults);
    Ok(())
}

fn one(mode: Mode, batch: &Batch) -> anyhow::Result<Run> {
    match mode {
        Mode::Simultaneous { .. } => {
            let released = simultaneous::release(&batch.endpoint, &batch.requests, batch.expectation)?;
            Ok(Run { figures: released.figures(), latencies: released.total, faults: released.faults })
        }
        Mode::OpenLoop { rate_per_s, .. } => open_loop(batch, rate_per_s),
        Mode::Sequential { .. } => sequential(batch),
    }
}

fn open_loop(batch: &Batch, rate_per_s: f64) -> anyhow::Result<Run> {
    let (mut latencies, mut late, mut faults) = (Latencies::default(), Latencies::default(), Faults::default());
    drive(&batch.endpoint, &batch.requests, Some(rate_per_s), OPEN_LOOP_LANES, &mut |exchange| {
        late.record(exchange.sent - exchange.due);
        let fault = match exchange.answer {
            Err(why) => Some(why),
            Ok(answer) => batch.expectation.fault(answer.status(), answer.body()),
        };
        match fault {
            Some(fault) => faults.add(fault),
            None => latencies.record(exchange.finished - exchange.due),
        }
    })?;
    let mut figures = latencies.figures("", Unit::Ms, &[50.0, 99.0]);
    figures.push(Figure::sum("errors", faults.count));
    figures.extend(late.figures("sent_late_", Unit::Ms, &[50.0, 99.0]));
    Ok(Run { figures, latencies, faults })
}

fn sequential(batch: &Batch) -> anyhow::Result<Run> {
    let (mut latencies, mut faults) = (Latencies::default(), Faults::default());
    let mut client = Client::connect(&batch.endpoint)?;
    for request in &batch.requests {
        let started = std::time::Instant::now();
        let answer = client.exchange(request).context("in the closed loop")?;
        let latency = started.elapsed();
        match batch.expectation.fault(answer.status(), answer.body()) {
            Some(fault) => faults.add(fault),
            None => latencies.record(latency),
        }
    }
    let mut figures = latencies.figures("", Unit::Ms, &[50.0, 99.0]);
    figures.push(Figure::sum("errors", faults.count));
    Ok(Run { figures, latencies, faults })
}

/// Each outcome's median against that of the first.
fn compare(report: &mut Report) {
    let p50s: Vec<_> = report.outcomes.iter().map(|outcome| (outcome.label.clone(), outcome.series.summary("p50_ms"))).collect();
    let Some((first_label, Some(first))) = p50s.first().cloned() else { return };
    for (label, p50) in p50s.into_iter().skip(1) {
        if let Some(p50) = p50.filter(|_| first > 0.0) {
            report.ratio(format!("p50, {label} to {first_label}"), p50 / first);
        }
    }
}

impl Mode {
    /// Requests of one run.
    pub fn count(self) -> u32 {
        match self {
            Self::Simultaneous { count } | Self::OpenLoop { count, .. } | Self::Sequential { count } => count,
        }
    }

    fn description(self) -> String {
        match self {
            Self::Simultaneous { count } => format!("{count} simultaneous"),
            Self::OpenLoop { rate_per_s, count } => format!("{count} at {rate_per_s} per second"),
            Self::Sequential { count } => format!("{count} sequential"),
        }
    }
}

/// Server time by system and stage.
pub type StageTimes = BTreeMap<String, BTreeMap<String, Stage>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{BenchCommand, Experiment};
    use crate::peer;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    struct Shell {
        #[command(flatten)]
        bench: BenchCommand,
    }

    /// The least that an Arrowhead does; the service with the number 1 is never found.
    fn arrowhead(path: &str, body: &str) -> peer::Answer {
        let missing = body.contains("-1\"") && !path.contains("register");
        let text = match path {
            "/serviceregistry/register" => r#"{"serviceDefinition":{"id":1},"provider":{"id":2},"interfaces":[{"id":3}]}"#,
            "/serviceregistry/register-system" => r#"{"id":4}"#,
            "/serviceregistry/query" if missing => r#"{"serviceQueryData":[]}"#,
            "/serviceregistry/query" => r#"{"serviceQueryData":[{"provider":{"address":"127.0.0.1","port":1}}]}"#,
            "/orchestrator/orchestration" if missing => r#"{"response":[]}"#,
            "/orchestrator/orchestration" => r#"{"response":[{}]}"#,
            "/authorization/mgmt/intracloud" => r#"{"count":1}"#,
            _ => return (404, String::new()),
        };
        (if path.contains("register") && !path.ends_with("query") || path.contains("intracloud") { 201 } else { 200 }, text.into())
    }

    fn reported(line: &str) -> serde_json::Value {
        let peer = peer::serve(arrowhead);
        let at = format!("http://{}", peer.authority);
        let line = format!("bench {line} --target {at} --authorization {at} --orchestrator {at} --event-handler {at}");
        let report = match Shell::try_parse_from(line.split_whitespace()).unwrap().bench.experiment {
            Experiment::Register(options) => run(Operation::Register, &options),
            Experiment::Query(options) => run(Operation::Query, &options),
            Experiment::Authorize(options) => run(Operation::Authorize, &options),
            Experiment::Orchestrate(options) => run(Operation::Orchestrate, &options),
            other => panic!("{other:?}"),
        };
        report.unwrap().json()
    }

    #[test]
    fn every_operation_drives_a_foreign_arrowhead_in_every_mode() {
        for operation in ["register", "authorize"] {
            for mode in ["--simultaneous 20", "--rate 2000 --count 20", "--sequential --count 20"] {
                let report = reported(&format!("{operation} {mode} --repeat 2 --services 7"));
                assert_eq!((&report["errors"], &report["answered"]), (&json!(0), &json!(40)), "{operation} {mode}");
                assert_eq!(report["repeats"]["mean_ms"]["values"].as_array().unwrap().len(), 2);
            }
        }
    }

    #[test]
    fn an_answer_with_nothing_in_it_is_an_error() {
        for operation in ["query", "orchestrate"] {
            let report = reported(&format!("{operation} --sequential --count 20 --repeat 1 --services 10"));
            assert_eq!((&report["errors"], &report["answered"]), (&json!(2), &json!(18)), "{operation}");
            assert!(report["outcomes"][0]["first_errors"][0].as_str().unwrap().starts_with("nothing in `"));
        }
    }

    #[test]
    fn a_list_of_services_is_compared() {
        let report = reported("query --sequential --count 5 --repeat 1 --services 20,2");
        let labels: Vec<_> = report["outcomes"].as_array().unwrap().iter().map(|outcome| outcome["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["2 services", "20 services"]);
        assert!(report["ratios"]["p50, 20 services to 2 services"].as_f64().unwrap() > 0.0);
    }
}
