//! The members of every type on the wire and what null means in them (reference section 2).

use serde_json::Value;

/// The members of one type of answer.
#[derive(Debug)]
pub struct Shape {
    name: &'static str,
    /// Always there. In a type that keeps nulls, possibly null; else never.
    required: &'static [&'static str],
    /// There when they have a value, and never null.
    optional: &'static [&'static str],
    /// Whether absent values are written as null.
    keeps_null: bool,
    /// Members that are of a type with a shape of its own, each itself or as a list of it.
    nested: &'static [(&'static str, &'static Shape)],
}

const fn omitting(name: &'static str, required: &'static [&'static str], optional: &'static [&'static str]) -> Shape {
    Shape { name, required, optional, keeps_null: false, nested: &[] }
}

const fn keeping(name: &'static str, required: &'static [&'static str]) -> Shape {
    Shape { name, required, optional: &[], keeps_null: true, nested: &[] }
}

impl Shape {
    const fn with(self, nested: &'static [(&'static str, &'static Shape)]) -> Self {
        Self { nested, ..self }
    }

    /// What is wrong with `value`, which stands at `place`.
    pub fn faults(&self, place: &str, value: &Value) -> Vec<String> {
        let Value::Object(members) = value else { return vec![format!("{place} is no {}: {value}", self.name)] };
        let mut faults = Vec::new();
        for name in self.required {
            match members.get(*name) {
                None => faults.push(format!("{place}/{name} of {} is missing", self.name)),
                Some(Value::Null) if !self.keeps_null => faults.push(format!("{place}/{name} of {} is null", self.name)),
                Some(_) => {}
            }
        }
        for (name, value) in members {
            let is_optional = self.optional.contains(&name.as_str());
            if !is_optional && !self.required.contains(&name.as_str()) {
                faults.push(format!("{place}/{name} is no member of {}", self.name));
            } else if is_optional && value.is_null() {
                faults.push(format!("{place}/{name} of {} is null instead of absent", self.name));
            }
        }
        for (name, shape) in self.nested {
            let Some(value) = members.get(*name).filter(|value| !value.is_null()) else { continue };
            let place = format!("{place}/{name}");
            match value {
                Value::Array(elements) => {
                    faults.extend(elements.iter().enumerate().flat_map(|(at, element)| shape.faults(&format!("{place}/{at}"), element)));
                }
                value => faults.extend(shape.faults(&place, value)),
            }
        }
        faults.extend(members.iter().flat_map(|(name, value)| scalar_faults(place, name, value)));
        faults
    }
}

/// Numbers are numbers and instants end in Z, whatever the type.
fn scalar_faults(place: &str, name: &str, value: &Value) -> Option<String> {
    let fits = match name {
        _ if value.is_null() => true,
        "id" | "count" | "port" | "version" | "priority" | "unfilteredHits" | "systemId" | "serviceDefinitionId" => value.is_i64(),
        "createdAt" | "updatedAt" | "endOfValidity" | "startDate" | "endDate" | "entryDate" | "timeStamp" => {
            value.as_str().is_some_and(|text| text.len() >= "2031-01-01T00:00:00Z".len() && text.ends_with('Z') && text.contains('T'))
        }
        _ => true,
    };
    (!fits).then(|| format!("{place}/{name} is {value}"))
}

pub const SYSTEM: Shape =
    omitting("SystemResponse", &["id", "systemName", "address", "port", "createdAt", "updatedAt"], &["authenticationInfo", "metadata"]);

pub const DEFINITION: Shape = omitting("ServiceDefinitionResponse", &["id", "serviceDefinition", "createdAt", "updatedAt"], &[]);

pub const INTERFACE: Shape = omitting("ServiceInterfaceResponse", &["id", "interfaceName", "createdAt", "updatedAt"], &[]);

pub const ENTRY: Shape = omitting(
    "ServiceRegistryResponse",
    &["id", "serviceDefinition", "provider", "serviceUri", "secure", "version", "interfaces", "createdAt", "updatedAt"],
    &["endOfValidity", "metadata"],
)
.with(&[("serviceDefinition", &DEFINITION), ("provider", &SYSTEM), ("interfaces", &INTERFACE)]);

pub const QUERY_RESULT: Shape =
    omitting("ServiceQueryResult", &["serviceQueryData", "unfilteredHits"], &[]).with(&[("serviceQueryData", &ENTRY)]);

pub const QUERY_RESULTS: Shape = omitting("ServiceQueryResultList", &["results"], &[]).with(&[("results", &QUERY_RESULT)]);

pub const SYSTEMS: Shape = list_shape("list of systems").with(&[("data", &SYSTEM)]);
pub const DEFINITIONS: Shape = list_shape("list of definitions").with(&[("data", &DEFINITION)]);
pub const INTERFACES: Shape = list_shape("list of interfaces").with(&[("data", &INTERFACE)]);
pub const ENTRIES: Shape = list_shape("list of entries").with(&[("data", &ENTRY)]);
pub const RULES: Shape = list_shape("list of intra-cloud rules").with(&[("data", &RULE)]);
pub const INTERCLOUD_RULES: Shape = list_shape("list of inter-cloud rules").with(&[("data", &INTERCLOUD_RULE)]);
pub const STORE_ENTRIES: Shape = list_shape("list of store entries").with(&[("data", &STORE_ENTRY)]);
pub const FLEXIBLE_RULES: Shape = list_shape("list of flexible rules").with(&[("data", &FLEXIBLE_RULE)]);
pub const SUBSCRIPTIONS: Shape = list_shape("list of subscriptions").with(&[("data", &SUBSCRIPTION)]);
pub const LOGS: Shape = list_shape("list of log entries").with(&[("data", &LOG)]);

const fn list_shape(name: &'static str) -> Shape {
    omitting(name, &["data", "count"], &[])
}

pub const CONFIG: Shape = omitting("configuration", &["map"], &[]).with(&[("map", &CONFIG_MAP)]);

const CONFIG_MAP: Shape = omitting(
    "configuration map",
    &["use_strict_service_definition_verifier", "allow_self_addressing", "allow_non_routable_addressing"],
    &[],
);

pub const GROUPED: Shape =
    omitting("grouped view", &["servicesGroupedBySystems", "servicesGroupedByServiceDefinition", "autoCompleteData"], &[]).with(&[
        ("servicesGroupedBySystems", &BY_SYSTEM),
        ("servicesGroupedByServiceDefinition", &BY_DEFINITION),
        ("autoCompleteData", &AUTO_COMPLETE),
    ]);

const BY_SYSTEM: Shape = omitting("services of a system", &["systemId", "systemName", "address", "port", "services"], &["metadata"])
    .with(&[("services", &ENTRY)]);

const BY_DEFINITION: Shape = omitting("providers of a definition", &["serviceDefinitionId", "serviceDefinition", "providerServices"], &[])
    .with(&[("providerServices", &ENTRY)]);

const AUTO_COMPLETE: Shape = omitting("completions", &["serviceList", "systemList", "interfaceList"], &[]).with(&[
    ("serviceList", &ID_VALUE),
    ("systemList", &SYSTEM),
    ("interfaceList", &ID_VALUE),
]);

const ID_VALUE: Shape = omitting("id and value", &["id", "value"], &[]);

pub const RULE: Shape = omitting(
    "intra-cloud rule",
    &["id", "consumerSystem", "providerSystem", "serviceDefinition", "interfaces", "createdAt", "updatedAt"],
    &[],
)
.with(&[("consumerSystem", &SYSTEM), ("providerSystem", &SYSTEM), ("serviceDefinition", &DEFINITION), ("interfaces", &INTERFACE)]);

pub const CLOUD: Shape =
    keeping("CloudResponse", &["id", "operator", "name", "secure", "neighbor", "ownCloud", "authenticationInfo", "createdAt", "updatedAt"]);

pub const INTERCLOUD_RULE: Shape =
    omitting("inter-cloud rule", &["id", "cloud", "provider", "serviceDefinition", "interfaces", "createdAt", "updatedAt"], &[]).with(&[
        ("cloud", &CLOUD),
        ("provider", &SYSTEM),
        ("serviceDefinition", &DEFINITION),
        ("interfaces", &INTERFACE),
    ]);

const ID_IDS: Shape = keeping("IdIdList", &["id", "idList"]);

pub const INTRACLOUD_CHECK: Shape =
    omitting("intra-cloud check", &["consumer", "serviceDefinitionId", "authorizedProviderIdsWithInterfaceIds"], &[])
        .with(&[("authorizedProviderIdsWithInterfaceIds", &ID_IDS)]);

pub const INTERCLOUD_CHECK: Shape =
    omitting("inter-cloud check", &["cloud", "serviceDefinition", "authorizedProviderIdsWithInterfaceIds"], &[])
        .with(&[("authorizedProviderIdsWithInterfaceIds", &ID_IDS)]);

pub const SUBSCRIPTION_CHECK: Shape = omitting("subscription check", &["consumer", "publishers"], &[]).with(&[("publishers", &SYSTEM)]);

pub const ORCHESTRATION: Shape = omitting("OrchestrationResponse", &["response"], &[]).with(&[("response", &ORCHESTRATION_RESULT)]);

const ORCHESTRATION_RESULT: Shape = keeping(
    "OrchestrationResult",
    &["provider", "service", "serviceUri", "secure", "metadata", "interfaces", "version", "authorizationTokens", "warnings"],
)
.with(&[("provider", &SYSTEM), ("service", &DEFINITION), ("interfaces", &INTERFACE)]);

pub const STORE_ENTRY: Shape = keeping(
    "StoreResponse",
    &[
        "id",
        "serviceDefinition",
        "consumerSystem",
        "foreign",
        "providerSystem",
        "providerCloud",
        "serviceInterface",
        "priority",
        "attribute",
        "createdAt",
        "updatedAt",
    ],
)
.with(&[("serviceDefinition", &DEFINITION), ("consumerSystem", &SYSTEM), ("serviceInterface", &INTERFACE)]);

pub const FLEXIBLE_RULE: Shape = keeping(
    "FlexibleRule",
    &[
        "id",
        "consumerSystem",
        "providerSystem",
        "serviceDefinition",
        "serviceInterface",
        "serviceMetadata",
        "priority",
        "createdAt",
        "updatedAt",
    ],
)
.with(&[("consumerSystem", &SYSTEM_DESCRIBER), ("providerSystem", &SYSTEM_DESCRIBER)]);

const SYSTEM_DESCRIBER: Shape = keeping("SystemDescriber", &["systemName", "metadata"]);

pub const SUBSCRIPTION: Shape = keeping(
    "SubscriptionResponse",
    &[
        "id",
        "eventType",
        "subscriberSystem",
        "filterMetaData",
        "notifyUri",
        "matchMetaData",
        "startDate",
        "endDate",
        "sources",
        "createdAt",
        "updatedAt",
    ],
)
.with(&[("eventType", &EVENT_TYPE), ("subscriberSystem", &SYSTEM), ("sources", &SYSTEM)]);

const EVENT_TYPE: Shape = omitting("event type", &["id", "eventTypeName", "createdAt", "updatedAt"], &[]);

const LOG: Shape = keeping("log entry", &["logId", "entryDate", "logger", "logLevel", "systemName", "message", "exception"]);
