//! Why a statement was not carried out, or a row not understood.

use rusqlite::ErrorCode;

/// What every statement gives.
pub(crate) type DatabaseResult<T> = Result<T, DatabaseError>;

/// The database failed, or holds what it should not.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A column holds what none of this cloud's operations writes.
    #[error("column {column} of a row holds what does not belong there: {why}")]
    Column {
        /// Its place in the query, from 0.
        column: usize,
        /// What was found, or why it could not be read.
        why: String,
    },
    /// A row that has to be there is not.
    #[error("a row that was found or made just now is not there")]
    NoRow,
}

impl DatabaseError {
    /// A column that could not be read.
    pub(crate) fn column(column: usize, why: impl ToString) -> Self {
        Self::Column { column, why: why.to_string() }
    }

    /// Whether what is stored is broken, so that another try finds the same.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) => {
                matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            }
            Self::Sqlite(error) => matches!(
                error,
                rusqlite::Error::InvalidColumnType(..)
                    | rusqlite::Error::FromSqlConversionFailure(..)
                    | rusqlite::Error::IntegralValueOutOfRange(..)
            ),
            Self::Column { .. } => true,
            Self::NoRow => false,
        }
    }
}
