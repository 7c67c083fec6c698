//! Why a consumer may use what it may: what the cloud explains, as people read it.

use std::io;

use bodkin_client::answer::{ExplainedService, Explanation, ExplanationStep};
use serde::Serialize;

use super::{DENIED, lookup, printer::Printer, service::interface_names, table::Table};
use crate::{DONE, FAILED};

/// The criterion of authorization rules.
const RULE: &str = "authorization-rule";

/// Prints the services that were looked at, and what keeps each from being used; programs get `document`. A missing rule is made by
/// the command that begins with `remedy`, such as `auth add --consumer display`.
pub fn print(document: &impl Serialize, explanation: &Explanation, remedy: &str, printer: Printer) -> io::Result<()> {
    printer.done(document, &explanation.why)?;
    if !explanation.services.is_empty() {
        printer.table(&services(&explanation.services), "")?;
    }
    match completed(remedy, explanation) {
        Some(command) => printer.remark(&format!("to make a rule: bodkin {command}")),
        None => Ok(()),
    }
}

/// As [`print`] with every step.
pub fn print_steps(document: &impl Serialize, explanation: &Explanation, remedy: &str, printer: Printer) -> io::Result<()> {
    print(document, explanation, remedy, printer)?;
    let mut table = steps_table();
    push_steps(&mut table, "the request", &explanation.steps);
    for service in &explanation.services {
        push_steps(&mut table, &lookup::told(&service.service.provider), &service.steps);
    }
    printer.table(&table, "")
}

/// A table for steps.
pub fn steps_table() -> Table {
    Table::new(&["OF", "RULE", "ASKED", "FOUND", "VERDICT"])
}

/// Adds the steps about something to it.
pub fn push_steps(table: &mut Table, of: &str, steps: &[ExplanationStep]) {
    for step in steps {
        let verdict = if step.is_refused() { "REFUSED" } else { "passed" };
        table.push([of.to_owned(), step.criterion.clone(), step.asked.clone(), step.found.clone(), verdict.to_owned()]);
    }
}

/// 0 where something may be used, 3 where only rules stand against it, 1 otherwise.
pub fn exit_code(explanation: &Explanation) -> u8 {
    match explanation.outcome.as_str() {
        "granted" => DONE,
        "denied" => DENIED,
        _ => FAILED,
    }
}

/// Why a service may be used, or why not.
pub fn why(service: &ExplainedService) -> &str {
    let step = service.refusal().or_else(|| service.step(RULE)).or(service.steps.last());
    step.map_or("", |step| step.found.as_str())
}

/// Whether authorization rules are what leaves a service out.
pub fn is_denied(service: &ExplainedService) -> bool {
    service.refusal().is_some_and(|step| step.criterion == RULE)
}

fn services(services: &[ExplainedService]) -> Table {
    let mut table = Table::new(&["ID", "PROVIDER", "ADDRESS", "URI", "MAY BE USED OVER", "WHY"]);
    for explained in services {
        let provider = &explained.service.provider;
        let over = match explained.refusal() {
            None => interface_names(&explained.interfaces),
            Some(_) if is_denied(explained) => "DENIED".to_owned(),
            Some(_) => "NO".to_owned(),
        };
        table.push([
            provider.id.to_string(),
            provider.system_name.clone(),
            provider.host_and_port(),
            explained.service.service_uri.clone(),
            over,
            why(explained).to_owned(),
        ]);
    }
    table
}

/// The remedy with provider and service, where rules are missing: the provider by its name, or by its id where another one that was looked at has the same.
fn completed(remedy: &str, explanation: &Explanation) -> Option<String> {
    let is_missing = |service: &&ExplainedService| is_denied(service) && service.refusal().is_some_and(|step| step.row.is_none());
    let mut missing = explanation.services.iter().filter(is_missing);
    let first = &missing.next()?.service;
    let of_this_name = explanation.services.iter().filter(|one| one.service.provider.system_name == first.provider.system_name);
    let provider = match (missing.next(), of_this_name.count()) {
        (Some(_), _) => "ID".to_owned(),
        (None, 1) => first.provider.system_name.clone(),
        (None, _) => first.provider.id.to_string(),
    };
    let service = &first.service_definition.service_definition;
    Some(format!("{remedy} --provider {provider} --service {service}"))
}

#[cfg(test)]
mod tests {
    use bodkin_client::answer::{Service, ServiceDefinition, System};

    use super::*;

    fn service(provider: i64, verdict: &str, steps: &[(&str, Option<i64>, &str, &str)]) -> ExplainedService {
        let step = |(criterion, row, found, verdict): &(&str, Option<i64>, &str, &str)| ExplanationStep {
            criterion: (*criterion).into(),
            row: *row,
            asked: "?".into(),
            found: (*found).into(),
            verdict: (*verdict).into(),
        };
        ExplainedService {
            service: Service {
                service_definition: ServiceDefinition { service_definition: "heat".into(), ..ServiceDefinition::default() },
                provider: System { id: provider, ..System::default() },
                ..Service::default()
            },
            verdict: verdict.into(),
            steps: steps.iter().map(step).collect(),
            ..ExplainedService::default()
        }
    }

    #[test]
    fn a_service_says_what_leaves_it_out_or_which_rule_lets_it_in() {
        let fits = ("requirements", None, "all of it", "passed");
        let granted = service(5, "passed", &[fits, (RULE, Some(7), "rule 7 allows it", "passed")]);
        assert_eq!((why(&granted), is_denied(&granted)), ("rule 7 allows it", false));
        let denied = service(6, "refused", &[fits, (RULE, None, "no rule allows it", "refused")]);
        assert_eq!((why(&denied), is_denied(&denied)), ("no rule allows it", true));
        let narrow = service(7, "refused", &[fits, (RULE, Some(8), "rule 8 allows I2 only", "refused")]);
        let unfit = service(8, "refused", &[("interface", None, "I3", "refused")]);
        assert_eq!((why(&unfit), is_denied(&unfit)), ("I3", false));

        let explanation = |services: Vec<ExplainedService>| Explanation { services, ..Explanation::default() };
        let remedy = |services| completed("auth add --consumer 1", &explanation(services));
        let told = remedy(vec![granted.clone(), denied.clone(), narrow.clone(), unfit]).unwrap();
        assert_eq!(told, "auth add --consumer 1 --provider 6 --service heat", "all have one name");
        let mut named = denied.clone();
        named.service.provider.system_name = "sensor".to_owned();
        assert_eq!(remedy(vec![granted.clone(), named]).unwrap(), "auth add --consumer 1 --provider sensor --service heat");
        assert!(remedy(vec![denied.clone(), denied]).unwrap().contains("--provider ID"));
        assert_eq!(remedy(vec![granted, narrow]), None);
    }
}
