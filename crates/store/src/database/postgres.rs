//! Values and rows of PostgreSQL: integers are 64 bits wide, truths are truths, texts are in the order of their bytes.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::{DatabaseError, DatabaseResult, Value};

/// A value as the parameter's type wants it, which the server has said.
impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(value) => value.to_sql_checked(kind, out),
            Self::Integer(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            // SQLite keeps truths so.
            Self::Integer(value) if *kind == Type::BOOL => (*value != 0).to_sql(kind, out),
            Self::Integer(value) => value.to_sql_checked(kind, out),
            Self::Text(text) => (&**text).to_sql_checked(kind, out),
            Self::Bytes(bytes) => bytes.to_sql_checked(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// An integer of any width.
pub(crate) struct Whole(i64);

impl<'r> FromSql<'r> for Whole {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT2 => i16::from_sql(kind, raw)?.into(),
            Type::INT4 => i32::from_sql(kind, raw)?.into(),
            _ => i64::from_sql(kind, raw)?,
        }))
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT2 | Type::INT4 | Type::INT8)
    }
}

/// What a column may be read as, in either database.
pub(crate) trait Column: rusqlite::types::FromSql {
    /// Reads it from a row of PostgreSQL.
    fn of(row: &Row, column: usize) -> DatabaseResult<Self>;
}

/// A column that is not null.
fn present<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> DatabaseResult<T> {
    row.try_get::<_, Option<T>>(column)?.ok_or_else(|| DatabaseError::column(column, "nothing, where something has to be"))
}

/// A text, lent by its row.
pub(super) fn text(row: &Row, column: usize) -> DatabaseResult<&str> {
    present(row, column)
}

macro_rules! integers {
    ($($integer:ty),+) => {
        $(impl Column for $integer {
            fn of(row: &Row, column: usize) -> DatabaseResult<Self> {
                let Whole(value) = present(row, column)?;
                value.try_into().map_err(|error| DatabaseError::column(column, error))
            }
        })+
    };
}
integers!(u8, u16, i32, u32, i64);

impl Column for bool {
    fn of(row: &Row, column: usize) -> DatabaseResult<Self> {
        present(row, column)
    }
}

impl Column for String {
    fn of(row: &Row, column: usize) -> DatabaseResult<Self> {
        present(row, column)
    }
}

impl<const BYTES: usize> Column for [u8; BYTES] {
    fn of(row: &Row, column: usize) -> DatabaseResult<Self> {
        let bytes: &[u8] = present(row, column)?;
        bytes.try_into().map_err(|error| DatabaseError::column(column, error))
    }
}

/// A null of any type.
struct Whatever;

impl<'r> FromSql<'r> for Whatever {
    fn from_sql(_: &Type, _: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl<T: Column> Column for Option<T> {
    fn of(row: &Row, column: usize) -> DatabaseResult<Self> {
        match row.try_get::<_, Option<Whatever>>(column)? {
            None => Ok(None),
            Some(Whatever) => T::of(row, column).map(Some),
        }
    }
}
