//! `bodkin orchestrate`: what should a consumer use?

use bodkin_arrowhead::form::{CloudRequest, OrchestrationForm, PreferredProvider, ServiceQueryForm};
use bodkin_client::{CoreSystems, answer::Offer};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{
    explanation, lookup,
    printer::Printer,
    registry::RegistryOptions,
    service::{Wanted, interface_names},
    table::Table,
};
use crate::DONE;

/// Options of `bodkin orchestrate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Exit codes: 0 something is offered, 3 no rule lets the consumer use what is offered, 1 nothing fits.")]
pub struct OrchestrateOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(flatten)]
    question: Question,
}

#[derive(Args, Clone, Debug)]
struct Question {
    /// The service definition that is wanted [default, with --store: all that the store has for the consumer]
    #[arg(value_name = "SERVICE", required_unless_present = "store")]
    service: Option<String>,
    /// Name or id of the registered system that asks
    #[arg(long, value_name = "SYSTEM")]
    consumer: String,
    /// Ask the orchestration store, which needs one --interface, instead of everything that is registered and allowed
    #[arg(long)]
    store: bool,
    #[command(flatten)]
    wanted: Wanted,
    /// Name or id of a provider to prefer; may be repeated
    #[arg(long = "prefer", value_name = "SYSTEM")]
    preferred: Vec<String>,
    /// Tell every rule that was asked and what it found, even if something is offered
    #[arg(long)]
    explain: bool,
    /// A further orchestration flag; may be repeated
    #[arg(long = "flag", value_enum, value_name = "FLAG", ignore_case = true)]
    flags: Vec<Flag>,
}

/// Orchestration flags, as Arrowhead names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
enum Flag {
    /// Exactly one provider: a preferred one, or any
    Matchmaking,
    /// Honour --metadata, which sets this flag
    MetadataSearch,
    /// Only providers that accept a connection now
    PingProviders,
    /// Only providers of --prefer
    OnlyPreferred,
    /// Ask other clouds when this one has nothing
    EnableInterCloud,
    /// Ask other clouds at once
    TriggerInterCloud,
    /// Honour requirements on the quality of service
    #[value(name = "enableQoS")]
    EnableQos,
    /// Only providers with an IP address
    #[value(name = "onlyIPAddressResponse")]
    OnlyIpAddressResponse,
    /// Only providers with an IPv4 address
    #[value(name = "onlyIPv4AddressResponse")]
    OnlyIpv4AddressResponse,
    /// Only providers with an IPv6 address
    #[value(name = "onlyIPv6AddressResponse")]
    OnlyIpv6AddressResponse,
}

impl Flag {
    fn name(self) -> String {
        self.to_possible_value().expect("no value is skipped").get_name().to_owned()
    }
}

impl Question {
    /// What is wanted; `None` where no service is named.
    fn service(&self) -> Option<ServiceQueryForm> {
        Some(ServiceQueryForm {
            ping_providers: Some(self.flags.contains(&Flag::PingProviders)),
            ..self.wanted.clone().form(self.service.clone()?)
        })
    }

    async fn form(&self, cloud: &CoreSystems) -> anyhow::Result<OrchestrationForm> {
        let mut flags: Vec<String> = self.flags.iter().map(|flag| flag.name()).collect();
        flags.extend((!self.store).then(|| "overrideStore".to_owned()));
        flags.extend((!self.wanted.metadata.is_empty()).then(|| Flag::MetadataSearch.name()));
        let mut preferred = Vec::with_capacity(self.preferred.len());
        for text in &self.preferred {
            let provider_system = Some(lookup::form(&lookup::system(cloud, text).await?));
            preferred.push(Some(PreferredProvider { provider_system, provider_cloud: None::<CloudRequest> }));
        }
        Ok(OrchestrationForm {
            requester_system: Some(lookup::form(&lookup::system(cloud, &self.consumer).await?)),
            requested_service: self.service(),
            orchestration_flags: Some(flags.into_iter().map(|flag| (flag, Some(true))).collect()),
            preferred_providers: (!preferred.is_empty()).then_some(preferred),
            ..OrchestrationForm::default()
        })
    }
}

/// Carries the command out; gives the exit code. The cloud is asked what it would answer to the consumer: nothing is kept by it, nor by another cloud.
pub async fn run(options: OrchestrateOptions, printer: Printer) -> anyhow::Result<u8> {
    let cloud = options.registry.discover().await?;
    let question = &options.question;
    let monitor = options.registry.monitor_towards_others()?;
    let answer = monitor.explain_orchestration(&question.form(&cloud).await?).await?;
    let remedy = format!("auth add --consumer {}", question.consumer);
    if answer.response.is_empty() {
        let print = if question.explain { explanation::print_steps } else { explanation::print };
        print(&answer, &answer.explanation, &remedy, printer)?;
        return Ok(explanation::exit_code(&answer.explanation));
    }
    match question.explain {
        false => printer.rows(&json!({"response": answer.response}), &table(&answer.response), "")?,
        true => {
            printer.rows(&answer, &table(&answer.response), "")?;
            if !printer.is_json() {
                explanation::print_steps(&(), &answer.explanation, &remedy, printer)?;
            }
        }
    }
    Ok(DONE)
}

/// What the Orchestrator offers, as people read it.
pub fn table(offers: &[Offer]) -> Table {
    let mut table = Table::new(&["SERVICE", "PROVIDER", "ADDRESS", "URI", "INTERFACES", "WARNINGS"]);
    for offer in offers {
        table.push([
            offer.service.service_definition.clone(),
            offer.provider.system_name.clone(),
            offer.provider.host_and_port(),
            offer.service_uri.clone(),
            interface_names(&offer.interfaces),
            offer.warnings.join(", "),
        ]);
    }
    table
}
