//! What the bytes of an event are: points of one type, little-endian, so many of them.

use std::{fmt, str::FromStr};

/// The type of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// 0 to 255.
    U8,
    /// Two bytes with a sign.
    I16,
    /// Four bytes with a sign.
    I32,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Two of `f64`: real part, imaginary part.
    Complex128,
    /// A byte of a JSON text.
    Json,
    /// A byte of which nothing is known.
    Bytes,
}

impl Element {
    /// All, in the order of their names' table.
    pub const ALL: [Self; 8] = [Self::U8, Self::I16, Self::I32, Self::F32, Self::F64, Self::Complex128, Self::Json, Self::Bytes];

    /// As it is written in a graph file.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Complex128 => "complex128",
            Self::Json => "json",
            Self::Bytes => "bytes",
        }
    }

    /// Bytes of one point.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::U8 | Self::Json | Self::Bytes => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// Whether a point is one real number.
    pub fn is_real(self) -> bool {
        matches!(self, Self::U8 | Self::I16 | Self::I32 | Self::F32 | Self::F64)
    }

    /// Appends the points of a payload as real numbers: one a point, of complex ones two (real part, imaginary part). Bytes behind the last whole
    /// point are passed over: who takes events in looks at their length first ([`Shape::fits`]).
    pub fn read(self, payload: &[u8], points: &mut Vec<f64>) {
        match self {
            Self::U8 | Self::Json | Self::Bytes => points.extend(payload.iter().map(|byte| f64::from(*byte))),
            Self::I16 => points.extend(payload.as_chunks().0.iter().map(|bytes| f64::from(i16::from_le_bytes(*bytes)))),
            Self::I32 => points.extend(payload.as_chunks().0.iter().map(|bytes| f64::from(i32::from_le_bytes(*bytes)))),
            Self::F32 => points.extend(payload.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)))),
            Self::F64 | Self::Complex128 => points.extend(payload.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))),
        }
    }
}

/// How many points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Count {
    /// Always so many.
    Exactly(u32),
    /// From none to so many.
    AtMost(u32),
}

/// Type and number of an event's points. Written `f64[512]`, `json[<=4096]`; one point is written `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    element: Element,
    count: Count,
}

/// Why there is no such shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Not of the form.
    #[error("must be a type with a number of points, such as \"f64\", \"u8[512]\" or \"json[<=4096]\"")]
    NotAShape,
    /// No such type.
    #[error("must be points of u8, i16, i32, f32, f64, complex128, json or bytes")]
    NoSuchElement,
    /// Without a point, or with too many.
    #[error("must have 1 point at least and {} bytes at most", Shape::BYTES_MAX)]
    Outside,
}

impl Shape {
    /// Longest payload of any shape.
    pub const BYTES_MAX: usize = 1 << 20;

    /// A shape of at least one point and at most [`Self::BYTES_MAX`] bytes.
    pub fn new(element: Element, count: Count) -> Result<Self, ShapeError> {
        let (Count::Exactly(points) | Count::AtMost(points)) = count;
        let bytes = (points as usize).saturating_mul(element.size_bytes());
        if points == 0 || bytes > Self::BYTES_MAX { Err(ShapeError::Outside) } else { Ok(Self { element, count }) }
    }

    /// One real number.
    pub const NUMBER: Self = Self { element: Element::F64, count: Count::Exactly(1) };

    /// The type of its points.
    pub fn element(self) -> Element {
        self.element
    }

    /// How many points there are.
    pub fn count(self) -> Count {
        self.count
    }

    /// Most points that there are.
    pub fn points_max(self) -> usize {
        let (Count::Exactly(points) | Count::AtMost(points)) = self.count;
        points as usize
    }

    /// Longest payload.
    pub fn bytes_max(self) -> usize {
        self.points_max() * self.element.size_bytes()
    }

    /// Whether a payload of so many bytes has this shape.
    pub fn fits(self, bytes: usize) -> bool {
        match self.count {
            Count::Exactly(_) => bytes == self.bytes_max(),
            Count::AtMost(_) => bytes <= self.bytes_max() && bytes.is_multiple_of(self.element.size_bytes()),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = self.element.name();
        match self.count {
            Count::Exactly(1) => f.pad(element),
            Count::Exactly(points) => f.pad(&format!("{element}[{points}]")),
            Count::AtMost(points) => f.pad(&format!("{element}[<={points}]")),
        }
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let (name, count) = match text.split_once('[') {
            None => (text, Count::Exactly(1)),
            Some((name, rest)) => {
                let digits = rest.strip_suffix(']').ok_or(ShapeError::NotAShape)?;
                let (digits, is_exact) = digits.strip_prefix("<=").map_or((digits, true), |digits| (digits, false));
                let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
                let points = if is_number { digits.parse().unwrap_or(u32::MAX) } else { return Err(ShapeError::NotAShape) };
                (name, if is_exact { Count::Exactly(points) } else { Count::AtMost(points) })
            }
        };
        let element = Element::ALL.into_iter().find(|element| element.name() == name).ok_or(ShapeError::NoSuchElement)?;
        Self::new(element, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_is_written() {
        for text in ["f64", "u8[512]", "json[<=4096]", "complex128[65536]", "bytes[<=1]", "i16[2]", "i32", "f32[3]"] {
            assert_eq!(text.parse::<Shape>().map(|shape| shape.to_string()), Ok(text.to_owned()));
        }
        let wrong = [
            ("f64[0]", ShapeError::Outside),
            ("u8[1048577]", ShapeError::Outside),
            ("u8[99999999999999999999]", ShapeError::Outside),
            ("u16[2]", ShapeError::NoSuchElement),
            ("", ShapeError::NoSuchElement),
            ("f64[", ShapeError::NotAShape),
            ("f64[]", ShapeError::NotAShape),
            ("f64[+1]", ShapeError::NotAShape),
            ("f64[<=]", ShapeError::NotAShape),
            ("f64[1] ", ShapeError::NotAShape),
        ];
        for (text, error) in wrong {
            assert_eq!(text.parse::<Shape>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_payload_of_another_length_does_not_fit() {
        let fits = |text: &str, bytes| text.parse::<Shape>().expect("it is one").fits(bytes);
        assert!(fits("f64[2]", 16) && !fits("f64[2]", 8) && !fits("f64[2]", 17));
        assert!(fits("i16[<=2]", 0) && fits("i16[<=2]", 4) && !fits("i16[<=2]", 3) && !fits("i16[<=2]", 6));
    }

    #[test]
    fn points_are_read_little_endian() {
        let read = |element: Element, payload: &[u8]| {
            let mut points = Vec::new();
            element.read(payload, &mut points);
            points
        };
        assert_eq!(read(Element::U8, &[0, 255]), [0.0, 255.0]);
        assert_eq!(read(Element::I16, &[0xFE, 0xFF, 1, 0, 9]), [-2.0, 1.0]);
        assert_eq!(read(Element::I32, &(-7i32).to_le_bytes()), [-7.0]);
        assert_eq!(read(Element::F32, &1.5f32.to_le_bytes()), [1.5]);
        assert_eq!(read(Element::Complex128, &[1f64.to_le_bytes(), (-2f64).to_le_bytes()].concat()), [1.0, -2.0]);
    }
}
