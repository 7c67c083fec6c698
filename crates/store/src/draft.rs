//! What an operation works on: the database inside a savepoint, and the snapshot that will be published.

use crate::{
    database::{Database, DatabaseError, DatabaseResult, Parameters, Row},
    replication::Journal,
    shared::{OwnCore, Touched},
    table::Kind,
};
use bodkin_arrowhead::{
    error::ArrowheadError,
    name::{EventType, SystemName},
    record::Timestamps,
    snapshot::{Change, OwnerUse, Snapshot},
    utc::UtcTime,
};

/// Why an operation was given up.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// It breaks a rule; its savepoint is rolled back, the group goes on.
    #[error(transparent)]
    Refused(#[from] ArrowheadError),
    /// The database failed; the whole group is lost.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl OperationError {
    /// A refusal because a value refers to nothing or breaks a constraint.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Refused(ArrowheadError::invalid_parameter(message))
    }
}

/// The state a group of operations is building.
pub struct Draft<'w> {
    database: Database<'w>,
    snapshot: &'w mut Snapshot,
    now: UtcTime,
    changes: Vec<Change>,
    /// What the operations have done to the database; `None` where nobody repeats it.
    journal: Option<Journal>,
    /// Which rows the finished operations have changed; `None` where no other node has to read them.
    touched: Option<Touched>,
    /// The core systems as this node serves them; `None` where the database is its own, whose rows say that.
    own_core: Option<&'w OwnCore>,
}

impl<'w> Draft<'w> {
    pub(crate) fn new(database: Database<'w>, snapshot: &'w mut Snapshot, now: UtcTime, journal: Option<Journal>) -> Self {
        Self { database, snapshot, now: now.whole_seconds(), changes: Vec::new(), journal, touched: None, own_core: None }
    }

    /// A draft on a database that is shared with other nodes.
    pub(crate) fn shared(database: Database<'w>, snapshot: &'w mut Snapshot, now: UtcTime, own_core: &'w OwnCore) -> Self {
        Self { touched: Some(Touched::new()), own_core: Some(own_core), ..Self::new(database, snapshot, now, None) }
    }

    /// Which rows the finished operations have changed.
    pub(crate) fn into_touched(self) -> Touched {
        self.touched.unwrap_or_default()
    }

    /// What the finished operations have done.
    pub(crate) fn into_journal(self) -> Option<Journal> {
        self.journal
    }

    /// Runs an operation; afterwards either all of it is in database and snapshot, or nothing.
    pub(crate) fn savepoint<I>(&mut self, operation: impl FnOnce(&mut Self) -> Result<I, OperationError>) -> Result<I, OperationError> {
        self.run("SAVEPOINT operation", ())?;
        let result = operation(self).map_err(of_values);
        match &result {
            Ok(_) => {
                self.run("RELEASE operation", ())?;
                self.journal.iter_mut().for_each(|journal| journal.finish(&self.changes));
                if let Some(touched) = &mut self.touched {
                    touched.extend(self.changes.iter().map(Kind::of).map(|(kind, id)| (kind as u8, id)));
                }
                for change in self.changes.drain(..) {
                    self.own_core.iter().for_each(|own| own.follow(&change));
                    self.snapshot.apply(change);
                }
            }
            Err(OperationError::Refused(_)) => {
                self.changes.clear();
                self.journal.iter_mut().for_each(Journal::give_up);
                self.run("ROLLBACK TO operation", ())?;
                self.run("RELEASE operation", ())?;
            }
            Err(OperationError::Database(_)) => {}
        }
        result
    }

    /// Returns the owners to which the running operation has given more rows or bytes, with what they use after it.
    pub fn owner_growth(&self) -> Vec<(SystemName, OwnerUse)> {
        self.snapshot.growth(&self.changes)
    }

    /// The snapshot with every finished operation of the group.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        self.snapshot
    }

    /// The core systems as this node serves them, where it shares its database.
    pub(crate) fn own_core(&self) -> Option<&'w OwnCore> {
        self.own_core
    }

    /// Notes a change that the statement just run has made.
    pub(crate) fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Notes that a topic is declared anew or forgotten: the snapshot does not hold it, but who repeats this has to know.
    pub(crate) fn topic_changed(&mut self, event_type: &EventType) {
        self.journal.iter_mut().for_each(|journal| journal.note_topic(event_type));
    }

    /// What its statements are run on.
    pub(crate) fn database(&self) -> Database<'w> {
        self.database
    }

    /// The group's time as rows keep it.
    pub(crate) fn now_seconds(&self) -> i64 {
        i64::try_from(self.now.unix_seconds()).expect("the year is at most 9999")
    }

    /// Times of a row made now.
    pub(crate) fn timestamps(&self) -> Timestamps {
        Timestamps { created_at: self.now, updated_at: self.now }
    }

    /// Runs a statement without rows; gives the number of changed rows.
    pub(crate) fn run<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<usize> {
        self.database.run(sql, parameters, self.journal.as_ref())
    }

    /// Runs a statement whose result nobody needs, and that the database does not refuse for its values. On a shared database it is sent with the next
    /// statement that needs an answer, or with the commit.
    pub(crate) fn run_later<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<()> {
        match self.database {
            Database::Turn(turn) => turn.run_later(sql, parameters),
            _ => self.run(sql, parameters).map(drop),
        }
    }

    /// Runs a statement on what the database keeps for this node alone: nobody repeats it.
    pub(crate) fn run_own<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<usize> {
        self.database.run(sql, parameters, None)
    }

    /// Runs a statement that gives at most one row of interest.
    pub(crate) fn row<'p, T>(
        &self,
        sql: &str,
        parameters: impl Parameters<'p>,
        read: impl FnOnce(&Row<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<Option<T>> {
        self.database.row(sql, parameters, self.journal.as_ref(), read)
    }

    /// Runs a statement that gives at most one id.
    pub(crate) fn id<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<Option<i64>> {
        self.row(sql, parameters, |row| row.get(0))
    }

    /// Runs a statement and gives the first column of all its rows.
    pub(crate) fn ids<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<Vec<i64>> {
        self.database.rows(sql, parameters, self.journal.as_ref(), |row| row.get(0))
    }

    /// Runs a statement and reads all its rows.
    pub(crate) fn rows<'p, T>(
        &self,
        sql: &str,
        parameters: impl Parameters<'p>,
        read: impl FnMut(&Row<'_>) -> DatabaseResult<T>,
    ) -> Result<Vec<T>, OperationError> {
        Ok(self.database.rows(sql, parameters, self.journal.as_ref(), read)?)
    }
}

/// What PostgreSQL does not take for the values in it is the operation's own fault: the others of its group go on.
fn of_values(error: OperationError) -> OperationError {
    match error {
        OperationError::Database(error) if error.is_of_values() => {
            OperationError::invalid(format!("The database does not take this: {error}."))
        }
        other => other,
    }
}

/// Reads `created_at` and `updated_at` from two neighbouring columns.
pub(crate) fn timestamps(row: &Row<'_>, column: usize) -> DatabaseResult<Timestamps> {
    Ok(Timestamps { created_at: time(row.get(column)?), updated_at: time(row.get(column + 1)?) })
}

/// A stored time; what is before 1970 cannot have been stored.
pub(crate) fn time(unix_seconds: i64) -> UtcTime {
    UtcTime::from_unix_seconds(unix_seconds.unsigned_abs())
}

/// A time as rows keep it.
pub(crate) fn seconds(time: UtcTime) -> i64 {
    i64::try_from(time.unix_seconds()).expect("the year is at most 9999")
}
