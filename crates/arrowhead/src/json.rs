//! JSON as existing clients send it: scalars stand for one another as upstream's parser (Jackson) lets them.
//!
//! A wrong type, and anything that is not JSON, is an error of the parser; the host answers it with an empty 400.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

/// A scalar as a text: numbers and booleans are taken by their usual spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, number or boolean")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Text, E> {
                Ok(Text(text))
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Text, E> {
                Ok(Text(flag.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A whole number: as such, as a text, or as a number whose fraction is cut. A blank text is absent.
struct Integer(Option<i64>);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntegerVisitor;
        impl Visitor<'_> for IntegerVisitor {
            type Value = Integer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }
            fn visit_i64<E>(self, number: i64) -> Result<Integer, E> {
                Ok(Integer(Some(number)))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Integer, E> {
                i64::try_from(number).map(|n| Integer(Some(n))).map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Integer, E> {
                // Every f64 of this magnitude and below has an exact i64.
                const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
                if number.abs() <= EXACT_MAX { Ok(Integer(Some(number as i64))) } else { Err(E::custom("number out of range")) }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Integer, E> {
                let text = text.trim();
                if text.is_empty() { Ok(Integer(None)) } else { text.parse().map(|n| Integer(Some(n))).map_err(E::custom) }
            }
        }
        deserializer.deserialize_any(IntegerVisitor)
    }
}

/// A boolean: as such, as the text `true` or `false`, or as a number (0 is false). A blank text is absent.
struct Flag(Option<bool>);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlagVisitor;
        impl Visitor<'_> for FlagVisitor {
            type Value = Flag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or false")
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Flag, E> {
                Ok(Flag(Some(flag)))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Flag, E> {
                Ok(Flag(Some(number != 0)))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Flag, E> {
                Ok(Flag(Some(number != 0)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Flag, E> {
                match text.trim() {
                    "" => Ok(Flag(None)),
                    "true" | "True" | "TRUE" => Ok(Flag(Some(true))),
                    "false" | "False" | "FALSE" => Ok(Flag(Some(false))),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(FlagVisitor)
    }
}

/// A JSON object as a `T`. (Derived structs would take an array of their members as well.)
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Parses a request body that must be an object.
pub fn parse_object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).map(|Object(value)| value)
}

/// Parses a request body that must be a list of objects; a `null` element is `None`.
pub fn parse_objects<'a, T: Deserialize<'a>>(text: &'a str) -> Result<Vec<Option<T>>, serde_json::Error> {
    let list: Vec<Option<Object<T>>> = serde_json::from_str(text)?;
    Ok(list.into_iter().map(|object| object.map(|object| object.0)).collect())
}

/// Parses a request body that must be a list of texts; a `null` element is `None`.
pub fn parse_texts(text: &str) -> Result<Vec<Option<String>>, serde_json::Error> {
    let list: Vec<Option<Text>> = serde_json::from_str(text)?;
    Ok(list.into_iter().map(|text| text.map(|text| text.0)).collect())
}

/// An optional object member.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|object| object.0))
}

/// An optional list of objects; a `null` element is `None`.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Vec<Option<T>>>, D::Error> {
    let list = Option::<Vec<Option<Object<T>>>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|object| object.map(|object| object.0)).collect()))
}

/// An optional text member.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.map(|text| text.0))
}

/// An optional list of texts; a `null` element is `None`.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Option<String>>>, D::Error> {
    let list = Option::<Vec<Option<Text>>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|text| text.map(|text| text.0)).collect()))
}

/// An optional map of texts; a `null` value is `None`.
pub(crate) fn text_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, Option<String>>>, D::Error> {
    let map = Option::<BTreeMap<String, Option<Text>>>::deserialize(deserializer)?;
    Ok(map.map(|map| map.into_iter().map(|(key, value)| (key, value.map(|value| value.0))).collect()))
}

/// An optional whole number.
pub(crate) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Integer>::deserialize(deserializer)?.and_then(|number| number.0))
}

/// An optional list of whole numbers; a `null` element is `None`.
pub(crate) fn integers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Option<i64>>>, D::Error> {
    let list = Option::<Vec<Option<Integer>>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|number| number.and_then(|number| number.0)).collect()))
}

/// An optional map of whole numbers by whole number; a `null` value is `None`.
pub(crate) fn integer_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<i64, Option<i64>>>, D::Error> {
    let map = Option::<BTreeMap<i64, Option<Integer>>>::deserialize(deserializer)?;
    Ok(map.map(|map| map.into_iter().map(|(key, value)| (key, value.and_then(|number| number.0))).collect()))
}

/// An optional boolean.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(Option::<Flag>::deserialize(deserializer)?.and_then(|flag| flag.0))
}

/// An optional map of booleans; a `null` value is `None`.
pub(crate) fn flag_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, Option<bool>>>, D::Error> {
    let map = Option::<BTreeMap<String, Option<Flag>>>::deserialize(deserializer)?;
    Ok(map.map(|map| map.into_iter().map(|(key, flag)| (key, flag.and_then(|flag| flag.0))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Form {
        #[serde(default, deserialize_with = "text")]
        name: Option<String>,
        #[serde(default, deserialize_with = "integer")]
        port: Option<i64>,
        #[serde(default, deserialize_with = "flag")]
        ping: Option<bool>,
    }

    fn check(json: &str, expected: Option<(Option<&str>, Option<i64>, Option<bool>)>) {
        let parsed = parse_object::<Form>(json).ok();
        assert_eq!(parsed.as_ref().map(|form| (form.name.as_deref(), form.port, form.ping)), expected, "{json}");
    }

    #[test]
    fn scalars_stand_for_one_another() {
        check(r#"{"name":"a","port":8080,"ping":true}"#, Some((Some("a"), Some(8080), Some(true))));
        check(r#"{"name":7,"port":"8080","ping":"false"}"#, Some((Some("7"), Some(8080), Some(false))));
        check(r#"{"name":true,"port":8080.9,"ping":0}"#, Some((Some("true"), Some(8080), Some(false))));
        check(r#"{"name":null,"port":"","ping":null,"unknown":[{}]}"#, Some((None, None, None)));
        check("{}", Some((None, None, None)));
    }

    #[test]
    fn wrong_types_are_refused() {
        for bad in [
            r#"{"name":[]}"#,
            r#"{"name":{}}"#,
            r#"{"port":"x"}"#,
            r#"{"port":[1]}"#,
            r#"{"ping":"yes"}"#,
            r#"{"port":1e30}"#,
            "[]",
            "1",
            "{",
            "",
        ] {
            check(bad, None);
        }
    }
}
