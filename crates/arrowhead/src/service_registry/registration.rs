//! Registering a service, and changing one.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    core_service,
    error::ArrowheadError,
    form::{ServiceDefinitionRequest, ServiceInterfaceRequest, ServiceRegistryRequest},
    metadata::Metadata,
    name::{InterfaceName, NamingRules, ServiceDefinition, TEXT_LENGTH_MAX},
    record::Security,
    system::{CoreSystemNames, EMPTY_PATCH, SystemPatch, SystemRegistration, not_blank},
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
        let definition = parse_definition(form.service_definition.as_deref(), rules, origin)?;
        let provider = form.provider_system.ok_or_else(|| ArrowheadError::bad_payload("Provider system is null.", origin))?;
        let provider = SystemRegistration::parse(provider, core_systems, rules, origin)?;
        let end_of_validity = parse_end_of_validity(not_blank(form.end_of_validity), origin)?;
        let secure = parse_secure(form.secure.as_deref(), Some(&provider.authentication_info), origin)?;
        let interfaces = parse_interfaces(form.interfaces, rules, origin)?;
        let version = parse_version(form.version.unwrap_or(1), origin)?;
        check_mode(secure, rules)?;
        let service_uri = parse_service_uri(form.service_uri.as_deref().unwrap_or_default(), origin)?;
        let metadata = Metadata::parse_optional(form.metadata, origin)?;
        Ok(Self { definition, provider, service_uri, end_of_validity, secure, metadata, version, interfaces })
    }
}

/// The members of an entry that change (reference 3.5). Absent and blank ones keep what is there, but for `secure`, which then is
/// `NOT_SECURE`.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPatch {
    definition: Option<ServiceDefinition>,
    provider: Option<SystemPatch>,
    service_uri: Option<Arc<str>>,
    end_of_validity: Option<UtcTime>,
    secure: Security,
    metadata: Option<Metadata>,
    version: Option<i32>,
    interfaces: Option<BTreeSet<InterfaceName>>,
}

impl EntryPatch {
    /// Checks what is given, in the order of a registration; at least one member must be.
    pub fn parse(form: ServiceRegistryRequest, rules: &NamingRules, origin: &str) -> Result<Self, ArrowheadError> {
        let gives_secure = form.secure.as_ref().is_some_and(|secure| !secure.trim().is_empty());
        let definition = not_blank(form.service_definition).map(|text| parse_definition(Some(&text), rules, origin)).transpose()?;
        let provider = SystemPatch::parse_optional(form.provider_system, rules, origin)?;
        // Upstream checks a patch's date in the database layer only.
        let end_of_validity = parse_end_of_validity(not_blank(form.end_of_validity), origin)
            .map_err(|error| ArrowheadError::invalid_parameter(error.error_message))?;
        let public_key = provider.as_ref().map(SystemPatch::authentication_info);
        let secure = parse_secure(form.secure.as_deref(), public_key, origin)?;
        let interfaces = form.interfaces.filter(|interfaces| !interfaces.is_empty());
        let interfaces = interfaces.map(|interfaces| parse_interfaces(Some(interfaces), rules, origin)).transpose()?;
        let version = form.version.map(|version| parse_version(version, origin)).transpose()?;
        check_mode(secure, rules)?;
        let service_uri = form.service_uri.map(|text| parse_service_uri(&text, origin)).transpose()?;
        let metadata = Metadata::parse_optional(form.metadata, origin)?;
        let gives_row = definition.is_some() || provider.is_some() || service_uri.is_some() || interfaces.is_some();
        if !(gives_row || gives_secure || end_of_validity.is_some() || metadata.is_some() || version.is_some()) {
            return Err(ArrowheadError::bad_payload(EMPTY_PATCH, origin));
        }
        Ok(Self { definition, provider, service_uri, end_of_validity, secure, metadata, version, interfaces })
    }

    /// The entry as it is to be.
    pub fn apply(self, current: Registration) -> Registration {
        Registration {
            definition: self.definition.unwrap_or(current.definition),
            provider: match self.provider {
                Some(patch) => patch.apply_to_provider(current.provider),
                None => current.provider,
            },
            service_uri: self.service_uri.unwrap_or(current.service_uri),
            end_of_validity: self.end_of_validity.or(current.end_of_validity),
            secure: self.secure,
            metadata: self.metadata.or(current.metadata),
            version: self.version.unwrap_or(current.version),
            interfaces: self.interfaces.unwrap_or(current.interfaces),
        }
    }
}

/// A service definition that management makes or renames to: none of the core systems'.
pub fn parse_new_definition(
    form: &ServiceDefinitionRequest,
    rules: &NamingRules,
    origin: &str,
) -> Result<ServiceDefinition, ArrowheadError> {
    let definition = parse_definition(form.service_definition.as_deref(), rules, origin)?;
    if core_service::is_core_service(definition.as_str()) {
        let told = format!("Service definition '{definition}' is a reserved arrowhead core service definition.");
        return Err(ArrowheadError::bad_payload(told, origin));
    }
    Ok(definition)
}

/// An interface that management makes or renames to.
pub fn parse_new_interface(form: &ServiceInterfaceRequest, rules: &NamingRules, origin: &str) -> Result<InterfaceName, ArrowheadError> {
    parse_interface(form.interface_name.as_deref(), rules, origin)
}

fn parse_definition(text: Option<&str>, rules: &NamingRules, origin: &str) -> Result<ServiceDefinition, ArrowheadError> {
    let definition = ServiceDefinition::parse(text.unwrap_or_default(), rules);
    definition.map_err(|error| ArrowheadError::bad_payload(format!("Service definition {error}"), origin))
}

fn parse_end_of_validity(text: Option<String>, origin: &str) -> Result<Option<UtcTime>, ArrowheadError> {
    let parse = |text: String| UtcTime::parse(&text).map(UtcTime::whole_seconds);
    let refused = |error| ArrowheadError::bad_payload(format!("End of validity {error}"), origin);
    text.map(parse).transpose().map_err(refused)
}

/// Blank and absent are `NOT_SECURE`. `public_key` is the provider's, where the provider is given.
fn parse_secure(text: Option<&str>, public_key: Option<&Option<Arc<str>>>, origin: &str) -> Result<Security, ArrowheadError> {
    let refused = |message: String| ArrowheadError::bad_payload(message, origin);
    let secure = match text.map(str::trim) {
        None | Some("") => Security::NotSecure,
        Some(text) => Security::parse(text).ok_or_else(|| refused(format!("Security type '{text}' is not valid.")))?,
    };
    let is_blank = |key: &Option<Arc<str>>| key.as_ref().is_none_or(|key| key.trim().is_empty());
    if secure != Security::NotSecure && public_key.is_some_and(is_blank) {
        return Err(refused(format!("Security type is {}, but the provider has no authenticationInfo.", secure.as_str())));
    }
    Ok(secure)
}

/// In insecure mode only services that anybody may call can be registered.
fn check_mode(secure: Security, rules: &NamingRules) -> Result<(), ArrowheadError> {
    if secure == Security::NotSecure || rules.secure_services {
        return Ok(());
    }
    Err(ArrowheadError::invalid_parameter("ServiceRegistry insecure mode can not handle secure services"))
}

fn parse_version(version: i64, origin: &str) -> Result<i32, ArrowheadError> {
    i32::try_from(version).map_err(|_| ArrowheadError::bad_payload("Version is out of range.", origin))
}

/// A service URI goes into request lines and lists: it has no line ends, and no other control characters.
fn parse_service_uri(text: &str, origin: &str) -> Result<Arc<str>, ArrowheadError> {
    let text = text.trim();
    if text.contains(char::is_control) {
        return Err(ArrowheadError::bad_payload("Service URI has a control character; write it percent-encoded.", origin));
    }
    if text.chars().count() > TEXT_LENGTH_MAX { Err(ArrowheadError::database()) } else { Ok(text.into()) }
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
    interfaces.into_iter().map(|text| parse_interface(text.as_deref(), rules, origin)).collect()
}

fn parse_interface(text: Option<&str>, rules: &NamingRules, origin: &str) -> Result<InterfaceName, ArrowheadError> {
    let interface = InterfaceName::parse(text.unwrap_or_default(), rules);
    interface.map_err(|error| ArrowheadError::bad_payload(format!("Interface name {error}"), origin))
}
