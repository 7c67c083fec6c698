//! Metadata: string to string maps on systems, services, events and filters.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::error::ArrowheadError;

/// A metadata map as a request gave it; Jackson's scalars are already texts, a `null` value is `None`.
pub type MetadataForm = BTreeMap<String, Option<String>>;

/// Bytes of keys and values in the metadata of one row.
pub const BYTES_MAX: usize = 16 << 10;

/// A stored map, shared by every snapshot that holds it. An empty map is kept apart from an absent one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(Arc<BTreeMap<String, String>>);

impl Metadata {
    /// Takes a request's map.
    ///
    /// # Errors
    /// Returns BAD_PAYLOAD for keys and values of more than [`BYTES_MAX`] together, and for a line end or U+0000 in them. A `null` value is
    /// refused as upstream's database layer does (500).
    pub fn parse(form: MetadataForm, origin: &str) -> Result<Self, ArrowheadError> {
        let metadata = Self::parse_filter(form, origin)?;
        let has_control = |text: &String| text.contains(['\r', '\n', '\0']);
        match metadata.0.iter().find(|(key, value)| has_control(key) || has_control(value)) {
            Some((key, _)) => {
                let told = format!("Metadata: the pair with the key {key:?} has a line end or the character U+0000.");
                Err(ArrowheadError::bad_payload(told, origin))
            }
            None => Ok(metadata),
        }
    }

    /// As [`Self::parse`] for a member that may be absent.
    pub fn parse_optional(form: Option<MetadataForm>, origin: &str) -> Result<Option<Self>, ArrowheadError> {
        form.map(|form| Self::parse(form, origin)).transpose()
    }

    /// As [`Self::parse`] for pairs that events are compared with, whose texts may have any character.
    pub fn parse_filter(form: MetadataForm, origin: &str) -> Result<Self, ArrowheadError> {
        let bytes: usize = form.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, String::len)).sum();
        if bytes > BYTES_MAX {
            let told = format!("Metadata has {bytes} bytes of keys and values; at most {BYTES_MAX} are accepted.");
            return Err(ArrowheadError::bad_payload(told, origin));
        }
        let pairs = form.into_iter().map(|(key, value)| Some((key, value?)));
        Ok(Self(Arc::new(pairs.collect::<Option<_>>().ok_or_else(ArrowheadError::database)?)))
    }

    /// These pairs, and those of `other` whose keys are not among them.
    pub fn over(&self, other: Option<&Self>) -> Self {
        let below = other.into_iter().flat_map(|other| other.pairs());
        below.chain(self.pairs()).map(|(key, value)| (key.clone(), value.clone())).collect::<BTreeMap<_, _>>().into()
    }

    /// The pairs.
    pub fn pairs(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl From<BTreeMap<String, String>> for Metadata {
    fn from(pairs: BTreeMap<String, String>) -> Self {
        Self(Arc::new(pairs))
    }
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(&self.0))
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Pairs a provider's metadata must contain: keys and values trimmed (reference 3.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataRequirement(BTreeMap<String, String>);

impl From<&Metadata> for MetadataRequirement {
    fn from(metadata: &Metadata) -> Self {
        Self(metadata.pairs().iter().map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect())
    }
}

impl MetadataRequirement {
    /// Keys that differ only in white space are refused. A pair with the value `null` requires nothing, as upstream has it.
    pub fn parse(form: &MetadataForm, origin: &str) -> Result<Self, ArrowheadError> {
        let mut pairs = BTreeMap::new();
        for (key, value) in form {
            let Some(value) = value else { continue };
            if pairs.insert(key.trim().to_owned(), value.trim().to_owned()).is_some() {
                return Err(ArrowheadError::bad_payload(format!("Metadata key '{}' is duplicated.", key.trim()), origin));
            }
        }
        Ok(Self(pairs))
    }

    /// Whether `metadata` has every required pair.
    pub fn met_by(&self, metadata: Option<&Metadata>) -> bool {
        self.0.iter().all(|(key, value)| metadata.and_then(|m| m.pairs().get(key)).is_some_and(|found| found.trim() == value))
    }
}

impl fmt::Display for MetadataRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(&self.0))
    }
}

/// `a=1, b=2`.
fn told(pairs: &BTreeMap<String, String>) -> String {
    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(pairs: &BTreeMap<String, String>) -> MetadataForm {
        pairs.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect()
    }

    #[test]
    fn keys_that_differ_only_in_white_space_are_refused() {
        let twice = BTreeMap::from([("unit".into(), "C".into()), (" unit ".into(), "C".into())]);
        assert!(MetadataRequirement::parse(&form(&twice), "/q").is_err());
    }

    #[test]
    fn a_null_value_breaks_the_request() {
        let broken = MetadataForm::from([("unit".into(), None)]);
        assert_eq!(Metadata::parse(broken, "/q").unwrap_err(), ArrowheadError::database());
    }

    #[test]
    fn null_requirement_requires_nothing() {
        let required = MetadataForm::from([("unit".into(), None), ("room".into(), Some("7".into()))]);
        let requirement = MetadataRequirement::parse(&required, "/q").unwrap();
        assert!(requirement.met_by(Some(&BTreeMap::from([("room".to_owned(), "7".to_owned())]).into())));
        assert!(!requirement.met_by(Some(&BTreeMap::from([("unit".to_owned(), "C".to_owned())]).into())));
    }

    #[test]
    fn metadata_of_a_row_has_a_size_and_no_line_ends() {
        let pair = |key: &str, value: String| MetadataForm::from([(key.to_owned(), Some(value))]);
        assert!(Metadata::parse(pair("k", "x".repeat(BYTES_MAX - 1)), "/q").is_ok());
        let error = Metadata::parse(pair("k", "x".repeat(BYTES_MAX)), "/q").unwrap_err();
        assert!(error.error_code == 400 && error.error_message.contains("at most 16384"), "{error:?}");
        for text in ["a\rb", "a\nb", "a\0b"] {
            assert!(Metadata::parse(pair(text, "v".into()), "/q").is_err(), "{text:?}");
            assert!(Metadata::parse(pair("k", text.into()), "/q").is_err(), "{text:?}");
            assert!(Metadata::parse_filter(pair("k", text.into()), "/q").is_ok(), "{text:?}: events may have it");
        }
        assert!(Metadata::parse(pair("k", "tab\t \u{e9}".into()), "/q").is_ok());
    }

    proptest! {
        #[test]
        fn a_map_meets_any_part_of_itself(pairs in proptest::collection::btree_map("[a-z]{1,5}", "[a-z ]{0,5}", 0..6), keep in any::<u8>()) {
            let metadata = Metadata::from(pairs.clone());
            let part = pairs.into_iter().enumerate().filter(|(i, _)| keep >> i & 1 == 1).map(|(_, pair)| pair).collect();
            prop_assert!(MetadataRequirement::parse(&form(&part), "/q").unwrap().met_by(Some(&metadata)));
        }

        #[test]
        fn a_missing_pair_is_not_met(pairs in proptest::collection::btree_map("[a-z]{1,5}", "[a-z]{0,5}", 0..6)) {
            let required = BTreeMap::from([("Absent".to_owned(), "x".to_owned())]);
            prop_assert!(!MetadataRequirement::parse(&form(&required), "/q").unwrap().met_by(Some(&Metadata::from(pairs))));
        }
    }
}
