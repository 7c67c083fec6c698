//! Quality of service between clouds: what a consumer requires goes along as commands, and a cloud that has held its providers against it says so.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Negotiated, Proposal};
use crate::{
    error::ArrowheadError,
    form::{IcnProposalRequest, IcnRequestForm},
    metadata::MetadataForm,
    orchestrator::limits_among,
    record::Cloud,
};

/// The word among a result's warnings that everything which was required is kept. It is between two gatekeepers: who has asked takes it out, for consumers may
/// know no other words than upstream's. It is no metadata, which providers register themselves.
const QOS_KEPT: &str = "QOS_KEPT";
/// The flag without which nothing is required.
const ENABLE_QOS: &str = "enableQoS";

/// What a form requires among its commands: nothing without the flag.
fn required<'f>(flags: &Option<BTreeMap<String, Option<bool>>>, commands: &'f Option<MetadataForm>) -> Option<&'f MetadataForm> {
    let is_set = flags.as_ref().and_then(|flags| flags.get(ENABLE_QOS).copied().flatten()).unwrap_or_default();
    commands.as_ref().filter(|_| is_set)
}

/// Whether another cloud is asked for a quality of service.
pub(super) fn requires_quality(form: &IcnRequestForm) -> bool {
    required(&form.negotiation_flags, &form.commands).is_some_and(|commands| !limits_among(commands).is_empty())
}

impl Proposal {
    /// The quality of service that is required by a proposal; none where none is.
    pub(super) fn requirements(form: &IcnProposalRequest) -> Option<MetadataForm> {
        required(&form.negotiation_flags, &form.commands).map(limits_among).filter(|limits| !limits.is_empty())
    }

    /// Why nothing is granted where only the required quality of service stands in the way.
    pub fn nobody_keeps(required: &str) -> ArrowheadError {
        ArrowheadError::unavailable(format!(
            "No provider that the asking cloud may use keeps the quality of service that is required: {required}."
        ))
    }
}

impl Negotiated {
    /// Checks what was granted where a quality of service is required: results that do not tell that it is kept are not taken, and a tunnel to one is not
    /// entered. The word is taken out of the others.
    ///
    /// # Errors
    /// Something was granted, and none of it tells that. A tunnel was opened for nothing then.
    pub fn check_quality(&mut self, is_required: bool, target: &Cloud) -> Result<(), ArrowheadError> {
        let results = match self {
            Self::Direct(results) => results,
            Self::Tunnel(tunnel) => tunnel.results_mut(),
        };
        let granted = results.len();
        results.retain_mut(|result| take_word(result) || !is_required);
        if granted > 0 && results.is_empty() {
            return Err(untold(target));
        }
        Ok(())
    }
}

/// Takes the word out of a result; gives whether it was there.
fn take_word(result: &mut Value) -> bool {
    let Some(warnings) = result.get_mut("warnings").and_then(Value::as_array_mut) else { return false };
    let count = warnings.len();
    warnings.retain(|warning| warning != QOS_KEPT);
    warnings.len() < count
}

/// Why a cloud's grant, or its offer, is not taken.
pub(crate) fn untold(cloud: &Cloud) -> ArrowheadError {
    let (name, operator) = (&cloud.name, &cloud.operator);
    ArrowheadError::unavailable(format!(
        "Cloud {name}.{operator} does not tell that a provider of its keeps the quality of service that is required: it measures none, or \
         knows no requirements. Nothing of it is taken."
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(results: &Value, is_required: bool) -> Result<Vec<Value>, ArrowheadError> {
        let mut negotiated = Negotiated::Direct(results.as_array().unwrap().clone());
        negotiated.check_quality(is_required, &Cloud::neighbor(2, "o", "c"))?;
        match negotiated {
            Negotiated::Direct(results) => Ok(results),
            Negotiated::Tunnel(tunnel) => panic!("{tunnel:?}"),
        }
    }

    #[test]
    fn what_the_orchestrator_writes_is_what_is_looked_for() {
        assert_eq!(serde_json::to_value(crate::orchestrator::Warning::QosKept).unwrap(), QOS_KEPT);
    }

    #[test]
    fn only_what_is_told_to_be_kept_is_taken_where_it_is_required() {
        let told = json!({"a": 1, "warnings": ["TTL_UNKNOWN", "QOS_KEPT"]});
        let untold = json!({"a": 2, "warnings": ["TTL_UNKNOWN"], "metadata": {"QOS_KEPT": "QOS_KEPT"}});
        let (without_word, silent) = (json!({"a": 1, "warnings": ["TTL_UNKNOWN"]}), json!({"a": 3}));
        assert_eq!(checked(&json!([told, untold, silent]), true).unwrap(), std::slice::from_ref(&without_word));
        assert_eq!(checked(&json!([told, untold]), false).unwrap(), [without_word, untold.clone()], "consumers do not know the word");
        assert_eq!(checked(&json!([]), true).unwrap(), Vec::<Value>::new(), "nothing was granted");
        let refused = checked(&json!([untold, silent]), true).unwrap_err();
        assert!(refused.error_message.contains("Cloud c.o does not tell"), "{refused}");
        assert_eq!(checked(&json!([untold]), false).unwrap().len(), 1);
    }

    #[test]
    fn limits_are_commands_with_the_flag() {
        let form = |flag: bool, commands: Value| -> IcnRequestForm {
            crate::json::parse_object(&json!({"negotiationFlags": {"enableQoS": flag}, "commands": commands}).to_string()).unwrap()
        };
        assert!(requires_quality(&form(true, json!({"qosAvgRespTime": "20", "qosExclusivity": "5"}))));
        assert!(!requires_quality(&form(false, json!({"qosAvgRespTime": "20"}))));
        assert!(!requires_quality(&form(true, json!({"qosExclusivity": "5"}))));
        assert!(!requires_quality(&form(true, Value::Null)));
    }
}
