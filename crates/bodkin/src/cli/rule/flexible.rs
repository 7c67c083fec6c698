//! `bodkin rule flexible`: rules of the flexible orchestration store.

use anyhow::{Context, ensure};
use bodkin_client::{
    CoreSystems, Page,
    answer::{FlexibleRule, SystemDescriber},
    request::FlexibleRuleRequest,
};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{
    details::Details,
    page::PageOptions,
    pair::{map, parse_pair},
    printer::Printer,
    system::pairs,
    table::Table,
};

const LIST_COMMAND: &str = "bodkin rule flexible list";

/// What to do with flexible rules.
#[derive(Subcommand, Clone, Debug)]
pub enum FlexibleCommand {
    /// List rules
    List(PageOptions),
    /// Show one rule
    Show(Id),
    /// Send consumers that ask for a service to these providers
    Add(NewRule),
    /// Remove a rule
    Remove {
        /// Id of the rule, as the list shows it
        #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        id: Option<i64>,
        /// Remove every flexible rule
        #[arg(long)]
        all: bool,
    },
}

#[derive(Args, Clone, Debug)]
pub struct Id {
    /// Id of the rule, as the list shows it
    #[arg(value_name = "ID")]
    id: i64,
}

#[derive(Args, Clone, Debug)]
pub struct NewRule {
    /// The service definition
    #[arg(long, value_name = "SERVICE")]
    service: String,
    /// Name of the system that asks
    #[arg(long, value_name = "NAME", required_unless_present = "consumer_metadata")]
    consumer: Option<String>,
    /// A pair the system that asks must have; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    consumer_metadata: Vec<(String, String)>,
    /// Name of the system it is sent to
    #[arg(long, value_name = "NAME", required_unless_present = "provider_metadata")]
    provider: Option<String>,
    /// A pair the system it is sent to must have; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    provider_metadata: Vec<(String, String)>,
    /// The interface [default: any]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// A pair the service must have; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    service_metadata: Vec<(String, String)>,
    /// The lowest is asked first [default: last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    priority: Option<i32>,
}

impl From<NewRule> for FlexibleRuleRequest {
    fn from(new: NewRule) -> Self {
        Self {
            consumer_system: SystemDescriber { system_name: new.consumer, metadata: map(new.consumer_metadata) },
            provider_system: SystemDescriber { system_name: new.provider, metadata: map(new.provider_metadata) },
            service_definition_name: new.service,
            service_interface_name: new.interface,
            service_metadata: map(new.service_metadata),
            priority: new.priority.map(i64::from),
        }
    }
}

/// Carries a command out.
pub async fn run(cloud: &CoreSystems, command: FlexibleCommand, printer: Printer) -> anyhow::Result<()> {
    match command {
        FlexibleCommand::List(page) => {
            let rules = cloud.flexible_rules(&page.into()).await?;
            printer.rows(&rules, &table(&rules.data), "no rules: the flexible orchestration store is empty")?;
        }
        FlexibleCommand::Show(Id { id }) => {
            let rule = found(cloud, id).await?;
            printer.one(&rule, &details(&rule))?;
        }
        FlexibleCommand::Add(new) => {
            let made = cloud.add_flexible_rules(&[new.into()]).await?.data;
            let rule = made.first().context("the Orchestrator did not say what it made; see bodkin rule flexible list")?;
            printer.done(rule, &format!("rule {}: {}", rule.id, told(rule)))?;
        }
        FlexibleCommand::Remove { id: Some(id), .. } => {
            let rule = found(cloud, id).await?;
            cloud.remove_flexible_rule(id).await?;
            printer.done(&json!({"removed": rule}), &format!("removed: rule {id}: {}", told(&rule)))?;
        }
        FlexibleCommand::Remove { id: None, all } => {
            ensure!(all, "name a rule by its id, or say --all");
            let rules = cloud.flexible_rules(&Page::default()).await?;
            let count = rules.count;
            if cloud.is_operator() {
                for rule in rules.data {
                    cloud.remove_flexible_rule(rule.id).await?;
                }
            } else {
                cloud.clear_flexible_rules().await?;
            }
            printer.done(&json!({"removed": count}), &format!("removed: all {count} flexible rules"))?;
        }
    }
    Ok(())
}

/// Arrowhead has no path for one flexible rule.
async fn found(cloud: &CoreSystems, id: i64) -> anyhow::Result<FlexibleRule> {
    let rules = cloud.flexible_rules(&Page::default()).await?.data;
    rules.into_iter().find(|rule| rule.id == id).with_context(|| format!("there is no flexible rule {id}; see {LIST_COMMAND}"))
}

fn described(system: &SystemDescriber) -> String {
    match (&system.system_name, pairs(system.metadata.as_ref())) {
        (Some(name), metadata) if metadata.is_empty() => name.clone(),
        (Some(name), metadata) => format!("{name} with {metadata}"),
        (None, metadata) => format!("any with {metadata}"),
    }
}

fn told(rule: &FlexibleRule) -> String {
    let service = rule.service_definition.name();
    format!(
        "{} is sent to {} for {service}, priority {}",
        described(&rule.consumer_system),
        described(&rule.provider_system),
        rule.priority
    )
}

fn interface(rule: &FlexibleRule) -> String {
    rule.service_interface.as_ref().map_or_else(|| "any".to_owned(), |interface| interface.name().to_owned())
}

fn details(rule: &FlexibleRule) -> Details {
    Details::default()
        .with("id", rule.id)
        .with("consumer", described(&rule.consumer_system))
        .with("service", rule.service_definition.name())
        .with("service metadata", pairs(rule.service_metadata.as_ref()))
        .with("interface", interface(rule))
        .with("priority", rule.priority)
        .with("provider", described(&rule.provider_system))
        .with_times(rule.created_at.as_ref(), rule.updated_at.as_ref())
}

fn table(rules: &[FlexibleRule]) -> Table {
    let mut table = Table::new(&["ID", "CONSUMER", "SERVICE", "INTERFACE", "PRIORITY", "PROVIDER"]);
    for rule in rules {
        table.push([
            rule.id.to_string(),
            described(&rule.consumer_system),
            rule.service_definition.name().to_owned(),
            interface(rule),
            rule.priority.to_string(),
            described(&rule.provider_system),
        ]);
    }
    table
}
