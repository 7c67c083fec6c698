//! `bodkin status`: a node at a glance, on one screen.

pub mod troubles;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bodkin_client::{
    CallError, Monitor,
    answer::{NodeOverview, NodeState, PlatformState},
};
use clap::Args;
use http::StatusCode;
use serde_json::json;

use self::troubles::{certificate, ending, is_connecting, notices, troubles};
use super::{details::Details, printer::Printer, registry::RegistryOptions};
use crate::{DONE, FAILED};

/// Rows and characters of a row of the screen that a node is told on.
const SCREEN: (usize, usize) = (24, 120);
/// Rows that nodes of a shared database have even beside many troubles.
const NODES_ROWS: usize = 3;
/// Longest wait for a leader while a standby answers: far more than a takeover takes.
const TAKEOVER_MAX: Duration = Duration::from_secs(3);
/// Between two questions for the leader.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Characters in front of a value.
const NAME_COLUMNS: usize = 13;

/// Options of `bodkin status`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Of a pair any node may be asked: the status is that of the leader. Exit codes: 0 nothing is suspended or unprotected, 1 something is, or no leader answers, 3 not for this caller."
)]
pub struct StatusOptions {
    #[command(flatten)]
    registry: RegistryOptions,
}

/// Prints it; gives the exit code.
pub async fn run(options: StatusOptions, printer: Printer) -> anyhow::Result<u8> {
    let Found { monitor, overview, standby } = match find(&options.registry).await? {
        Ok(found) => found,
        Err(Standby { address, why }) => {
            let told = Details::default().with("node", format!("{address}, which answers and does not serve")).with("why", &why);
            printer.one(&json!({"node": address, "why": why}), &told)?;
            return Ok(FAILED);
        }
    };
    let platform = monitor.platform().await?;
    // A node of an earlier release tells of none.
    let nodes = if overview.numbers.contains_key("bodkin_nodes") { monitor.nodes().await?.data } else { Vec::new() };
    let (troubles, mut notices) = (troubles(&overview, &platform), notices(&overview));
    if let Some(Standby { address, why }) = &standby {
        notices.push(format!("this is the leader's status; {address} was asked, and answered: {why}"));
    }
    printer.one(
        &json!({"node": monitor.address(), "standby": standby.map(|standby| standby.address), "overview": overview, "platform": platform, "nodes": nodes, "troubles": troubles, "notices": notices}),
        &screen(&monitor.address(), &overview, &platform, &nodes, [&troubles, &notices]),
    )?;
    Ok(if troubles.is_empty() { DONE } else { FAILED })
}

/// The node whose status is shown.
struct Found {
    monitor: Monitor,
    overview: NodeOverview,
    /// The node that was asked, if that one does not lead.
    standby: Option<Standby>,
}

/// A node of a pair that does not lead.
struct Standby {
    address: String,
    /// Its answer.
    why: String,
}

/// Asks the node of these options and, if that is a standby, the leader that it names. Repeats this until one of them leads, for
/// at most [`TAKEOVER_MAX`]; then returns the standby's answer.
async fn find(registry: &RegistryOptions) -> anyhow::Result<Result<Found, Standby>> {
    let begin = Instant::now();
    loop {
        let monitor = registry.monitor()?;
        let problem = match monitor.overview().await {
            Err(CallError::Problem(problem)) if problem.status == StatusCode::SERVICE_UNAVAILABLE.as_u16() => problem,
            overview => return Ok(Ok(Found { overview: overview?, monitor, standby: None })),
        };
        let standby = Standby { address: monitor.address(), why: problem.detail.unwrap_or(problem.title) };
        let Some(leader) = problem.leader else { return Ok(Err(standby)) };
        let monitor = registry.other_monitor(&leader, None)?;
        match monitor.overview().await {
            Ok(overview) => return Ok(Ok(Found { monitor, overview, standby: Some(standby) })),
            // It has died, or led before: another node is about to lead.
            Err(_) if begin.elapsed() < TAKEOVER_MAX => tokio::time::sleep(ASK_EVERY).await,
            Err(_) => return Ok(Err(standby)),
        }
    }
}

fn number(numbers: &BTreeMap<String, f64>, name: &str) -> f64 {
    numbers.get(name).copied().unwrap_or_default()
}

/// What a screen holds: of many nodes and troubles the first, and how many there are beside them.
fn screen(
    address: &str,
    overview: &NodeOverview,
    platform: &PlatformState,
    nodes: &[NodeState],
    [troubles, notices]: [&[String]; 2],
) -> Details {
    let mut nodes: Vec<&NodeState> = nodes.iter().collect();
    nodes.sort_by_key(|node| (node.state == "serves", !node.is_this));
    let nodes: Vec<String> = nodes.into_iter().map(told).collect();
    let all = |nodes: &[String], troubles: &[String]| {
        let details = details(address, overview, platform, nodes, troubles);
        notices.iter().fold(details, |details, notice| details.with("notice", notice))
    };
    // Without troubles a row says so.
    let room = (SCREEN.0 + 1).saturating_sub(all(&[], &[]).rows(SCREEN.1));
    let troubles = shortened(troubles, room.saturating_sub(rows(&nodes).min(NODES_ROWS)));
    let nodes = shortened(&nodes, room.saturating_sub(rows(&troubles).max(1)));
    all(&nodes, &troubles)
}

/// Rows that values take.
fn rows(values: &[String]) -> usize {
    values.iter().map(|value| (NAME_COLUMNS + value.chars().count()).div_ceil(SCREEN.1)).sum()
}

/// The first of these values that have room in `rows_max` rows, and how many more there are; the first in any case.
fn shortened(values: &[String], rows_max: usize) -> Vec<String> {
    if rows(values) <= rows_max {
        return values.to_vec();
    }
    let fitting = (1..values.len()).rev().find(|count| rows(&values[..*count]) < rows_max).unwrap_or(1);
    let left = values.len() - fitting;
    let more = (left > 0).then(|| format!("and {left} more, which --output json has all"));
    values[..fitting].iter().cloned().chain(more).collect()
}

fn details(address: &str, overview: &NodeOverview, platform: &PlatformState, nodes: &[String], troubles: &[String]) -> Details {
    let count = |name: &str| format!("{}", number(&overview.numbers, name));
    let of = |names: &[(&str, &str)]| names.iter().map(|(name, what)| format!("{} {what}", count(name))).collect::<Vec<_>>().join(", ");
    let some = |things: &[(&str, &str, &str)]| {
        let told = things
            .iter()
            .map(|(name, one, many)| format!("{} {}", count(name), if number(&overview.numbers, name) == 1.0 { one } else { many }));
        told.collect::<Vec<_>>().join(", ")
    };
    let mode = if overview.secure { "secure" } else { "insecure" };
    let details = Details::default()
        .with("node", format!("{address}, bodkin {}, {mode}, up for {}", overview.version, lasted(overview.uptime_s)))
        .with("cloud", cloud(overview))
        .with("pair", pair(&overview.numbers))
        .with("database", database(&overview.numbers));
    let details = nodes
        .iter()
        .fold(details, |details, node| details.with("node of it", node))
        .with("deadlines", deadlines(platform))
        .with("threads", format!("{}: {}", platform.scheduling.policy, platform.scheduling.why))
        .with(
            "holds",
            some(&[
                ("bodkin_systems", "system", "systems"),
                ("bodkin_services", "service", "services"),
                ("bodkin_authorization_rules", "rule", "rules"),
                ("bodkin_event_subscriptions", "subscription", "subscriptions"),
                ("bodkin_topics", "real-time topic", "real-time topics"),
            ]),
        )
        .with(
            "events",
            of(&[
                ("bodkin_events_published_total", "published"),
                ("bodkin_events_delivered_total", "delivered"),
                ("bodkin_events_lost_total", "lost"),
                ("bodkin_dead_letters_total", "given up"),
                ("bodkin_events_waiting", "waiting"),
            ]),
        )
        .with(
            "real-time",
            of(&[
                ("bodkin_topic_dispatched_total", "dispatched"),
                ("bodkin_topic_late_total", "late"),
                ("bodkin_topic_shed_total", "shed"),
            ]),
        )
        .with(
            "replicas",
            of(&[("bodkin_replicas_sent_total", "sent"), ("bodkin_replicas_saved_total", "saved"), ("bodkin_replicas_late_total", "late")]),
        )
        .with(
            "kept",
            format!(
                "{}, {} of event log; {} on the disk",
                some(&[("bodkin_event_log_events", "event", "events"), ("bodkin_audit_entries", "audit entry", "audit entries")]),
                bytes(number(&overview.numbers, "bodkin_event_log_bytes")),
                overview
                    .numbers
                    .get("bodkin_data_free_bytes")
                    .map_or("free room is not known".to_owned(), |free| format!("{} are free", bytes(*free)))
            ),
        )
        .with("memory", memory(number(&overview.numbers, "bodkin_resident_memory_bytes")))
        .with(
            "connections",
            of(&[
                ("bodkin_control_connections", "to core systems"),
                ("bodkin_event_connections", "for events"),
                ("bodkin_zmtp_connections", "over ZMTP"),
            ]),
        );
    let details = graphs(&overview.numbers).into_iter().fold(details, |details, graphs| details.with("graphs", graphs));
    let details = fleet(overview).into_iter().fold(details, |details, fleet| details.with("fleet", fleet));
    match troubles {
        [] => details.with("trouble", "none"),
        troubles => troubles.iter().fold(details, |details, trouble| details.with("TROUBLE", trouble)),
    }
}

/// The cloud's name and, in secure mode, until when its core systems are believed.
fn cloud(overview: &NodeOverview) -> String {
    let certificate = certificate(overview).map(|remaining| format!("; the first of its certificates {}", ending(remaining)));
    format!("{}{}", overview.cloud, certificate.unwrap_or_default())
}

fn pair(numbers: &BTreeMap<String, f64>) -> String {
    let Some(epoch) = numbers.get("bodkin_pair_epoch") else {
        let is_one_of_several = numbers.contains_key("bodkin_database_connected");
        return if is_one_of_several { "none: one of several nodes" } else { "none: a cloud by itself" }.to_owned();
    };
    let backup = if number(numbers, "bodkin_pair_protected") > 0.0 { "the Backup is in sync" } else { "WITHOUT a Backup" };
    let witness = match numbers.get("bodkin_pair_witness_connected") {
        None => "no witness",
        Some(0.0) => "the witness is NOT reached",
        Some(_) => "the witness is reached",
    };
    format!("leads in epoch {epoch}, {backup}, {witness}")
}

/// What goes to the fleet's stream and what comes from there; of a node that has no fleet, nothing.
fn fleet(overview: &NodeOverview) -> Option<String> {
    let told: Vec<String> = [for_fleet(overview), from_fleet(overview)].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// What is forwarded; of an edge that only takes, nothing.
fn for_fleet(overview: &NodeOverview) -> Option<String> {
    let numbers = &overview.numbers;
    let connected = numbers.get("bodkin_fleet_connected")?;
    let is = match *connected > 0.0 {
        true if number(numbers, "bodkin_fleet_refused_lanes") > 0.0 => "the stream REFUSES events",
        true => "the stream takes events",
        false if is_connecting(overview, "bodkin_fleet_connected") => "connecting to the stream",
        false => "the stream is NOT reached",
    };
    let [stored, waiting, lost] =
        ["stored_total", "waiting_events", "lost_total"].map(|name| number(numbers, &format!("bodkin_fleet_{name}")));
    let seldom = [("lost_by_stream_total", "events lost by the stream"), ("emptied_total", "lanes of it found purged or deleted")]
        .map(|(name, what)| (number(numbers, &format!("bodkin_fleet_{name}")), what))
        .map(|(count, what)| if count > 0.0 { format!(", {what}: {count}") } else { String::new() })
        .concat();
    let lag_s = number(numbers, "bodkin_fleet_lag_seconds");
    let oldest = if waiting > 0.0 && lag_s > 0.0 { format!(" (the oldest for {})", lasted(lag_s as u64)) } else { String::new() };
    Some(format!("{is}: {stored} stored, {waiting} waiting{oldest}, {lost} lost{seldom}"))
}

/// What comes from the fleet.
fn from_fleet(overview: &NodeOverview) -> Option<String> {
    let numbers = &overview.numbers;
    let connected = numbers.get("bodkin_from_fleet_connected")?;
    let is = match *connected > 0.0 {
        true => "commands come",
        false if is_connecting(overview, "bodkin_from_fleet_connected") => "connecting for commands",
        false => "commands do NOT come",
    };
    let [taken, refused, lost] = ["taken", "refused", "lost"].map(|name| number(numbers, &format!("bodkin_from_fleet_{name}_total")));
    let waiting = number(numbers, "bodkin_from_fleet_waiting_events");
    Some(format!("{is}: {taken} taken, {waiting} waiting, {refused} refused, {lost} lost"))
}

fn database(numbers: &BTreeMap<String, f64>) -> String {
    let Some(commit) = numbers.get("bodkin_database_commit") else { return "its own, in the data directory".to_owned() };
    let keeper = if number(numbers, "bodkin_database_keeper") > 0.0 { ", this node does what is to be done once" } else { "" };
    let setbacks = number(numbers, "bodkin_database_setbacks_total");
    let setbacks = if setbacks > 0.0 { format!(", setbacks that lost commits: {setbacks}") } else { String::new() };
    format!("shared, shown up to commit {commit}{keeper}{setbacks}")
}

/// Returns how often links of graphs have lost more events in a row than they tolerate; `None` if never.
fn graphs(numbers: &BTreeMap<String, f64>) -> Option<String> {
    let exceeded = number(numbers, "bodkin_graph_links_exceeded_total");
    (exceeded > 0.0).then(|| format!("losses on links that were longer than the link tolerates: {exceeded}"))
}

/// One of the nodes that share a database.
fn told(node: &NodeState) -> String {
    let NodeState { node: name, host, monitor_port, state, release, commit, seen_at, clock_ahead_ms, restored_at, .. } = node;
    let marks = [(node.is_this, ", this one"), (node.keeper, ", does what is to be done once")];
    let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let state = if state == "serves" { state.clone() } else { format!("{} since {seen_at}", state.to_uppercase()) };
    let clock = if *clock_ahead_ms == 0 { String::new() } else { format!(", clock {clock_ahead_ms:+} ms") };
    let restored = restored_at.as_ref().map_or_else(String::new, |at| format!(", its directory restored at {at}"));
    format!("{name}, {host}:{monitor_port}, {state}, bodkin {release}, commit {commit}{clock}{marks}{restored}")
}

fn deadlines(platform: &PlatformState) -> String {
    let PlatformState { guarantee, causes, worst_us, blocking_us, .. } = platform;
    let guarantee = if causes.is_empty() { guarantee.clone() } else { format!("{guarantee} by {}", causes.join(", ")) };
    match (worst_us, blocking_us) {
        (0, 0) => format!("{guarantee}: no longest stall is stated, and none was measured yet"),
        (0, _) => format!("{guarantee}: {blocking_us} us are stated as the longest stall, and none was measured yet"),
        (_, 0) => format!("{guarantee}: no longest stall is stated; the longest of the last minute was {worst_us} us"),
        _ => format!("{guarantee}: the longest stall of the last minute was {worst_us} us of {blocking_us} us stated"),
    }
}

/// What the process has, which `/proc` tells: none has nothing.
fn memory(resident_bytes: f64) -> String {
    if resident_bytes > 0.0 { bytes(resident_bytes) } else { "not known: /proc is not mounted there".to_owned() }
}

/// A time in the two units that matter.
fn lasted(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn bytes(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} GB", value / 1e9),
        value if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        value if value >= 1e3 => format!("{:.1} kB", value / 1e3),
        value => format!("{value} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(told: &[(&str, f64)]) -> BTreeMap<String, f64> {
        told.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_screen_holds_it() {
        let overview = NodeOverview {
            uptime_s: 3_725,
            numbers: numbers(&[
                ("bodkin_resident_memory_bytes", 12_345_678.0),
                ("bodkin_data_free_bytes", 3e9),
                ("bodkin_fleet_connected", 1.0),
                ("bodkin_database_commit", 12.0),
            ]),
            ..NodeOverview::default()
        };
        let platform = PlatformState::default();
        let bare = screen("127.0.0.1:8440", &NodeOverview::default(), &platform, &[], [&[], &[]]).to_string();
        assert!(bare.contains("none was measured yet") && bare.contains("memory       not known"), "{bare}");
        let node = |number: usize| NodeState {
            node: format!("{number:032x}"),
            host: "node-of-a-cloud.plant.example".into(),
            state: if number < 2 { "serves" } else { "silent" }.into(),
            is_this: number == 1,
            ..NodeState::default()
        };
        let trouble = |number: usize| format!("{number}: {}", "what is wrong, and what is to be done ".repeat(6));
        for (node_count, trouble_count, notice_count) in [(0, 0, 0), (0, 2, 1), (3, 0, 0), (3, 17, 2), (40, 0, 0), (40, 1, 2), (40, 17, 2)]
        {
            let nodes: Vec<NodeState> = (0..node_count).map(node).collect();
            let (troubles, notices): (Vec<String>, Vec<String>) =
                ((0..trouble_count).map(trouble).collect(), vec!["it will not stay so".to_owned(); notice_count]);
            let told = screen("127.0.0.1:8440", &overview, &platform, &nodes, [&troubles, &notices]);
            let printed = told.to_string();
            assert!(told.rows(120) <= 24, "{node_count} nodes, {trouble_count} troubles:\n{printed}");
            for part in ["up for 1 h 2 min", "12.3 MB", "3.00 GB are free", "a cloud by itself", "0 stored"] {
                assert!(printed.contains(part), "{part} is not in\n{printed}");
            }
            assert_eq!(printed.contains("TROUBLE      0: what is wrong"), trouble_count > 0, "{printed}");
            assert_eq!(printed.contains("TROUBLE      and "), trouble_count == 17, "{printed}");
            assert_eq!(printed.contains("node of it   and "), node_count == 40, "{printed}");
            assert!(node_count < 3 || printed.contains(&format!("node of it   {:032x}, ", 2)), "who is silent is told first:\n{printed}");
        }
    }

    #[test]
    fn setbacks_and_losses_on_links_are_shown_once_they_happen() {
        let told = |setbacks, exceeded| {
            let names = ["bodkin_database_commit", "bodkin_database_setbacks_total", "bodkin_graph_links_exceeded_total"];
            let numbers = numbers(&[(names[0], 7.0), (names[1], setbacks), (names[2], exceeded)]);
            (database(&numbers), graphs(&numbers))
        };
        assert_eq!(told(0.0, 0.0), ("shared, shown up to commit 7".to_owned(), None));
        let (database, graphs) = told(1.0, 2.0);
        assert!(database.ends_with(", setbacks that lost commits: 1"), "{database}");
        assert!(graphs.as_ref().is_some_and(|graphs| graphs.ends_with("tolerates: 2")), "{graphs:?}");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let values: Vec<String> = ["one", "two", "three", "four"].map(str::to_owned).into();
        assert_eq!(shortened(&values, 4), values);
        assert_eq!(shortened(&values, 3), ["one", "two", "and 2 more, which --output json has all"]);
        assert_eq!(shortened(&values, 0), ["one", "and 3 more, which --output json has all"]);
        assert_eq!(shortened(&values[..1], 0), ["one"]);
    }

    #[test]
    fn deadlines_are_suspended_by_what_the_node_says_and_not_by_a_stall() {
        let platform = PlatformState {
            guarantee: "suspended".into(),
            causes: vec!["publishers".into()],
            worst_us: 70_000,
            ..PlatformState::default()
        };
        assert!(deadlines(&platform).starts_with("suspended by publishers: no longest stall is stated"), "{}", deadlines(&platform));
    }

    #[test]
    fn a_silent_node_is_told_with_when_it_was_heard() {
        let node = NodeState {
            node: "0f".into(),
            host: "10.0.0.7".into(),
            monitor_port: 8440,
            state: "silent".into(),
            release: "0.1.0".into(),
            seen_at: "2031-01-01T00:00:00Z".into(),
            commit: 7,
            clock_ahead_ms: -1_500,
            ..NodeState::default()
        };
        assert_eq!(told(&node), "0f, 10.0.0.7:8440, SILENT since 2031-01-01T00:00:00Z, bodkin 0.1.0, commit 7, clock -1500 ms");
        let serves = NodeState { state: "serves".into(), is_this: true, keeper: true, clock_ahead_ms: 0, ..node };
        assert!(told(&serves).ends_with("serves, bodkin 0.1.0, commit 7, this one, does what is to be done once"), "{}", told(&serves));
        let restored = NodeState { restored_at: Some("2031-02-01T00:00:00Z".into()), ..serves };
        assert!(told(&restored).ends_with("once, its directory restored at 2031-02-01T00:00:00Z"), "{}", told(&restored));
    }

    #[test]
    fn a_pair_is_told_with_its_witness() {
        let led = [("bodkin_pair_epoch", 3.0), ("bodkin_pair_leads", 1.0), ("bodkin_pair_protected", 1.0)];
        let with = |witness: &[(&str, f64)]| pair(&numbers(&[&led[..], witness].concat()));
        assert_eq!(with(&[]), "leads in epoch 3, the Backup is in sync, no witness");
        assert_eq!(with(&[("bodkin_pair_witness_connected", 1.0)]), "leads in epoch 3, the Backup is in sync, the witness is reached");
        assert!(with(&[("bodkin_pair_witness_connected", 0.0)]).ends_with("NOT reached"));
    }
}
