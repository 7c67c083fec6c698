//! `bodkin service`: who offers what.

mod catalog;
mod form;
mod state;

use bodkin_client::{
    Change, CoreSystems, Page,
    answer::{Interface, List, Service, ServiceDefinition},
};
use clap::{Args, Subcommand};
use serde_json::json;

pub use self::form::Wanted;
use self::{
    catalog::CatalogCommand,
    form::{NewService, Requirement, ServiceChange},
};
use super::{
    details::Details, lookup, name_row, page::PageOptions, printer::Printer, probe, registry::RegistryOptions, system::pairs, table::Table,
};
use crate::{DONE, FAILED};

/// What ends the name of an interface that speaks HTTP without TLS.
const PLAIN_HTTP: &str = "HTTP-INSECURE-";
const LIST_COMMAND: &str = "bodkin service list";

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
    /// List services
    List(Listing),
    /// Show one service
    Show(Id),
    /// Register a service, and its provider where that is new
    Add(NewService),
    /// Change what is given of a service; the rest stays
    Update {
        #[command(flatten)]
        id: Id,
        #[command(flatten)]
        change: ServiceChange,
    },
    /// Make a service what is given; what is not given becomes the default
    Replace {
        #[command(flatten)]
        id: Id,
        #[command(flatten)]
        service: NewService,
    },
    /// Remove a service; its provider stays
    Remove(Id),
    /// Find the services of one definition, whoever may use them
    Query(Requirement),
    /// Connect to the provider of a service and say what is found; exit code 1 if it is not there
    Test(Id),
    /// Service definitions: the names of what can be offered
    #[command(subcommand)]
    Definition(CatalogCommand),
    /// Interfaces: over what it can be used
    #[command(subcommand)]
    Interface(CatalogCommand),
}

#[derive(Args, Clone, Debug)]
struct Id {
    /// Id of the service, as the list shows it
    #[arg(value_name = "ID")]
    id: i64,
}

#[derive(Args, Clone, Debug)]
struct Listing {
    /// Only the services of this definition
    #[arg(long, value_name = "SERVICE")]
    definition: Option<String>,
    /// Show what is known of each service's life: time to live, last probe
    #[arg(long, conflicts_with_all = ["definition", "page", "sort", "descending"])]
    state: bool,
    /// As --state, of the services that are expired or unreachable
    #[arg(long, conflicts_with_all = ["definition", "page", "sort", "descending"])]
    stale: bool,
    #[command(flatten)]
    page: PageOptions,
}

/// Carries a command out; gives the exit code.
pub async fn run(options: ServiceOptions, printer: Printer) -> anyhow::Result<u8> {
    if let ServiceCommand::List(listing) = &options.command
        && (listing.state || listing.stale)
    {
        return state::list(&options.registry.monitor()?, listing.stale, printer).await;
    }
    let cloud = options.registry.discover().await?;
    match options.command {
        ServiceCommand::List(listing) => list(&cloud, listing, printer).await?,
        ServiceCommand::Show(Id { id }) => {
            let service = found(&cloud, id).await?;
            printer.one(&service, &details(&service))?;
        }
        ServiceCommand::Add(new) => {
            let form = new.into();
            let service = if cloud.is_operator() { cloud.add_service(&form).await? } else { cloud.register(&form).await? };
            printer.done(&service, &format!("registered: {}, id {}", told(&service), service.id))?;
        }
        ServiceCommand::Update { id: Id { id }, change } => {
            let form = change.form(&cloud, &found(&cloud, id).await?).await?;
            let service = cloud.change_service(id, Change::Patch, &form).await?;
            printer.done(&service, &format!("changed: {}, id {}", told(&service), service.id))?;
        }
        ServiceCommand::Replace { id: Id { id }, service } => {
            let service = cloud.change_service(id, Change::Replace, &service.into()).await?;
            printer.done(&service, &format!("replaced: {}, id {}", told(&service), service.id))?;
        }
        ServiceCommand::Remove(Id { id }) => {
            let service = found(&cloud, id).await?;
            cloud.remove_service(id).await?;
            printer.done(&json!({"removed": service}), &format!("removed: {}", told(&service)))?;
        }
        ServiceCommand::Query(requirement) => query(&options.registry, &cloud, requirement, printer).await?,
        ServiceCommand::Test(Id { id }) => return test(&found(&cloud, id).await?, printer).await,
        ServiceCommand::Definition(command) => catalog::run::<ServiceDefinition>(&cloud, command, printer).await?,
        ServiceCommand::Interface(command) => catalog::run::<Interface>(&cloud, command, printer).await?,
    }
    Ok(DONE)
}

async fn found(cloud: &CoreSystems, id: i64) -> anyhow::Result<Service> {
    lookup::found(cloud.service(id).await, "service", id, LIST_COMMAND)
}

async fn list(cloud: &CoreSystems, listing: Listing, printer: Printer) -> anyhow::Result<()> {
    let page = listing.page.into();
    let services: List<Service> = match listing.definition {
        Some(definition) => {
            let known = name_row::find::<ServiceDefinition>(cloud, &definition).await?;
            cloud.services_of(&known.service_definition, &page).await?
        }
        None => cloud.services(&page).await?,
    };
    Ok(printer.rows(&services, &table(&services.data), "no services are registered")?)
}

async fn query(registry: &RegistryOptions, cloud: &CoreSystems, requirement: Requirement, printer: Printer) -> anyhow::Result<()> {
    let definition = requirement.definition.clone();
    let form = requirement.into();
    let found = if cloud.is_operator() { registry.monitor()?.find_services(&form).await? } else { cloud.query(&form).await? };
    let none = match found.unfiltered_hits {
        0 => format!("no service {definition} is registered; see {LIST_COMMAND}"),
        hits => format!("none of the {hits} registered {definition} services fits the requirements"),
    };
    Ok(printer.rows(&found, &table(&found.service_query_data), &none)?)
}

async fn test(service: &Service, printer: Printer) -> anyhow::Result<u8> {
    let plain_http = service.interfaces.iter().any(|interface| interface.interface_name.starts_with(PLAIN_HTTP));
    let found = probe::look(service.provider.host_and_port(), plain_http.then_some(service.service_uri.as_str())).await;
    printer.done(&json!({"service": service, "found": found}), &format!("{}: {}", told(service), found.told()))?;
    Ok(if found.is_there() { DONE } else { FAILED })
}

/// The services of a definition that a provider offers. Operators list them: a query is for core systems.
pub(super) async fn services_of(cloud: &CoreSystems, definition: &str, provider_id: i64) -> anyhow::Result<Vec<Service>> {
    let known = name_row::find::<ServiceDefinition>(cloud, definition).await?;
    let mut services = cloud.services_of(&known.service_definition, &Page::default()).await?.data;
    services.retain(|service| service.provider.id == provider_id);
    Ok(services)
}

/// `temperature of sensor at 127.0.0.1:9000`.
fn told(service: &Service) -> String {
    format!("{} of {}", service.service_definition.service_definition, lookup::told(&service.provider))
}

fn details(service: &Service) -> Details {
    Details::default()
        .with("id", service.id)
        .with("service", &service.service_definition.service_definition)
        .with("provider", format!("{}, id {}", lookup::told(&service.provider), service.provider.id))
        .with("uri", &service.service_uri)
        .with("interfaces", interface_names(&service.interfaces))
        .with("secure", &service.secure)
        .with("version", service.version)
        .with("valid until", service.end_of_validity.as_deref().unwrap_or("for ever"))
        .with("metadata", pairs(service.metadata.as_ref()))
        .with_times(service.created_at.as_ref(), service.updated_at.as_ref())
}

fn table(services: &[Service]) -> Table {
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
    table
}

/// Interface names in one cell.
pub(super) fn interface_names(interfaces: &[Interface]) -> String {
    interfaces.iter().map(|interface| interface.interface_name.as_str()).collect::<Vec<_>>().join(", ")
}
