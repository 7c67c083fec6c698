//! A row that a statement gives.

use super::{
    DatabaseError, DatabaseResult,
    postgres::{self, Column},
};

/// Lent while it is read.
pub(crate) enum Row<'r> {
    /// Of SQLite.
    Sqlite(&'r rusqlite::Row<'r>),
    /// Of PostgreSQL.
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// A column's value; columns are counted from 0.
    pub(crate) fn get<T: Column>(&self, column: usize) -> DatabaseResult<T> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => T::of(row, column),
        }
    }

    /// A column that holds a text, without a copy of it.
    pub(crate) fn text(&self, column: usize) -> DatabaseResult<&str> {
        match self {
            Self::Sqlite(row) => row.get_ref(column)?.as_str().map_err(|error| DatabaseError::column(column, error)),
            Self::Postgres(row) => postgres::text(row, column),
        }
    }

    /// That a column holds a text which stands for nothing.
    pub(crate) fn unexpected(&self, column: usize, text: &str) -> DatabaseError {
        DatabaseError::column(column, format_args!("'{text}'"))
    }
}
