//! The checks that Orchestrator, Gatekeeper and Event Handler ask for.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::Serialize;

use crate::{
    error::ArrowheadError,
    explanation::{Criterion, Step, Witness},
    form::{IdIdList, InterCloudCheckRequest, IntracloudCheckRequest, SubscriptionCheckRequest, SystemRequest},
    record::*,
    snapshot::Snapshot,
    system::SystemReference,
};

/// Looks a consumer up; an unregistered one is refused (400), so an unregistered consumer's orchestration fails.
pub fn registered_consumer<'s>(snapshot: &'s Snapshot, consumer: &SystemReference) -> Result<&'s Arc<System>, ArrowheadError> {
    let found = snapshot.system_by_key(consumer.key.as_str());
    found.ok_or_else(|| ArrowheadError::invalid_parameter(format!("Consumer with {consumer} is not exist in the database.")))
}

/// The interfaces over which `consumer` may use `definition` at `provider`; empty without a rule.
pub fn permitted_interfaces(snapshot: &Snapshot, consumer: SystemId, provider: SystemId, definition: DefinitionId) -> &[InterfaceId] {
    snapshot.rule_for(consumer, provider, definition).map_or(&[], |rule| &rule.interfaces)
}

/// Who consumes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Consumer<'s> {
    /// A system of this cloud.
    System(&'s System),
    /// The systems of another cloud.
    Cloud(&'s Cloud),
}

impl Consumer<'_> {
    /// The interfaces over which it may use `definition` at `provider`; empty without a rule.
    fn permitted_interfaces(self, snapshot: &Snapshot, provider: SystemId, definition: DefinitionId) -> &[InterfaceId] {
        self.rule(snapshot, provider, definition).map_or(&[], |(_, interfaces)| interfaces)
    }

    /// The row id of the rule that lets it use `definition` at `provider`, and over what.
    fn rule(self, snapshot: &Snapshot, provider: SystemId, definition: DefinitionId) -> Option<(i64, &[InterfaceId])> {
        match self {
            Self::System(system) => snapshot.rule_for(system.id, provider, definition).map(|rule| (rule.id.0, &rule.interfaces[..])),
            Self::Cloud(cloud) => {
                snapshot.inter_cloud_rule_for(cloud.id, provider, definition).map(|rule| (rule.id.0, &rule.interfaces[..]))
            }
        }
    }
}

impl fmt::Display for Consumer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(system) => f.write_str(system.system_name.as_str()),
            Self::Cloud(cloud) => write!(f, "{}.{}", cloud.name, cloud.operator),
        }
    }
}

/// Narrows a service to the interfaces over which `consumer` may use it; `None` if there is none.
pub(crate) fn permitted_service(
    snapshot: &Snapshot,
    consumer: Consumer<'_>,
    mut view: EntryView,
    witness: &mut impl Witness,
) -> Option<EntryView> {
    let granted = consumer.permitted_interfaces(snapshot, view.entry.provider, view.entry.definition);
    let offered = view.interfaces.len();
    view.interfaces.retain(|interface| granted.contains(&interface.id));
    witness.see(|| rule_step(snapshot, consumer, &view, offered));
    (!view.interfaces.is_empty()).then_some(view)
}

/// What the rule says of a service of which these interfaces are left, of so many.
fn rule_step(snapshot: &Snapshot, consumer: Consumer<'_>, view: &EntryView, offered: usize) -> Step {
    let asked = format!("may {consumer} use {} of {}?", view.definition.service_definition, view.provider.system_name);
    let rule = consumer.rule(snapshot, view.entry.provider, view.entry.definition);
    let found = match rule {
        None => "no rule allows it".to_owned(),
        Some((id, _)) if view.interfaces.len() == offered => format!("rule {id} allows it"),
        Some((id, interfaces)) => {
            let names: Vec<String> = snapshot.named_interfaces(interfaces).iter().map(|row| row.interface_name.to_string()).collect();
            format!("rule {id} allows {} only", names.join(", "))
        }
    };
    let step = Step::new(Criterion::AuthorizationRule, !view.interfaces.is_empty(), asked, found);
    step.of(view.entry.id).by(rule.map(|(id, _)| id))
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PermittedProvider {
    id: SystemId,
    id_list: Vec<InterfaceId>,
}

type AskedProviders = Vec<Option<IdIdList>>;

/// The asked providers; there must be some.
fn asked<'f>(list: &'f Option<AskedProviders>, origin: &str) -> Result<&'f AskedProviders, ArrowheadError> {
    let missing = || ArrowheadError::bad_payload("Provider ids list is null or empty.", origin);
    list.as_ref().filter(|list| !list.is_empty()).ok_or_else(missing)
}

/// Of the asked providers and interfaces those that are granted; unknown providers are granted nothing.
fn permitted<'s>(asked: &AskedProviders, granted: impl Fn(SystemId) -> &'s [InterfaceId]) -> Vec<PermittedProvider> {
    let mut permitted = Vec::new();
    for provider in asked.iter().flatten() {
        let Some(id) = provider.id.filter(|id| *id > 0).map(SystemId) else { continue };
        let granted = granted(id);
        let wanted = provider.id_list.iter().flatten().flatten().copied().map(InterfaceId);
        let id_list: Vec<InterfaceId> = wanted.filter(|interface| granted.contains(interface)).collect();
        if !id_list.is_empty() {
            permitted.push(PermittedProvider { id, id_list });
        }
    }
    permitted
}

/// The answer to an intracloud check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntracloudCheckResponse {
    consumer: Arc<System>,
    service_definition_id: DefinitionId,
    authorized_provider_ids_with_interface_ids: Vec<PermittedProvider>,
}

/// Which of the asked providers the consumer may use, over which of the asked interfaces. Unknown providers are skipped.
pub fn check_intracloud(
    snapshot: &Snapshot,
    form: &IntracloudCheckRequest,
    origin: &str,
) -> Result<IntracloudCheckResponse, ArrowheadError> {
    let consumer = SystemReference::parse(form.consumer.as_ref(), "Consumer", origin)?;
    let id = form.service_definition_id.filter(|id| *id > 0);
    let id = id.ok_or_else(|| ArrowheadError::bad_payload("Service definition id must be given and greater than 0.", origin))?;
    let asked = asked(&form.provider_ids_with_interface_ids, origin)?;
    let consumer = registered_consumer(snapshot, &consumer)?;
    let definition = snapshot.definition(DefinitionId(id));
    let definition =
        definition.ok_or_else(|| ArrowheadError::invalid_parameter(format!("Service definition with id of {id} not exists")))?;
    Ok(IntracloudCheckResponse {
        consumer: consumer.clone(),
        service_definition_id: definition.id,
        authorized_provider_ids_with_interface_ids: permitted(asked, |provider| {
            permitted_interfaces(snapshot, consumer.id, provider, definition.id)
        }),
    })
}

/// The answer to an intercloud check; the definition is the text that was asked about.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterCloudCheckResponse {
    cloud: Arc<Cloud>,
    service_definition: String,
    authorized_provider_ids_with_interface_ids: Vec<PermittedProvider>,
}

/// Which of the asked providers another cloud may use, over which of the asked interfaces. Unknown providers are skipped.
pub fn check_intercloud(
    snapshot: &Snapshot,
    form: InterCloudCheckRequest,
    origin: &str,
) -> Result<InterCloudCheckResponse, ArrowheadError> {
    let cloud = form.cloud.unwrap_or_default();
    let text = |text: Option<String>, what: &str| {
        let blank = || ArrowheadError::bad_payload(format!("{what} is null or blank."), origin);
        text.filter(|text| !text.trim().is_empty()).ok_or_else(blank)
    };
    let (operator, name) = (text(cloud.operator, "Cloud operator")?, text(cloud.name, "Cloud name")?);
    let service_definition = text(form.service_definition, "Service definition")?;
    let asked = asked(&form.provider_ids_with_interface_ids, origin)?;
    let unknown = ArrowheadError::invalid_parameter;
    let cloud = snapshot.cloud_by_name(&operator, &name);
    let cloud = cloud.ok_or_else(|| unknown(format!("No cloud exists with the following operator and name: {operator}, {name}")))?;
    let definition = snapshot.definition_by_name(&service_definition);
    let definition = definition.ok_or_else(|| unknown(format!("{service_definition} service definition not exists")))?.id;
    let granted = |provider| Consumer::Cloud(cloud).permitted_interfaces(snapshot, provider, definition);
    let authorized_provider_ids_with_interface_ids = permitted(asked, granted);
    Ok(InterCloudCheckResponse { cloud: cloud.clone(), service_definition, authorized_provider_ids_with_interface_ids })
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
