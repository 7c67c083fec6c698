//! Options of two parts: `KEY=VALUE` and `OPERATOR/NAME`.

use std::collections::BTreeMap;

use bodkin_arrowhead::metadata::MetadataForm;

/// Parses `KEY=VALUE`; the value may hold further equals signs.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err(format!("expected KEY=VALUE, for example unit=celsius, not {text:?}")),
    }
}

/// The pairs as a request's map; `None` if there are none.
pub fn metadata(pairs: Vec<(String, String)>) -> Option<MetadataForm> {
    (!pairs.is_empty()).then(|| pairs.into_iter().map(|(key, value)| (key, Some(value))).collect())
}

/// The pairs as a map; `None` if there are none.
pub fn map(pairs: Vec<(String, String)>) -> Option<BTreeMap<String, String>> {
    (!pairs.is_empty()).then(|| pairs.into_iter().collect())
}

/// A cloud as an option names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudOption {
    /// Who runs it.
    pub operator: String,
    /// Its name.
    pub name: String,
}

/// Parses `OPERATOR/NAME`, or `NAME.OPERATOR` as clouds are told of.
pub fn parse_cloud(text: &str) -> Result<CloudOption, String> {
    let parts = text.split_once('/').or_else(|| text.split_once('.').map(|(name, operator)| (operator, name)));
    match parts.map(|(operator, name)| (operator.trim(), name.trim())) {
        Some((operator, name)) if [operator, name].iter().all(|part| !part.is_empty() && !part.contains(['/', '.'])) => {
            Ok(CloudOption { operator: operator.to_owned(), name: name.to_owned() })
        }
        _ => Err(format!("expected OPERATOR/NAME or NAME.OPERATOR, for example aitia/testcloud1, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_key() {
        assert_eq!(parse_pair("unit=a=b"), Ok(("unit".into(), "a=b".into())));
        assert_eq!(parse_pair("unit="), Ok(("unit".into(), String::new())));
        assert!(parse_pair("unit").is_err() && parse_pair("=x").is_err());
    }

    #[test]
    fn a_cloud_has_an_operator_and_a_name() {
        let one = CloudOption { operator: "aitia".into(), name: "one".into() };
        assert_eq!((parse_cloud("aitia/one"), parse_cloud("one.aitia")), (Ok(one.clone()), Ok(one)));
        for wrong in ["one", "/one", "a/b/c", "one.", ".aitia", "a.b.c", "a/b.c", ""] {
            assert!(parse_cloud(wrong).is_err(), "{wrong}");
        }
    }
}
