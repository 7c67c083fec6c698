//! `bodkin auth intercloud`: which other cloud may use what.

use anyhow::bail;
use bodkin_client::{CoreSystems, Monitor, answer::IntercloudRule, request::IntercloudRuleRequest};
use clap::{Args, Subcommand};
use serde_json::json;

use super::interface_ids;
use crate::{
    DONE,
    cli::{
        cloud::find,
        details::Details,
        explanation, lookup,
        page::PageOptions,
        pair::{CloudOption, parse_cloud},
        printer::Printer,
        registry::RegistryOptions,
        service::{interface_names, services_of},
        table::Table,
    },
};

const LIST_COMMAND: &str = "bodkin auth intercloud list";

/// What to do with intercloud rules.
#[derive(Subcommand, Clone, Debug)]
pub enum IntercloudCommand {
    /// List rules
    List(PageOptions),
    /// Show one rule
    Show(Id),
    /// Allow the consumers of a cloud to use a provider's service
    Add {
        /// The cloud that may consume: NAME, NAME.OPERATOR or its id
        #[arg(long, value_name = "CLOUD")]
        cloud: String,
        #[command(flatten)]
        subject: Subject,
        /// An interface it may be used over; may be repeated [default: all that the service has]
        #[arg(long = "interface", value_name = "NAME")]
        interfaces: Vec<String>,
    },
    /// Remove a rule
    Remove(Id),
    /// May a cloud use a provider's service, over what, and why or why not? Exit code 3 if it may not
    Test {
        /// The cloud that would consume
        #[arg(long, value_name = "OPERATOR/NAME", value_parser = parse_cloud)]
        cloud: CloudOption,
        #[command(flatten)]
        subject: Subject,
    },
}

#[derive(Args, Clone, Debug)]
pub struct Id {
    /// Id of the rule, as the list shows it
    #[arg(value_name = "ID")]
    id: i64,
}

#[derive(Args, Clone, Debug)]
pub struct Subject {
    /// Name or id of the system that offers the service
    #[arg(long, value_name = "SYSTEM")]
    provider: String,
    /// The service definition
    #[arg(long, value_name = "SERVICE")]
    service: String,
}

/// Carries a command out; gives the exit code.
pub async fn run(registry: &RegistryOptions, command: IntercloudCommand, printer: Printer) -> anyhow::Result<u8> {
    match command {
        IntercloudCommand::List(page) => {
            let rules = registry.discover().await?.intercloud_rules(&page.into()).await?;
            printer.rows(&rules, &table(&rules.data), "no rules: no other cloud may use any service")?;
        }
        IntercloudCommand::Show(Id { id }) => {
            let rule = found(&registry.discover().await?, id).await?;
            printer.one(&rule, &details(&rule))?;
        }
        IntercloudCommand::Add { cloud, subject, interfaces } => {
            let id = match cloud.trim().parse() {
                Ok(id) => id,
                Err(_) => find(&registry.monitor()?, &cloud).await?.id,
            };
            let rule = add(&registry.discover().await?, id, &subject, &interfaces).await?;
            printer.done(&rule, &format!("rule {}: {}", rule.id, told(&rule)))?;
        }
        IntercloudCommand::Remove(Id { id }) => {
            let core = registry.discover().await?;
            let rule = found(&core, id).await?;
            core.remove_intercloud_rule(id).await?;
            printer.done(&json!({"removed": rule}), &format!("removed: rule {id}: {}", told(&rule)))?;
        }
        IntercloudCommand::Test { cloud, subject } => return test(&registry.monitor()?, &cloud, &subject, printer).await,
    }
    Ok(DONE)
}

async fn found(cloud: &CoreSystems, id: i64) -> anyhow::Result<IntercloudRule> {
    lookup::found(cloud.intercloud_rule(id).await, "intercloud rule", id, LIST_COMMAND)
}

async fn add(cloud: &CoreSystems, cloud_id: i64, subject: &Subject, interfaces: &[String]) -> anyhow::Result<IntercloudRule> {
    let provider = lookup::system(cloud, &subject.provider).await?;
    let services = services_of(cloud, &subject.service, provider.id).await?;
    let Some(definition) = services.first().map(|service| &service.service_definition) else {
        bail!("{} offers no service {}; see bodkin service list", lookup::told(&provider), subject.service);
    };
    let form = IntercloudRuleRequest {
        cloud_id,
        provider_id_list: vec![provider.id],
        service_definition_id_list: vec![definition.id],
        interface_id_list: interface_ids(&services, interfaces)?,
    };
    let made = cloud.add_intercloud_rules(&form).await?.data;
    let already =
        || anyhow::anyhow!("a rule for that cloud, provider and service is there already and was not changed; see {LIST_COMMAND}");
    made.into_iter().next().ok_or_else(already)
}

/// Prints what may be used, and why or why not; gives the exit code.
async fn test(monitor: &Monitor, cloud: &CloudOption, subject: &Subject, printer: Printer) -> anyhow::Result<u8> {
    let name = format!("{}/{}", cloud.operator, cloud.name);
    let answer = monitor.explain_intercloud(&name, &subject.service, &[("provider", &subject.provider)]).await?;
    explanation::print(&answer, &answer, &format!("auth intercloud add --cloud {}.{}", cloud.name, cloud.operator), printer)?;
    Ok(explanation::exit_code(&answer))
}

fn told(rule: &IntercloudRule) -> String {
    let over = interface_names(&rule.interfaces);
    format!("{} may use {} of {} over {over}", rule.cloud.told(), rule.service_definition.service_definition, rule.provider.system_name)
}

fn details(rule: &IntercloudRule) -> Details {
    Details::default()
        .with("id", rule.id)
        .with("cloud", format!("{}, id {}", rule.cloud.told(), rule.cloud.id))
        .with("provider", format!("{}, id {}", lookup::told(&rule.provider), rule.provider.id))
        .with("service", &rule.service_definition.service_definition)
        .with("interfaces", interface_names(&rule.interfaces))
        .with_times(rule.created_at.as_ref(), rule.updated_at.as_ref())
}

fn table(rules: &[IntercloudRule]) -> Table {
    let mut table = Table::new(&["ID", "CLOUD", "PROVIDER", "SERVICE", "INTERFACES"]);
    for rule in rules {
        table.push([
            rule.id.to_string(),
            rule.cloud.told(),
            rule.provider.system_name.clone(),
            rule.service_definition.service_definition.clone(),
            interface_names(&rule.interfaces),
        ]);
    }
    table
}
