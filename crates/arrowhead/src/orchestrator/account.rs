//! What the audit log keeps of an orchestration: who was given which service, and why.

use serde_json::{Map, Value, json};

use super::{Kind, Orchestration, OrchestrationResponse, OrchestrationResult};
use crate::{audit, name::InterfaceName, record::System, snapshot::Snapshot};

/// Providers that one account names; of further ones only how many there are is told.
const PROVIDERS_MAX: usize = 128;

/// Tells an orchestration's answer. The rules are those of the snapshot that it was decided against.
pub fn account(snapshot: &Snapshot, orchestration: &Orchestration, answer: &OrchestrationResponse) -> Map<String, Value> {
    let given = |result: &OrchestrationResult| {
        let interfaces: Vec<&str> = result.interfaces.iter().map(|interface| interface.interface_name.as_str()).collect();
        let mut given = json!({
            "provider": named(&result.provider),
            "service": result.service.service_definition.as_str(),
            "interfaces": interfaces,
            "because": reason(snapshot, orchestration, result),
        });
        if let Some(tokens) = &result.authorization_tokens {
            // Over which interfaces; the tokens themselves are nobody else's.
            given["tokens"] = tokens.keys().map(InterfaceName::as_str).collect();
        }
        given
    };
    let mut account = asked(orchestration);
    tell_given(&mut account, answer.response.iter().map(given));
    account
}

/// Tells an orchestration's answer that another cloud has given: its results are the consumer's to read, and are told by what they name.
pub fn foreign_account(orchestration: &Orchestration, cloud: &str, results: &[Value]) -> Map<String, Value> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = |result: &Value| {
        let provider = &result["provider"];
        let named = format!("{}@{}:{}", text(&provider["systemName"]), text(&provider["address"]), provider["port"]);
        let service = text(&result["service"]["serviceDefinition"]);
        json!({"provider": audit::cut(&named), "service": audit::cut(&service), "because": format!("cloud {cloud} has granted it")})
    };
    let mut account = asked(orchestration);
    tell_given(&mut account, results.iter().map(given));
    account
}

/// Who asked, and for what.
fn asked(orchestration: &Orchestration) -> Map<String, Value> {
    let (requester, mut account) = (&orchestration.requester, Map::new());
    let of_cloud = orchestration.requester_cloud.as_ref().map_or_else(String::new, |cloud| format!(" of {cloud}"));
    account.insert("consumer".into(), audit::cut(&format!("{}@{}:{}{of_cloud}", requester.name, requester.address, requester.port)).into());
    if let Some(asked) = asked_service(orchestration) {
        account.insert("asked".into(), audit::cut(asked).into());
    }
    account
}

/// What was given.
fn tell_given(account: &mut Map<String, Value>, mut given: impl ExactSizeIterator<Item = Value>) {
    let more = given.len().saturating_sub(PROVIDERS_MAX);
    account.insert("given".into(), given.by_ref().take(PROVIDERS_MAX).collect());
    if more > 0 {
        account.insert("more".into(), more.into());
    }
}

fn named(system: &System) -> String {
    format!("{}@{}:{}", system.system_name, system.address.as_str(), system.port)
}

fn asked_service(orchestration: &Orchestration) -> Option<&str> {
    match &orchestration.kind {
        Kind::Dynamic(query) | Kind::StoredService { query, .. } => Some(&query.definition),
        Kind::OtherClouds(definition) => Some(definition),
        Kind::Flexible { form, .. } => form.service_definition_requirement.as_deref(),
        Kind::StoredTops(_) => None,
    }
}

/// Where the provider was found, and the rule that grants it where rules are asked.
fn reason(snapshot: &Snapshot, orchestration: &Orchestration, result: &OrchestrationResult) -> String {
    let found = match &orchestration.kind {
        Kind::Dynamic(_) | Kind::OtherClouds(_) => "Service Registry",
        Kind::StoredService { .. } | Kind::StoredTops(_) => "orchestration store",
        Kind::Flexible { .. } => "flexible store",
    };
    match rule(snapshot, orchestration, result) {
        Some(rule) => format!("{found}, {rule}"),
        None => format!("{found}, no rule is asked"),
    }
}

fn rule(snapshot: &Snapshot, orchestration: &Orchestration, result: &OrchestrationResult) -> Option<String> {
    let (provider, service) = (result.provider.id, result.service.id);
    if !orchestration.asks_rules {
        return None;
    }
    if let Some(cloud) = &orchestration.requester_cloud {
        let cloud = snapshot.cloud_by_name(cloud.operator.as_str(), cloud.cloud.as_str())?;
        return snapshot.inter_cloud_rule_for(cloud.id, provider, service).map(|rule| format!("intercloud authorization rule {}", rule.id));
    }
    let consumer = snapshot.system_by_key(orchestration.requester.key.as_str())?;
    snapshot.rule_for(consumer.id, provider, service).map(|rule| format!("authorization rule {}", rule.id))
}
