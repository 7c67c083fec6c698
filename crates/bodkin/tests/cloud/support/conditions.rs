//! The table of conditions of `docs/monitoring/conditions.md`, held against running nodes.

use std::net::SocketAddr;
use std::process::Command;

use super::cloud::BINARY;
use super::http::Connection;
use super::patience::eventually;

const PAGE: &str = include_str!("../../../../../docs/monitoring/conditions.md");

/// A row of the table.
#[derive(Debug)]
pub struct Condition {
    /// Name of the alert.
    pub alert: &'static str,
    /// Part of the line of `bodkin status`; `counted` of what is a count there.
    pub status: &'static str,
    /// What the condition makes true of a metric: name, comparison, number.
    pub metric: [&'static str; 3],
    /// What `/readyz` answers begins with.
    pub readyz: &'static str,
    /// The target and name of the test that makes the condition happen; `None` if only numbers do.
    pub made_by: Option<(&'static str, &'static str)>,
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
        let metric: Vec<&'static str> = code(metric).split(' ').collect();
        let made_by = (made_by != "numbers").then(|| (made_by.split(' ').next().expect("a target"), code(made_by)));
        Condition {
            alert: code(alert),
            status: code(status),
            metric: metric.try_into().unwrap_or_else(|_| panic!("a metric, a comparison and a number are expected: {row}")),
            readyz: code(readyz),
            made_by,
        }
    })
    .collect()
}

/// The value of a metric: of one with labels, the sum.
fn value(metrics: &str, name: &str) -> Option<f64> {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
    let values = metrics.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.reduce(|sum, value| sum + value)
}

impl Condition {
    fn holds(&self, metrics: &str) -> bool {
        let [name, comparison, number] = self.metric;
        let number: f64 = number.parse().expect("a number");
        value(metrics, name).is_some_and(|value| match comparison {
            ">" => value > number,
            "<" => value < number,
            "==" => value == number,
            other => panic!("{other} is no comparison of the table"),
        })
    }
}

/// Holds that the condition of an alert shows at the node that is monitored at this address: in its metric, in `bodkin status`, and in `/readyz`.
#[track_caller]
pub fn assert_shown(monitor: SocketAddr, alert: &str) {
    let condition = all().into_iter().find(|condition| condition.alert == alert).expect("the table has the alert");
    let get = |path: &str| {
        let answer = Connection::open(monitor).and_then(|mut connection| connection.request("GET", path, &[], None));
        answer.map(|answer| answer.text()).unwrap_or_default()
    };
    assert!(eventually(|| condition.holds(&get("/metrics"))), "{:?} is not so: {}", condition.metric, get("/metrics"));
    let status = || {
        let output = Command::new(BINARY).args(["status", "--monitor", &monitor.to_string()]).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let is_shown = || {
        let (exit_code, text) = status();
        condition.status == "counted" || (text.contains(condition.status) && (exit_code == Some(1) || text.contains("notice")))
    };
    assert!(eventually(is_shown), "{alert}: {:?} is not in {:?}", condition.status, status());
    assert!(eventually(|| get("/readyz").starts_with(condition.readyz)), "{alert}: {:?} is expected: {}", condition.readyz, get("/readyz"));
}
