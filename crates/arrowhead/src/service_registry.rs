//! Service Registry: who offers what (reference section 3).

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;

use crate::{
    address::AddressKind,
    error::ArrowheadError,
    form::{ServiceQueryForm, ServiceRegistryRequest},
    metadata::{Metadata, MetadataRequirement},
    name::{InterfaceName, NamingRules, ServiceDefinition, TEXT_LENGTH_MAX},
    record::{Entry, EntryView, Security},
    snapshot::Snapshot,
    system::{CoreSystemNames, SystemKey, SystemRegistration},
    utc::UtcTime,
};

/// A service to be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// What is offered.
    pub definition: ServiceDefinition,
    /// Who offers it; a system that is there takes over public key and metadata, even absent ones.
    pub provider: SystemRegistration,
    /// Where at the provider; may be empty.
    pub service_uri: Arc<str>,
    /// Until when; whole seconds.
    pub end_of_validity: Option<UtcTime>,
    /// How it is secured.
    pub secure: Security,
    /// Free pairs.
    pub metadata: Option<Metadata>,
    /// Its version.
    pub version: i32,
    /// Its interfaces: at least one, each once.
    pub interfaces: BTreeSet<InterfaceName>,
}

impl Registration {
    /// Checks a form in upstream's order (reference 3.2, points 1 to 8).
    pub fn parse(
        form: ServiceRegistryRequest,
        core_systems: CoreSystemNames,
        rules: &NamingRules,
        origin: &str,
    ) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let definition = form.service_definition.unwrap_or_default();
        let definition = ServiceDefinition::parse(&definition, rules).map_err(|error| refused(format!("Service definition {error}")))?;
        let provider = form.provider_system.ok_or_else(|| refused("Provider system is null.".into()))?;
        let provider = SystemRegistration::parse(provider, core_systems, rules, origin)?;
        let service_uri = form.service_uri.unwrap_or_default();
        let end_of_validity = match form.end_of_validity.as_deref().map(str::trim) {
            None | Some("") => None,
            Some(text) => Some(UtcTime::parse(text).map_err(|error| refused(format!("End of validity {error}")))?.whole_seconds()),
        };
        let secure = match form.secure.as_deref().map(str::trim) {
            None | Some("") => Security::NotSecure,
            Some(text) => Security::parse(text).ok_or_else(|| refused(format!("Security type '{text}' is not valid.")))?,
        };
        if secure != Security::NotSecure && provider.authentication_info.is_none() {
            return Err(refused(format!("Security type is {}, but the provider has no authenticationInfo.", secure.as_str())));
        }
        let interfaces = parse_interfaces(form.interfaces, rules, origin)?;
        let version = i32::try_from(form.version.unwrap_or(1)).map_err(|_| refused("Version is out of range.".into()))?;
        if secure != Security::NotSecure {
            return Err(ArrowheadError::invalid_parameter("ServiceRegistry insecure mode can not handle secure services"));
        }
        if service_uri.trim().chars().count() > TEXT_LENGTH_MAX {
            return Err(ArrowheadError::database());
        }
        let metadata = Metadata::parse_optional(form.metadata)?;
        Ok(Self { definition, provider, service_uri: service_uri.trim().into(), end_of_validity, secure, metadata, version, interfaces })
    }
}

fn parse_interfaces(
    form: Option<Vec<Option<String>>>,
    rules: &NamingRules,
    origin: &str,
) -> Result<BTreeSet<InterfaceName>, ArrowheadError> {
    let interfaces = form.unwrap_or_default();
    if interfaces.is_empty() {
        return Err(ArrowheadError::bad_payload("Interfaces list is null or empty.", origin));
    }
    let parse = |text: Option<String>| InterfaceName::parse(&text.unwrap_or_default(), rules);
    interfaces
        .into_iter()
        .map(parse)
        .collect::<Result<_, _>>()
        .map_err(|error| ArrowheadError::bad_payload(format!("Interface name {error}"), origin))
}

/// A service to be removed from the registry; system and definition stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unregistration {
    /// What was offered; looked up in any case.
    pub definition: String,
    /// Who offered it.
    pub provider: SystemKey,
    /// Where; exact after trimming.
    pub service_uri: String,
}

impl Unregistration {
    /// Checks the query parameters; all of them must be there, only the URI may be empty.
    pub fn parse(definition: &str, name: &str, address: &str, port: i64, service_uri: &str, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: &str| Err(ArrowheadError::bad_payload(message, origin));
        if definition.trim().is_empty() {
            return refused("Service definition is blank.");
        }
        let provider = parse_system_parameters(name, address, port, origin)?;
        Ok(Self { definition: definition.trim().to_lowercase(), provider, service_uri: service_uri.trim().to_owned() })
    }
}

/// Checks the query parameters that name a system (`system_name`, `address`, `port`).
pub fn parse_system_parameters(name: &str, address: &str, port: i64, origin: &str) -> Result<SystemKey, ArrowheadError> {
    let refused = |message: &str| Err(ArrowheadError::bad_payload(message, origin));
    if name.trim().is_empty() {
        return refused("Name of the system is blank.");
    }
    if address.trim().is_empty() {
        return refused("Address of the system is blank.");
    }
    match u16::try_from(port) {
        Ok(port) => Ok(SystemKey::new(name, address, port)),
        Err(_) => refused("Port must be between 0 and 65535."),
    }
}

/// What a query asks for. An empty list is no filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The service definition, in any case.
    pub definition: String,
    address_kinds: Vec<AddressKind>,
    interfaces: Vec<String>,
    securities: Vec<Security>,
    version: Option<i64>,
    version_range: (i64, i64),
    metadata: MetadataRequirement,
    /// Whether only providers that accept a TCP connection are wanted; connecting is the host's part.
    pub ping_providers: bool,
}

impl Query {
    /// Checks a form.
    pub fn parse(form: &ServiceQueryForm, origin: &str) -> Result<Self, ArrowheadError> {
        let definition = form.service_definition_requirement.as_deref().unwrap_or_default().trim();
        if definition.is_empty() {
            return Err(ArrowheadError::bad_payload("Service definition requirement is null or blank.", origin));
        }
        let interfaces = form.interface_requirements.iter().flatten().flatten();
        Ok(Self {
            definition: definition.to_lowercase(),
            address_kinds: form.provider_address_type_requirements.iter().flatten().flatten().copied().collect(),
            interfaces: interfaces.map(|text| text.trim().to_uppercase()).filter(|text| !text.is_empty()).collect(),
            securities: form.security_requirements.iter().flatten().flatten().copied().collect(),
            version: form.version_requirement,
            version_range: (form.min_version_requirement.unwrap_or(1), form.max_version_requirement.unwrap_or(i64::MAX)),
            metadata: form
                .metadata_requirements
                .as_ref()
                .map_or(Ok(MetadataRequirement::default()), |m| MetadataRequirement::parse(m, origin))?,
            ping_providers: form.ping_providers.unwrap_or(false),
        })
    }

    fn versions_match(&self, entry: &Entry) -> bool {
        let version = i64::from(entry.version);
        match (self.version, self.version_range) {
            (Some(exact), _) => version == exact,
            (None, (1, i64::MAX)) => true,
            (None, (min, max)) => (min..=max).contains(&version),
        }
    }

    fn matches(&self, view: &EntryView) -> bool {
        (self.address_kinds.is_empty() || self.address_kinds.contains(&view.provider.address.kind()))
            && (self.securities.is_empty() || self.securities.contains(&view.entry.secure))
            && self.versions_match(&view.entry)
            && view.has_metadata(&self.metadata)
    }

    /// The entry's view with the asked interfaces, if it is of the asked kind. The definition is not looked at.
    pub(crate) fn select(&self, snapshot: &Snapshot, entry: &Arc<Entry>) -> Option<EntryView> {
        let mut view = snapshot.view(entry);
        (self.matches(&view) && self.narrow(&mut view)).then_some(view)
    }

    /// Narrows the view to the asked interfaces; false if none is left.
    fn narrow(&self, view: &mut EntryView) -> bool {
        if self.interfaces.is_empty() {
            return true;
        }
        view.interfaces.retain(|interface| self.interfaces.iter().any(|wanted| wanted == interface.interface_name.as_str()));
        !view.interfaces.is_empty()
    }
}

/// The answer to a query. Serialised it is `ServiceQueryResult`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryResult {
    /// What matches, by provider id, then service URI; interfaces are narrowed to the asked ones.
    pub service_query_data: Vec<EntryView>,
    /// Entries of the definition before any filter.
    pub unfiltered_hits: usize,
}

/// Answers a query; pinging what is left is the host's part. Expired entries are answered too, as upstream does.
pub fn query(snapshot: &Snapshot, query: &Query) -> QueryResult {
    let Some(definition) = snapshot.definition_by_name(&query.definition) else { return QueryResult::default() };
    let mut result = QueryResult::default();
    for entry in snapshot.entries_of(definition.id) {
        result.unfiltered_hits += 1;
        result.service_query_data.extend(query.select(snapshot, entry));
    }
    result
}
