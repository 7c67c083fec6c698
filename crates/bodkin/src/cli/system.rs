//! `bodkin system`: who takes part.

use std::collections::BTreeMap;

use bodkin_arrowhead::form::SystemRequest;
use bodkin_client::answer::System;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    lookup,
    pair::{metadata, parse_pair},
    printer::Printer,
    registry::RegistryOptions,
    table::Table,
};

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
    /// List all systems
    List,
    /// Register a system
    Add {
        /// Name of the system
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        place: Place,
        /// A free pair; may be repeated
        #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
        metadata: Vec<(String, String)>,
    },
    /// Remove a system with its services, rules and subscriptions
    Remove {
        /// Name or id of the system
        #[arg(value_name = "SYSTEM")]
        system: String,
    },
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

/// Carries a command out.
pub async fn run(options: SystemOptions, printer: Printer) -> anyhow::Result<()> {
    let cloud = options.registry.discover().await?;
    match options.command {
        SystemCommand::List => {
            let systems = cloud.systems().await?;
            printer.rows(&systems, table(&systems.data), "no systems are registered")?;
        }
        SystemCommand::Add { name, place, metadata: pairs } => {
            let form = SystemRequest { metadata: metadata(pairs), ..NewSystem { name, place }.into() };
            let system = cloud.register_system(&form).await?;
            printer.done(&system, &format!("registered: {}, id {}", lookup::told(&system), system.id))?;
        }
        SystemCommand::Remove { system } => {
            let system = lookup::system(&cloud, &system).await?;
            cloud.remove_system(system.id).await?;
            let sentence = format!("removed: {}, with its services, rules and subscriptions", lookup::told(&system));
            printer.done(&json!({"removed": system}), &sentence)?;
        }
    }
    Ok(())
}

fn table(systems: &[System]) -> Option<Table> {
    let mut table = Table::new(&["ID", "SYSTEM", "ADDRESS", "METADATA"]);
    for system in systems {
        table.push([system.id.to_string(), system.system_name.clone(), system.host_and_port(), pairs(system.metadata.as_ref())]);
    }
    (!systems.is_empty()).then_some(table)
}

/// Metadata in one cell.
pub(super) fn pairs(metadata: Option<&BTreeMap<String, String>>) -> String {
    metadata.into_iter().flatten().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
