//! `bodkin auth`: who may use what.

mod explain;
mod intercloud;

use anyhow::{bail, ensure};
use bodkin_arrowhead::form::IntracloudRuleRequest;
use bodkin_client::{
    CoreSystems, Page,
    answer::{Rule, Service},
};
use clap::{Args, Subcommand};
use serde_json::json;

use self::{
    explain::{AccessInquiry, Inquiry},
    intercloud::IntercloudCommand,
};
use super::{
    details::Details,
    lookup,
    page::PageOptions,
    printer::Printer,
    registry::RegistryOptions,
    service::{interface_names, services_of},
    table::Table,
};
use crate::DONE;

const LIST_COMMAND: &str = "bodkin auth list";

/// Options of `bodkin auth`.
#[derive(Args, Clone, Debug)]
pub struct AuthOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(subcommand)]
    command: AuthCommand,
}

/// What to do with authorization rules.
#[derive(Subcommand, Clone, Debug)]
enum AuthCommand {
    /// List rules
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Show one rule
    Show {
        /// Id of the rule, as the list shows it
        #[arg(value_name = "ID")]
        id: i64,
    },
    /// Allow a consumer to use a provider's service
    Add {
        #[command(flatten)]
        subject: Subject,
        /// An interface it may be used over; may be repeated [default: all that the service has]
        #[arg(long = "interface", value_name = "NAME")]
        interfaces: Vec<String>,
    },
    /// Remove a rule: by its id, or by consumer, provider and service
    Remove {
        /// Id of the rule, as the list shows it
        #[arg(value_name = "ID", required_unless_present_all = ["consumer", "provider", "service"])]
        id: Option<i64>,
        #[command(flatten)]
        subject: Option<RemovedSubject>,
    },
    /// May a consumer use a service, of whom, over what, and why or why not? Exit code 3 if it may not
    Test(Inquiry),
    /// As test, with every rule that was asked and what it found
    Explain(Inquiry),
    /// May a system make a request at all, by the rules of access of the secure mode? Exit code 3 if it may not
    Access(AccessInquiry),
    /// Rules for consumers of other clouds
    #[command(subcommand)]
    Intercloud(IntercloudCommand),
}

/// What a rule is about.
#[derive(Args, Clone, Debug)]
struct Subject {
    /// Name or id of the system that may consume
    #[arg(long, value_name = "SYSTEM")]
    consumer: String,
    /// Name or id of the system that offers the service
    #[arg(long, value_name = "SYSTEM")]
    provider: String,
    /// The service definition
    #[arg(long, value_name = "SERVICE")]
    service: String,
}

/// As [`Subject`], instead of an id.
#[derive(Args, Clone, Debug)]
#[group(conflicts_with = "id")]
struct RemovedSubject {
    /// Name or id of the system that may consume
    #[arg(long, value_name = "SYSTEM", required = false)]
    consumer: String,
    /// Name or id of the system that offers the service
    #[arg(long, value_name = "SYSTEM", required = false)]
    provider: String,
    /// The service definition
    #[arg(long, value_name = "SERVICE", required = false)]
    service: String,
}

/// Which rules are printed.
#[derive(Args, Clone, Debug)]
struct Filter {
    /// Only rules of this consumer: name or id
    #[arg(long, value_name = "SYSTEM", conflicts_with = "page")]
    consumer: Option<String>,
    /// Only rules of this provider: name or id
    #[arg(long, value_name = "SYSTEM", conflicts_with = "page")]
    provider: Option<String>,
    /// Only rules of this service definition
    #[arg(long, value_name = "SERVICE", conflicts_with = "page")]
    service: Option<String>,
}

impl Filter {
    fn is_met_by(&self, rule: &Rule) -> bool {
        self.consumer.as_ref().is_none_or(|text| lookup::is_named(&rule.consumer_system, text))
            && self.provider.as_ref().is_none_or(|text| lookup::is_named(&rule.provider_system, text))
            && self.service.as_ref().is_none_or(|text| rule.service_definition.service_definition.eq_ignore_ascii_case(text.trim()))
    }

    fn is_empty(&self) -> bool {
        self.consumer.is_none() && self.provider.is_none() && self.service.is_none()
    }
}

/// Carries a command out; gives the exit code.
pub async fn run(options: AuthOptions, printer: Printer) -> anyhow::Result<u8> {
    let registry = &options.registry;
    match options.command {
        AuthCommand::List { filter, page } => list(&registry.discover().await?, &filter, page.into(), printer).await?,
        AuthCommand::Show { id } => {
            let rule = found(&registry.discover().await?, id).await?;
            printer.one(&rule, &details(&rule))?;
        }
        AuthCommand::Add { subject, interfaces } => add(&registry.discover().await?, &subject, &interfaces, printer).await?,
        AuthCommand::Remove { id: Some(id), .. } => {
            let cloud = registry.discover().await?;
            remove(&cloud, &found(&cloud, id).await?, printer).await?;
        }
        AuthCommand::Remove { id: None, subject } => {
            let subject = subject.expect("clap requires an id or a subject");
            let filter = Filter { consumer: Some(subject.consumer), provider: Some(subject.provider), service: Some(subject.service) };
            let cloud = registry.discover().await?;
            remove(&cloud, &the_one(&cloud, &filter).await?, printer).await?;
        }
        AuthCommand::Test(inquiry) => return explain::test(&registry.monitor()?, &inquiry, printer).await,
        AuthCommand::Explain(inquiry) => return explain::explain(&registry.monitor()?, &inquiry, printer).await,
        AuthCommand::Access(inquiry) => return explain::access(&registry.monitor()?, &inquiry, printer).await,
        AuthCommand::Intercloud(command) => return intercloud::run(registry, command, printer).await,
    }
    Ok(DONE)
}

async fn found(cloud: &CoreSystems, id: i64) -> anyhow::Result<Rule> {
    lookup::found(cloud.rule(id).await, "rule", id, LIST_COMMAND)
}

async fn list(cloud: &CoreSystems, filter: &Filter, page: Page, printer: Printer) -> anyhow::Result<()> {
    let mut rules = cloud.rules(&page).await?;
    let mut none = "no rules: nobody may use any service";
    if !filter.is_empty() {
        rules.data.retain(|rule| filter.is_met_by(rule));
        rules.count = rules.data.len() as u64;
        none = "no such rules";
    }
    Ok(printer.rows(&rules, &table(&rules.data), none)?)
}

async fn add(cloud: &CoreSystems, subject: &Subject, interfaces: &[String], printer: Printer) -> anyhow::Result<()> {
    let [consumer, provider] = lookup::systems(cloud, [&subject.consumer, &subject.provider]).await?;
    let services = services_of(cloud, &subject.service, provider.id).await?;
    let Some(definition) = services.first().map(|service| &service.service_definition) else {
        bail!("{} offers no service {}; see bodkin service list", lookup::told(&provider), subject.service);
    };
    let form = IntracloudRuleRequest {
        consumer_id: Some(consumer.id),
        provider_ids: Some(vec![Some(provider.id)]),
        service_definition_ids: Some(vec![Some(definition.id)]),
        interface_ids: Some(interface_ids(&services, interfaces)?.into_iter().map(Some).collect()),
    };
    let made = cloud.add_rules(&form).await?;
    let Some(rule) = made.data.first() else {
        bail!(
            "a rule for {}, {} and {} is there already and was not changed; to change its interfaces, remove it first ({LIST_COMMAND})",
            consumer.system_name,
            provider.system_name,
            definition.service_definition
        );
    };
    Ok(printer.done(rule, &format!("rule {}: {}", rule.id, told(rule)))?)
}

/// Ids of the named interfaces, or of all that the services have.
fn interface_ids(services: &[Service], names: &[String]) -> anyhow::Result<Vec<i64>> {
    let offered = || services.iter().flat_map(|service| &service.interfaces);
    for name in names {
        let known = offered().any(|interface| interface.interface_name.eq_ignore_ascii_case(name.trim()));
        let all: Vec<&str> = offered().map(|interface| interface.interface_name.as_str()).collect();
        ensure!(known, "the service has no interface {name}, but {}", all.join(", "));
    }
    let named = |interface: &str| names.is_empty() || names.iter().any(|name| name.trim().eq_ignore_ascii_case(interface));
    let mut ids: Vec<i64> = offered().filter(|interface| named(&interface.interface_name)).map(|interface| interface.id).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// The rule that a filter of names and ids means.
async fn the_one(cloud: &CoreSystems, filter: &Filter) -> anyhow::Result<Rule> {
    let mut rules = cloud.rules(&Page::default()).await?.data;
    rules.retain(|rule| filter.is_met_by(rule));
    match rules.len() {
        0 => bail!("there is no such rule; see {LIST_COMMAND}"),
        1 => Ok(rules.remove(0)),
        _ => {
            let ids: Vec<String> = rules.iter().map(|rule| rule.id.to_string()).collect();
            bail!("several rules are about that: {}; name the systems by their ids, or the rule by its own", ids.join(", "))
        }
    }
}

async fn remove(cloud: &CoreSystems, rule: &Rule, printer: Printer) -> anyhow::Result<()> {
    cloud.remove_rule(rule.id).await?;
    Ok(printer.done(&json!({"removed": rule}), &format!("removed: rule {}: {}", rule.id, told(rule)))?)
}

fn told(rule: &Rule) -> String {
    format!(
        "{} may use {} of {} over {}",
        rule.consumer_system.system_name,
        rule.service_definition.service_definition,
        rule.provider_system.system_name,
        interface_names(&rule.interfaces)
    )
}

fn details(rule: &Rule) -> Details {
    Details::default()
        .with("id", rule.id)
        .with("consumer", format!("{}, id {}", lookup::told(&rule.consumer_system), rule.consumer_system.id))
        .with("provider", format!("{}, id {}", lookup::told(&rule.provider_system), rule.provider_system.id))
        .with("service", &rule.service_definition.service_definition)
        .with("interfaces", interface_names(&rule.interfaces))
        .with_times(rule.created_at.as_ref(), rule.updated_at.as_ref())
}

fn table(rules: &[Rule]) -> Table {
    let mut table = Table::new(&["ID", "CONSUMER", "PROVIDER", "SERVICE", "INTERFACES"]);
    for rule in rules {
        table.push([
            rule.id.to_string(),
            rule.consumer_system.system_name.clone(),
            rule.provider_system.system_name.clone(),
            rule.service_definition.service_definition.clone(),
            interface_names(&rule.interfaces),
        ]);
    }
    table
}
