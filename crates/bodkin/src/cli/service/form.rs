//! What people write about a service, as requests say it.

use bodkin_arrowhead::form::{ServiceQueryForm, ServiceRegistryRequest, SystemRequest};
use bodkin_arrowhead::record::Security;
use bodkin_client::{CoreSystems, answer::Service};
use clap::{Args, ValueEnum};

use crate::cli::{
    lookup,
    pair::{metadata, parse_pair},
    public_key,
    system::NewSystem,
};

/// How a service is secured.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Protection {
    NotSecure,
    Certificate,
    Token,
}

impl Protection {
    fn name(self) -> String {
        self.to_possible_value().expect("no value is skipped").get_name().to_owned()
    }

    /// What an interface is when none is named: a service that is secured is called over TLS.
    fn default_interface(self) -> &'static str {
        match self {
            Self::NotSecure => "HTTP-INSECURE-JSON",
            Self::Certificate | Self::Token => "HTTP-SECURE-JSON",
        }
    }
}

impl From<Protection> for Security {
    fn from(secure: Protection) -> Self {
        match secure {
            Protection::NotSecure => Self::NotSecure,
            Protection::Certificate => Self::Certificate,
            Protection::Token => Self::Token,
        }
    }
}

/// A service that is registered, or what one is replaced by.
#[derive(Args, Clone, Debug)]
pub struct NewService {
    /// What is offered, for example temperature
    #[arg(value_name = "SERVICE")]
    definition: String,
    #[command(flatten)]
    provider: NewSystem,
    /// Where at the provider
    #[arg(long, value_name = "PATH", default_value = "")]
    uri: String,
    /// An interface; may be repeated [default: HTTP-INSECURE-JSON, or HTTP-SECURE-JSON where --secure says how it is secured]
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// A free pair; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Version of the service
    #[arg(long = "service-version", value_name = "N", default_value_t = 1)]
    version: i64,
    /// Until when it is offered (UTC), for example 2031-01-01T00:00:00Z [default: for ever]
    #[arg(long, value_name = "TIME")]
    valid_until: Option<String>,
    /// How it is secured
    #[arg(long, value_enum, value_name = "HOW", default_value = "NOT_SECURE", ignore_case = true)]
    secure: Protection,
    /// Certificate (PEM) of the provider, whose key it is known by; a service that is secured needs one
    #[arg(long, value_name = "FILE", conflicts_with = "authentication_info", value_parser = public_key::of_certificate)]
    certificate: Option<String>,
    /// Base64 of the provider's public key, instead
    #[arg(long, value_name = "KEY")]
    authentication_info: Option<String>,
}

impl From<NewService> for ServiceRegistryRequest {
    fn from(mut new: NewService) -> Self {
        if new.interfaces.is_empty() {
            new.interfaces.push(new.secure.default_interface().to_owned());
        }
        Self {
            service_definition: Some(new.definition),
            provider_system: Some(SystemRequest {
                authentication_info: new.certificate.or(new.authentication_info),
                ..new.provider.into()
            }),
            service_uri: Some(new.uri),
            end_of_validity: new.valid_until,
            secure: Some(new.secure.name()),
            metadata: metadata(new.metadata),
            version: Some(new.version),
            interfaces: Some(new.interfaces.into_iter().map(Some).collect()),
        }
    }
}

/// What is to be another in a service.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct ServiceChange {
    /// What is offered
    #[arg(long, value_name = "SERVICE")]
    definition: Option<String>,
    /// Name or id of the registered system that offers it
    #[arg(long, value_name = "SYSTEM")]
    provider: Option<String>,
    /// Where at the provider
    #[arg(long, value_name = "PATH")]
    uri: Option<String>,
    /// An interface, instead of all that it has; may be repeated
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// A free pair, instead of all that it has; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Version of the service
    #[arg(long = "service-version", value_name = "N")]
    version: Option<i64>,
    /// Until when it is offered (UTC)
    #[arg(long, value_name = "TIME")]
    valid_until: Option<String>,
    /// How it is secured
    #[arg(long, value_enum, value_name = "HOW", ignore_case = true)]
    secure: Option<Protection>,
}

impl ServiceChange {
    /// The change as a PATCH of `service` says it. Two members are not kept by leaving them out (reference 3.5): how the
    /// service is secured, and a named provider's key and metadata.
    pub async fn form(self, cloud: &CoreSystems, service: &Service) -> anyhow::Result<ServiceRegistryRequest> {
        let provider = match self.provider {
            Some(text) => Some(lookup::whole_form(&lookup::system(cloud, &text).await?)),
            None => None,
        };
        Ok(ServiceRegistryRequest {
            service_definition: self.definition,
            provider_system: provider,
            service_uri: self.uri,
            end_of_validity: self.valid_until,
            secure: Some(self.secure.map_or_else(|| service.secure.clone(), Protection::name)),
            metadata: metadata(self.metadata),
            version: self.version,
            interfaces: (!self.interfaces.is_empty()).then(|| self.interfaces.into_iter().map(Some).collect()),
        })
    }
}

/// What a service must have.
#[derive(Args, Clone, Debug)]
pub struct Wanted {
    /// At least one of these interfaces; may be repeated
    #[arg(long = "interface", value_name = "NAME")]
    pub interfaces: Vec<String>,
    /// A pair the service must have; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub metadata: Vec<(String, String)>,
    /// Exactly this version
    #[arg(long = "service-version", value_name = "N")]
    version: Option<i64>,
}

impl Wanted {
    /// A query for the services of a definition.
    pub fn form(self, definition: String) -> ServiceQueryForm {
        ServiceQueryForm {
            service_definition_requirement: Some(definition),
            interface_requirements: Some(self.interfaces.into_iter().map(Some).collect()),
            metadata_requirements: metadata(self.metadata),
            version_requirement: self.version,
            ..ServiceQueryForm::default()
        }
    }
}

/// What a service must be like.
#[derive(Args, Clone, Debug)]
pub struct Requirement {
    /// What is wanted
    #[arg(value_name = "SERVICE")]
    pub definition: String,
    #[command(flatten)]
    wanted: Wanted,
    /// At least this version
    #[arg(long, value_name = "N", conflicts_with = "version")]
    min_version: Option<i64>,
    /// At most this version
    #[arg(long, value_name = "N", conflicts_with = "version")]
    max_version: Option<i64>,
    /// One of these; may be repeated
    #[arg(long, value_enum, value_name = "HOW", ignore_case = true)]
    secure: Vec<Protection>,
    /// Only providers that accept a connection now
    #[arg(long)]
    ping: bool,
}

impl From<Requirement> for ServiceQueryForm {
    fn from(requirement: Requirement) -> Self {
        Self {
            security_requirements: Some(requirement.secure.into_iter().map(|secure| Some(secure.into())).collect()),
            min_version_requirement: requirement.min_version,
            max_version_requirement: requirement.max_version,
            ping_providers: Some(requirement.ping),
            ..requirement.wanted.form(requirement.definition)
        }
    }
}
