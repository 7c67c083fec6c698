//! Which nodes serve the cloud: a row for each, which it renews while it reaches the database, and which the others read.

use std::time::{Duration, Instant, SystemTime};

use bodkin_arrowhead::utc::UtcTime;

use super::session::Session;
use crate::{
    database::{Database, DatabaseError, DatabaseResult, params},
    draft::{Draft, OperationError},
};

/// Between two renewals of a node's row.
pub(crate) const BEAT_TIME: Duration = Duration::from_secs(2);
/// A node whose row was not renewed for so long is silent: it was killed, or has lost the database.
pub const SILENT_AFTER: Duration = Duration::from_secs(10);
/// A node that is silent for so long is told no more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Nodes that are told, those that were heard last first.
const NODES_MAX: i64 = 256;

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// The release that it runs.
    pub release: String,
    /// Its machine's address or name.
    pub host: String,
    /// Where its dashboard is on that.
    pub monitor_port: u16,
    /// Whether that speaks TLS.
    pub is_secure: bool,
    /// SHA-256 of the certificate of the authority whose systems it believes, in hexadecimal digits; empty in insecure mode, with key stores, and of an
    /// earlier release.
    pub authority: String,
    /// Whether it has that authority's key, and issues certificates.
    pub issues: bool,
}

/// A node as its row was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// What its data directory calls it.
    pub name: String,
    /// What it says of itself.
    pub place: NodePlace,
    /// When it was started, by its own clock.
    pub started: UtcTime,
    /// When it has renewed the row last, by the server's clock.
    pub seen: UtcTime,
    /// Since then, when the row was read.
    pub unheard: Duration,
    /// The last commit that it showed then.
    pub commit: i64,
    /// By how many microseconds its clock is in front of the server's for certain; behind it below 0.
    pub clock_ahead_us: i64,
    /// Whether it did what is to be done once in the cloud.
    pub is_keeper: bool,
    /// When it last started from a data directory that was restored or copied, by the server's clock: its event log may lack events.
    pub restored: Option<UtcTime>,
}

/// All that were told, and when that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// By their names.
    pub rows: Vec<NodeRow>,
    /// When they were read.
    pub read_at: Instant,
    /// Which of them is this one.
    pub own: String,
    /// By how many microseconds this node's clock is in front of the server's for certain; behind it below 0.
    pub clock_ahead_us: i64,
}

/// What a node writes of itself beside its place.
pub(super) struct Beat<'b> {
    pub name: &'b str,
    pub place: &'b NodePlace,
    pub started: SystemTime,
    pub commit: i64,
    pub is_keeper: bool,
}

/// Renews a node's row, and reads all.
pub(super) fn beat(session: &Session, beat: &Beat<'_>) -> DatabaseResult<Nodes> {
    let asked = unix_us(SystemTime::now());
    let server: i64 = session.one(NOW, ())?.ok_or(DatabaseError::NoRow)?;
    let clock_ahead_us = ahead_us(asked, server, unix_us(SystemTime::now()));
    let Beat { name, place, started, commit, is_keeper } = *beat;
    let port = i64::from(place.monitor_port);
    session.run(
        RENEW,
        params![
            name,
            &*place.release,
            &*place.host,
            port,
            place.is_secure,
            unix_us(started),
            commit,
            clock_ahead_us,
            is_keeper,
            &*place.authority,
            place.issues
        ],
    )?;
    if is_keeper {
        session.run(FORGET, [i64::try_from(FORGOTTEN_AFTER.as_micros()).unwrap_or(i64::MAX)])?;
    }
    let (rows, read_at) = (read(session)?, Instant::now());
    Ok(Nodes { rows, read_at, own: name.to_owned(), clock_ahead_us })
}

/// All nodes by their names.
pub(super) fn read(session: &Session) -> DatabaseResult<Vec<NodeRow>> {
    let mut rows = session.rows(READ, [NODES_MAX])?.iter().map(row).collect::<DatabaseResult<Vec<_>>>()?;
    rows.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(rows)
}

impl Draft<'_> {
    /// All nodes of the cloud; none where the database is this node's own.
    pub fn nodes(&self) -> Result<Vec<NodeRow>, OperationError> {
        match self.database() {
            Database::Sqlite(_) => Ok(Vec::new()),
            Database::Postgres(session) => Ok(read(session)?),
            Database::Turn(turn) => Ok(read(turn.session())?),
        }
    }
}

/// A node that ends in order is gone at once.
pub(super) fn leave(session: &Session, name: &str) -> DatabaseResult<()> {
    session.run("DELETE FROM node WHERE name = ?1", [name]).map(drop)
}

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const RENEW: &str =
    "INSERT INTO node (name, release, host, monitor_port, secure, started_us, commit, clock_ahead_us, keeper, authority, issues, seen_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET release = excluded.release, host = excluded.host, monitor_port = excluded.monitor_port,
    secure = excluded.secure, started_us = excluded.started_us, commit = excluded.commit, clock_ahead_us = excluded.clock_ahead_us,
    keeper = excluded.keeper, authority = excluded.authority, issues = excluded.issues, seen_at = excluded.seen_at";
const FORGET: &str = "DELETE FROM node WHERE seen_at < clock_timestamp() - ?1::bigint * interval '1 microsecond'";
const READ: &str = "SELECT name, release, host, monitor_port, secure, started_us, commit, clock_ahead_us, keeper,
    (extract(epoch FROM seen_at) * 1000000)::bigint, (extract(epoch FROM clock_timestamp() - seen_at) * 1000000)::bigint, authority, issues,
    (SELECT (extract(epoch FROM restored_at) * 1000000)::bigint FROM node_start WHERE node_start.name = node.name)
    FROM node ORDER BY seen_at DESC LIMIT ?1";

fn row(row: &tokio_postgres::Row) -> DatabaseResult<NodeRow> {
    let port: i64 = row.try_get(3)?;
    let monitor_port = u16::try_from(port).map_err(|error| DatabaseError::column(3, error))?;
    let place = NodePlace {
        release: row.try_get(1)?,
        host: row.try_get(2)?,
        monitor_port,
        is_secure: row.try_get(4)?,
        authority: row.try_get(11)?,
        issues: row.try_get(12)?,
    };
    Ok(NodeRow {
        name: row.try_get(0)?,
        place,
        started: instant(row.try_get(5)?),
        seen: instant(row.try_get(9)?),
        unheard: micros(row.try_get(10)?),
        commit: row.try_get(6)?,
        clock_ahead_us: row.try_get(7)?,
        is_keeper: row.try_get(8)?,
        restored: row.try_get::<_, Option<i64>>(13)?.map(instant),
    })
}

/// How far a clock that showed `asked` before and `answered` behind a look at the server's is in front of it for certain, or behind it below 0.
fn ahead_us(asked: i64, server: i64, answered: i64) -> i64 {
    (asked.saturating_sub(server)).max(0) + (answered.saturating_sub(server)).min(0)
}

/// A length of time; what is below 0 because clocks differ is none.
fn micros(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or_default())
}

fn instant(unix_us: i64) -> UtcTime {
    UtcTime::from_unix_nanos(u64::try_from(unix_us).unwrap_or_default().saturating_mul(1_000))
}

fn unix_us(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_differs_only_by_what_the_way_of_the_answer_cannot_explain() {
        assert_eq!(ahead_us(1_000, 1_005, 1_010), 0);
        assert_eq!(ahead_us(1_500, 1_005, 1_510), 495);
        assert_eq!(ahead_us(500, 1_005, 510), -495);
    }
}
