//! Rules to be made and rules as they are answered.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;

use crate::{
    error::ArrowheadError,
    form::{InterCloudRuleRequest, IntracloudRuleRequest},
    record::*,
    snapshot::Snapshot,
};

/// Rules to be made: every provider with every definition, each rule with all interfaces.
///
/// The consumer is a system in intracloud rules and a cloud in intercloud rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInsertion<C = SystemId> {
    /// Who may consume.
    pub consumer: C,
    /// From whom; several only with one definition.
    pub providers: BTreeSet<SystemId>,
    /// What; several only with one provider and one interface.
    pub definitions: BTreeSet<DefinitionId>,
    /// Over what.
    pub interfaces: BTreeSet<InterfaceId>,
}

type Ids = Option<Vec<Option<i64>>>;

impl RuleInsertion<SystemId> {
    /// Checks a form; `null` and ids below 1 are dropped silently, as upstream does.
    pub fn parse(form: &IntracloudRuleRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let consumer = SystemId(id(form.consumer_id, "Consumer id", origin)?);
        Self::parse_lists(consumer, [&form.provider_ids, &form.service_definition_ids, &form.interface_ids], origin)
    }
}

impl RuleInsertion<CloudId> {
    /// As of an intracloud rule.
    pub fn parse(form: &InterCloudRuleRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let cloud = CloudId(id(form.cloud_id, "Cloud id", origin)?);
        Self::parse_lists(cloud, [&form.provider_id_list, &form.service_definition_id_list, &form.interface_id_list], origin)
    }
}

impl<C> RuleInsertion<C> {
    fn parse_lists(consumer: C, [providers, definitions, interfaces]: [&Ids; 3], origin: &str) -> Result<Self, ArrowheadError> {
        let providers = ids(providers, "Provider id", origin)?;
        let definitions = ids(definitions, "Service definition id", origin)?;
        let interfaces = ids(interfaces, "Interface id", origin)?;
        let refused = |message: &str| Err(ArrowheadError::bad_payload(message, origin));
        if providers.len() > 1 && definitions.len() > 1 {
            return refused("Multiple providers and multiple service definitions in one request are not allowed.");
        }
        if definitions.len() > 1 && interfaces.len() > 1 {
            return refused("Multiple service definitions and multiple interfaces in one request are not allowed.");
        }
        Ok(Self {
            consumer,
            providers: providers.into_iter().map(SystemId).collect(),
            definitions: definitions.into_iter().map(DefinitionId).collect(),
            interfaces: interfaces.into_iter().map(InterfaceId).collect(),
        })
    }
}

fn id(id: Option<i64>, what: &str, origin: &str) -> Result<i64, ArrowheadError> {
    let refused = || ArrowheadError::bad_payload(format!("{what} must be given and greater than 0."), origin);
    id.filter(|id| *id > 0).ok_or_else(refused)
}

fn ids(list: &Ids, what: &str, origin: &str) -> Result<BTreeSet<i64>, ArrowheadError> {
    let ids: BTreeSet<i64> = list.iter().flatten().flatten().copied().filter(|id| *id > 0).collect();
    if ids.is_empty() {
        return Err(ArrowheadError::bad_payload(format!("{what} list is null, empty or without a valid id."), origin));
    }
    Ok(ids)
}

/// An intracloud rule with the rows it refers to, as the management endpoints answer it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleView {
    id: RuleId,
    consumer_system: Arc<System>,
    provider_system: Arc<System>,
    service_definition: Arc<Definition>,
    interfaces: Vec<Arc<Interface>>,
    #[serde(flatten)]
    timestamps: Timestamps,
}

impl RuleView {
    /// The rule's view in the snapshot it is of.
    pub fn new(snapshot: &Snapshot, rule: &Rule) -> Self {
        Self {
            id: rule.id,
            consumer_system: system(snapshot, rule.consumer),
            provider_system: system(snapshot, rule.provider),
            service_definition: definition(snapshot, rule.definition),
            interfaces: snapshot.named_interfaces(&rule.interfaces),
            timestamps: rule.timestamps,
        }
    }
}

/// An intercloud rule with the rows it refers to, as the management endpoints answer it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterCloudRuleView {
    id: InterCloudRuleId,
    cloud: Arc<Cloud>,
    provider: Arc<System>,
    service_definition: Arc<Definition>,
    interfaces: Vec<Arc<Interface>>,
    #[serde(flatten)]
    timestamps: Timestamps,
}

impl InterCloudRuleView {
    /// The rule's view in the snapshot it is of.
    pub fn new(snapshot: &Snapshot, rule: &InterCloudRule) -> Self {
        Self {
            id: rule.id,
            cloud: snapshot.cloud(rule.cloud).expect("a rule's cloud is there").clone(),
            provider: system(snapshot, rule.provider),
            service_definition: definition(snapshot, rule.definition),
            interfaces: snapshot.named_interfaces(&rule.interfaces),
            timestamps: rule.timestamps,
        }
    }
}

fn system(snapshot: &Snapshot, id: SystemId) -> Arc<System> {
    snapshot.system(id).expect("a rule's systems are there").clone()
}

fn definition(snapshot: &Snapshot, id: DefinitionId) -> Arc<Definition> {
    snapshot.definition(id).expect("a rule's definition is there").clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(providers: &[i64], definitions: &[i64], interfaces: &[i64], expected: Result<[usize; 3], &str>) {
        let list = |ids: &[i64]| Some(ids.iter().copied().map(Some).chain([None]).collect());
        let form = InterCloudRuleRequest {
            cloud_id: Some(1),
            provider_id_list: list(providers),
            service_definition_id_list: list(definitions),
            interface_id_list: list(interfaces),
        };
        let parsed = RuleInsertion::<CloudId>::parse(&form, "/x");
        let sizes = parsed.map(|insertion| [insertion.providers.len(), insertion.definitions.len(), insertion.interfaces.len()]);
        match (sizes, expected) {
            (Ok(sizes), Ok(expected)) => assert_eq!(sizes, expected),
            (Err(error), Err(part)) => assert!(error.error_message.contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn only_the_allowed_shapes_are_taken() {
        check(&[1], &[1, 2], &[1], Ok([1, 2, 1]));
        check(&[1, 2, 0, -1], &[1], &[1, 2], Ok([2, 1, 2]));
        check(&[1, 2], &[1, 2], &[1], Err("Multiple providers"));
        check(&[1], &[1, 2], &[1, 2], Err("multiple interfaces"));
        check(&[0], &[1], &[1], Err("Provider id list"));
        check(&[1], &[], &[1], Err("Service definition id list"));
        check(&[1], &[1], &[-7], Err("Interface id list"));
    }
}
