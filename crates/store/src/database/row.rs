//! A row that a statement gives.

use rusqlite::types::FromSql;

use super::{DatabaseError, DatabaseResult};

/// Lent while it is read.
pub(crate) enum Row<'r> {
    /// Of SQLite.
    Sqlite(&'r rusqlite::Row<'r>),
}

impl Row<'_> {
    /// A column's value; columns are counted from 0.
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> DatabaseResult<T> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
        }
    }

    /// A column that holds a text, without a copy of it.
    pub(crate) fn text(&self, column: usize) -> DatabaseResult<&str> {
        match self {
            Self::Sqlite(row) => row.get_ref(column)?.as_str().map_err(|error| DatabaseError::column(column, error)),
        }
    }

    /// That a column holds a text which stands for nothing.
    pub(crate) fn unexpected(&self, column: usize, text: &str) -> DatabaseError {
        DatabaseError::column(column, format_args!("'{text}'"))
    }
}
