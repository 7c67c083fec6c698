//! `bodkin service`: who offers what.

use anyhow::Context;
use bodkin_arrowhead::form::{ServiceQueryForm, ServiceRegistryRequest};
use bodkin_client::{
    CoreSystems,
    answer::{Interface, Service},
};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    lookup,
    pair::{metadata, parse_pair},
    printer::Printer,
    registry::RegistryOptions,
    system::NewSystem,
    table::Table,
};

/// What an interface is when none is named.
const DEFAULT_INTERFACE: &str = "HTTP-INSECURE-JSON";

/// Options of `bodkin service`.
#[derive(Args, Clone, Debug)]
pub struct ServiceOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(subcommand)]
    command: ServiceCommand,
}

/// What to do with services.
#[derive(Subcommand, Clone, Debug)]
enum ServiceCommand {
    /// List all services
    List,
    /// Register a service, and its provider where that is new
    Add(NewService),
    /// Remove a service; its provider stays
    Remove {
        /// Id of the service, as the list shows it
        #[arg(value_name = "ID")]
        id: i64,
    },
    /// Find the services of one definition
    Query(Requirement),
}

#[derive(Args, Clone, Debug)]
struct NewService {
    /// What is offered, for example temperature
    #[arg(value_name = "SERVICE")]
    definition: String,
    #[command(flatten)]
    provider: NewSystem,
    /// Where at the provider
    #[arg(long, value_name = "PATH", default_value = "")]
    uri: String,
    /// An interface; may be repeated
    #[arg(long = "interface", value_name = "NAME", default_value = DEFAULT_INTERFACE)]
    interfaces: Vec<String>,
    /// A free pair; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Version of the service
    #[arg(long = "service-version", value_name = "N", default_value_t = 1)]
    version: i64,
    /// Until when it is offered (UTC), for example 2031-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    valid_until: Option<String>,
}

#[derive(Args, Clone, Debug)]
struct Requirement {
    /// What is wanted
    #[arg(value_name = "SERVICE")]
    definition: String,
    /// At least one of these interfaces
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// A pair the service must have; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Exactly this version
    #[arg(long = "service-version", value_name = "N")]
    version: Option<i64>,
    /// Only providers that accept a connection now
    #[arg(long)]
    ping: bool,
}

/// Carries a command out.
pub async fn run(options: ServiceOptions, printer: Printer) -> anyhow::Result<()> {
    let cloud = options.registry.discover().await?;
    match options.command {
        ServiceCommand::List => {
            let services = cloud.services().await?;
            printer.rows(&services, table(&services.data), "no services are registered")?;
        }
        ServiceCommand::Add(new) => add(&cloud, new, printer).await?,
        ServiceCommand::Remove { id } => {
            let found = cloud.services().await?.data.into_iter().find(|service| service.id == id);
            let service = found.with_context(|| format!("no service has id {id}; see bodkin service list"))?;
            cloud.remove_service(id).await?;
            printer.done(&json!({"removed": service}), &format!("removed: {}", told(&service)))?;
        }
        ServiceCommand::Query(requirement) => query(&cloud, requirement, printer).await?,
    }
    Ok(())
}

async fn add(cloud: &CoreSystems, new: NewService, printer: Printer) -> anyhow::Result<()> {
    let form = ServiceRegistryRequest {
        service_definition: Some(new.definition),
        provider_system: Some(new.provider.into()),
        service_uri: Some(new.uri),
        end_of_validity: new.valid_until,
        secure: Some("NOT_SECURE".to_owned()),
        metadata: metadata(new.metadata),
        version: Some(new.version),
        interfaces: Some(new.interfaces.into_iter().map(Some).collect()),
    };
    let service = cloud.register(&form).await?;
    Ok(printer.done(&service, &format!("registered: {}, id {}", told(&service), service.id))?)
}

async fn query(cloud: &CoreSystems, requirement: Requirement, printer: Printer) -> anyhow::Result<()> {
    let form = ServiceQueryForm {
        service_definition_requirement: Some(requirement.definition.clone()),
        interface_requirements: Some(requirement.interfaces.into_iter().map(Some).collect()),
        metadata_requirements: metadata(requirement.metadata),
        version_requirement: requirement.version,
        ping_providers: Some(requirement.ping),
        ..ServiceQueryForm::default()
    };
    let found = cloud.query(&form).await?;
    let none = match found.unfiltered_hits {
        0 => format!("no service {} is registered; see bodkin service list", requirement.definition),
        hits => format!("none of the {hits} registered {} services fits the requirements", requirement.definition),
    };
    Ok(printer.rows(&found, table(&found.service_query_data), &none)?)
}

fn told(service: &Service) -> String {
    format!("{} of {}", service.service_definition.service_definition, lookup::told(&service.provider))
}

fn table(services: &[Service]) -> Option<Table> {
    let mut table = Table::new(&["ID", "SERVICE", "PROVIDER", "ADDRESS", "URI", "INTERFACES"]);
    for service in services {
        table.push([
            service.id.to_string(),
            service.service_definition.service_definition.clone(),
            service.provider.system_name.clone(),
            service.provider.host_and_port(),
            service.service_uri.clone(),
            interface_names(&service.interfaces),
        ]);
    }
    (!services.is_empty()).then_some(table)
}

/// Interface names in one cell.
pub(super) fn interface_names(interfaces: &[Interface]) -> String {
    interfaces.iter().map(|interface| interface.interface_name.as_str()).collect::<Vec<_>>().join(", ")
}
