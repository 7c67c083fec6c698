//! What is told of the database that several nodes share (`docs/design/shared-database.md`).

pub mod account;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use bodkin_store::{
    Store,
    shared::{NodePlace, NodeRow, Nodes, SILENT_AFTER, Standing},
};

use crate::{answer::Answer, config::HostConfig, security::SecurityConfig, server::Port};

/// The release of this node.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Numbers of the metrics that stand at some value.
pub fn gauges(standing: &Standing) -> Vec<(&'static str, &'static str, u64)> {
    let Standing { number, away, staleness, round_trip, is_keeper, nodes, certificates_exchanged, audit_copied, .. } = standing;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let staleness_ns = staleness.map_or(0, ns);
    let mut gauges = vec![
        ("bodkin_database_connected", "1 while the shared database is reached.", u64::from(away.is_none())),
        ("bodkin_database_commit", "The last commit of the shared database that this node shows.", number.unsigned_abs()),
        ("bodkin_database_staleness_seconds", "From another node's last commit to its reading here, by the server's clock.", staleness_ns),
        ("bodkin_database_keeper", "1 at the node that does what is to be done once in the cloud.", u64::from(*is_keeper)),
    ];
    gauges.extend(round_trip.map(|round_trip| {
        (
            "bodkin_database_round_trip_seconds",
            "Time of a message to the shared database and back, smoothed over the last ones.",
            ns(round_trip),
        )
    }));
    let exchanges = [
        (
            "bodkin_certificate_exchange_age_seconds",
            "Since lines of certificates last went to the other nodes and came from them; about 1 while they do.",
            certificates_exchanged,
        ),
        (
            "bodkin_audit_copy_age_seconds",
            "Since the copy of this node's audit log in the shared database last had all of it; about 1 while it follows.",
            audit_copied,
        ),
    ];
    gauges.extend(exchanges.into_iter().filter_map(|(name, help, age)| age.map(|age| (name, help, ns(age)))));
    gauges.extend(nodes.iter().flat_map(|nodes| counted(nodes, away.is_some())));
    gauges
}

/// How many nodes there are, and how many are not as they should be. While the database is away, it is not known which are silent.
fn counted(nodes: &Nodes, is_away: bool) -> [(&'static str, &'static str, u64); 4] {
    let since_read = Instant::now().saturating_duration_since(nodes.read_at);
    let count = |is: &dyn Fn(&NodeRow) -> bool| nodes.rows.iter().filter(|row| is(row)).count() as u64;
    let is_silent = |unheard: Duration| !is_away && unheard + since_read > SILENT_AFTER;
    [
        ("bodkin_nodes", "Nodes of this cloud that have a row in the shared database.", count(&|_| true)),
        (
            "bodkin_nodes_silent",
            "Nodes of this cloud that have not renewed their row in the shared database for 10 s.",
            count(&|row| row.name != nodes.own && is_silent(row.unheard)),
        ),
        (
            "bodkin_nodes_other_release",
            "Nodes of this cloud that run another release than this one.",
            count(&|row| row.place.release != VERSION && !is_silent(row.unheard)),
        ),
        (
            "bodkin_database_clock_difference_seconds",
            "By how much this node's clock differs from the shared database's for certain.",
            nodes.clock_ahead_us.unsigned_abs().saturating_mul(1_000),
        ),
    ]
}

/// Numbers of the metrics that are counted since the start.
pub fn counters(standing: &Standing) -> [(&'static str, &'static str, u64); 2] {
    [
        ("bodkin_database_losses_total", "Times that the shared database was not reached any more.", standing.losses),
        (
            "bodkin_database_setbacks_total",
            "Times that the shared database was found without commits that this node had shown: what was answered in them is lost.",
            standing.setbacks,
        ),
    ]
}

/// Returns the answer of `/readyz`. A node whose database is away or takes no change stays ready, since it serves what it has read.
pub fn readiness(store: &Store) -> Answer {
    if store.standing().is_some_and(|standing| standing.away.is_some()) {
        return Answer::text(200, "ready to read: the shared database is not reached, and changes are refused\n");
    }
    if store.refusal().is_some() {
        return Answer::text(200, "ready to read: the database takes no change, and changes are refused\n");
    }
    Answer::text(200, "ready\n")
}

/// The refusal of what a cloud of several nodes does not serve: it is done at one node, or at the two of a reliable pair, whose Service Registries are
/// at `places`.
pub fn refuse_here(store: &Store, places: &[String], what: &str) -> Option<Answer> {
    store.standing().map(|_| Answer::problem(409, &elsewhere(places, what)))
}

fn elsewhere(places: &[String], what: &str) -> String {
    let told = format!("This cloud's nodes share a database, and {what} is served by one node: a cloud by itself, or a reliable pair.");
    match places {
        [] => format!("{told} Which one is not configured here (realtime_at)."),
        places => format!("{told} Ask the one whose Service Registry is at {}.", places.join(" or ")),
    }
}

/// Where this node is told to be: the address that it listens on, or its machine's name where that is any.
pub fn place(config: &HostConfig, addresses: &[SocketAddr]) -> NodePlace {
    let host = if config.listen.is_unspecified() {
        machine_name().unwrap_or_else(|| config.domain_name.clone())
    } else {
        config.listen.to_string()
    };
    let monitor_port = addresses[Port::MONITOR].port();
    let authority = config.security.as_ref().and_then(SecurityConfig::own_authority);
    NodePlace {
        release: VERSION.to_owned(),
        host,
        monitor_port,
        is_secure: config.security.is_some(),
        authority: authority.as_ref().and_then(|own| own.anchor().ok()).map_or_else(String::new, |anchor| anchor.fingerprint().to_string()),
        issues: authority.is_some_and(|own| own.authority().is_ok()),
    }
}

/// The machine's name, where the system tells it.
fn machine_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_it_is_served() {
        let told = elsewhere(&["first:8443".into(), "second:8443".into()], "a graph");
        assert!(told.ends_with("Service Registry is at first:8443 or second:8443."), "{told}");
        assert!(elsewhere(&[], "a graph").contains("realtime_at"));
    }
}
