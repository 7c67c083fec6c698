//! `KEY=VALUE` options.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_key() {
        assert_eq!(parse_pair("unit=a=b"), Ok(("unit".into(), "a=b".into())));
        assert_eq!(parse_pair("unit="), Ok(("unit".into(), String::new())));
        assert!(parse_pair("unit").is_err() && parse_pair("=x").is_err());
    }
}
