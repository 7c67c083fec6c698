//! `bench register|unregister|query|...`: the same requests, let go in one of three ways.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::baseline::Baseline;
use crate::client::Client;
use crate::disk_flush;
use crate::expectation::{Expectation, Faults};
use crate::lanes::{OPEN_LOOP_LANES, drive};
use crate::limit;
use crate::listen_drops;
use crate::machine::Conditions;
use crate::open_files;
use crate::operation::Operation;
use crate::options::{LoadOptions, Mode, Round};
use crate::processor_time;
use crate::published;
use crate::report::{Outcome, Report};
use crate::request;
use crate::scene::{Askers, Batch, Scene};
use crate::secure;
use crate::simultaneous;
use crate::stages::{Stage, Stages};
use crate::state::State;
use crate::statistics::{Figure, Latencies, Unit};
use crate::time_line::TimeLine;

/// Requests of a warm-up, unless the run itself has fewer.
pub const WARM_UP_REQUESTS: u32 = 500;

/// What stands behind a run's figures.
#[derive(Debug, Default)]
pub struct Measured {
    /// Latencies of good answers.
    pub latencies: Latencies,
    /// Requests without one.
    pub faults: Faults,
    /// When the answers came.
    pub time_line: TimeLine,
}

/// Runs the load and reports it.
///
/// # Errors
/// The cloud does not start, cannot be filled, or does not answer at all. Single failed requests are in the report.
pub fn run(operation: Operation, options: &LoadOptions) -> anyhow::Result<Report> {
    match options.round() {
        Round::Runs(modes) if options.secure.secure => secure::run(operation, options, &modes),
        Round::Runs(modes) => runs(operation, options, &modes),
        Round::FindLimit(_) if options.secure.secure => bail!("--find-limit has no --secure: compare runs of a number that it found"),
        Round::FindLimit(below) => limit::run(operation, options, below),
    }
}

fn runs(operation: Operation, options: &LoadOptions, modes: &[Mode]) -> anyhow::Result<Report> {
    let most = modes.iter().copied().map(Mode::count).max().unwrap_or(0);
    let states = options.states(operation == Operation::Register);
    let mut report = Report::new(format!("{}, {}", operation.name(), title(modes)));
    if modes.iter().any(|mode| matches!(mode, Mode::Simultaneous { .. })) {
        open_files::allow(most as usize)?;
        report.note("no answer is taken before the last request is released: release_ms is part of the latencies".into());
    }
    let mut told: Option<Conditions> = None;
    let mut descriptions = Vec::new();
    for state in &states {
        let mut baseline = Baseline::prepare(&options.target, *state, operation.needs())?;
        descriptions.push(baseline.description());
        let conditions = told.get_or_insert_with(|| conditions(&baseline, options.repeat, warm_up(most)));
        for mode in modes {
            let mut outcome = Outcome::new(label(operation, *mode, *state, modes.len() > 1));
            for _ in 0..options.repeat {
                repeat(&mut baseline, operation, *mode, Askers::Anyone, &mut outcome, conditions)?;
            }
            report.outcomes.push(outcome);
        }
    }
    if modes.len() == 1 {
        compare(&mut report);
    }
    report.published = published::of_load(operation, modes[0]);
    let mut conditions = told.context("a load has a state to start from")?;
    conditions.start_from(descriptions.join("; "));
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// How many requests and how they go: `100, 500, 1000 simultaneous`.
pub fn title(modes: &[Mode]) -> String {
    let Some((last, others)) = modes.split_last() else { return String::new() };
    let others: String = others.iter().map(|mode| format!("{}, ", mode.count())).collect();
    format!("{others}{}", last.description())
}

/// The conditions of runs from this baseline.
pub fn conditions(baseline: &Baseline, repeats: u32, warm_up: String) -> Conditions {
    let placement = "placed by the kernel; load generator on the same machine as an own server".to_string();
    let mut conditions = Conditions::begin(placement, baseline.server(), warm_up, repeats);
    conditions.start_from(baseline.description());
    conditions
}

/// What runs before the clock counts.
pub fn warm_up(requests: u32) -> String {
    format!("{} requests of the same kind before each run; what they wrote stays", requests.min(WARM_UP_REQUESTS))
}

/// One run from the restored state, after its warm-up.
///
/// # Errors
/// As [`run`].
pub fn repeat(
    baseline: &mut Baseline,
    operation: Operation,
    mode: Mode,
    askers: Askers,
    outcome: &mut Outcome,
    conditions: &mut Conditions,
) -> anyhow::Result<()> {
    let mut scene = baseline.restore()?;
    if let Some(directory) = scene.cloud.directory() {
        conditions.data_on(&directory.data());
    }
    let warm = scene.asked(operation, mode.count().min(WARM_UP_REQUESTS), askers)?;
    one(mode, &warm)?;
    let batch = scene.asked(operation, mode.count(), askers)?;
    meet_before(&scene, operation, &batch)?;
    measured(&mut scene, operation, mode, &batch, outcome)?;
    baseline.end(scene)
}

/// Clients that shall resume a session have to have had one.
fn meet_before(scene: &Scene, operation: Operation, batch: &Batch) -> anyhow::Result<()> {
    let resume = scene.cloud.certificates.as_ref().is_some_and(|certificates| certificates.resume());
    if resume && !batch.callers.is_empty() {
        let echo = request::get(&batch.endpoint, operation.echo(), "text/plain");
        let met = simultaneous::release(&batch.endpoint, &vec![echo; batch.callers.len()], &batch.callers, Expectation::status(200))?;
        if met.measured.faults.count > 0 {
            bail!("sessions to be resumed could not be made: {}", met.measured.faults.first.join("; "));
        }
    }
    Ok(())
}

/// What was run, in words.
pub fn label(operation: Operation, mode: Mode, state: State, several: bool) -> String {
    let what = match (operation, state.services) {
        (Operation::Register | Operation::Unregister, 0) => "fresh names".to_string(),
        (Operation::Orchestrate, services) => format!("{services} services and rules"),
        (Operation::OrchestrateStore, services) => format!("{services} services, rules and store entries"),
        (_, services) => format!("{services} services"),
    };
    if several { format!("{}, {what}", mode.description()) } else { what }
}

fn measured(scene: &mut Scene, operation: Operation, mode: Mode, batch: &Batch, outcome: &mut Outcome) -> anyhow::Result<()> {
    let resident = scene.cloud.resident();
    if let Some(resident) = resident {
        resident.reset_peak()?;
    }
    let flush =
        scene.cloud.directory().filter(|_| operation.writes()).map(|directory| disk_flush::measure(&directory.data())).transpose()?;
    let refused_before = listen_drops::read();
    let throttled_before = scene.cloud.throttled();
    let watched = scene.cloud.monitor.clone().filter(|_| matches!(mode, Mode::OpenLoop { .. }));
    let before = watched.as_ref().map(Stages::read).transpose()?;
    let (server_before, own_before) = (scene.cloud.processor_time()?, processor_time::own());
    let (mut figures, mut measured) = one(mode, batch)?;
    let own = processor_time::own() - own_before;
    // A server that its memory limit killed is a row of the table, not the end of it.
    if let Some(how) = scene.cloud.ended() {
        measured.faults.add(how);
        figures.push(Figure::sum("server_ended", 1));
        outcome.push(figures, measured);
        return Ok(());
    }
    if let (Some(monitor), Some(before)) = (watched, before) {
        outcome.add_stages(Stages::read(&monitor)?.since(&before));
    }
    if let (Mode::Simultaneous { .. }, Some(before), Some(after)) = (mode, refused_before, listen_drops::read()) {
        figures.push(Figure::sum("listen_drops", after.saturating_sub(before)));
    }
    if let (Some(before), Some(after)) = (throttled_before, scene.cloud.throttled()) {
        figures.push(Figure::median("throttled_s", after.seconds - before.seconds));
    }
    if let (Some(before), Some(after)) = (server_before, scene.cloud.processor_time()?) {
        figures.push(Figure::median("server_cpu_s", (after - before).as_secs_f64()));
    }
    figures.push(Figure::median("generator_cpu_s", own.as_secs_f64()));
    if let Some(flush) = flush {
        figures.push(Figure::median("disk_flush_p50_ms", flush.percentile(50.0, Unit::Ms)));
    }
    if let Some(resident) = resident {
        figures.push(Figure::max("peak_rss_mb", resident.peak_mb()?));
    }
    figures.push(Figure::sum("answered", measured.latencies.count()));
    outcome.push(figures, measured);
    Ok(())
}

/// Lets the requests of a batch go once.
///
/// # Errors
/// No connection, or what the load itself needs is not there. Single failed requests are in what was measured.
pub fn one(mode: Mode, batch: &Batch) -> anyhow::Result<(Vec<Figure>, Measured)> {
    match mode {
        Mode::Simultaneous { .. } => {
            let released = simultaneous::release(&batch.endpoint, &batch.requests, &batch.callers, batch.expectation)?;
            Ok((released.figures(), released.measured))
        }
        Mode::OpenLoop { rate_per_s, .. } => open_loop(batch, rate_per_s),
        Mode::Sequential { .. } => sequential(batch),
    }
}

fn open_loop(batch: &Batch, rate_per_s: f64) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let (mut measured, mut late) = (Measured::default(), Latencies::default());
    let started = Instant::now();
    drive(&batch.endpoint, &batch.requests, Some(rate_per_s), OPEN_LOOP_LANES, &mut |exchange| {
        late.record(exchange.sent - exchange.due);
        let fault = match exchange.answer {
            Err(why) => Some(why),
            Ok(answer) => batch.expectation.fault(answer.status(), answer.body()),
        };
        measured.take(fault, started, exchange.due, exchange.finished);
    })?;
    let mut figures = measured.figures();
    figures.extend(late.figures("sent_late_", Unit::Ms, &[50.0, 99.0]));
    Ok((figures, measured))
}

/// One request after the other on one connection.
///
/// # Errors
/// No connection, or it broke.
pub fn sequential(batch: &Batch) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let mut measured = Measured::default();
    let mut client = Client::connect(&batch.endpoint)?;
    let started = Instant::now();
    for request in &batch.requests {
        let sent = Instant::now();
        let answer = client.exchange(request).context("in the closed loop")?;
        let finished = Instant::now();
        measured.take(batch.expectation.fault(answer.status(), answer.body()), started, sent, finished);
    }
    Ok((measured.figures(), measured))
}

impl Measured {
    /// Counts one answer, or what is wrong with it.
    pub fn take(&mut self, fault: Option<String>, started: Instant, sent: Instant, finished: Instant) {
        match fault {
            Some(fault) => self.faults.add(fault),
            None => {
                let latency = finished - sent;
                self.latencies.record(latency);
                let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                self.time_line.record(ns(finished - started), ns(latency));
            }
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = self.latencies.figures("", Unit::Ms, &[50.0, 99.0]);
        figures.push(Figure::sum("errors", self.faults.count));
        figures
    }
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

    /// The state of the tests: the same ten services each time.
    const STATE: &str = "--state data:5:10";

    /// The least that an Arrowhead does; the first service is never found.
    fn arrowhead(path: &str, body: &str) -> peer::Answer {
        let path = path.split('?').next().unwrap_or(path);
        let missing = body.contains(&crate::data::Data::of_seed(5).service(0).definition);
        let (status, text) = match path {
            "/serviceregistry/register" => (201, r#"{"serviceDefinition":{"id":1},"provider":{"id":2},"interfaces":[{"id":3}]}"#),
            "/serviceregistry/query" if missing => (200, r#"{"serviceQueryData":[]}"#),
            "/serviceregistry/query" => (200, r#"{"serviceQueryData":[{"provider":{"address":"127.0.0.1","port":1}}]}"#),
            "/serviceregistry/mgmt" => (200, r#"{"data":[{}],"count":1}"#),
            "/orchestrator/orchestration" if missing => (200, r#"{"response":[]}"#),
            "/orchestrator/orchestration" => (200, r#"{"response":[{}]}"#),
            "/orchestrator/mgmt/store" => (200, r#"{"count":10}"#),
            "/authorization/mgmt/intracloud" => (201, r#"{"data":[{}],"count":1}"#),
            "/authorization/token" => (500, r#"{"errorCode":500,"exceptionType":"ARROWHEAD"}"#),
            "/serviceregistry/unregister" | "/eventhandler/subscribe" | "/eventhandler/unsubscribe" => (200, ""),
            _ => (404, ""),
        };
        (status, text.into())
    }

    fn reported(line: &str) -> serde_json::Value {
        let peer = peer::serve(arrowhead);
        let at = format!("http://{}", peer.authority);
        let line = format!("bench {line} --target {at} --authorization {at} --orchestrator {at} --event-handler {at}");
        let report = match Shell::try_parse_from(line.split_whitespace()).unwrap().bench.experiment {
            Experiment::Register(options) => run(Operation::Register, &options),
            Experiment::Unregister(options) => run(Operation::Unregister, &options),
            Experiment::OrchestrateStore(options) => run(Operation::OrchestrateStore, &options),
            Experiment::List(options) => run(Operation::List, &options),
            Experiment::Token(options) => run(Operation::Token, &options),
            Experiment::Subscribe(options) => run(Operation::Subscribe, &options),
            Experiment::Unsubscribe(options) => run(Operation::Unsubscribe, &options),
            Experiment::Query(options) => run(Operation::Query, &options),
            Experiment::Authorize(options) => run(Operation::Authorize, &options),
            Experiment::Orchestrate(options) => run(Operation::Orchestrate, &options),
            other => panic!("{other:?}"),
        };
        report.unwrap().json()
    }

    #[test]
    fn every_operation_drives_a_foreign_arrowhead_in_every_mode() {
        for operation in ["register", "unregister", "authorize", "list", "token", "subscribe", "unsubscribe"] {
            for mode in ["--simultaneous 20", "--rate 2000 --count 20", "--sequential --count 20"] {
                let report = reported(&format!("{operation} {mode} --repeat 2 {STATE}"));
                assert_eq!((&report["errors"], &report["answered"]), (&json!(0), &json!(40)), "{operation} {mode}");
                assert_eq!(report["repeats"]["mean_ms"]["values"].as_array().unwrap().len(), 2);
                assert!(!report["outcomes"][0]["time_line"].as_array().unwrap().is_empty());
            }
        }
    }

    #[test]
    fn an_answer_with_nothing_in_it_is_an_error() {
        for operation in ["query", "orchestrate", "orchestrate-store"] {
            let report = reported(&format!("{operation} --sequential --count 20 --repeat 1 {STATE}"));
            assert_eq!((&report["errors"], &report["answered"]), (&json!(2), &json!(18)), "{operation}");
            assert!(report["outcomes"][0]["first_errors"][0].as_str().unwrap().starts_with("nothing in `"));
        }
    }

    #[test]
    fn a_table_has_a_row_for_each_number_and_state() {
        let labels = |report: &serde_json::Value| {
            let outcomes = report["outcomes"].as_array().unwrap();
            outcomes.iter().map(|outcome| outcome["label"].as_str().unwrap().to_string()).collect::<Vec<_>>()
        };
        let report = reported("list --sequential --count 5 --repeat 1 --services 20,2");
        assert_eq!(labels(&report), ["2 services", "20 services"]);
        assert!(report["ratios"]["p50, 20 services to 2 services"].as_f64().unwrap() > 0.0);
        let report = reported("register --simultaneous 5,9 --repeat 1");
        assert_eq!(labels(&report), ["5 simultaneous, fresh names", "9 simultaneous, fresh names"]);
        assert_eq!(report["answered"], json!(5));
        assert!(report["conditions"]["state"].as_str().unwrap().contains("keeps what the runs before gave it"));
    }

    #[test]
    fn the_limit_is_found_and_told_with_its_confidence() {
        let report = reported(&format!("list --find-limit --below 60s --up-to 150 --repeat 2 {STATE}"));
        assert_eq!((&report["limit"], &report["first_failure"]), (&json!(150), &json!(null)));
        let told = report["notes"][0].as_str().unwrap();
        assert!(told.starts_with("150 passed in 2 of 2 repeats") && told.contains("the limit is higher"), "{told}");
        let report = reported(&format!("query --find-limit --below 60s --up-to 150 --repeat 2 {STATE}"));
        assert_eq!((&report["limit"], &report["first_failure"]), (&json!(0), &json!(1)), "every batch asks for the missing service");
        assert!(report["notes"][0].as_str().unwrap().starts_with("not even one request"));
    }
}
