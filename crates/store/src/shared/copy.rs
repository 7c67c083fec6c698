//! What a node's writer knows of the shared database: its mirror of the tables, the snapshot that shows them, and the commit that both show. It is read once,
//! and then brought up to date with what other nodes have committed, by one or two messages at the begin of a turn.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bodkin_arrowhead::snapshot::Snapshot;

use super::{
    Shared, TURN_TIME_MAX,
    change::{self, Commit, Shown},
    mirror::{Mirror, TextRows},
    session::Session,
};
use crate::{
    database::{Database, DatabaseError, DatabaseResult},
    load,
    table::Kind,
};

/// Round trip up to which a node reads what others have changed by a message of its own while it holds its turn: only the tables that have changed.
const NEAR_ROUND_TRIP_MAX: Duration = Duration::from_millis(10);
/// Commits of other nodes that a near node reads while it holds its turn. More are read before.
const NEAR_COMMITS_MAX: i64 = 256;
/// The same of a node with a longer round trip.
const FAR_COMMITS_MAX: i64 = 8;

/// A look that holds nobody up.
const LOOK: &[&str] = &["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"];

const COUNTERS: &str = "SELECT name, last FROM id_counter";

/// The copy.
pub(super) struct Copy {
    pub mirror: Mirror,
    pub snapshot: Snapshot,
    pub shown: Shown,
    /// Whether the three show the same: false behind a failure while they were changed.
    pub is_whole: bool,
}

/// A turn that has begun.
pub(super) struct Begun {
    /// When the server's answer came.
    pub at: Instant,
    /// When the last message has to be sent.
    pub deadline: Instant,
    /// Whether other nodes have committed since this node's last turn.
    pub is_contended: bool,
}

/// A copy that cannot be brought to what there is: everything has to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outdated {
    /// How often the database was found without a commit that this node had shown, this time too.
    pub setbacks: u64,
}

/// What is read at the begin of a turn.
struct Reading {
    at: Instant,
    counters: Vec<(String, i64)>,
}

impl Copy {
    /// Reads everything, in a transaction that holds nobody up.
    pub fn read(shared: &Shared, session: &Session, setbacks: u64) -> DatabaseResult<Self> {
        let mirror = Mirror::new()?;
        let text = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}; {} COMMIT", change::LAST, mirror.read_all());
        let answers = session.tables(&text)?;
        let commit = commit_in(answers.get(1))?;
        mirror.fill(answers.get(2..).unwrap_or_default())?;
        let mut snapshot = load::load(Database::Sqlite(mirror.connection()))?;
        shared.own_core.show_in(&mut snapshot);
        Ok(Self { mirror, snapshot, shown: Shown { setbacks, commit }, is_whole: true })
    }

    /// Takes this node's turn, and brings the copy to what the other nodes have committed.
    pub fn begin(&mut self, shared: &Shared, session: &Session) -> DatabaseResult<Result<Begun, Outdated>> {
        let published = *shared.shown();
        if published.setbacks > self.shown.setbacks {
            return Ok(Err(Outdated { setbacks: published.setbacks }));
        }
        let (before, round_trip) = (self.shown, shared.standings.longer_round_trip());
        let is_far = round_trip > NEAR_ROUND_TRIP_MAX;
        let commits_max = if is_far { FAR_COMMITS_MAX } else { NEAR_COMMITS_MAX };
        if published.commit.number > self.shown.commit.number + commits_max
            && let Err(outdated) = self.take_in(shared, session, LOOK, "COMMIT", true)?
        {
            return Ok(Err(outdated));
        }
        let limit_ms = TURN_TIME_MAX.as_millis();
        let begin = &[
            "BEGIN",
            &format!("SET LOCAL idle_in_transaction_session_timeout = {limit_ms}"),
            // Waiting for the turn is not part of it, and has a limit of its own (`lock_timeout`).
            "SELECT FROM shared FOR UPDATE",
            &format!("SET LOCAL statement_timeout = {limit_ms}"),
        ];
        let reading = self.take_in(shared, session, begin, "", is_far)?;
        let Reading { at, counters } = match reading {
            Ok(reading) => reading,
            Err(outdated) => return Ok(Err(outdated)),
        };
        self.is_whole = false;
        self.mirror.begin(&counters)?;
        self.is_whole = true;
        Ok(Ok(Begun { at, deadline: at + TURN_TIME_MAX.saturating_sub(round_trip), is_contended: self.shown != before }))
    }

    /// Brings the copy to what there is behind the statements of `begin`; `end` follows in the same message. `is_far`: with one message, for which the server looks into every table; else with
    /// two, where there is something new.
    fn take_in(
        &mut self,
        shared: &Shared,
        session: &Session,
        begin: &[&str],
        end: &str,
        is_far: bool,
    ) -> DatabaseResult<Result<Reading, Outdated>> {
        let from = self.shown.commit;
        let rows = if is_far { self.mirror.read_some(Kind::ALL.into_iter(), |kind| touched_ids(kind, from.number)) } else { String::new() };
        let text = format!("{}; {}; {COUNTERS}; {};\n{rows}", begin.join("; "), change::LAST, since(from.number)) + end;
        let mut answers = session.texts(&text)?.into_iter().skip(begin.len());
        let at = Instant::now();
        let commit = commit_in(answers.next().as_ref())?;
        let counters = counters_in(&answers.next().unwrap_or_default())?;
        let told = answers.next().unwrap_or_default();
        if commit == from {
            return Ok(Ok(Reading { at, counters }));
        }
        let touched = match touched_since(from, commit, &told)? {
            Since::Touched(touched) => touched,
            Since::Forgotten => return Ok(Err(Outdated { setbacks: self.shown.setbacks })),
            Since::SetBack => {
                change::log_setback(from, commit);
                return Ok(Err(Outdated { setbacks: self.shown.setbacks + 1 }));
            }
        };
        let rows = if is_far {
            by_kind(Kind::ALL.into_iter(), answers)
        } else {
            let ids = |kind| touched.get(&kind).into_iter().flatten().map(i64::to_string).collect::<Vec<_>>().join(",");
            let text = self.mirror.read_some(touched.keys().copied(), ids);
            if text.is_empty() { BTreeMap::new() } else { by_kind(touched.keys().copied(), session.texts(&text)?.into_iter()) }
        };
        self.is_whole = false;
        self.mirror.take_in(&touched, &rows)?;
        let by_number = touched.into_iter().map(|(kind, ids)| (kind as u8, ids)).collect();
        change::apply(Database::Sqlite(self.mirror.connection()), &mut self.snapshot, &by_number, &shared.own_core)?;
        (self.shown.commit, self.is_whole) = (commit, true);
        Ok(Ok(Reading { at, counters }))
    }
}

/// What other nodes have done since a commit.
#[derive(Debug, PartialEq, Eq)]
enum Since {
    /// The rows that they have touched.
    Touched(BTreeMap<Kind, BTreeSet<i64>>),
    /// The database does not know any more.
    Forgotten,
    /// The database lacks the commit, or has another one of its number.
    SetBack,
}

/// The changes from a commit on, with that one.
fn since(number: i64) -> String {
    format!(
        "SELECT number, (extract(epoch FROM at) * 1000000)::bigint, array_to_string(touched, ',') FROM change WHERE number >= {number} ORDER BY number"
    )
}

/// The query for the ids of a kind's rows that were touched behind a commit.
fn touched_ids(kind: Kind, number: i64) -> String {
    format!(
        "SELECT touched[place + 1] FROM change, generate_series(1, cardinality(touched), 2) AS place WHERE number > {number} AND touched[place] = {}",
        kind as u8
    )
}

/// Which rows were touched between two commits, of the changes from the first one on.
fn touched_since(from: Commit, to: Commit, told: &TextRows) -> DatabaseResult<Since> {
    let told =
        told.iter().map(|row| Ok((Commit { number: number(row.get(0))?, at_us: number(row.get(1))? }, row.get(2).unwrap_or_default())));
    let told = told.collect::<DatabaseResult<Vec<(Commit, &str)>>>()?;
    let first = told.first().map(|(commit, _)| *commit).filter(|commit| commit.number == from.number);
    if to.number < from.number || first.is_some_and(|first| first != from) {
        return Ok(Since::SetBack);
    }
    let new = &told[usize::from(first.is_some())..];
    if i64::try_from(new.len()) != Ok(to.number - from.number) {
        return Ok(Since::Forgotten);
    }
    let mut touched = BTreeMap::<Kind, BTreeSet<i64>>::new();
    for (_, pairs) in new {
        let numbers = pairs.split(',').filter(|text| !text.is_empty()).map(|text| number(Some(text)));
        for pair in numbers.collect::<DatabaseResult<Vec<_>>>()?.chunks_exact(2) {
            let kind = u8::try_from(pair[0]).ok().and_then(Kind::of_number);
            let kind = kind.ok_or_else(|| DatabaseError::column(2, format_args!("a change of the unknown kind {}", pair[0])))?;
            touched.entry(kind).or_default().insert(pair[1]);
        }
    }
    Ok(Since::Touched(touched))
}

/// Answers by the kinds that they are about.
fn by_kind(kinds: impl Iterator<Item = Kind>, mut answers: impl Iterator<Item = TextRows>) -> BTreeMap<Kind, Vec<TextRows>> {
    kinds.map(|kind| (kind, answers.by_ref().take(1 + usize::from(kind.table().members.is_some())).collect())).collect()
}

fn counters_in(rows: &TextRows) -> DatabaseResult<Vec<(String, i64)>> {
    rows.iter().map(|row| Ok((row.get(0).unwrap_or_default().to_owned(), number(row.get(1))?))).collect()
}

fn commit_in(rows: Option<&TextRows>) -> DatabaseResult<Commit> {
    let row = rows.and_then(|rows| rows.first()).ok_or(DatabaseError::NoRow)?;
    Ok(Commit { number: number(row.get(0))?, at_us: number(row.get(1))? })
}

fn number(text: Option<&str>) -> DatabaseResult<i64> {
    text.unwrap_or_default().parse().map_err(|error| DatabaseError::column(0, error))
}
