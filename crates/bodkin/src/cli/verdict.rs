//! May a consumer use a service, over what, and why or why not? Authorization decides; the rules say why.

use bodkin_arrowhead::form::{IdIdList, IntracloudCheckRequest};
use bodkin_client::{
    CoreSystems, Page,
    answer::{AuthorizedProvider, Interface, Rule, Service, System},
};
use serde::Serialize;

use super::{lookup, service::interface_names, table::Table};

/// What Authorization says of one offered service.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// What is offered.
    pub service: Service,
    /// Whether it may be used, over any interface.
    pub allowed: bool,
    /// The interfaces it may be used over.
    pub interfaces: Vec<String>,
    /// The rule that counts.
    pub rule: Option<i64>,
    /// Why.
    pub why: String,
}

/// Asks Authorization about every service of one definition. Providers' rules are looked at only to say why.
pub async fn verdicts(cloud: &CoreSystems, consumer: &System, services: Vec<Service>) -> anyhow::Result<Vec<Verdict>> {
    let Some(definition) = services.first().map(|service| service.service_definition.clone()) else { return Ok(Vec::new()) };
    let form = IntracloudCheckRequest {
        consumer: Some(lookup::form(consumer)),
        service_definition_id: Some(definition.id),
        provider_ids_with_interface_ids: Some(asked(&services).into_iter().map(Some).collect()),
    };
    let allowed = cloud.check_intracloud(&form).await?.authorized_provider_ids_with_interface_ids;
    let mut rules = cloud.rules(&Page::default()).await?.data;
    rules.retain(|rule| rule.consumer_system.id == consumer.id && rule.service_definition.id == definition.id);
    Ok(services.into_iter().map(|service| verdict(service, &allowed, &rules)).collect())
}

/// Every provider with all interfaces of its services.
fn asked(services: &[Service]) -> Vec<IdIdList> {
    let mut asked: Vec<IdIdList> = Vec::new();
    for service in services {
        let ids = service.interfaces.iter().map(|interface| Some(interface.id));
        match asked.iter_mut().find(|provider| provider.id == Some(service.provider.id)) {
            Some(provider) => provider.id_list.get_or_insert_default().extend(ids),
            None => asked.push(IdIdList { id: Some(service.provider.id), id_list: Some(ids.collect()) }),
        }
    }
    asked
}

fn verdict(service: Service, allowed: &[AuthorizedProvider], rules: &[Rule]) -> Verdict {
    let allowed = allowed.iter().find(|provider| provider.id == service.provider.id);
    let is_allowed = |interface: &&Interface| allowed.is_some_and(|provider| provider.id_list.contains(&interface.id));
    let interfaces: Vec<String> = service.interfaces.iter().filter(is_allowed).map(|interface| interface.interface_name.clone()).collect();
    let rule = rules.iter().find(|rule| rule.provider_system.id == service.provider.id);
    let offered = interface_names(&service.interfaces);
    let why = match rule {
        Some(rule) if interfaces.len() == service.interfaces.len() => format!("rule {} allows it", rule.id),
        Some(rule) => format!("rule {} allows {} only, of {offered}", rule.id, interface_names(&rule.interfaces)),
        None => "no rule allows it".to_owned(),
    };
    Verdict { allowed: !interfaces.is_empty(), interfaces, rule: rule.map(|rule| rule.id), why, service }
}

/// The verdicts as people read them.
pub fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["ID", "PROVIDER", "ADDRESS", "URI", "MAY BE USED OVER", "WHY"]);
    for verdict in verdicts {
        table.push([
            verdict.service.provider.id.to_string(),
            verdict.service.provider.system_name.clone(),
            verdict.service.provider.host_and_port(),
            verdict.service.service_uri.clone(),
            if verdict.allowed { verdict.interfaces.join(", ") } else { "DENIED".to_owned() },
            verdict.why.clone(),
        ]);
    }
    table
}

/// The command that makes a missing rule, where rules are missing.
pub fn remedy(consumer: &System, verdicts: &[Verdict]) -> Option<String> {
    let mut missing = verdicts.iter().filter(|verdict| verdict.rule.is_none()).map(|verdict| &verdict.service);
    let first = missing.next()?;
    let provider = if missing.next().is_some() { "ID".to_owned() } else { first.provider.id.to_string() };
    let service = &first.service_definition.service_definition;
    Some(format!("to make a rule: bodkin auth add --consumer {} --provider {provider} --service {service}", consumer.id))
}

#[cfg(test)]
mod tests {
    use bodkin_client::answer::ServiceDefinition;

    use super::*;

    fn interface(id: i64, interface_name: &str) -> Interface {
        Interface { id, interface_name: interface_name.into(), ..Interface::default() }
    }

    fn service(provider: i64, interfaces: &[i64]) -> Service {
        Service {
            service_definition: ServiceDefinition { id: 9, service_definition: "heat".into(), ..ServiceDefinition::default() },
            provider: System { id: provider, ..System::default() },
            interfaces: interfaces.iter().map(|id| interface(*id, &format!("I{id}"))).collect(),
            ..Service::default()
        }
    }

    #[test]
    fn a_verdict_says_over_what_and_why() {
        let allowed = [AuthorizedProvider { id: 5, id_list: vec![2] }];
        let rules = [Rule {
            id: 7,
            provider_system: System { id: 5, ..System::default() },
            interfaces: vec![interface(2, "I2")],
            ..Rule::default()
        }];
        let verdict = |provider, interfaces: &[i64]| verdict(service(provider, interfaces), &allowed, &rules);
        assert_eq!((verdict(5, &[2]).interfaces, verdict(5, &[2]).why), (vec!["I2".to_owned()], "rule 7 allows it".to_owned()));
        assert_eq!(verdict(5, &[2, 3]).why, "rule 7 allows I2 only, of I2, I3");
        assert!(!verdict(5, &[3]).allowed && verdict(5, &[3]).rule == Some(7));
        assert!(!verdict(6, &[2]).allowed && verdict(6, &[2]).why == "no rule allows it");

        let consumer = System { id: 1, ..System::default() };
        let told = remedy(&consumer, &[verdict(5, &[2]), verdict(6, &[2])]);
        assert_eq!(told.as_deref(), Some("to make a rule: bodkin auth add --consumer 1 --provider 6 --service heat"));
        assert!(remedy(&consumer, &[verdict(6, &[2]), verdict(7, &[2])]).unwrap().contains("--provider ID"));
        assert_eq!(remedy(&consumer, &[verdict(5, &[2])]), None);
    }

    #[test]
    fn a_provider_is_asked_about_once_with_all_its_interfaces() {
        let asked = asked(&[service(5, &[2]), service(6, &[2]), service(5, &[3])]);
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].id_list, Some(vec![Some(2), Some(3)]));
    }
}
