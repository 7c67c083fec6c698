//! `bench page`: the management lists from their first page to their last, in rows a second.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::baseline::Baseline;
use crate::client::Client;
use crate::cloud::Cloud;
use crate::endpoint::Endpoint;
use crate::expectation::Expectation;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::operation::Needs;
use crate::options::PageOptions;
use crate::report::{Outcome, Report};
use crate::request;
use crate::scene::page_path;
use crate::state::State;
use crate::statistics::{Figure, Unit};

/// Pages of a list that is read to its end; more means that it has none.
const PAGES_MAX: u32 = 10_000_000;

/// A management list.
#[derive(Debug, Clone, Copy)]
enum List {
    Services,
    Systems,
    Definitions,
    Rules,
}

impl List {
    const ALL: [Self; 4] = [Self::Services, Self::Systems, Self::Definitions, Self::Rules];

    fn path(self) -> &'static str {
        match self {
            Self::Services => "/serviceregistry/mgmt",
            Self::Systems => "/serviceregistry/mgmt/systems",
            Self::Definitions => "/serviceregistry/mgmt/services",
            Self::Rules => "/authorization/mgmt/intracloud",
        }
    }

    fn endpoint(self, cloud: &Cloud) -> anyhow::Result<&Endpoint> {
        match self {
            Self::Rules => cloud.authorization(),
            _ => Ok(&cloud.service_registry),
        }
    }
}

/// The rows of an answer, as far as they are counted.
#[derive(Deserialize)]
struct Page {
    data: Vec<IgnoredAny>,
    count: u64,
}

/// Reads every list so many times and reports.
///
/// # Errors
/// The cloud does not start or cannot be filled, or a page is refused.
pub fn run(options: &PageOptions) -> anyhow::Result<Report> {
    let state = State { seed: options.seed, services: options.services };
    let mut baseline = Baseline::prepare(&options.target, state, Needs::Rules)?;
    let rows = options.item_per_page;
    let mut report = Report::new(format!("management lists of {} services and rules, {rows} rows a page", options.services));
    let warm_up = "the first page of each list";
    let mut conditions = Conditions::begin("placed by the kernel".into(), baseline.server(), warm_up.into(), options.repeat);
    conditions.start_from(baseline.description());
    report.outcomes = List::ALL.iter().map(|list| Outcome::new(format!("GET {}", list.path()))).collect();
    for _ in 0..options.repeat {
        let scene = baseline.restore()?;
        if let Some(directory) = scene.cloud.directory() {
            conditions.data_on(&directory.data());
        }
        for (list, outcome) in List::ALL.iter().zip(&mut report.outcomes) {
            let endpoint = list.endpoint(&scene.cloud)?;
            let (figures, measured) = read_all(endpoint, list.path(), rows)?;
            outcome.push(figures, measured);
        }
        baseline.end(scene)?;
    }
    report.note("a row's time is that of the exchange; the pages are read by the client outside of it".into());
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// Reads a list on one kept connection, one page after the other.
fn read_all(endpoint: &Endpoint, path: &str, rows: u32) -> anyhow::Result<(Vec<Figure>, Measured)> {
    let mut client = Client::connect(endpoint)?;
    let request = |page| request::get(endpoint, &page_path(path, page, rows), "application/json");
    client.exchange(&request(0)).context("the first page")?;
    let (mut measured, mut told, mut seen, mut bytes, mut busy) = (Measured::default(), 0, 0, 0u64, Duration::ZERO);
    let started = Instant::now();
    for page in 0..PAGES_MAX {
        let request = request(page);
        let sent = Instant::now();
        let answer = client.exchange(&request).with_context(|| format!("page {page} of {path}"))?;
        let finished = Instant::now();
        busy += finished - sent;
        let fault = Expectation::status(200).fault(answer.status(), answer.body());
        let refused = fault.is_some();
        measured.take(fault, started, sent, finished);
        if refused {
            break;
        }
        bytes += answer.body().len() as u64;
        let read: Page = serde_json::from_slice(answer.body()).with_context(|| format!("page {page} of {path} is no list"))?;
        seen += read.data.len() as u64;
        told = read.count;
        if read.data.len() < rows as usize {
            break;
        }
    }
    if seen != told && measured.faults.count == 0 {
        measured.faults.add(format!("{path} says that it has {told} rows and gave {seen}"));
    }
    let mut figures = vec![Figure::median("rows_per_s", seen as f64 / busy.as_secs_f64()), Figure::median("rows", seen as f64)];
    figures.push(Figure::median("mb_per_s", bytes as f64 / 1e6 / busy.as_secs_f64()));
    figures.extend(measured.latencies.figures("page_", Unit::Ms, &[50.0, 99.0]));
    figures.push(Figure::sum("errors", measured.faults.count));
    Ok((figures, measured))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer;

    /// A list of `rows` rows that says it has `told`.
    fn list(rows: usize, told: usize) -> Endpoint {
        peer::serve(move |path, _| {
            let query = path.split_once('?').unwrap().1;
            let mut numbers = query.split('&').map(|pair| pair.split_once('=').unwrap().1.parse::<usize>().unwrap());
            let (page, size) = (numbers.next().unwrap(), numbers.next().unwrap());
            let data = vec!["{}"; rows.saturating_sub(page * size).min(size)].join(",");
            (200, format!(r#"{{"data":[{data}],"count":{told}}}"#))
        })
    }

    fn figure(figures: &[Figure], key: &str) -> f64 {
        figures.iter().find(|figure| figure.key == key).unwrap().value
    }

    #[test]
    fn a_list_is_read_to_its_end() {
        for (rows, pages) in [(25, 3), (20, 3), (0, 1)] {
            let (figures, measured) = read_all(&list(rows, rows), "/mgmt", 10).unwrap();
            assert_eq!((figure(&figures, "rows"), measured.latencies.count()), (rows as f64, pages));
            assert_eq!((figure(&figures, "errors"), rows == 0), (0.0, figure(&figures, "rows_per_s") == 0.0));
        }
    }

    #[test]
    fn rows_that_are_missing_are_an_error() {
        let (figures, measured) = read_all(&list(25, 30), "/mgmt", 10).unwrap();
        assert_eq!((figure(&figures, "errors"), measured.faults.first[0].as_str()), (1.0, "/mgmt says that it has 30 rows and gave 25"));
    }
}
