//! What the audit log keeps of an orchestration: who was given which service, and why.

use serde_json::{Map, Value, json};

use super::{Kind, Orchestration, OrchestrationResponse, OrchestrationResult};
use crate::{
    audit,
    name::InterfaceName,
    record::{System, SystemId},
    snapshot::Snapshot,
};

/// Providers that one account names; of further ones only how many there are is told.
const PROVIDERS_MAX: usize = 128;

/// Tells an orchestration's answer. The rules are those of the snapshot that it was decided against.
pub fn account(snapshot: &Snapshot, orchestration: &Orchestration, answer: &OrchestrationResponse) -> Map<String, Value> {
    let requester = &orchestration.requester;
    let consumer = snapshot.system_by_key(requester.key.as_str()).map(|consumer| consumer.id);
    let given = |result: &OrchestrationResult| {
        let interfaces: Vec<&str> = result.interfaces.iter().map(|interface| interface.interface_name.as_str()).collect();
        let mut given = json!({
            "provider": named(&result.provider),
            "service": result.service.service_definition.as_str(),
            "interfaces": interfaces,
            "because": reason(snapshot, orchestration, consumer, result),
        });
        if let Some(tokens) = &result.authorization_tokens {
            // Over which interfaces; the tokens themselves are nobody else's.
            given["tokens"] = tokens.keys().map(InterfaceName::as_str).collect();
        }
        given
    };
    let mut account = Map::new();
    account.insert("consumer".into(), audit::cut(&format!("{}@{}:{}", requester.name, requester.address, requester.port)).into());
    if let Some(asked) = asked_service(orchestration) {
        account.insert("asked".into(), audit::cut(asked).into());
    }
    account.insert("given".into(), answer.response.iter().take(PROVIDERS_MAX).map(given).collect());
    let more = answer.response.len().saturating_sub(PROVIDERS_MAX);
    if more > 0 {
        account.insert("more".into(), more.into());
    }
    account
}

fn named(system: &System) -> String {
    format!("{}@{}:{}", system.system_name, system.address.as_str(), system.port)
}

fn asked_service(orchestration: &Orchestration) -> Option<&str> {
    match &orchestration.kind {
        Kind::Dynamic(query) | Kind::StoredService { query, .. } => Some(&query.definition),
        Kind::Flexible { form, .. } => form.service_definition_requirement.as_deref(),
        Kind::StoredTops(_) => None,
    }
}

/// Where the provider was found, and the rule that grants it where rules are asked.
fn reason(snapshot: &Snapshot, orchestration: &Orchestration, consumer: Option<SystemId>, result: &OrchestrationResult) -> String {
    let found = match &orchestration.kind {
        Kind::Dynamic(_) => "Service Registry",
        Kind::StoredService { .. } | Kind::StoredTops(_) => "orchestration store",
        Kind::Flexible { .. } => "flexible store",
    };
    let consumer = consumer.filter(|_| orchestration.asks_rules);
    match consumer.and_then(|consumer| snapshot.rule_for(consumer, result.provider.id, result.service.id)) {
        Some(rule) => format!("{found}, authorization rule {}", rule.id),
        None => format!("{found}, no rule is asked"),
    }
}
