//! Values of a statement's parameters.

use std::borrow::Cow;

use rusqlite::{
    ToSql,
    types::{ToSqlOutput, ValueRef},
};

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'p> {
    Null,
    /// A truth; SQLite keeps it as 0 or 1.
    Bool(bool),
    Integer(i64),
    Text(Cow<'p, str>),
    Bytes(Vec<u8>),
}

impl Value<'_> {
    /// Whether it is a text with the character U+0000.
    pub fn has_nul(&self) -> bool {
        matches!(self, Self::Text(text) if text.contains('\0'))
    }
}

/// The values of a statement, in the order of its parameters: an array, or `()` where it has none.
pub(crate) trait Parameters<'p> {
    fn values(self) -> impl IntoIterator<Item = Value<'p>>;
}

impl<'p, T: Into<Value<'p>>, const N: usize> Parameters<'p> for [T; N] {
    fn values(self) -> impl IntoIterator<Item = Value<'p>> {
        self.map(T::into)
    }
}

impl<'p> Parameters<'p> for Vec<Value<'p>> {
    fn values(self) -> impl IntoIterator<Item = Value<'p>> {
        self
    }
}

impl<'p> Parameters<'p> for () {
    fn values(self) -> impl IntoIterator<Item = Value<'p>> {
        [] as [Value<'p>; 0]
    }
}

/// An array of values of different types.
macro_rules! params {
    ($($value:expr),+ $(,)?) => {
        [$($crate::database::Value::from($value)),+]
    };
}
pub(crate) use params;

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Bool(value) => ValueRef::Integer((*value).into()),
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

macro_rules! integers {
    ($($integer:ty),+) => {
        $(impl From<$integer> for Value<'_> {
            fn from(value: $integer) -> Self {
                Self::Integer(value.into())
            }
        })+
    };
}
integers!(u8, u16, i32, u32, i64);

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'p> From<&'p str> for Value<'p> {
    fn from(value: &'p str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'p> From<&'p String> for Value<'p> {
    fn from(value: &'p String) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<const BYTES: usize> From<[u8; BYTES]> for Value<'_> {
    fn from(value: [u8; BYTES]) -> Self {
        Self::Bytes(value.into())
    }
}

impl<'p, T: Into<Value<'p>>> From<Option<T>> for Value<'p> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}
