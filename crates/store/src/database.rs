//! The database as operations see it: statements with values go in, rows come out, whichever database it is.

mod error;
mod postgres;
mod row;
mod value;

use rusqlite::{CachedStatement, Connection, ParamsFromIter, params_from_iter};

pub use self::error::DatabaseError;
pub(crate) use self::{
    error::DatabaseResult,
    row::Row,
    value::{Parameters, Value, params},
};
use crate::{
    replication::Journal,
    shared::{Turn, session::Session},
};

/// What statements are run on.
#[derive(Clone, Copy)]
pub(crate) enum Database<'c> {
    /// A file of this node.
    Sqlite(&'c Connection),
    /// A server's, shared with other nodes. It has no journal: who follows reads what has changed.
    Postgres(&'c Session),
    /// The same while this node has its turn: decided on a copy in memory, and sent together.
    Turn(&'c Turn<'c>),
}

impl<'c> Database<'c> {
    /// Runs a statement without rows; gives the number of changed rows. What it changes is noted in the journal, if there is one.
    pub(crate) fn run<'p>(&self, sql: &str, parameters: impl Parameters<'p>, journal: Option<&Journal>) -> DatabaseResult<usize> {
        match self {
            Self::Sqlite(connection) => with(connection, sql, (journal, parameters), |statement, values| Ok(statement.execute(values)?)),
            Self::Postgres(session) => session.run(sql, parameters),
            Self::Turn(turn) => turn.run(sql, parameters),
        }
    }

    /// Runs a statement and reads its first row; `None` where it has none. What it changes is noted in the journal, if there is one.
    pub(crate) fn row<'p, T>(
        &self,
        sql: &str,
        parameters: impl Parameters<'p>,
        journal: Option<&Journal>,
        read: impl FnOnce(&Row<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<Option<T>> {
        match self {
            Self::Sqlite(connection) => with(connection, sql, (journal, parameters), |statement, values| {
                let mut rows = statement.query(values)?;
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }),
            Self::Postgres(session) => session.rows(sql, parameters)?.first().map(|row| read(&Row::Postgres(row))).transpose(),
            Self::Turn(turn) => {
                let (mut read, mut first) = (Some(read), None);
                turn.carry_out(sql, parameters, &mut |row| {
                    first = read.take().map(|read| read(row)).transpose()?;
                    Ok(false)
                })?;
                Ok(first)
            }
        }
    }

    /// Runs a statement and reads all its rows. What it changes is noted in the journal, if there is one.
    pub(crate) fn rows<'p, T>(
        &self,
        sql: &str,
        parameters: impl Parameters<'p>,
        journal: Option<&Journal>,
        mut read: impl FnMut(&Row<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<Vec<T>> {
        match self {
            Self::Sqlite(connection) => with(connection, sql, (journal, parameters), |statement, values| {
                let mut rows = statement.query(values)?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    all.push(read(&Row::Sqlite(row))?);
                }
                Ok(all)
            }),
            Self::Postgres(session) => session.rows(sql, parameters)?.iter().map(|row| read(&Row::Postgres(row))).collect(),
            Self::Turn(turn) => {
                let mut all = Vec::new();
                turn.carry_out(sql, parameters, &mut |row| {
                    all.push(read(row)?);
                    Ok(true)
                })?;
                Ok(all)
            }
        }
    }

    /// Reads each row of a query that is asked once, as at the start: its statement is not kept.
    pub(crate) fn each_once(&self, sql: &str, mut read: impl FnMut(&Row<'_>) -> DatabaseResult<()>) -> DatabaseResult<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    read(&Row::Sqlite(row))?;
                }
                Ok(())
            }
            Self::Postgres(session) => session.rows_once(sql)?.iter().try_for_each(|row| read(&Row::Postgres(row))),
            Self::Turn(turn) => turn.carry_out(sql, (), &mut |row| read(row).map(|()| true)).map(drop),
        }
    }
}

/// Runs a statement that is kept for the next time; what it does to the database is noted with the values that it was run with.
fn with<'c, 'p, T>(
    connection: &'c Connection,
    sql: &str,
    (journal, parameters): (Option<&Journal>, impl Parameters<'p>),
    run: impl FnOnce(&mut CachedStatement<'c>, ParamsFromIter<Vec<Value<'p>>>) -> DatabaseResult<T>,
) -> DatabaseResult<T> {
    let mut statement = connection.prepare_cached(sql)?;
    let values: Vec<Value<'p>> = parameters.values().into_iter().collect();
    // The text of a statement, by which another node repeats it, ends there; PostgreSQL does not take it either.
    if !statement.readonly() && values.iter().any(Value::has_nul) {
        return Err(DatabaseError::Nul);
    }
    let result = run(&mut statement, params_from_iter(values))?;
    if let Some(journal) = journal
        && !statement.readonly()
    {
        journal.note(&statement);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, is_on INTEGER, bytes BLOB) STRICT";
    const INSERT: &str = "INSERT INTO t (name, is_on, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING RETURNING id";

    fn opened() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        connection
    }

    #[test]
    fn values_come_back_as_they_went_in() {
        let connection = opened();
        let database = Database::Sqlite(&connection);
        let values = params!["one", true, Some([7_u8; 32])];
        assert_eq!(database.row(INSERT, values, None, |row| row.get::<i64>(0)).unwrap(), Some(1));
        let empty = params![None::<&str>, false, None::<[u8; 32]>];
        assert_eq!(database.row(INSERT, empty, None, |row| row.get::<i64>(0)).unwrap(), Some(2));
        let read = |row: &Row<'_>| Ok((row.get::<Option<String>>(0)?, row.get::<bool>(1)?, row.get::<Option<[u8; 32]>>(2)?));
        let all = database.rows("SELECT name, is_on, bytes FROM t ORDER BY id", (), None, read).unwrap();
        assert_eq!(all, [(Some("one".to_owned()), true, Some([7; 32])), (None, false, None)]);
        let mut names = Vec::new();
        let names_of = "SELECT name FROM t WHERE name IS NOT NULL";
        let mut keep = |row: &Row<'_>| {
            names.push(row.text(0)?.to_owned());
            Ok(())
        };
        database.each_once(names_of, &mut keep).unwrap();
        assert_eq!(names, ["one"]);
    }

    #[test]
    fn a_row_that_is_there_already_gives_none_and_no_error() {
        let connection = opened();
        let database = Database::Sqlite(&connection);
        let insert = || database.row(INSERT, params!["one", 1_i64, None::<[u8; 32]>], None, |row| row.get::<i64>(0));
        assert_eq!((insert().unwrap(), insert().unwrap()), (Some(1), None));
        assert_eq!(database.run("UPDATE t SET is_on = 0 WHERE name = ?1", ["one"], None).unwrap(), 1);
        assert_eq!(database.run("DELETE FROM t WHERE name = ?1", ["two"], None).unwrap(), 0);
    }

    #[test]
    fn what_a_statement_changes_is_noted_and_what_it_reads_is_not() {
        let connection = opened();
        let database = Database::Sqlite(&connection);
        let mut journal = Journal::default();
        database.row(INSERT, params!["it's", true, None::<[u8; 32]>], Some(&journal), |row| row.get::<i64>(0)).unwrap();
        database.rows("SELECT id FROM t", (), Some(&journal), |row| row.get::<i64>(0)).unwrap();
        database.run("UPDATE t SET is_on = ?1", [false], Some(&journal)).unwrap();
        journal.finish(&[]);
        let crate::replication::Committed::Group(group) = journal.committed(Vec::new()) else { panic!("a group") };
        let text = String::from_utf8_lossy(&group.operations[0]).into_owned();
        assert!(text.contains("VALUES ('it''s', 1, NULL)") && text.contains("SET is_on = 0;"), "{text}");
        assert!(!text.contains("SELECT"), "{text}");
    }

    #[test]
    fn text_with_a_nul_is_not_written() {
        let connection = opened();
        let database = Database::Sqlite(&connection);
        let insert = |name: &str| database.row(INSERT, params![name, true, Some([0_u8; 32])], None, |row| row.get::<i64>(0));
        assert!(matches!(insert("a\0b"), Err(DatabaseError::Nul)));
        assert_eq!(insert("a").unwrap(), Some(1), "nothing was written, and bytes may be 0");
        assert!(database.row("SELECT id FROM t WHERE name = ?1", ["a\0b"], None, |row| row.get::<i64>(0)).unwrap().is_none());
    }

    #[test]
    fn a_column_of_another_kind_is_told_and_is_damage() {
        let connection = opened();
        let database = Database::Sqlite(&connection);
        database.run("INSERT INTO t (name) VALUES ('one')", (), None).unwrap();
        let error = database.row("SELECT name FROM t", (), None, |row| row.get::<i64>(0)).unwrap_err();
        assert!(error.is_damage(), "{error}");
        let refuse = |row: &Row<'_>| Err::<(), _>(row.unexpected(0, row.text(0)?));
        let error = database.row("SELECT name FROM t", (), None, refuse).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("'one'"), "{error}");
        let error = database.run("INSERT INTO no_table (name) VALUES ('one')", (), None).unwrap_err();
        assert!(!error.is_damage(), "{error}");
    }
}
