//! `bodkin auth`: who may use what.

use anyhow::{bail, ensure};
use bodkin_arrowhead::form::{IntracloudRuleRequest, ServiceQueryForm};
use bodkin_client::{
    CoreSystems,
    answer::{Rule, Service},
};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{lookup, printer::Printer, registry::RegistryOptions, service::interface_names, table::Table};

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
    /// List all rules
    List,
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
    /// Name of the system that may consume
    #[arg(long, value_name = "SYSTEM", required = false)]
    consumer: String,
    /// Name of the system that offers the service
    #[arg(long, value_name = "SYSTEM", required = false)]
    provider: String,
    /// The service definition
    #[arg(long, value_name = "SERVICE", required = false)]
    service: String,
}

/// Carries a command out.
pub async fn run(options: AuthOptions, printer: Printer) -> anyhow::Result<()> {
    let cloud = options.registry.discover().await?;
    match options.command {
        AuthCommand::List => {
            let rules = cloud.rules().await?;
            Ok(printer.rows(&rules, table(&rules.data), "no rules: nobody may use any service")?)
        }
        AuthCommand::Add { subject, interfaces } => add(&cloud, &subject, &interfaces, printer).await,
        AuthCommand::Remove { id, subject } => remove(&cloud, id, subject, printer).await,
    }
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
            "a rule for {}, {} and {} is there already and was not changed; to change its interfaces, remove it first (bodkin auth list)",
            consumer.system_name,
            provider.system_name,
            definition.service_definition
        );
    };
    Ok(printer.done(rule, &format!("rule {}: {}", rule.id, told(rule)))?)
}

async fn services_of(cloud: &CoreSystems, definition: &str, provider_id: i64) -> anyhow::Result<Vec<Service>> {
    let form = ServiceQueryForm { service_definition_requirement: Some(definition.to_owned()), ..ServiceQueryForm::default() };
    let mut services = cloud.query(&form).await?.service_query_data;
    services.retain(|service| service.provider.id == provider_id);
    Ok(services)
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

async fn remove(cloud: &CoreSystems, id: Option<i64>, subject: Option<RemovedSubject>, printer: Printer) -> anyhow::Result<()> {
    let mut rules = cloud.rules().await?.data;
    match (id, &subject) {
        (Some(id), _) => rules.retain(|rule| rule.id == id),
        (None, Some(subject)) => rules.retain(|rule| {
            rule.consumer_system.system_name.eq_ignore_ascii_case(&subject.consumer)
                && rule.provider_system.system_name.eq_ignore_ascii_case(&subject.provider)
                && rule.service_definition.service_definition.eq_ignore_ascii_case(&subject.service)
        }),
        (None, None) => rules.clear(),
    }
    match rules.as_slice() {
        [] => bail!("there is no such rule; see bodkin auth list"),
        [rule] => {
            cloud.remove_rule(rule.id).await?;
            Ok(printer.done(&json!({"removed": rule}), &format!("removed: rule {}: {}", rule.id, told(rule)))?)
        }
        several => {
            let ids: Vec<String> = several.iter().map(|rule| rule.id.to_string()).collect();
            bail!("the rules {} are for systems of these names; name one by its id", ids.join(", "))
        }
    }
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

fn table(rules: &[Rule]) -> Option<Table> {
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
    (!rules.is_empty()).then_some(table)
}
