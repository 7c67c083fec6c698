//! `bodkin service definition` and `bodkin service interface`: the names that services are made of.

use bodkin_client::{
    CoreSystems,
    answer::{Interface, ServiceDefinition},
};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{details::Details, lookup, page::PageOptions, printer::Printer, table::Table};

/// What to do with service definitions.
#[derive(Subcommand, Clone, Debug)]
pub enum DefinitionCommand {
    /// List service definitions
    List(PageOptions),
    /// Show one service definition
    Show(Named),
    /// Make a service definition that nobody offers yet
    Add(NewName),
    /// Rename a service definition, for all who offer it
    Rename {
        #[command(flatten)]
        named: Named,
        /// The new name
        #[arg(value_name = "NEW")]
        new_name: String,
    },
    /// Remove a service definition with its services and rules
    Remove(Named),
}

/// What to do with interfaces.
#[derive(Subcommand, Clone, Debug)]
pub enum InterfaceCommand {
    /// List interfaces
    List(PageOptions),
    /// Show one interface
    Show(Named),
    /// Make an interface that nobody has yet, for example HTTP-INSECURE-JSON
    Add(NewName),
    /// Rename an interface, for all who have it
    Rename {
        #[command(flatten)]
        named: Named,
        /// The new name
        #[arg(value_name = "NEW")]
        new_name: String,
    },
    /// Remove an interface from all who have it
    Remove(Named),
}

#[derive(Args, Clone, Debug)]
pub struct Named {
    /// Its name or id
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Args, Clone, Debug)]
pub struct NewName {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// Carries out what is asked about service definitions.
pub async fn definition(cloud: &CoreSystems, command: DefinitionCommand, printer: Printer) -> anyhow::Result<()> {
    match command {
        DefinitionCommand::List(page) => {
            let rows = cloud.service_definitions(&page.into()).await?;
            let table = table("SERVICE DEFINITION", rows.data.iter().map(|row| (row.id, &row.service_definition)));
            printer.rows(&rows, &table, "no service definitions are registered")?;
        }
        DefinitionCommand::Show(named) => {
            let row = lookup::definition(cloud, &named.name).await?;
            let details = Details::default().with("id", row.id).with("service definition", &row.service_definition);
            printer.one(&row, &details.with_times(row.created_at.as_ref(), row.updated_at.as_ref()))?;
        }
        DefinitionCommand::Add(new) => {
            let row = cloud.add_service_definition(&new.name).await?;
            printer.done(&row, &format!("added: {}", told_definition(&row)))?;
        }
        DefinitionCommand::Rename { named, new_name } => {
            let row = lookup::definition(cloud, &named.name).await?;
            let renamed = cloud.rename_service_definition(row.id, &new_name).await?;
            printer.done(&renamed, &format!("renamed: {} is {}", row.service_definition, told_definition(&renamed)))?;
        }
        DefinitionCommand::Remove(named) => {
            let row = lookup::definition(cloud, &named.name).await?;
            cloud.remove_service_definition(row.id).await?;
            printer.done(&json!({"removed": row}), &format!("removed: {}, with its services and rules", told_definition(&row)))?;
        }
    }
    Ok(())
}

/// Carries out what is asked about interfaces.
pub async fn interface(cloud: &CoreSystems, command: InterfaceCommand, printer: Printer) -> anyhow::Result<()> {
    match command {
        InterfaceCommand::List(page) => {
            let rows = cloud.interfaces(&page.into()).await?;
            let table = table("INTERFACE", rows.data.iter().map(|row| (row.id, &row.interface_name)));
            printer.rows(&rows, &table, "no interfaces are registered")?;
        }
        InterfaceCommand::Show(named) => {
            let row = lookup::interface(cloud, &named.name).await?;
            let details = Details::default().with("id", row.id).with("interface", &row.interface_name);
            printer.one(&row, &details.with_times(row.created_at.as_ref(), row.updated_at.as_ref()))?;
        }
        InterfaceCommand::Add(new) => {
            let row = cloud.add_interface(&new.name).await?;
            printer.done(&row, &format!("added: {}", told_interface(&row)))?;
        }
        InterfaceCommand::Rename { named, new_name } => {
            let row = lookup::interface(cloud, &named.name).await?;
            let renamed = cloud.rename_interface(row.id, &new_name).await?;
            printer.done(&renamed, &format!("renamed: {} is {}", row.interface_name, told_interface(&renamed)))?;
        }
        InterfaceCommand::Remove(named) => {
            let row = lookup::interface(cloud, &named.name).await?;
            cloud.remove_interface(row.id).await?;
            printer.done(&json!({"removed": row}), &format!("removed: {}, from all who had it", told_interface(&row)))?;
        }
    }
    Ok(())
}

fn told_definition(row: &ServiceDefinition) -> String {
    format!("service definition {}, id {}", row.service_definition, row.id)
}

fn told_interface(row: &Interface) -> String {
    format!("interface {}, id {}", row.interface_name, row.id)
}

fn table<'n>(what: &'static str, rows: impl Iterator<Item = (i64, &'n String)>) -> Table {
    let mut table = Table::new(&["ID", what]);
    rows.for_each(|(id, name)| table.push([id.to_string(), name.clone()]));
    table
}
