//! `bench data`: writes the data, or brings them into a cloud.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::json;

use super::{Data, consumers};
use crate::cloud::Cloud;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::operation::Needs;
use crate::options::DataOptions;
use crate::report::{Outcome, Report};
use crate::scene::Filled;
use crate::server::Server;
use crate::state::State;
use crate::statistics::Figure;

/// Does what the options ask for.
///
/// # Errors
/// The file cannot be written, or the cloud does not answer or refuses the data.
pub fn run(options: &DataOptions) -> anyhow::Result<Report> {
    let state = State { seed: options.seed, services: options.services };
    let mut report = Report::new(format!("data of Deliorman 2020, section 5.3: {state}"));
    let mut conditions = Conditions::begin("placed by the kernel".into(), "none".into(), "none".into(), 1);
    if let Some(path) = &options.out {
        write(path, state, &options.target.provider_address).with_context(|| format!("cannot write {}", path.display()))?;
        report.note(format!("{} services and rules written to {}", state.services, path.display()));
    }
    if let Some(directory) = &options.into {
        let server = own_server(directory, options)?;
        let cloud = Cloud::of_server(&server, None)?;
        conditions.server = options.target.server.description();
        report.outcomes.push(loaded(&cloud, state, &options.target.provider_address)?);
        drop(cloud);
        server.stop()?;
        report.note(format!("`bodkin up --insecure --data {}` serves them", directory.display()));
    } else if options.target.target.is_some() {
        let cloud = Cloud::open(&options.target)?;
        conditions.server = cloud.description();
        report.outcomes.push(loaded(&cloud, state, &options.target.provider_address)?);
    }
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

fn own_server(directory: &Path, options: &DataOptions) -> anyhow::Result<Server> {
    let entries = std::fs::read_dir(directory).map(Iterator::count).unwrap_or(0);
    if entries > 0 {
        bail!("{} is not empty: data are loaded into a new directory", directory.display());
    }
    let program = std::env::current_exe().context("cannot tell the path of this program")?;
    let log = tempfile::NamedTempFile::new().context("cannot make a file for the server's messages")?;
    Server::start(&program, directory, log.path(), &options.target.server)
}

fn loaded(cloud: &Cloud, state: State, address: &str) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    Filled::fill(cloud, state, Needs::Rules, address)?;
    let seconds = started.elapsed().as_secs_f64();
    let mut outcome = Outcome::new(state.to_string());
    let rows = f64::from(state.services) * 2.0;
    let figures = vec![
        Figure::median("services", f64::from(state.services)),
        Figure::median("rules", f64::from(state.services)),
        Figure::median("duration_s", seconds),
        Figure::median("inserts_per_s", rows / seconds),
    ];
    outcome.push(figures, Measured::default());
    Ok(outcome)
}

fn write(path: &Path, state: State, address: &str) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    lines(&mut out, state, address)?;
    out.flush()?;
    Ok(())
}

/// One line for each service: the body of its registration, and the system that its rule allows.
fn lines(out: &mut impl Write, state: State, address: &str) -> anyhow::Result<()> {
    let data: Data = state.data();
    for (n, consumer) in (0..state.services).zip(consumers(state.seed, state.services)) {
        let line =
            json!({ "registration": data.service(n).registration(address, None), "consumer": data.service(consumer).system(address) });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn written(seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        lines(&mut out, State { seed, services: 50 }, "127.0.0.1").unwrap();
        out
    }

    #[test]
    fn every_line_is_a_registration_and_a_consumer_among_the_providers() {
        let text = String::from_utf8(written(4)).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 50);
        let providers: Vec<&Value> = lines.iter().map(|line| &line["registration"]["providerSystem"]).collect();
        for line in &lines {
            assert!(providers.contains(&&line["consumer"]) && line["consumer"] != line["registration"]["providerSystem"]);
            assert_eq!(line["registration"]["interfaces"].as_array().unwrap().len(), 1);
        }
        assert_eq!(written(4), written(4));
        assert_ne!(written(4), written(5));
    }
}
