//! Fields: how a value of each type is written and read.

use crate::{
    epoch::{Epoch, Node, PairId},
    event::{Incarnation, PublisherId, Sequence},
};

/// The version that every frame begins with.
pub const VERSION: u8 = 1;
/// Longest text, in bytes: four for each of the 255 characters that a name may have, and a few words for a reason.
pub const TEXT_BYTES_MAX: usize = 1024;

/// What is wrong with a peer's bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame ends in the middle of a field.
    #[error("the frame ends within {field}: {expected} bytes expected, {found} found")]
    Short {
        /// Which field.
        field: &'static str,
        /// Bytes that it takes.
        expected: usize,
        /// Bytes that are left.
        found: usize,
    },
    /// Something follows the last field.
    #[error("{0} bytes follow the frame's last field: none expected")]
    Trailing(usize),
    /// Another version's frame.
    #[error("version {VERSION} expected, {0} found: agree on a version in the greeting")]
    Version(u8),
    /// A kind that there is not, or not on this connection.
    #[error("kind {found} is no kind of {expected}")]
    Kind {
        /// Which frames are expected.
        expected: &'static str,
        /// The kind byte.
        found: u8,
    },
    /// A field has a value that it may not have.
    #[error("{field} has the value {found}: {expected} expected")]
    Value {
        /// Which field.
        field: &'static str,
        /// What it may have.
        expected: &'static str,
        /// What it has.
        found: u64,
    },
    /// A text that is not UTF-8.
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    /// A length or count beyond its limit.
    #[error("{field} has the length {found}: at most {limit} allowed")]
    Long {
        /// Of what.
        field: &'static str,
        /// Its limit.
        limit: usize,
        /// Its length.
        found: usize,
    },
}

/// What is left of a frame.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], WireError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(WireError::Short { field, expected: length, found: self.rest.len() });
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self, field: &'static str) -> Result<[u8; LENGTH], WireError> {
        Ok(self.take(field, LENGTH)?.try_into().expect("as many bytes were taken"))
    }

    /// Reads the version, which has to be ours.
    pub fn version(&mut self) -> Result<(), WireError> {
        match u8::read(self, "version")? {
            VERSION => Ok(()),
            found => Err(WireError::Version(found)),
        }
    }

    /// The frame has to be over.
    pub fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing(self.rest.len())) }
    }
}

/// A value on the wire.
pub(crate) trait Field<'a>: Sized {
    fn write(&self, bytes: &mut Vec<u8>);
    fn read(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, WireError>;
    /// As the vectors have it.
    #[cfg(test)]
    fn json(&self) -> serde_json::Value;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Field<'_> for $type {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }

            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, WireError> {
                Ok(Self::from_be_bytes(reader.array(field)?))
            }

            #[cfg(test)]
            fn json(&self) -> serde_json::Value {
                (*self).into()
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

/// Types around one integer that may have any value.
macro_rules! newtypes {
    ($($type:ident),*) => {$(
        impl Field<'_> for $type {
            fn write(&self, bytes: &mut Vec<u8>) {
                self.0.write(bytes);
            }

            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, WireError> {
                Field::read(reader, field).map(Self)
            }

            #[cfg(test)]
            fn json(&self) -> serde_json::Value {
                self.0.into()
            }
        }
    )*};
}
pub(super) use newtypes;

newtypes!(Epoch, Incarnation, PairId, PublisherId, Sequence);

/// Enumerations that are one byte.
macro_rules! codes {
    ($type:ident: $expected:literal, $($code:literal => $variant:ident),* $(,)?) => {
        impl Field<'_> for $type {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.push(match self { $(Self::$variant => $code),* });
            }

            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, WireError> {
                match u8::read(reader, field)? {
                    $($code => Ok(Self::$variant),)*
                    found => Err(WireError::Value { field, expected: $expected, found: found.into() }),
                }
            }

            #[cfg(test)]
            fn json(&self) -> serde_json::Value {
                match self { $(Self::$variant => stringify!($variant)),* }.into()
            }
        }
    };
}
pub(super) use codes;

codes!(Node: "1 (first), 2 (second) or 3 (witness)", 1 => First, 2 => Second, 3 => Witness);

impl Field<'_> for bool {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, WireError> {
        match u8::read(reader, field)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(WireError::Value { field, expected: "0 or 1", found: found.into() }),
        }
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        (*self).into()
    }
}

/// One byte that says whether there is a value, then the value if there is one.
impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.is_some().write(bytes);
        if let Some(value) = self {
            value.write(bytes);
        }
    }

    fn read(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, WireError> {
        if bool::read(reader, field)? { T::read(reader, field).map(Some) } else { Ok(None) }
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        self.as_ref().map(Field::json).into()
    }
}

/// A text: its length in two bytes, then UTF-8. A longer one than [`TEXT_BYTES_MAX`] cannot be written: names were checked where they came in.
impl<'a> Field<'a> for &'a str {
    fn write(&self, bytes: &mut Vec<u8>) {
        assert!(self.len() <= TEXT_BYTES_MAX, "a text of {} bytes for the wire, where {TEXT_BYTES_MAX} are allowed", self.len());
        (self.len() as u16).write(bytes);
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, WireError> {
        let length = usize::from(u16::read(reader, field)?);
        if length > TEXT_BYTES_MAX {
            return Err(WireError::Long { field, limit: TEXT_BYTES_MAX, found: length });
        }
        std::str::from_utf8(reader.take(field, length)?).map_err(|_| WireError::Text(field))
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        (*self).into()
    }
}

/// Bytes to the frame's end: only as the last field.
impl<'a> Field<'a> for &'a [u8] {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, WireError> {
        reader.take(field, reader.rest.len())
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        super::vectors::hex(self).into()
    }
}

/// A set of frames that share a connection: the enumeration, and both directions of its codec from the one list of fields.
macro_rules! frames {
    (
        $(#[$about:meta])*
        pub enum $name:ident $(<$life:lifetime>)? : $expected:literal {
            $( $(#[$doc:meta])* $kind:literal => $variant:ident { $( $(#[$field_doc:meta])* $field:ident: $type:ty, )* } )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name $(<$life>)? {
            $( $(#[$doc])* $variant {
                /// The highest epoch that the sender knows, its own if it leads.
                epoch: Epoch,
                $( $(#[$field_doc])* $field: $type, )*
            }, )*
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The sender's epoch, which every frame has.
            pub fn epoch(&self) -> Epoch {
                match self { $( Self::$variant { epoch, .. } => *epoch, )* }
            }

            /// Appends the frame.
            pub fn encode(&self, bytes: &mut Vec<u8>) {
                VERSION.write(bytes);
                match self {
                    $( Self::$variant { epoch, $($field,)* } => {
                        bytes.push($kind);
                        epoch.write(bytes);
                        $( $field.write(bytes); )*
                    } )*
                }
            }

            /// Reads one whole frame. The peer's mistakes are errors; a valid frame has exactly one form.
            pub fn decode(bytes: & $($life)? [u8]) -> Result<Self, WireError> {
                let mut reader = Reader::new(bytes);
                reader.version()?;
                let frame = match u8::read(&mut reader, "kind")? {
                    $( $kind => Self::$variant {
                        epoch: Field::read(&mut reader, "epoch")?,
                        $( $field: Field::read(&mut reader, stringify!($field))?, )*
                    }, )*
                    found => return Err(WireError::Kind { expected: $expected, found }),
                };
                reader.end()?;
                Ok(frame)
            }

            #[cfg(test)]
            pub(super) fn json(&self) -> serde_json::Value {
                match self {
                    $( Self::$variant { epoch, $($field,)* } => serde_json::json!({
                        "frame": stringify!($variant), "epoch": epoch.json(), $( stringify!($field): $field.json(), )*
                    }), )*
                }
            }
        }
    };
}
pub(super) use frames;
