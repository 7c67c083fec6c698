//! Authorization: who may use what (reference section 4).

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;

use crate::{
    error::ArrowheadError,
    form::{IntracloudCheckRequest, IntracloudRuleRequest, SubscriptionCheckRequest, SystemRequest},
    record::*,
    snapshot::Snapshot,
    system::SystemReference,
};

/// Rules to be made: every provider with every definition, each rule with all interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInsertion {
    /// Who may consume.
    pub consumer: SystemId,
    /// From whom; several only with one definition.
    pub providers: BTreeSet<SystemId>,
    /// What; several only with one provider and one interface.
    pub definitions: BTreeSet<DefinitionId>,
    /// Over what.
    pub interfaces: BTreeSet<InterfaceId>,
}

impl RuleInsertion {
    /// Checks a form; `null` and ids below 1 are dropped silently, as upstream does.
    pub fn parse(form: &IntracloudRuleRequest, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: &str| ArrowheadError::bad_payload(message, origin);
        let consumer = form.consumer_id.filter(|id| *id > 0).ok_or_else(|| refused("Consumer id must be given and greater than 0."))?;
        let ids = |list: &Option<Vec<Option<i64>>>, what: &str| {
            let ids: BTreeSet<i64> = list.iter().flatten().flatten().copied().filter(|id| *id > 0).collect();
            if ids.is_empty() { Err(refused(&format!("{what} list is null, empty or without a valid id."))) } else { Ok(ids) }
        };
        let providers = ids(&form.provider_ids, "Provider id")?;
        let definitions = ids(&form.service_definition_ids, "Service definition id")?;
        let interfaces = ids(&form.interface_ids, "Interface id")?;
        if providers.len() > 1 && definitions.len() > 1 {
            return Err(refused("Multiple providers and multiple service definitions in one request are not allowed."));
        }
        if definitions.len() > 1 && interfaces.len() > 1 {
            return Err(refused("Multiple service definitions and multiple interfaces in one request are not allowed."));
        }
        Ok(Self {
            consumer: SystemId(consumer),
            providers: providers.into_iter().map(SystemId).collect(),
            definitions: definitions.into_iter().map(DefinitionId).collect(),
            interfaces: interfaces.into_iter().map(InterfaceId).collect(),
        })
    }
}

/// A rule with the rows it refers to, as the management endpoints answer it.
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
        let system = |id| snapshot.system(id).expect("a rule's systems are there").clone();
        Self {
            id: rule.id,
            consumer_system: system(rule.consumer),
            provider_system: system(rule.provider),
            service_definition: snapshot.definition(rule.definition).expect("a rule's definition is there").clone(),
            interfaces: snapshot.named_interfaces(&rule.interfaces),
            timestamps: rule.timestamps,
        }
    }
}

/// Looks a consumer up; an unregistered one is refused (400), so an unregistered consumer's orchestration fails.
pub fn registered_consumer<'s>(snapshot: &'s Snapshot, consumer: &SystemReference) -> Result<&'s Arc<System>, ArrowheadError> {
    let found = snapshot.system_by_key(consumer.key.as_str());
    found.ok_or_else(|| ArrowheadError::invalid_parameter(format!("Consumer with {consumer} is not exist in the database.")))
}

/// The interfaces over which `consumer` may use `definition` at `provider`; empty without a rule.
pub fn permitted_interfaces(snapshot: &Snapshot, consumer: SystemId, provider: SystemId, definition: DefinitionId) -> &[InterfaceId] {
    snapshot.rule_for(consumer, provider, definition).map_or(&[], |rule| &rule.interfaces)
}

/// The answer to an intracloud check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntracloudCheckResponse {
    consumer: Arc<System>,
    service_definition_id: DefinitionId,
    authorized_provider_ids_with_interface_ids: Vec<PermittedProvider>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PermittedProvider {
    id: SystemId,
    id_list: Vec<InterfaceId>,
}

/// Which of the asked providers the consumer may use, over which of the asked interfaces. Unknown providers are skipped.
pub fn check_intracloud(
    snapshot: &Snapshot,
    form: &IntracloudCheckRequest,
    origin: &str,
) -> Result<IntracloudCheckResponse, ArrowheadError> {
    let refused = |message: &str| ArrowheadError::bad_payload(message, origin);
    let consumer = SystemReference::parse(form.consumer.as_ref(), "Consumer", origin)?;
    let id = form
        .service_definition_id
        .filter(|id| *id > 0)
        .ok_or_else(|| refused("Service definition id must be given and greater than 0."))?;
    let asked = form.provider_ids_with_interface_ids.as_ref().filter(|list| !list.is_empty());
    let asked = asked.ok_or_else(|| refused("Provider ids list is null or empty."))?;
    let consumer = registered_consumer(snapshot, &consumer)?;
    let definition = snapshot.definition(DefinitionId(id));
    let definition =
        definition.ok_or_else(|| ArrowheadError::invalid_parameter(format!("Service definition with id of {id} not exists")))?;
    let mut permitted = Vec::new();
    for provider in asked.iter().flatten() {
        let Some(id) = provider.id.filter(|id| *id > 0).map(SystemId) else { continue };
        let granted = permitted_interfaces(snapshot, consumer.id, id, definition.id);
        let wanted = provider.id_list.iter().flatten().flatten().copied().map(InterfaceId);
        let id_list: Vec<InterfaceId> = wanted.filter(|interface| granted.contains(interface)).collect();
        if !id_list.is_empty() {
            permitted.push(PermittedProvider { id, id_list });
        }
    }
    Ok(IntracloudCheckResponse {
        consumer: consumer.clone(),
        service_definition_id: definition.id,
        authorized_provider_ids_with_interface_ids: permitted,
    })
}

/// The answer to a subscription check.
#[derive(Debug, Serialize)]
pub struct SubscriptionCheckResponse {
    consumer: Arc<System>,
    publishers: Vec<Arc<System>>,
}

/// The systems whose events the consumer may hear: providers of all its rules, or those of them that were asked about.
pub fn check_subscription(
    snapshot: &Snapshot,
    form: &SubscriptionCheckRequest,
    origin: &str,
) -> Result<SubscriptionCheckResponse, ArrowheadError> {
    let consumer = SystemReference::parse(form.consumer.as_ref(), "Consumer", origin)?;
    let asked = form.publishers.as_ref().map(|list| {
        let references = list.iter().flatten().map(|form: &SystemRequest| SystemReference::parse(Some(form), "Publisher", origin));
        references.collect::<Result<Vec<_>, _>>()
    });
    let asked = asked.transpose()?;
    let consumer = registered_consumer(snapshot, &consumer)?;
    let mut publishers = permitted_publishers(snapshot, consumer.id);
    if let Some(asked) = asked {
        let known: BTreeSet<SystemId> =
            asked.iter().filter_map(|reference| snapshot.system_by_key(reference.key.as_str())).map(|system| system.id).collect();
        publishers.retain(|system| known.contains(&system.id));
    }
    Ok(SubscriptionCheckResponse { consumer: consumer.clone(), publishers })
}

/// The distinct providers of all rules of a consumer, by id.
pub fn permitted_publishers(snapshot: &Snapshot, consumer: SystemId) -> Vec<Arc<System>> {
    let mut ids: Vec<SystemId> = snapshot.rules_of_consumer(consumer).map(|rule| rule.provider).collect();
    ids.dedup();
    ids.into_iter().filter_map(|id| snapshot.system(id)).cloned().collect()
}
