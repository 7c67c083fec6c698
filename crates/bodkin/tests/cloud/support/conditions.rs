//! The table of conditions of `docs/monitoring/conditions.md`, held against running nodes.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::cloud::BINARY;
use super::http::Connection;
use super::patience::eventually;
use super::secure::{Client, trust};

const PAGE: &str = include_str!("../../../../../docs/monitoring/conditions.md");

/// A row of the table.
#[derive(Debug)]
pub struct Condition {
    /// Name of the alert.
    pub alert: &'static str,
    /// Part of the line of `bodkin status`, with `<count>` for any number above 0.
    pub status: &'static str,
    /// What the condition makes true of a metric: name, comparison, and a number or another metric's name.
    pub metric: [&'static str; 3],
    /// What `/readyz` answers begins with.
    pub readyz: &'static str,
    /// The target and name of the test that makes the condition happen.
    pub made_by: (&'static str, &'static str),
}

fn code(cell: &'static str) -> &'static str {
    cell.split('`').nth(1).unwrap_or(cell)
}

/// Reads the table.
pub fn all() -> Vec<Condition> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `Bodkin"));
    rows.map(|row| {
        let cells: Vec<&'static str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [alert, _, status, metric, readyz, made_by] = cells[..] else { panic!("six cells are expected: {row}") };
        let mut metric: Vec<&'static str> = code(metric).rsplitn(3, ' ').collect();
        metric.reverse();
        Condition {
            alert: code(alert),
            status: code(status),
            metric: metric.try_into().unwrap_or_else(|_| panic!("a metric, a comparison and a number are expected: {row}")),
            readyz: code(readyz),
            made_by: (made_by.split(' ').next().expect("a target"), code(made_by)),
        }
    })
    .collect()
}

/// What a port says at which no process listens.
const NO_ANSWER: &str = "no answer";
/// Behind the name of a metric that is a time: how far that is ahead.
const FROM_NOW: &str = " - time()";

/// The value of a metric: of one with labels, the sum. `up` is Prometheus' own, which is 0 while `/metrics` does not answer.
fn value(metrics: &str, name: &str) -> Option<f64> {
    if name == "up" {
        return Some(f64::from(u8::from(metrics != NO_ANSWER)));
    }
    if let Some(name) = name.strip_suffix(FROM_NOW) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        return value(metrics, name).map(|time_s| time_s - now.as_secs_f64());
    }
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
    let values = metrics.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.reduce(|sum, value| sum + value)
}

impl Condition {
    /// The name of the metric, without what is computed of its value.
    pub fn metric_name(&self) -> &'static str {
        self.metric[0].trim_end_matches(FROM_NOW)
    }

    fn holds(&self, metrics: &str) -> bool {
        let [name, comparison, number] = self.metric;
        let Some(number) = number.parse().ok().or_else(|| value(metrics, number)) else { return false };
        value(metrics, name).is_some_and(|value| match comparison {
            ">" => value > number,
            "<" => value < number,
            "==" => value == number,
            other => panic!("{other} is no comparison of the table"),
        })
    }
}

/// What the table has for a number above 0.
const COUNT: &str = "<count>";

/// A text in one line, with `<count>` for each number above 0.
fn with_counts(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let number = word.trim_end_matches([',', ';']);
        let is_count = number.parse::<u64>().is_ok_and(|number| number > 0);
        if is_count { word.replace(number, COUNT) } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Where a node is monitored.
pub struct Monitor {
    address: SocketAddr,
    /// The operator's certificate, in secure mode.
    operator: Option<Client>,
}

impl From<SocketAddr> for Monitor {
    fn from(address: SocketAddr) -> Self {
        Self { address, operator: None }
    }
}

impl Monitor {
    /// A node in secure mode, of the cloud of these tests.
    pub fn secure(address: SocketAddr) -> Self {
        Self { address, operator: Some(Client::system("sysop")) }
    }

    fn get(&self, path: &str) -> String {
        let connection = match &self.operator {
            Some(operator) => operator.connect(self.address),
            None => Connection::open(self.address),
        };
        let answer = connection.and_then(|mut connection| connection.request("GET", path, &[], None));
        answer.map_or_else(|_| NO_ANSWER.to_owned(), |answer| answer.text())
    }

    /// The exit code of `bodkin status`, and what it prints.
    fn status(&self) -> (Option<i32>, String) {
        let mut command = Command::new(BINARY);
        command.args(["status", "--monitor", &self.address.to_string()]);
        if self.operator.is_some() {
            command.arg("--trust").arg(trust());
        }
        let output = command.output().expect("the binary starts");
        (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat())
    }
}

/// Holds that the condition of an alert shows at the node that is monitored there: in its metric, in `bodkin status`, and in `/readyz`.
#[track_caller]
pub fn assert_shown(monitor: impl Into<Monitor>, alert: &str) {
    let (monitor, condition) =
        (monitor.into(), all().into_iter().find(|condition| condition.alert == alert).expect("the table has the alert"));
    let is_so = || condition.holds(&monitor.get("/metrics"));
    assert!(eventually(is_so), "{:?} is not so: {}", condition.metric, monitor.get("/metrics"));
    let is_shown = || {
        let (exit_code, text) = monitor.status();
        let is_count = condition.status.contains(COUNT);
        if is_count {
            with_counts(&text).contains(condition.status)
        } else {
            text.contains(condition.status) && (exit_code == Some(1) || text.contains("notice"))
        }
    };
    assert!(eventually(is_shown), "{alert}: {:?} is not in {:?}", condition.status, monitor.status());
    let is_ready = || monitor.get("/readyz").starts_with(condition.readyz);
    assert!(eventually(is_ready), "{alert}: {:?} is expected: {}", condition.readyz, monitor.get("/readyz"));
}
