//! `bodkin rule`: the orchestration store, which says whom a consumer is sent to first.

mod flexible;
mod priority;
mod usability;

use std::collections::BTreeSet;

use anyhow::bail;
use bodkin_client::{
    CoreSystems,
    answer::{Interface, List, ServiceDefinition, StoreEntry, System},
    request::{CloudName, Provider, StoreRequest},
};
use clap::{Args, Subcommand};
use serde_json::json;

use self::flexible::FlexibleCommand;
use super::{
    details::Details,
    lookup, name_row,
    page::PageOptions,
    pair::{CloudOption, map, parse_cloud, parse_pair},
    printer::Printer,
    registry::RegistryOptions,
    service::services_of,
    system::pairs,
    table::Table,
};
use crate::DONE;

const LIST_COMMAND: &str = "bodkin rule list";

/// Options of `bodkin rule`.
#[derive(Args, Clone, Debug)]
pub struct RuleOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(subcommand)]
    command: RuleCommand,
}

/// What to do with the rules of the orchestration store.
#[derive(Subcommand, Clone, Debug)]
enum RuleCommand {
    /// List rules
    List(Listing),
    /// Show one rule
    Show(Id),
    /// Send a consumer that asks for a service to this provider
    Add(NewRule),
    /// Remove a rule; those behind it move up
    Remove(Id),
    /// Give a rule another priority; those at and behind it make room
    Move {
        #[command(flatten)]
        id: Id,
        /// Its new priority; 1 is asked first
        #[arg(value_name = "PRIORITY", value_parser = clap::value_parser!(u32).range(1..))]
        priority: u32,
    },
    /// Which rule would be used now, and what keeps the others from it? Exit code 3 if authorization does, 1 for other reasons
    Test {
        /// Name or id of the system that would ask
        #[arg(long, value_name = "SYSTEM")]
        consumer: String,
        /// The service definition [default: all with a rule of priority 1]
        #[arg(long, value_name = "SERVICE")]
        service: Option<String>,
        /// Over this interface [default: any]
        #[arg(long, value_name = "NAME", requires = "service")]
        interface: Option<String>,
    },
    /// Rules by names and metadata, for a cloud with `use_flexible_store`
    #[command(subcommand)]
    Flexible(FlexibleCommand),
}

#[derive(Args, Clone, Debug)]
struct Id {
    /// Id of the rule, as the list shows it
    #[arg(value_name = "ID")]
    id: i64,
}

#[derive(Args, Clone, Debug)]
struct Listing {
    /// Only the first choices: rules of priority 1
    #[arg(long, conflicts_with = "consumer")]
    top: bool,
    /// Only rules of this consumer, by name or id, for --service
    #[arg(long, value_name = "SYSTEM", requires = "service")]
    consumer: Option<String>,
    /// Only rules for this service definition
    #[arg(long, value_name = "SERVICE", requires = "consumer")]
    service: Option<String>,
    /// Only rules over this interface
    #[arg(long, value_name = "NAME", requires = "consumer")]
    interface: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

#[derive(Args, Clone, Debug)]
struct NewRule {
    /// Name or id of the system that asks
    #[arg(long, value_name = "SYSTEM")]
    consumer: String,
    /// The service definition
    #[arg(long, value_name = "SERVICE")]
    service: String,
    /// Name or id of the system it is sent to; with --cloud NAME@HOST:PORT
    #[arg(long, value_name = "SYSTEM")]
    provider: String,
    /// The interface it asks for [default: the one that the provider's service has]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// 1 is asked first; rules at and behind it move down [default: last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    priority: Option<u32>,
    /// A free pair; may be repeated
    #[arg(long = "attribute", value_name = "KEY=VALUE", value_parser = parse_pair)]
    attribute: Vec<(String, String)>,
    /// The cloud of the provider, which says nothing of its interfaces [default: this one]
    #[arg(long, value_name = "OPERATOR/NAME", value_parser = parse_cloud, requires = "interface")]
    cloud: Option<CloudOption>,
}

/// Carries a command out; gives the exit code.
pub async fn run(options: RuleOptions, printer: Printer) -> anyhow::Result<u8> {
    let cloud = options.registry.discover().await?;
    match options.command {
        RuleCommand::List(listing) => {
            let entries = list(&cloud, listing).await?;
            printer.rows(&entries, &table(&entries.data), "no rules: the orchestration store is empty, or has nothing of that kind")?;
        }
        RuleCommand::Show(Id { id }) => {
            let entry = found(&cloud, id).await?;
            printer.one(&entry, &details(&entry))?;
        }
        RuleCommand::Add(new) => {
            let entry = add(&cloud, new).await?;
            printer.done(&entry, &format!("rule {}: {}", entry.id, told(&entry)))?;
        }
        RuleCommand::Remove(Id { id }) => {
            let entry = found(&cloud, id).await?;
            cloud.remove_store_entry(id).await?;
            printer.done(&json!({"removed": entry}), &format!("removed: rule {id}: {}", told(&entry)))?;
        }
        RuleCommand::Move { id: Id { id }, priority } => {
            let moved = priority::set(&cloud, &found(&cloud, id).await?, priority).await?;
            printer.done(&moved, &format!("rule {id}: {}", told(&moved)))?;
        }
        RuleCommand::Test { consumer, service, interface } => {
            let consumer = lookup::system(&cloud, &consumer).await?;
            let states =
                usability::states(&cloud, &options.registry.monitor()?, &consumer, service.as_deref(), interface.as_deref()).await?;
            return Ok(usability::print(&states, &consumer.system_name, printer)?);
        }
        RuleCommand::Flexible(command) => flexible::run(&cloud, command, printer).await?,
    }
    Ok(DONE)
}

async fn found(cloud: &CoreSystems, id: i64) -> anyhow::Result<StoreEntry> {
    lookup::found(cloud.store_entry(id).await, "rule", id, LIST_COMMAND)
}

async fn list(cloud: &CoreSystems, listing: Listing) -> anyhow::Result<List<StoreEntry>> {
    let page = listing.page.into();
    Ok(match (listing.consumer, listing.service) {
        (Some(consumer), Some(service)) => {
            let consumer = lookup::system(cloud, &consumer).await?;
            cloud.store_entries_of(consumer.id, &service, listing.interface.as_deref(), &page).await?
        }
        _ if listing.top => cloud.top_store_entries(&page).await?,
        _ => cloud.store_entries(&page).await?,
    })
}

/// The Orchestrator leaves an entry that it does not take out of its answer, without a word: what can be wrong is looked
/// at before.
async fn add(cloud: &CoreSystems, new: NewRule) -> anyhow::Result<StoreEntry> {
    let consumer = lookup::system(cloud, &new.consumer).await?;
    let (provider, interface) = match new.interface {
        Some(interface) if new.cloud.is_some() => (parse_provider(&new.provider)?, interface),
        interface => {
            let system = lookup::system(cloud, &new.provider).await?;
            let interface = match interface {
                Some(named) => {
                    name_row::find::<ServiceDefinition>(cloud, &new.service).await?;
                    name_row::find::<Interface>(cloud, &named).await?.interface_name
                }
                None => offered_interface(cloud, &system, &new.service).await?,
            };
            (Provider { system_name: system.system_name, address: system.address, port: system.port }, interface)
        }
    };
    let request = StoreRequest {
        service_definition_name: new.service,
        consumer_system_id: consumer.id,
        provider_system: provider,
        cloud: new.cloud.map(|CloudOption { operator, name }| CloudName { operator, name }),
        service_interface_name: interface,
        priority: new.priority.map_or(i64::from(i32::MAX), i64::from),
        attribute: map(new.attribute),
    };
    let Some(entry) = cloud.add_store_entries(&[request]).await?.data.into_iter().next() else {
        bail!(
            "the Orchestrator did not take the rule: one for that consumer, service, interface and provider is there already, or the cloud is not known; see {LIST_COMMAND}"
        );
    };
    Ok(entry)
}

/// The interface over which the provider offers the service, where there is one and not several.
async fn offered_interface(cloud: &CoreSystems, provider: &System, definition: &str) -> anyhow::Result<String> {
    let services = services_of(cloud, definition, provider.id).await?;
    let offered: BTreeSet<&str> = services.iter().flat_map(|service| &service.interfaces).map(|it| it.interface_name.as_str()).collect();
    let told = lookup::told(provider);
    match Vec::from_iter(offered)[..] {
        [interface] => Ok(interface.to_owned()),
        [] => bail!("{told} offers no service {definition} yet: say by --interface over what it will be asked for"),
        ref several => bail!("{told} offers {definition} over {}: choose one by --interface", several.join(", ")),
    }
}

/// A provider of another cloud, which is not registered here.
fn parse_provider(text: &str) -> anyhow::Result<Provider> {
    let Some((name, address, port)) = lookup::placed(text) else {
        bail!("a provider of another cloud is named NAME@HOST:PORT, for example sensor@10.0.0.7:9000, not {text:?}");
    };
    Ok(Provider { system_name: name.to_owned(), address: address.to_owned(), port })
}

fn provider(entry: &StoreEntry) -> String {
    let system = &entry.provider_system;
    let cloud = entry.provider_cloud.as_ref().map(|cloud| format!(" of {}", cloud.told())).unwrap_or_default();
    match system.port {
        Some(port) => format!("{} at {}:{port}{cloud}", system.system_name, system.address),
        None => format!("{} at {}{cloud}", system.system_name, system.address),
    }
}

fn told(entry: &StoreEntry) -> String {
    format!(
        "{} is sent to {} for {} over {}, priority {}",
        entry.consumer_system.system_name,
        provider(entry),
        entry.service_definition.service_definition,
        entry.service_interface.interface_name,
        entry.priority
    )
}

fn details(entry: &StoreEntry) -> Details {
    Details::default()
        .with("id", entry.id)
        .with("consumer", format!("{}, id {}", lookup::told(&entry.consumer_system), entry.consumer_system.id))
        .with("service", &entry.service_definition.service_definition)
        .with("interface", &entry.service_interface.interface_name)
        .with("priority", entry.priority)
        .with("provider", provider(entry))
        .with("attribute", pairs(entry.attribute.as_ref()))
        .with_times(entry.created_at.as_ref(), entry.updated_at.as_ref())
}

fn table(entries: &[StoreEntry]) -> Table {
    let mut table = Table::new(&["ID", "CONSUMER", "SERVICE", "INTERFACE", "PRIORITY", "PROVIDER"]);
    for entry in entries {
        table.push([
            entry.id.to_string(),
            entry.consumer_system.system_name.clone(),
            entry.service_definition.service_definition.clone(),
            entry.service_interface.interface_name.clone(),
            entry.priority.to_string(),
            provider(entry),
        ]);
    }
    table
}
