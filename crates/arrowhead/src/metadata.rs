//! Metadata: string to string maps on systems, services, events and filters.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::error::ArrowheadError;

/// A metadata map as a request gave it; Jackson's scalars are already texts, a `null` value is `None`.
pub type MetadataForm = BTreeMap<String, Option<String>>;

/// A stored map, shared by every snapshot that holds it. An empty map is kept apart from an absent one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(Arc<BTreeMap<String, String>>);

impl Metadata {
    /// Takes a request's map. A `null` value is refused as upstream's database layer does (500).
    pub fn parse(form: MetadataForm) -> Result<Self, ArrowheadError> {
        let pairs = form.into_iter().map(|(key, value)| Some((key, value?)));
        Ok(Self(Arc::new(pairs.collect::<Option<_>>().ok_or_else(ArrowheadError::database)?)))
    }

    /// As [`Self::parse`] for a member that may be absent.
    pub fn parse_optional(form: Option<MetadataForm>) -> Result<Option<Self>, ArrowheadError> {
        form.map(Self::parse).transpose()
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
    /// Keys that differ only in white space are refused; a `null` value asks for nothing that can be met and is refused too.
    pub fn parse(form: &MetadataForm, origin: &str) -> Result<Self, ArrowheadError> {
        let mut pairs = BTreeMap::new();
        for (key, value) in form {
            let value = value.as_deref().ok_or_else(|| ArrowheadError::bad_payload("Metadata requirement value is null.", origin))?;
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
        assert_eq!(Metadata::parse(broken).unwrap_err(), ArrowheadError::database());
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
