//! Copies of the nodes' audit logs: each node brings its lines, so that any node shows what all were asked, and whether each log is still as it was
//! written, also when its node is gone.
//!
//! A log is a chain of its own. Of lines that were not brought there is one row, with the number and the hash of the last of them: the line behind it names that
//! hash, so that the chain goes on.

use bodkin_arrowhead::{
    audit::{AuditQuery, Entry, LineHash},
    utc::UtcTime,
};

use super::{
    DatabasePlace, is_node,
    session::{Session, schema_of},
};
use crate::{
    audit::{Fault, Head},
    database::{Database, DatabaseError, DatabaseResult, params},
    draft::{Draft, OperationError},
};

/// Lines that are kept of a log, the newest.
pub const AUDIT_LINES_KEPT: u64 = 100_000;
/// Logs that are kept, those whose last line is the newest.
pub const AUDIT_LOGS_KEPT: u32 = 64;
/// Lines that are looked at for one question.
pub const AUDIT_LINES_SEARCHED_MAX: usize = 50_000;
/// Lines that are read at a time.
const LINES_READ_MAX: usize = 1_000;

/// What a node brings of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditCopy {
    /// A line, without its end.
    Line {
        /// Its number.
        number: u64,
        /// When it happened.
        at: UtcTime,
        /// As it stands in the file.
        text: String,
    },
    /// Lines up to this one are only at the node, if they are anywhere.
    Skipped {
        /// The last of them.
        through: Head,
        /// When the line behind it happened.
        at: UtcTime,
    },
}

impl AuditCopy {
    /// Whether it may come behind the line of this number.
    fn follows(&self, reached: u64) -> bool {
        match self {
            Self::Line { number, .. } => *number == reached + 1,
            Self::Skipped { through, .. } => through.number > reached,
        }
    }
}

/// An entry and whose log it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The node.
    pub node: String,
    /// What its log says.
    pub entry: Entry,
    /// Its line.
    pub line: String,
}

/// What was found of all logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeEntries {
    /// The newest that were wanted, in the order of their times.
    pub entries: Vec<NodeEntry>,
    /// Whether there are lines that were not looked at.
    pub is_cut: bool,
}

/// A log as far as it was brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChain {
    /// Whose it is; of a log that its node has begun anew, with the time of its last line behind that.
    pub node: String,
    /// The first line that is here.
    pub first: u64,
    /// The last one that follows.
    pub head: Head,
    /// When that happened.
    pub last_at: UtcTime,
    /// Lines that are here.
    pub entries: u64,
    /// Lines between them that were never brought.
    pub skipped: u64,
    /// The last line that the node has noted in the database by itself.
    pub noted: Option<Head>,
    /// The first line that does not follow, and why. Nothing behind it was looked at.
    pub wrong: Option<(u64, Fault)>,
}

impl NodeChain {
    /// Lines behind the last that are only at the node.
    pub fn behind(&self) -> u64 {
        self.noted.map_or(0, |noted| noted.number.saturating_sub(self.head.number))
    }
}

impl Draft<'_> {
    /// The newest wanted entries of one node or of all, in the order of their times, `count` at the most.
    ///
    /// # Errors
    /// The database is this node's own, or does not answer.
    pub fn audit_of_nodes(&self, node: Option<&str>, query: &AuditQuery, count: usize) -> Result<NodeEntries, OperationError> {
        Ok(newest(shared(self.database())?, node, query, count)?)
    }

    /// Every log, verified.
    ///
    /// # Errors
    /// As [`Draft::audit_of_nodes`].
    pub fn audit_chains(&self) -> Result<Vec<NodeChain>, OperationError> {
        Ok(chains(shared(self.database())?)?)
    }
}

fn shared(database: Database<'_>) -> DatabaseResult<&Session> {
    match database {
        Database::Postgres(session) => Ok(session),
        Database::Turn(turn) => Ok(turn.session()),
        Database::Sqlite(_) => Err(DatabaseError::NoRow),
    }
}

/// As [`Draft::audit_of_nodes`], by who has no node on the database.
///
/// # Errors
/// The database is not reached or does not answer: its words.
pub fn audit_at(place: &DatabasePlace, node: Option<&str>, query: &AuditQuery, count: usize) -> Result<NodeEntries, String> {
    connected(place, |session| newest(session, node, query, count))
}

/// As [`Draft::audit_chains`], by who has no node on the database.
///
/// # Errors
/// As [`audit_at`].
pub fn audit_chains_at(place: &DatabasePlace) -> Result<Vec<NodeChain>, String> {
    connected(place, chains)
}

fn connected<T: Send>(place: &DatabasePlace, read: impl FnOnce(&Session) -> DatabaseResult<T> + Send) -> Result<T, String> {
    let look = || {
        let session = Session::connect(place, "none", "audit")?;
        session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        read(&session)
    };
    // A session waits on a thread that may.
    let looked = std::thread::scope(|scope| scope.spawn(look).join());
    let looked: DatabaseResult<T> = looked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    looked.map_err(|error| error.to_string())
}

/// The last line of a node's log that is here, and its hash.
pub(super) fn reached(session: &Session, node: &str) -> DatabaseResult<Option<Head>> {
    let rows = session.rows("SELECT number, line, hash FROM audit_line WHERE node = ?1 ORDER BY number DESC LIMIT 1", [node])?;
    rows.first().map(|row| Copied::read(row, 0).map(|copied| copied.head())).transpose()
}

/// Takes lines of a node's log, and lets go of the oldest ones.
pub(super) fn bring(session: &Session, node: &str, copies: &[AuditCopy]) -> DatabaseResult<()> {
    session.batch("BEGIN")?;
    // A standby that has taken over may lack lines that were brought: whoever brings finds out, and goes on behind those that are there.
    let reached = session.one::<i64>("SELECT number FROM audit_line WHERE node = ?1 ORDER BY number DESC LIMIT 1", [node])?;
    let follows = copies.first().is_none_or(|first| first.follows(reached.map_or(0, i64::unsigned_abs)));
    if !follows {
        session.batch("ROLLBACK")?;
        return Err(DatabaseError::NoRow);
    }
    let mut last = 0;
    for copy in copies {
        let (number, at, line, hash) = match copy {
            AuditCopy::Line { number, at, text } => (*number, at, Some(text.as_str()), None),
            AuditCopy::Skipped { through, at } => (through.number, at, None, Some(through.hash.to_string())),
        };
        last = number;
        session.run(
            "INSERT INTO audit_line (node, number, at_us, line, hash) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![node, whole(number), us(*at), line, hash],
        )?;
    }
    session.run("DELETE FROM audit_line WHERE node = ?1 AND number <= ?2", params![node, whole(last.saturating_sub(AUDIT_LINES_KEPT))])?;
    session.batch("COMMIT")
}

/// A node's log is another one than before: the copy of the former stays, under a name of its own. The oldest logs go.
pub(super) fn retire(session: &Session, node: &str) -> DatabaseResult<()> {
    session
        .run("UPDATE audit_line SET node = node || '-' || (SELECT max(at_us) FROM audit_line WHERE node = ?1) WHERE node = ?1", [node])?;
    Ok(())
}

/// Lets go of the logs that are too many.
pub(super) fn forget(session: &Session) -> DatabaseResult<()> {
    session.run(
        "DELETE FROM audit_line WHERE node IN (SELECT node FROM audit_line GROUP BY node ORDER BY max(at_us) DESC OFFSET ?1)",
        [i64::from(AUDIT_LOGS_KEPT)],
    )?;
    Ok(())
}

fn newest(session: &Session, node: Option<&str>, query: &AuditQuery, count: usize) -> DatabaseResult<NodeEntries> {
    const PAGE: &str = "SELECT number, line, hash, node, at_us FROM audit_line WHERE line IS NOT NULL AND (?1::text IS NULL OR node = ?1)
        AND (at_us, node, number) < (?2, ?3, ?4) AND at_us >= ?5 ORDER BY at_us DESC, node DESC, number DESC LIMIT ?6";
    let since = query.since.map_or(0, us);
    // Behind everything that is wanted.
    let mut before = (query.until.map_or(i64::MAX, |until| us(until).saturating_add(1)), String::new(), 0);
    let (mut found, mut searched) = (NodeEntries::default(), 0);
    while found.entries.len() < count {
        if searched >= AUDIT_LINES_SEARCHED_MAX {
            found.is_cut = true;
            break;
        }
        let page = params![node, before.0, &*before.1, before.2, since, LINES_READ_MAX as u32];
        let rows = session.rows(PAGE, page)?;
        for row in &rows {
            let (number, whose, at): (i64, String, i64) = (row.try_get(0)?, row.try_get(3)?, row.try_get(4)?);
            let line: String = row.try_get(1)?;
            before = (at, whose.clone(), number);
            // What is no entry is for who verifies.
            if found.entries.len() < count
                && let Ok(entry) = Entry::parse(line.as_bytes())
                && query.wants(&entry)
            {
                found.entries.push(NodeEntry { node: whose, entry, line });
            }
        }
        searched += rows.len();
        if rows.len() < LINES_READ_MAX {
            break;
        }
    }
    found.entries.reverse();
    Ok(found)
}

fn chains(session: &Session) -> DatabaseResult<Vec<NodeChain>> {
    let nodes = session.rows("SELECT node, max(at_us) FROM audit_line GROUP BY node ORDER BY node", ())?;
    let chain = |row: &tokio_postgres::Row| chain(session, row.try_get(0)?, instant(row.try_get(1)?));
    nodes.iter().map(chain).collect()
}

fn chain(session: &Session, node: String, last_at: UtcTime) -> DatabaseResult<NodeChain> {
    const PAGE: &str = "SELECT number, line, hash FROM audit_line WHERE node = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
    let noted = noted(session, &node)?;
    let mut chain = NodeChain { first: 0, head: Head::default(), last_at, entries: 0, skipped: 0, noted, wrong: None, node };
    let mut read_to = 0;
    loop {
        let rows = session.rows(PAGE, params![&*chain.node, read_to, LINES_READ_MAX as u32])?;
        for row in &rows {
            let copied = Copied::read(row, 0)?;
            read_to = whole(copied.number);
            if let Err(fault) = chain.follow(&copied) {
                chain.wrong = Some((copied.number, fault));
                return Ok(chain);
            }
        }
        if rows.len() < LINES_READ_MAX {
            return Ok(chain);
        }
    }
}

/// A row of a log.
struct Copied {
    number: u64,
    /// The line, or the hash of the one that it stands for.
    line: Result<String, LineHash>,
}

impl Copied {
    fn read(row: &tokio_postgres::Row, column: usize) -> DatabaseResult<Self> {
        let number: i64 = row.try_get(column)?;
        let (line, hash): (Option<String>, Option<String>) = (row.try_get(column + 1)?, row.try_get(column + 2)?);
        // No line has the hash of zeros.
        let hash = || hash.as_deref().and_then(LineHash::parse).unwrap_or_default();
        Ok(Self { number: number.unsigned_abs(), line: line.ok_or_else(hash) })
    }

    fn head(&self) -> Head {
        Head { number: self.number, hash: self.line.as_ref().map_or_else(|hash| *hash, |line| Head::hash_of(line.as_bytes())) }
    }
}

impl NodeChain {
    /// Goes on to a row, if it follows.
    fn follow(&mut self, copied: &Copied) -> Result<(), Fault> {
        let is_first = self.entries == 0 && self.skipped == 0;
        match &copied.line {
            Ok(line) => {
                if is_first {
                    // What it follows is not here any more, and taken as it is.
                    let previous = Entry::parse(line.as_bytes()).map_err(|error| Fault::NoEntry(error.to_string()))?.previous;
                    self.head = Head { number: copied.number.saturating_sub(1), hash: previous };
                    self.first = copied.number;
                }
                self.head.follow(line.as_bytes())?;
                self.entries += 1;
            }
            Err(hash) => {
                if copied.number <= self.head.number {
                    return Err(Fault::Number { expected: self.head.number.saturating_add(1), found: copied.number });
                }
                self.skipped += if is_first { 0 } else { copied.number - self.head.number };
                self.head = Head { number: copied.number, hash: *hash };
                self.first = if is_first { copied.number.saturating_add(1) } else { self.first };
            }
        }
        let noted = self.noted.filter(|noted| noted.number == self.head.number);
        if noted.is_some_and(|noted| noted.hash != self.head.hash) {
            return Err(Fault::Checkpoint { number: self.head.number });
        }
        Ok(())
    }
}

/// Where the log ended when its node has noted that last.
fn noted(session: &Session, node: &str) -> DatabaseResult<Option<Head>> {
    if !is_node(node) {
        return Ok(None);
    }
    let table = format!("{}.audit_checkpoint", schema_of(node));
    if session.one::<bool>("SELECT to_regclass(?1) IS NOT NULL", [&table])? != Some(true) {
        return Ok(None);
    }
    let rows = session.rows_once(&format!("SELECT number, hash FROM {table}"))?;
    let head = |row: &tokio_postgres::Row| {
        let (number, hash): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Head { number: number.unsigned_abs(), hash: LineHash::parse(&hash).unwrap_or_default() })
    };
    rows.first().map(head).transpose()
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn us(at: UtcTime) -> i64 {
    whole(at.unix_nanos() / 1_000)
}

fn instant(us: i64) -> UtcTime {
    UtcTime::from_unix_nanos(us.unsigned_abs().saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::audit::{Event, Kind};

    use super::*;

    fn lines(count: u64) -> Vec<String> {
        let mut lines = Vec::new();
        let mut head = Head::default();
        for number in 0..count {
            head.extend(UtcTime::from_unix_seconds(number), &Event::own(Kind::Change, "something"), &mut lines);
        }
        String::from_utf8(lines).unwrap().lines().map(str::to_owned).collect()
    }

    fn verified(copies: &[Copied], noted: Option<Head>) -> NodeChain {
        let (node, last_at) = ("n".to_owned(), UtcTime::from_unix_seconds(0));
        let mut chain = NodeChain { node, first: 0, head: Head::default(), last_at, entries: 0, skipped: 0, noted, wrong: None };
        let wrong = copies.iter().find_map(|copied| chain.follow(copied).err().map(|fault| (copied.number, fault)));
        chain.wrong = wrong;
        chain
    }

    fn copied(lines: &[String], from: u64) -> Vec<Copied> {
        (from..).zip(lines).map(|(number, line)| Copied { number, line: Ok(line.clone()) }).collect()
    }

    #[test]
    fn a_log_is_whole_over_what_was_never_brought_and_not_over_what_was_taken_out() {
        let lines = lines(9);
        let whole = verified(&copied(&lines, 1), None);
        assert_eq!((whole.first, whole.entries, whole.head.number, &whole.wrong), (1, 9, 9, &None));
        assert_eq!(verified(&copied(&lines[3..], 4), None).wrong, None, "the oldest go");
        let through = Head { number: 6, hash: Head::hash_of(lines[5].as_bytes()) };
        let mut skipping = copied(&lines[..3], 1);
        skipping.push(Copied { number: 6, line: Err(through.hash) });
        skipping.extend(copied(&lines[6..], 7));
        let found = verified(&skipping, Some(through));
        assert_eq!((found.entries, found.skipped, found.head.number, &found.wrong), (6, 3, 9, &None));
        assert_eq!(found.behind(), 0);
        skipping[3].line = Err(LineHash::default());
        assert!(matches!(verified(&skipping, None).wrong, Some((7, Fault::Previous { .. }))));
        let mut taken_out = copied(&lines, 1);
        taken_out.remove(4);
        assert!(matches!(verified(&taken_out, None).wrong, Some((6, Fault::Number { expected: 5, found: 6 }))));
        let mut changed = copied(&lines, 1);
        changed[4].line = Ok(lines[4].replace("something", "nothing"));
        assert!(matches!(verified(&changed, None).wrong, Some((6, Fault::Previous { .. }))));
    }

    #[test]
    fn the_end_is_held_against_what_the_node_has_noted() {
        let lines = lines(5);
        let noted = |number: u64, line: &str| Some(Head { number, hash: Head::hash_of(line.as_bytes()) });
        assert_eq!(verified(&copied(&lines, 1), noted(5, &lines[4])).wrong, None);
        assert!(matches!(verified(&copied(&lines, 1), noted(4, "another")).wrong, Some((4, Fault::Checkpoint { number: 4 }))));
        assert_eq!(verified(&copied(&lines, 1), noted(8, "not here")).behind(), 3);
    }
}
