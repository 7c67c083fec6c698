//! `bench nodes`: several nodes that serve one cloud from a PostgreSQL database. Registrations race for the same names at two nodes each; changes are looked for at
//! another node; queries are held against those of a node with a database of its own.

mod events;
mod race;
mod restart;
mod seen;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::client::Client;
use crate::cloud::{Cloud, Directory};
use crate::data::Data;
use crate::expectation::Expectation;
use crate::lanes::drive;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::open_files;
use crate::operation::Needs;
use crate::options::{NodesOptions, ServerOptions};
use crate::report::{Outcome, Report};
use crate::request;
use crate::scene::Filled;
use crate::state::State;
use crate::statistics::{Figure, Unit};

/// Kept connections to each node.
const LANES: usize = 8;
/// Numbers of services that the load beside changes may have.
const BESIDE_MAX: u32 = 10_000_000;
/// Address of the services.
const ADDRESS: &str = "127.0.0.1";

/// Runs the load with each number of nodes, and reports it.
///
/// # Errors
/// The database is not empty, a node does not start, or does not answer at all. What is lost, doubled or refused is in the report.
pub fn run(options: &NodesOptions) -> anyhow::Result<Report> {
    open_files::allow(LANES * options.nodes.iter().copied().max().unwrap_or(0) as usize)?;
    let mut report = Report::new("several nodes of one cloud".into());
    let server = "nodes on one PostgreSQL database, insecure, started by the bench; database, nodes and load on one machine".to_owned();
    let mut conditions = Conditions::begin("placed by the kernel".into(), server, "none".into(), options.repeat);
    conditions.start_from("an empty database; what one number of nodes has written is there for the next".into());
    if let Some(nats) = &options.node_events {
        events::run(options, nats, &mut report)?;
        conditions.end();
        report.conditions = Some(conditions);
        return Ok(report);
    }
    let state = State { seed: State::fresh_seed(), services: options.services };
    let alone = Cloud::start(Directory::new(options.data.as_deref())?, &ServerOptions::default())?;
    // Each node lists the services of its own core systems.
    let of_core = registered(&alone)?;
    Filled::fill(&alone, state, Needs::Services, ADDRESS)?;
    for (turn, count) in options.nodes.iter().enumerate() {
        let nodes = (0..*count).map(|_| node(options)).collect::<anyhow::Result<Vec<_>>>()?;
        if turn == 0 {
            ensure!(
                registered(&nodes[0])? <= of_core * u64::from(*count),
                "the database has a cloud's services already: give an empty one"
            );
            Filled::fill(&nodes[0], state, Needs::Services, ADDRESS)?;
        }
        // Names of one round are in no other.
        let data = Data::of_seed(state.seed + 1 + turn as u64);
        let (raced, next) = (race::run(&nodes, data, options.registrations / 2)?, options.registrations / 2);
        report.outcomes.push(raced.labelled(format!("{count} nodes, {} registrations that race", options.registrations)));
        report.outcomes.extend(seen::run(&nodes, data, next, options)?);
        if let Some(command) = &options.restart {
            let next = next + 2 * options.changes + BESIDE_MAX;
            report.outcomes.push(restart::run(&nodes, data, next, command, options.restarts)?);
        }
        if options.queries > 0 {
            queries(&nodes[0], &alone, *count, state, options, &mut report)?;
        }
        for node in nodes {
            node.close()?;
        }
    }
    alone.close()?;
    report.note("races: every service is registered at two nodes at the same time, over 8 connections to each node; lost: registered by nobody, doubled: by both, strange: neither registered nor refused as already there, differ: nodes that list another number of services than the first".into());
    report.note("seen: from the answer to a registration at one node to the answer of another that has it, looked for without a pause; not_read_back: changes that the node which made them did not show to the next request".into());
    if options.restart.is_some() {
        report.note("restart: from the beginning of the command to its end; blocked_max: the longest from a registration's first try to its being there, refusals tried again every 10 ms, and blocked_beyond: by how much that is longer than the restart; lost_over_restart: answered, and not shown by every node behind it; in_doubt_there: answered with 'not known whether', and there".into());
    }
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn node(options: &NodesOptions) -> anyhow::Result<Cloud> {
    let directory = Directory::new(options.data.as_deref())?;
    // No argument and no variable: the node alone has neither, and others may not read it.
    let file = directory.file("bodkin.toml", &format!("database = {:?}\n", options.database))?;
    Cloud::start(directory, &ServerOptions { arguments: vec!["--config".into(), file], ..ServerOptions::default() })
}

/// The answer to a page of a list, as far as it is needed.
#[derive(Deserialize)]
struct Listed {
    count: u64,
}

/// How many services a node lists.
fn registered(node: &Cloud) -> anyhow::Result<u64> {
    let registry = &node.service_registry;
    let page = request::get(registry, "/serviceregistry/mgmt?page=0&item_per_page=1", "application/json");
    let Listed { count } = Client::connect(registry)?.ask(&page, 200).context("the list of services")?;
    Ok(count)
}

/// Queries at a node of several, and at one with a database of its own by turns.
fn queries(node: &Cloud, alone: &Cloud, count: u32, state: State, options: &NodesOptions, report: &mut Report) -> anyhow::Result<()> {
    let clouds = [(node, format!("queries at one of {count} nodes")), (alone, "queries at a node with a database of its own".to_owned())];
    let mut outcomes = clouds.each_ref().map(|(_, label)| Outcome::new(label.clone()));
    for turn in 0..options.repeat as usize {
        for place in [turn % 2, 1 - turn % 2] {
            let (figures, measured) = asked(clouds[place].0, state, options.queries)?;
            outcomes[place].push(figures, measured);
        }
    }
    let [shared, own] = outcomes.each_ref().map(|outcome| outcome.series.summary("queries_per_s"));
    if let (Some(shared), Some(own @ 0.1..)) = (shared, own) {
        report.ratio(format!("queries a second, one of {count} nodes to one with a database of its own"), shared / own);
    }
    report.outcomes.extend(outcomes);
    Ok(())
}

fn asked(cloud: &Cloud, state: State, queries: u32) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let (registry, data) = (&cloud.service_registry, state.data());
    let query = |n| request::post(registry, "/serviceregistry/query", &request::query(&data.service(n % state.services).definition));
    let requests: Vec<_> = (0..queries).map(query).collect();
    let (mut measured, before, began) = (Measured::default(), cloud.processor_time()?, std::time::Instant::now());
    drive(registry, &requests, None, LANES, &mut |exchange| {
        let fault = match exchange.answer {
            Ok(answer) => Expectation::status(200).fault(answer.status(), answer.body()),
            Err(fault) => Some(fault),
        };
        match fault {
            None => measured.latencies.record(exchange.finished - exchange.sent),
            Some(fault) => measured.faults.add(fault),
        }
    })?;
    let took_s = began.elapsed().as_secs_f64();
    let mut figures = vec![Figure::median("queries_per_s", f64::from(queries) / took_s)];
    if let (Some(before), Some(after)) = (before, cloud.processor_time()?) {
        figures.push(Figure::median("processor_us_per_query", (after - before).as_secs_f64() * 1e6 / f64::from(queries)));
    }
    figures.extend(measured.latencies.figures("", Unit::Us, &[50.0, 99.0]));
    figures.push(Figure::sum("errors", measured.faults.count));
    Ok((figures, measured))
}
