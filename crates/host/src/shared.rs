//! What is told of the database that several nodes share (`docs/design/shared-database.md`).

use bodkin_store::{Store, shared::Standing};

use crate::answer::Answer;

/// Numbers of the metrics that stand at some value; none where the database is this node's own.
pub fn gauges(store: &Store) -> Vec<(&'static str, &'static str, u64)> {
    let Some(Standing { number, away, staleness, is_keeper, .. }) = store.standing() else { return Vec::new() };
    let staleness_ns = staleness.map_or(0, |staleness| u64::try_from(staleness.as_nanos()).unwrap_or(u64::MAX));
    vec![
        ("bodkin_database_connected", "1 while the shared database is reached.", u64::from(away.is_none())),
        ("bodkin_database_commit", "The last commit of the shared database that this node shows.", number.unsigned_abs()),
        ("bodkin_database_staleness_seconds", "From another node's last commit to its reading here, by the server's clock.", staleness_ns),
        ("bodkin_database_keeper", "1 at the node that does what is to be done once in the cloud.", u64::from(is_keeper)),
    ]
}

/// Numbers of the metrics that are counted since the start.
pub fn counters(store: &Store) -> Option<(&'static str, &'static str, u64)> {
    let losses = store.standing()?.losses;
    Some(("bodkin_database_losses_total", "Times that the shared database was not reached any more.", losses))
}

/// What `/readyz` says while the database is away: what was read last is served, so the node stays ready.
pub fn readiness(store: &Store) -> Answer {
    match store.standing().and_then(|standing| standing.away) {
        None => Answer::text(200, "ready\n"),
        Some(_) => Answer::text(200, "ready to read: the shared database is not reached, and changes are refused\n"),
    }
}

/// The refusal of what a cloud of several nodes does not serve: it is done at one node, or at the two of a reliable pair.
pub fn refuse_here(store: &Store, what: &str) -> Option<Answer> {
    store.standing().map(|_| {
        let told = format!("This cloud's nodes share a database, and {what} is served by one node: a cloud by itself, or a reliable pair.");
        Answer::problem(409, &told)
    })
}
