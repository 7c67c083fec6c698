//! How the events of a graph are written where they are texts: payloads of topics are UTF-8 (`docs/formats/graphs.md`).

use std::fmt::Write;

use bodkin_broker::graph::{Count, Element, Shape};
use serde::{
    Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::base64;

/// How points are written. JSON is always its own text, and bytes are always Base64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As JSON: a number, or an array of numbers where there may be another number of points than one. Of a complex point two numbers. What is no finite number is `null`, which is read as NaN.
    #[default]
    Numbers,
    /// The payload's bytes as Base64.
    Base64,
}

impl Form {
    /// As a graph file names them.
    pub(crate) const NAMES: [(&str, Self); 2] = [("numbers", Self::Numbers), ("base64", Self::Base64)];
}

/// How the topics of a graph write its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forms {
    /// Of each supplier.
    pub suppliers: Vec<Form>,
    /// Of each output.
    pub outputs: Vec<Form>,
}

/// A text that is no event of its shape's type. How many points there are is not looked at.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// It should be Base64.
    #[error("the payload is not Base64 with padding")]
    Base64,
    /// It should be numbers.
    #[error("the payload is no JSON number, or array of them: {0}")]
    Numbers(serde_json::Error),
}

impl Form {
    /// Appends the payload of a text.
    pub fn read(self, shape: Shape, text: &str, payload: &mut Vec<u8>) -> Result<(), TextError> {
        match (shape.element(), self) {
            (Element::Json, _) => payload.extend_from_slice(text.as_bytes()),
            (Element::Bytes, _) | (_, Self::Base64) => {
                return if base64::read(text.trim(), payload) { Ok(()) } else { Err(TextError::Base64) };
            }
            (element, Self::Numbers) => return read_numbers(element, text, payload).map_err(TextError::Numbers),
        }
        Ok(())
    }

    /// Appends the text of a payload of this shape.
    pub fn write(self, shape: Shape, payload: &[u8], text: &mut String) {
        match (shape.element(), self) {
            (Element::Json, _) => text.push_str(&String::from_utf8_lossy(payload)),
            (Element::Bytes, _) | (_, Self::Base64) => base64::write(payload, text),
            (element, Self::Numbers) if is_one(shape) => write_number(element, payload, text),
            (element, Self::Numbers) => {
                text.push('[');
                for (at, number) in payload.chunks_exact(number_bytes(element)).enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    write_number(element, number, text);
                }
                text.push(']');
            }
        }
    }

    /// Length of the longest text of any event of a shape.
    pub fn bytes_max(self, shape: Shape) -> usize {
        match (shape.element(), self) {
            (Element::Json, _) => shape.bytes_max(),
            (Element::Bytes, _) | (_, Self::Base64) => shape.bytes_max().div_ceil(3) * 4,
            // Each number with a comma, or the closing bracket, behind it.
            (element, Self::Numbers) => 1 + shape.bytes_max() / number_bytes(element) * (number_text_max(element) + 1),
        }
    }
}

/// Whether events of a shape are one number, without brackets.
fn is_one(shape: Shape) -> bool {
    shape.count() == Count::Exactly(1) && shape.element() != Element::Complex128
}

/// Bytes of one number: half a point of a complex type.
fn number_bytes(element: Element) -> usize {
    if element == Element::Complex128 { 8 } else { element.size_bytes() }
}

/// Longest text of a number.
fn number_text_max(element: Element) -> usize {
    match element {
        Element::U8 | Element::Json | Element::Bytes => "null".len(),
        Element::I16 => "-32768".len(),
        Element::I32 => "-2147483648".len(),
        Element::F32 => "-1.17549435e-38".len(),
        Element::F64 | Element::Complex128 => "-2.2250738585072014e-308".len(),
    }
}

fn write_number(element: Element, bytes: &[u8], text: &mut String) {
    const TAKES: &str = "a text takes everything";
    const WHOLE: &str = "a payload has whole points";
    match element {
        Element::I16 => write!(text, "{}", i16::from_le_bytes(bytes.try_into().expect(WHOLE))).expect(TAKES),
        Element::I32 => write!(text, "{}", i32::from_le_bytes(bytes.try_into().expect(WHOLE))).expect(TAKES),
        Element::F32 => match f32::from_le_bytes(bytes.try_into().expect(WHOLE)) {
            // The shortest digits that are read as the same number, with an exponent where it is far from 1.
            number if number.is_finite() => write!(text, "{number:?}").expect(TAKES),
            _ => text.push_str("null"),
        },
        Element::F64 | Element::Complex128 => match f64::from_le_bytes(bytes.try_into().expect(WHOLE)) {
            number if number.is_finite() => write!(text, "{number:?}").expect(TAKES),
            _ => text.push_str("null"),
        },
        Element::U8 | Element::Json | Element::Bytes => write!(text, "{}", bytes[0]).expect(TAKES),
    }
}

/// Appends a number that is written as JSON. Numbers are read as the nearest that there is, so that what was written is read again.
fn read_number(element: Element, number: &str, payload: &mut Vec<u8>) -> Result<(), String> {
    let is_number = number.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let no_number = || format!("{number} is no number of {}", element.name());
    let whole = || number.parse::<i64>().map_err(|_| no_number());
    match element {
        Element::U8 | Element::Json | Element::Bytes => payload.push(u8::try_from(whole()?).map_err(|_| no_number())?),
        Element::I16 => payload.extend_from_slice(&i16::try_from(whole()?).map_err(|_| no_number())?.to_le_bytes()),
        Element::I32 => payload.extend_from_slice(&i32::try_from(whole()?).map_err(|_| no_number())?.to_le_bytes()),
        Element::F32 | Element::F64 | Element::Complex128 if !is_number && number != "null" => return Err(no_number()),
        Element::F32 => payload.extend_from_slice(&number.parse().unwrap_or(f32::NAN).to_le_bytes()),
        Element::F64 | Element::Complex128 => payload.extend_from_slice(&number.parse().unwrap_or(f64::NAN).to_le_bytes()),
    }
    Ok(())
}

/// Reads an array of numbers.
struct Array<'p> {
    element: Element,
    payload: &'p mut Vec<u8>,
}

impl<'de> Visitor<'de> for Array<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an array of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<(), A::Error> {
        while let Some(number) = numbers.next_element::<&RawValue>()? {
            read_number(self.element, number.get(), self.payload).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

fn read_numbers(element: Element, text: &str, payload: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    if text.trim_start().starts_with('[') {
        let mut json = serde_json::Deserializer::from_str(text);
        json.deserialize_seq(Array { element, payload })?;
        return json.end();
    }
    let number: &RawValue = serde_json::from_str(text)?;
    read_number(element, number.get(), payload).map_err(serde_json::Error::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(text: &str) -> Shape {
        text.parse().expect("it is a shape")
    }

    fn read(of: &str, form: Form, text: &str) -> Result<Vec<u8>, String> {
        let mut payload = Vec::new();
        form.read(shape(of), text, &mut payload).map(|()| payload).map_err(|error| error.to_string())
    }

    fn written(of: &str, form: Form, payload: &[u8]) -> String {
        let mut text = String::new();
        form.write(shape(of), payload, &mut text);
        text
    }

    #[test]
    fn texts_and_payloads() {
        let doubles = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        let rows: &[(&str, Form, &str, Vec<u8>)] = &[
            ("f64", Form::Numbers, "21.5", doubles(&[21.5])),
            ("f64[2]", Form::Numbers, "[1.0,-2e-9]", doubles(&[1.0, -2e-9])),
            ("f64[<=3]", Form::Numbers, "[]", vec![]),
            ("f64[1]", Form::Numbers, "1e300", doubles(&[1e300])),
            ("complex128", Form::Numbers, "[0.0,1.0]", doubles(&[0.0, 1.0])),
            ("u8[3]", Form::Numbers, "[0,7,255]", vec![0, 7, 255]),
            ("i16", Form::Numbers, "-2", vec![0xfe, 0xff]),
            ("i32", Form::Numbers, "70000", 70_000i32.to_le_bytes().to_vec()),
            ("f32", Form::Numbers, "0.1", 0.1f32.to_le_bytes().to_vec()),
            ("u8[3]", Form::Base64, "AAf/", vec![0, 7, 255]),
            ("bytes[<=9]", Form::Numbers, "Zm8=", b"fo".to_vec()),
            ("json[<=9]", Form::Base64, "{\"a\":1}", b"{\"a\":1}".to_vec()),
        ];
        for (of, form, text, payload) in rows {
            assert_eq!(read(of, *form, text).as_ref(), Ok(payload), "{of} {text}");
            assert_eq!(&written(of, *form, payload), text, "{of}");
        }
    }

    #[test]
    fn what_is_no_number_is_null_and_wrong_texts_are_told() {
        let nan = read("f64", Form::Numbers, "null").expect("NaN");
        assert!(f64::from_le_bytes(nan.clone().try_into().expect("one number")).is_nan());
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(written("f64", Form::Numbers, &number.to_le_bytes()), "null");
        }
        let wrong = [
            ("f64", "hot", "expected value"),
            ("f64", "\"1\"", "is no number of f64"),
            ("f64[4]", "[1,[1]]", "[1] is no number of f64"),
            ("f64[4]", "[1", "EOF"),
            ("f64[4]", "[1] 2", "trailing characters"),
            ("f64", "1 2", "trailing characters"),
            ("u8", "256", "256 is no number of u8"),
            ("i16", "1.5", "1.5 is no number of i16"),
            ("u8", "null", "null is no number of u8"),
            ("i32", "-1e99", "-1e99 is no number of i32"),
            ("f64", "", "EOF"),
            ("bytes[9]", "Zm8", "not Base64"),
        ];
        for (of, text, told) in wrong {
            let error = read(of, Form::Numbers, text).expect_err(text);
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(numbers in prop::collection::vec(any::<f64>(), 0..20), small in prop::collection::vec(any::<f32>(), 0..20)) {
            let payload: Vec<u8> = numbers.iter().map(|number| if number.is_finite() { *number } else { 0.5 }).flat_map(f64::to_le_bytes).collect();
            let text = written("f64[<=20]", Form::Numbers, &payload);
            prop_assert_eq!(read("f64[<=20]", Form::Numbers, &text), Ok(payload));
            prop_assert!(text.len() <= Form::Numbers.bytes_max(shape("f64[<=20]")));
            let payload: Vec<u8> = small.iter().map(|number| if number.is_finite() { *number } else { 0.5 }).flat_map(f32::to_le_bytes).collect();
            let text = written("f32[<=20]", Form::Numbers, &payload);
            prop_assert_eq!(read("f32[<=20]", Form::Numbers, &text), Ok(payload));
            prop_assert!(text.len() <= Form::Numbers.bytes_max(shape("f32[<=20]")));
        }

        #[test]
        fn no_text_is_longer_than_is_said(payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let whole = |of: &str| payload.len() / shape(of).element().size_bytes() * shape(of).element().size_bytes();
            for of in ["u8[<=64]", "i16[<=32]", "i32[<=16]", "f32[<=16]", "f64[<=8]", "complex128[<=4]", "bytes[<=64]"] {
                for form in [Form::Numbers, Form::Base64] {
                    prop_assert!(written(of, form, &payload[..whole(of)]).len() <= form.bytes_max(shape(of)), "{of}");
                }
            }
        }
    }
}
