//! `bodkin system`: who takes part.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdin},
};

use anyhow::bail;
use bodkin_arrowhead::form::SystemRequest;
use bodkin_client::{Change, CoreSystems, Page, answer::System};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    details::Details,
    lookup,
    page::PageOptions,
    pair::{metadata, parse_pair},
    printer::Printer,
    probe, public_key,
    registry::RegistryOptions,
    table::Table,
};
use crate::{DONE, FAILED};

/// Options of `bodkin system`.
#[derive(Args, Clone, Debug)]
pub struct SystemOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(subcommand)]
    command: SystemCommand,
}

/// What to do with systems.
#[derive(Subcommand, Clone, Debug)]
enum SystemCommand {
    /// List systems
    List(PageOptions),
    /// Show one system
    Show(Named),
    /// Register a system
    Add {
        /// Name of the system
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        further: Further,
    },
    /// Change what is given of a system; the rest stays
    Update {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        change: SystemChange,
    },
    /// Make a system what is given; what is not given becomes empty
    Replace {
        #[command(flatten)]
        named: Named,
        /// Its new name
        #[arg(long, value_name = "NAME")]
        name: String,
        #[command(flatten)]
        further: Further,
    },
    /// Remove a system with its services, rules and subscriptions. Lists them, and asks on a terminal
    #[command(after_help = "Exit codes: 0 removed, 1 not removed, 3 not for this caller. Where stdin is no terminal, --yes is required.")]
    Remove {
        #[command(flatten)]
        named: Named,
        /// Remove without a question
        #[arg(long)]
        yes: bool,
    },
    /// Connect to a system and say what is found; exit code 1 if it is not there
    Test(Named),
}

#[derive(Args, Clone, Debug)]
struct Named {
    /// Name or id of the system
    #[arg(value_name = "SYSTEM")]
    system: String,
}

/// What a system has besides its name.
#[derive(Args, Clone, Debug)]
struct Further {
    #[command(flatten)]
    place: Place,
    /// A free pair; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Certificate (PEM) of the system, whose key it is known by
    #[arg(long, value_name = "FILE", conflicts_with = "authentication_info", value_parser = public_key::of_certificate)]
    certificate: Option<String>,
    /// Base64 of its public key, instead
    #[arg(long, value_name = "KEY")]
    authentication_info: Option<String>,
}

/// What is to be another in a system.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
struct SystemChange {
    /// Its name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Its host name or IP address
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// Where it listens
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// A free pair, instead of all that it has; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Certificate (PEM) of the system, whose key it is known by
    #[arg(long, value_name = "FILE", conflicts_with = "authentication_info", value_parser = public_key::of_certificate)]
    certificate: Option<String>,
    /// Base64 of its public key, instead
    #[arg(long, value_name = "KEY")]
    authentication_info: Option<String>,
}

impl From<SystemChange> for SystemRequest {
    fn from(change: SystemChange) -> Self {
        Self {
            system_name: change.name,
            address: change.address,
            port: change.port.map(i64::from),
            authentication_info: change.certificate.or(change.authentication_info),
            metadata: metadata(change.metadata),
        }
    }
}

fn whole(name: String, further: Further) -> SystemRequest {
    let Further { place, metadata: pairs, certificate, authentication_info } = further;
    SystemRequest {
        metadata: metadata(pairs),
        authentication_info: certificate.or(authentication_info),
        ..NewSystem { name, place }.into()
    }
}

/// Where a system is.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// Host name or IP address of the system
    #[arg(long, value_name = "HOST")]
    address: String,
    /// Where it listens
    #[arg(long, value_name = "PORT")]
    port: u16,
}

/// A system as the options of another thing name it.
#[derive(Args, Clone, Debug)]
pub struct NewSystem {
    /// Name of the system
    #[arg(long = "system", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    place: Place,
}

impl From<NewSystem> for SystemRequest {
    fn from(system: NewSystem) -> Self {
        Self {
            system_name: Some(system.name),
            address: Some(system.place.address),
            port: Some(i64::from(system.place.port)),
            ..Self::default()
        }
    }
}

/// Carries a command out; gives the exit code.
pub async fn run(options: SystemOptions, printer: Printer) -> anyhow::Result<u8> {
    let cloud = options.registry.discover().await?;
    match options.command {
        SystemCommand::List(page) => {
            let systems = cloud.systems(&page.into()).await?;
            printer.rows(&systems, &table(&systems.data), "no systems are registered")?;
        }
        SystemCommand::Show(named) => {
            let system = lookup::system(&cloud, &named.system).await?;
            printer.one(&system, &details(&system))?;
        }
        SystemCommand::Add { name, further } => {
            let form = whole(name, further);
            let system = if cloud.is_operator() { cloud.add_system(&form).await? } else { cloud.register_system(&form).await? };
            printer.done(&system, &format!("registered: {}, id {}", lookup::told(&system), system.id))?;
        }
        SystemCommand::Update { named, change } => {
            let id = lookup::system(&cloud, &named.system).await?.id;
            let system = cloud.change_system(id, Change::Patch, &change.into()).await?;
            printer.done(&system, &format!("changed: {}, id {id}", lookup::told(&system)))?;
        }
        SystemCommand::Replace { named, name, further } => {
            let id = lookup::system(&cloud, &named.system).await?.id;
            let system = cloud.change_system(id, Change::Replace, &whole(name, further)).await?;
            printer.done(&system, &format!("replaced: {}, id {id}", lookup::told(&system)))?;
        }
        SystemCommand::Remove { named, yes } => {
            let system = lookup::system(&cloud, &named.system).await?;
            if !yes && !is_agreed(&what_goes(&cloud, &system).await?)? {
                return Ok(FAILED);
            }
            cloud.remove_system(system.id).await?;
            let sentence = format!("removed: {}, with its services, rules and subscriptions", lookup::told(&system));
            printer.done(&json!({"removed": system}), &sentence)?;
        }
        SystemCommand::Test(named) => {
            let system = lookup::system(&cloud, &named.system).await?;
            let found = probe::look(system.host_and_port(), None).await;
            printer.done(&json!({"system": system, "found": found}), &format!("{}: {}", system.system_name, found.told()))?;
            return Ok(if found.is_there() { DONE } else { FAILED });
        }
    }
    Ok(DONE)
}

/// Returns what is removed with a system, a line each.
async fn what_goes(cloud: &CoreSystems, system: &System) -> anyhow::Result<Vec<String>> {
    let services = cloud.services(&Page::default()).await?.data;
    let services = services.iter().filter(|service| service.provider.id == system.id);
    let services = services.map(|service| format!("service {}, id {}", service.service_definition.service_definition, service.id));
    let rules = cloud.rules(&Page::default()).await?.data;
    let rules = rules.iter().filter(|rule| [rule.consumer_system.id, rule.provider_system.id].contains(&system.id));
    let rules = rules.map(|rule| {
        let names = (&rule.consumer_system.system_name, &rule.service_definition.service_definition, &rule.provider_system.system_name);
        format!("rule {}: {} may use {} of {}", rule.id, names.0, names.1, names.2)
    });
    let own = format!("system {}, id {}, and its subscriptions", lookup::told(system), system.id);
    Ok([own].into_iter().chain(services).chain(rules).collect())
}

/// Asks on a terminal whether these go.
///
/// # Errors
/// Returns an error if stdin is no terminal: nobody could answer.
fn is_agreed(goes: &[String]) -> anyhow::Result<bool> {
    eprintln!("this removes:");
    goes.iter().for_each(|line| eprintln!("  {line}"));
    if !stdin().is_terminal() {
        bail!("nothing was removed: stdin is no terminal to ask on; give --yes");
    }
    eprint!("remove? [y/N] ");
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn details(system: &System) -> Details {
    Details::default()
        .with("id", system.id)
        .with("system", &system.system_name)
        .with("address", system.host_and_port())
        .with("metadata", pairs(system.metadata.as_ref()))
        .with_some("authentication info", system.authentication_info.as_ref())
        .with_times(system.created_at.as_ref(), system.updated_at.as_ref())
}

fn table(systems: &[System]) -> Table {
    let mut table = Table::new(&["ID", "SYSTEM", "ADDRESS", "METADATA"]);
    for system in systems {
        table.push([system.id.to_string(), system.system_name.clone(), system.host_and_port(), pairs(system.metadata.as_ref())]);
    }
    table
}

/// Metadata in one cell.
pub(super) fn pairs(metadata: Option<&BTreeMap<String, String>>) -> String {
    metadata.into_iter().flatten().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
