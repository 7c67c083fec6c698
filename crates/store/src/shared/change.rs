//! What nodes tell each other of their commits: which rows each has touched. Whoever is behind reads these rows again, as they are now.

use std::collections::{BTreeMap, BTreeSet};

use bodkin_arrowhead::snapshot::{Change, Snapshot};

use super::session::{CHANNEL, Session};
use crate::{
    database::{Database, DatabaseError, DatabaseResult},
    load,
    table::Kind,
};

/// Commits that are told; who is farther behind reads everything.
pub(crate) const CHANGES_KEPT: i64 = 100_000;

/// Rows that commits have touched.
pub(crate) type Touched = BTreeSet<(u8, i64)>;

/// How far a snapshot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The last commit that is in it.
    pub number: i64,
    /// Since that commit, in microseconds of the server's clock; `None` where nothing was new, or everything was read.
    pub age_us: Option<i64>,
}

/// Reads everything. Has to be called inside a transaction that sees one state.
pub(crate) fn read_all(session: &Session) -> DatabaseResult<(i64, Snapshot)> {
    let number = session.one("SELECT number FROM shared", ())?.ok_or(DatabaseError::NoRow)?;
    Ok((number, load::load(Database::Postgres(session))?))
}

/// Brings a snapshot that has the commits up to `from` to what the transaction sees.
pub(crate) fn catch_up(session: &Session, snapshot: &mut Snapshot, from: i64) -> DatabaseResult<Reached> {
    let number: i64 = session.one("SELECT number FROM shared", ())?.ok_or(DatabaseError::NoRow)?;
    if number == from {
        return Ok(Reached { number, age_us: None });
    }
    let told =
        "SELECT touched, (extract(epoch FROM clock_timestamp() - at) * 1000000)::bigint FROM change WHERE number > ?1 ORDER BY number";
    let told = session.rows(told, [from])?;
    // Of a database that was put back to an earlier state, or that has forgotten what comes next, everything is read.
    if i64::try_from(told.len()) != Ok(number - from) {
        (_, *snapshot) = read_all(session)?;
        return Ok(Reached { number, age_us: None });
    }
    let mut touched: BTreeMap<u8, BTreeSet<i64>> = BTreeMap::new();
    for row in &told {
        for pair in row.try_get::<_, Vec<i64>>(0)?.chunks_exact(2) {
            let kind = u8::try_from(pair[0]).map_err(|error| DatabaseError::column(0, error))?;
            touched.entry(kind).or_default().insert(pair[1]);
        }
    }
    apply(Database::Postgres(session), snapshot, &touched)?;
    Ok(Reached { number, age_us: told.last().map(|row| row.try_get(1)).transpose()? })
}

/// Has the snapshot show these rows as they are.
fn apply(database: Database<'_>, snapshot: &mut Snapshot, touched: &BTreeMap<u8, BTreeSet<i64>>) -> DatabaseResult<()> {
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    for (kind, ids) in touched {
        let kind = Kind::of_number(*kind).ok_or_else(|| DatabaseError::column(0, format_args!("a change of the unknown kind {kind}")))?;
        kind.read_some(database, ids, &mut gone, &mut there)?;
    }
    // What is gone takes along what belonged to it, so what is there comes behind.
    gone.into_iter().for_each(|change| snapshot.apply(change));
    // Twice, since rows may have exchanged their names: the first time each gives its former one up, and may take away another's new one.
    there.iter().cloned().for_each(|change: Change| snapshot.apply(change));
    there.into_iter().for_each(|change| snapshot.apply(change));
    Ok(())
}

/// The statements that end a transaction with these changes, as the commit of this number.
pub(crate) fn commit(number: i64, touched: &Touched) -> String {
    let pairs = touched.iter().map(|(kind, id)| format!("{kind},{id}")).collect::<Vec<_>>().join(",");
    format!(
        "UPDATE shared SET number = {number}; INSERT INTO change (number, touched) VALUES ({number}, '{{{pairs}}}'); NOTIFY {CHANNEL}; COMMIT"
    )
}
