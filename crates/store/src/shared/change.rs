//! What nodes tell each other of their commits: which rows each has touched. Whoever is behind reads these rows again, as they are now.
//!
//! A commit is known again by its time as well as by its number: a standby that takes over may lack the last ones, and then uses their numbers again.

use std::collections::{BTreeMap, BTreeSet};

use bodkin_arrowhead::snapshot::{Change, Snapshot};

use super::{
    own_core::OwnCore,
    session::{CHANNEL, Session},
};
use crate::{
    database::{Database, DatabaseError, DatabaseResult},
    load,
    table::Kind,
};

/// Commits that are told; who is farther behind reads everything.
pub(crate) const CHANGES_KEPT: i64 = 100_000;

/// Rows that commits have touched.
pub(crate) type Touched = BTreeSet<(u8, i64)>;

/// A commit of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Commit {
    /// Its number: one more than that of the commit before it.
    pub number: i64,
    /// When it was made, in microseconds since 1970 by the server's clock; 0 of those that have told nothing, the first ones of a database.
    pub at_us: i64,
}

/// What a snapshot shows. One is later than another that has seen fewer setbacks, whatever their commits' numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    /// How often the database was found without a commit that this node had shown.
    pub setbacks: u64,
    /// The last commit that is in it.
    pub commit: Commit,
}

/// How far a snapshot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// What it shows.
    pub shown: Shown,
    /// Since its last commit, in microseconds of the server's clock; `None` where nothing was new, or everything was read.
    pub age_us: Option<i64>,
}

/// The last commit, by its number and its time. Behind the turn's `FOR UPDATE` it is a statement of its own, so that it sees the commit that was waited for.
pub(crate) const LAST: &str = "SELECT number, coalesce((SELECT (extract(epoch FROM at) * 1000000)::bigint FROM change WHERE change.number = shared.number), 0) FROM shared";

/// The last commit that the transaction sees.
pub(crate) fn last(session: &Session) -> DatabaseResult<Commit> {
    let rows = session.rows(LAST, ())?;
    commit_in(rows.first().ok_or(DatabaseError::NoRow)?, 0)
}

fn commit_in(row: &tokio_postgres::Row, column: usize) -> DatabaseResult<Commit> {
    Ok(Commit { number: row.try_get(column)?, at_us: row.try_get(column + 1)? })
}

/// Reads everything. Has to be called inside a transaction that sees one state.
pub(crate) fn read_all(session: &Session, own_core: &OwnCore) -> DatabaseResult<(Commit, Snapshot)> {
    let (commit, mut snapshot) = (last(session)?, load::load(Database::Postgres(session))?);
    own_core.show_in(&mut snapshot);
    Ok((commit, snapshot))
}

/// Brings a snapshot that shows `from` to what the transaction sees.
pub(crate) fn catch_up(session: &Session, snapshot: &mut Snapshot, from: Shown, own_core: &OwnCore) -> DatabaseResult<Reached> {
    let commit = last(session)?;
    let shown = Shown { commit, ..from };
    if commit == from.commit {
        return Ok(Reached { shown, age_us: None });
    }
    let told =
        "SELECT touched, (extract(epoch FROM clock_timestamp() - at) * 1000000)::bigint, number, (extract(epoch FROM at) * 1000000)::bigint
        FROM change WHERE number >= ?1 ORDER BY number";
    let told = session.rows(told, [from.commit.number])?;
    let begun = told.first().map(|row| commit_in(row, 2)).transpose()?;
    let is_other = |begun: Commit| begun.number == from.commit.number && begun != from.commit;
    if commit.number < from.commit.number || begun.is_some_and(is_other) {
        log_setback(from.commit, commit);
        let (commit, read) = read_all(session, own_core)?;
        *snapshot = read;
        return Ok(Reached { shown: Shown { setbacks: from.setbacks + 1, commit }, age_us: None });
    }
    // The first one is not new.
    let told = &told[usize::from(begun == Some(from.commit))..];
    // Of one that has forgotten what comes next everything is read.
    if i64::try_from(told.len()) != Ok(commit.number - from.commit.number) {
        (_, *snapshot) = read_all(session, own_core)?;
        return Ok(Reached { shown, age_us: None });
    }
    let mut touched: BTreeMap<u8, BTreeSet<i64>> = BTreeMap::new();
    for row in told {
        for pair in row.try_get::<_, Vec<i64>>(0)?.chunks_exact(2) {
            let kind = u8::try_from(pair[0]).map_err(|error| DatabaseError::column(0, error))?;
            touched.entry(kind).or_default().insert(pair[1]);
        }
    }
    apply(Database::Postgres(session), snapshot, &touched, own_core)?;
    Ok(Reached { shown, age_us: told.last().map(|row| row.try_get(1)).transpose()? })
}

/// Logs that the database is at `found`, and lacks `shown` or a commit before it.
pub(crate) fn log_setback(shown: Commit, found: Commit) {
    tracing::error!(
        shown = shown.number,
        found = found.number,
        "the shared database lacks commits that this node has shown, as after a failover to a standby that was behind, or a restore: what was answered in them is lost"
    );
}

/// Has the snapshot show these rows as they are.
pub(crate) fn apply(
    database: Database<'_>,
    snapshot: &mut Snapshot,
    touched: &BTreeMap<u8, BTreeSet<i64>>,
    own_core: &OwnCore,
) -> DatabaseResult<()> {
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    for (kind, ids) in touched {
        let kind = Kind::of_number(*kind).ok_or_else(|| DatabaseError::column(0, format_args!("a change of the unknown kind {kind}")))?;
        kind.read_some(database, ids, &mut gone, &mut there)?;
    }
    // What is gone takes along what belonged to it, so what is there comes behind.
    gone.into_iter().for_each(|change| snapshot.apply(change));
    let there: Vec<Change> = there.into_iter().map(|change| own_core.shown_in(change)).collect();
    // Twice, since rows may have exchanged their names: the first time each gives its former one up, and may take away another's new one.
    there.iter().cloned().for_each(|change| snapshot.apply(change));
    there.into_iter().for_each(|change| snapshot.apply(change));
    Ok(())
}

/// Ends a transaction, however long a standby takes: a limit would have the server answer a commit that the standby lacks.
pub(crate) const COMMIT: &str = "SET LOCAL statement_timeout = 0; COMMIT";

/// The statements that end a transaction with these changes, as the commit of this number. Their last row has its time.
pub(crate) fn commit(number: i64, touched: &Touched) -> String {
    let pairs = touched.iter().map(|(kind, id)| format!("{kind},{id}")).collect::<Vec<_>>().join(",");
    format!(
        "UPDATE shared SET number = {number}; INSERT INTO change (number, touched) VALUES ({number}, '{{{pairs}}}')
            RETURNING (extract(epoch FROM at) * 1000000)::bigint; NOTIFY {CHANNEL}; {COMMIT}"
    )
}
