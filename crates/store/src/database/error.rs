//! Why a statement was not carried out, or a row not understood.

use std::{error::Error, time::Duration};

use rusqlite::ErrorCode;

/// What every statement gives.
pub(crate) type DatabaseResult<T> = Result<T, DatabaseError>;

/// The database failed, or holds what it should not.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL refused, or is not reached.
    #[error("{}", told(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// TLS to PostgreSQL cannot be spoken as it is configured.
    #[error("TLS to it cannot be configured: {0}")]
    Tls(String),
    /// PostgreSQL is at none of its hosts, each with the reason, or was not just now.
    #[error("{0}")]
    NoHost(String),
    /// PostgreSQL does not answer.
    #[error("it has not answered for {} s", .0.as_secs())]
    Slow(Duration),
    /// The connection to PostgreSQL has ended.
    #[error("the connection to it has ended")]
    Lost,
    /// What the server does differs from what was decided on this node's copy of its tables.
    #[error("this node's copy of the tables differs from the database: {0}")]
    Diverged(String),
    /// The node's turn has lasted too long.
    #[error("the turn of this node has lasted for more than {} s: its link to the database is too slow for this change", crate::shared::TURN_TIME_MAX.as_secs())]
    TurnOver,
    /// A column holds what none of this cloud's operations writes.
    #[error("column {column} of a row holds what does not belong there: {why}")]
    Column {
        /// Its place in the query, from 0.
        column: usize,
        /// What was found, or why it could not be read.
        why: String,
    },
    /// A text has the character U+0000.
    #[error("a text has the character U+0000")]
    Nul,
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
            Self::Diverged(_)
            | Self::TurnOver
            | Self::Postgres(_)
            | Self::Tls(_)
            | Self::NoHost(_)
            | Self::Slow(_)
            | Self::Lost
            | Self::NoRow
            | Self::Nul => false,
        }
    }

    /// Whether a statement was refused for the values in it, so that others may go on.
    pub(crate) fn is_of_values(&self) -> bool {
        // PostgreSQL's data exceptions (a text with a NUL), constraints, limits of the program (a key too long for its index).
        matches!(self, Self::Nul) || matches!(self.state().and_then(|state| state.get(..2)), Some("22" | "23" | "54"))
    }

    /// Whether a copy of the tables differs from the database.
    pub(crate) fn is_divergence(&self) -> bool {
        matches!(self, Self::Diverged(_)) || self.state() == Some(crate::shared::DIVERGED)
    }

    /// The SQLSTATE that PostgreSQL gave.
    pub(crate) fn state(&self) -> Option<&str> {
        match self {
            Self::Postgres(error) => error.code().map(|state| state.code()),
            _ => None,
        }
    }
}

/// The server's words where it has said something, or else why it is not reached.
fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refused) => match refused.hint() {
            Some(hint) => format!("{} (SQLSTATE {}; {hint})", refused.message(), refused.code().code()),
            None => format!("{} (SQLSTATE {})", refused.message(), refused.code().code()),
        },
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
