//! `bodkin service definition` and `bodkin service interface`: the names that services are made of.

use bodkin_client::CoreSystems;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{
    details::Details,
    name_row::{self, NameRow},
    page::PageOptions,
    printer::Printer,
    table::Table,
};

/// What to do with such names.
#[derive(Subcommand, Clone, Debug)]
pub enum CatalogCommand {
    /// List them
    List(PageOptions),
    /// Show one
    Show(Named),
    /// Add one that no service has yet
    Add {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Rename one, for all services that have it
    Rename {
        #[command(flatten)]
        named: Named,
        /// The new name
        #[arg(value_name = "NEW")]
        new_name: String,
    },
    /// Remove one: a definition with its services and rules, an interface from all services that have it
    Remove(Named),
}

#[derive(Args, Clone, Debug)]
pub struct Named {
    /// Its name or id
    #[arg(value_name = "NAME")]
    name: String,
}

/// Carries out what is asked about rows of one kind.
pub async fn run<R: NameRow>(cloud: &CoreSystems, command: CatalogCommand, printer: Printer) -> anyhow::Result<()> {
    match command {
        CatalogCommand::List(page) => {
            let rows = R::list(cloud, &page.into()).await?;
            let mut table = Table::new(&["ID", R::COLUMN]);
            rows.data.iter().for_each(|row| table.push([row.id().to_string(), row.name().to_owned()]));
            printer.rows(&rows, &table, &format!("no {} is registered", R::WHAT))?;
        }
        CatalogCommand::Show(named) => {
            let row = name_row::find::<R>(cloud, &named.name).await?;
            let [created_at, updated_at] = row.times();
            let details = Details::default().with("id", row.id()).with(R::WHAT, row.name()).with_times(created_at, updated_at);
            printer.one(&row, &details)?;
        }
        CatalogCommand::Add { name } => {
            let row = R::add(cloud, &name).await?;
            printer.done(&row, &format!("added: {}", told(&row)))?;
        }
        CatalogCommand::Rename { named, new_name } => {
            let row = name_row::find::<R>(cloud, &named.name).await?;
            let renamed = R::rename(cloud, row.id(), &new_name).await?;
            printer.done(&renamed, &format!("renamed: {} is {}", row.name(), told(&renamed)))?;
        }
        CatalogCommand::Remove(named) => {
            let row = name_row::find::<R>(cloud, &named.name).await?;
            R::remove(cloud, row.id()).await?;
            printer.done(&json!({"removed": row}), &format!("removed: {}, with all that depended on it", told(&row)))?;
        }
    }
    Ok(())
}

fn told<R: NameRow>(row: &R) -> String {
    format!("{} {}, id {}", R::WHAT, row.name(), row.id())
}
