//! The flexible store: rules that say which consumers use which providers, by names and metadata (reference 5.4).

use std::collections::{BTreeMap, BTreeSet};

use super::store::known_requester;
use crate::{
    error::ArrowheadError,
    explanation::{Criterion, Step, Witness},
    form::{FlexibleRuleRequest, ServiceQueryForm, SystemDescriberRequest},
    metadata::{Metadata, MetadataForm, MetadataRequirement},
    name::{InterfaceName, NamingRules, ServiceDefinition, SystemName},
    record::{EntryView, FlexibleRule, SystemDescriber},
    service_registry::{Query, offered_step},
    snapshot::Snapshot,
    system::SystemReference,
};

/// Priority of a rule that names none: the last.
const PRIORITY_LAST: i32 = i32::MAX;

/// A rule to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct FlexibleRuleInsertion {
    /// Which consumers.
    pub consumer: SystemDescriber,
    /// Which providers.
    pub provider: SystemDescriber,
    /// What.
    pub definition: ServiceDefinition,
    /// Over what; `None` is anything.
    pub interface: Option<InterfaceName>,
    /// Pairs the service must have.
    pub metadata: Option<Metadata>,
    /// At least 1.
    pub priority: i32,
}

impl FlexibleRuleInsertion {
    /// Checks a list; whatever is wrong refuses all of it.
    pub fn parse_list(forms: Vec<Option<FlexibleRuleRequest>>, rules: &NamingRules, origin: &str) -> Result<Vec<Self>, ArrowheadError> {
        let null = || ArrowheadError::bad_payload("Request list contains null element", origin);
        forms.into_iter().map(|form| Self::parse(form.ok_or_else(null)?, rules, origin)).collect()
    }

    fn parse(form: FlexibleRuleRequest, rules: &NamingRules, origin: &str) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let consumer = parse_describer(form.consumer_system, "Consumer system", origin)?;
        let provider = parse_describer(form.provider_system, "Provider system", origin)?;
        let definition = form.service_definition_name.unwrap_or_default();
        let definition = ServiceDefinition::parse(&definition, rules).map_err(|error| refused(format!("Service definition {error}")))?;
        let interface = form.service_interface_name.filter(|name| !name.trim().is_empty());
        let interface = interface.map(|name| InterfaceName::parse(&name, rules)).transpose();
        let interface = interface.map_err(|error| refused(format!("Interface name {error}")))?;
        let priority = form.priority.map_or(Ok(PRIORITY_LAST), i32::try_from).ok().filter(|priority| *priority > 0);
        let priority = priority.ok_or_else(|| refused(format!("Priority must be from 1 to {PRIORITY_LAST}.")))?;
        let metadata = parse_pairs(form.service_metadata, origin)?;
        Ok(Self { consumer, provider, definition, interface, metadata, priority })
    }
}

fn parse_describer(form: Option<SystemDescriberRequest>, what: &str, origin: &str) -> Result<SystemDescriber, ArrowheadError> {
    let refused = |message: String| ArrowheadError::bad_payload(message, origin);
    let form = form.ok_or_else(|| refused(format!("{what} is null.")))?;
    let name = form.system_name.filter(|name| !name.trim().is_empty());
    let system_name = name.map(|name| SystemName::parse(&name)).transpose();
    let system_name = system_name.map_err(|error| refused(format!("{what}: system name {error}")))?;
    let metadata = parse_pairs(form.metadata, origin)?;
    if system_name.is_none() && metadata.is_none() {
        return Err(refused(format!("{what} needs a system name or metadata.")));
    }
    Ok(SystemDescriber { system_name, metadata })
}

/// An empty map is as good as none.
fn parse_pairs(form: Option<MetadataForm>, origin: &str) -> Result<Option<Metadata>, ArrowheadError> {
    Metadata::parse_optional(form.filter(|pairs| !pairs.is_empty()), origin)
}

impl SystemDescriber {
    /// Whether a system of this name and metadata is meant.
    fn describes(&self, name: &SystemName, metadata: Option<&Metadata>) -> bool {
        self.system_name.as_ref().is_none_or(|wanted| wanted == name)
            && self.metadata.as_ref().is_none_or(|pairs| MetadataRequirement::from(pairs).met_by(metadata))
    }
}

/// What the providers offer that rules give to the requester: by the rules' priority, then their id; each service once.
pub(super) fn flexible_candidates(
    snapshot: &Snapshot,
    requester: &SystemReference,
    form: &ServiceQueryForm,
    requester_metadata: &Metadata,
    witness: &mut impl Witness,
) -> Result<Vec<EntryView>, ArrowheadError> {
    let consumer = known_requester(snapshot, requester)?;
    let metadata = requester_metadata.over(consumer.metadata.as_ref());
    let wanted = form.service_definition_requirement.as_deref().unwrap_or_default();
    let definition = snapshot.definition_by_name(wanted);
    witness.see(|| offered_step(wanted, definition.map_or(0, |definition| snapshot.entries_of(definition.id).count())));
    let Some(definition) = definition else { return Ok(Vec::new()) };
    let asked: Vec<String> = form.interface_requirements.iter().flatten().flatten().map(|name| name.trim().to_uppercase()).collect();
    let rules = snapshot.flexible_rules_for(&definition.service_definition);
    let rules = rules.filter(|rule| rule.consumer_system.describes(&consumer.system_name, Some(&metadata)));
    let is_asked = |name: &InterfaceName| asked.is_empty() || asked.iter().any(|asked| asked == name.as_str());
    let mut rules: Vec<&FlexibleRule> =
        rules.filter(|rule| rule.service_interface.as_ref().is_none_or(is_asked)).map(|rule| &**rule).collect();
    rules.sort_unstable_by_key(|rule| (rule.priority, rule.id));
    witness.see(|| {
        let found = if rules.is_empty() { "no rule of the flexible store is for this consumer and service" } else { "there are some" };
        Step::new(Criterion::FlexibleRule, !rules.is_empty(), "rules of the flexible store", found)
    });
    let mut candidates = Vec::new();
    let mut seen = BTreeSet::new();
    for rule in rules {
        let query = Query::parse(&narrowed(form, rule), "").expect("a rule narrows a form that was checked");
        for entry in snapshot.entries_of(definition.id).filter(|entry| !seen.contains(&entry.id)) {
            let offered = query.select(snapshot, entry, witness);
            candidates.extend(offered.filter(|view| rule.gives(view, witness)));
        }
        seen = candidates.iter().map(|view| view.entry.id).collect();
    }
    Ok(candidates)
}

impl FlexibleRule {
    /// Whether the rule is about the provider of a service.
    fn gives(&self, view: &EntryView, witness: &mut impl Witness) -> bool {
        let gives = self.provider_system.describes(&view.provider.system_name, view.provider.metadata.as_ref());
        witness.see(|| {
            let found = if gives { "it gives this provider" } else { "it is about other providers" };
            let step = Step::new(Criterion::FlexibleRule, gives, format!("rule {} of the flexible store", self.id), found);
            step.of(view.entry.id).by(Some(self.id.0))
        });
        gives
    }
}

/// What is asked of the registry for a rule: the rule's interface and metadata, with those of the request on top.
fn narrowed(form: &ServiceQueryForm, rule: &FlexibleRule) -> ServiceQueryForm {
    let mut form = form.clone();
    if let Some(interface) = &rule.service_interface {
        form.interface_requirements = Some(vec![Some(interface.to_string())]);
    }
    if let Some(metadata) = &rule.service_metadata {
        let of_rule = metadata.pairs().iter().map(|(key, value)| (key.trim().to_owned(), Some(value.clone())));
        let of_request = form.metadata_requirements.unwrap_or_default();
        let of_request = of_request.into_iter().map(|(key, value)| (key.trim().to_owned(), value));
        form.metadata_requirements = Some(of_rule.chain(of_request).collect::<BTreeMap<_, _>>());
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(pairs: &[(&str, &str)]) -> Metadata {
        Metadata::from(pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn a_describer_needs_every_part_it_has_to_fit() {
        let name = SystemName::parse("sensor").unwrap();
        let place = metadata(&[("room", "1")]);
        for (named, pairs, found, expected) in [
            (true, None, None, true),
            (false, Some(&place), None, false),
            (false, Some(&place), Some(metadata(&[("room", " 1 "), ("floor", "2")])), true),
            (false, Some(&place), Some(metadata(&[("room", "2")])), false),
            (true, Some(&place), Some(metadata(&[("room", "1")])), true),
        ] {
            let describer = SystemDescriber { system_name: named.then(|| name.clone()), metadata: pairs.cloned() };
            assert_eq!(describer.describes(&name, found.as_ref()), expected, "{describer:?} {found:?}");
        }
        let other = SystemDescriber { system_name: Some(SystemName::parse("other").unwrap()), metadata: None };
        assert!(!other.describes(&name, None));
    }

    #[test]
    fn a_rule_needs_two_describers_a_service_and_a_priority_above_0() {
        let named = || Some(SystemDescriberRequest { system_name: Some("a".into()), metadata: None });
        let whole = || FlexibleRuleRequest {
            consumer_system: named(),
            provider_system: named(),
            service_definition_name: Some("s".into()),
            ..Default::default()
        };
        let parse = |form| FlexibleRuleInsertion::parse_list(vec![Some(form)], &NamingRules::default(), "/x");
        assert_eq!(parse(whole()).unwrap()[0].priority, i32::MAX);
        let empty = Some(SystemDescriberRequest { system_name: Some(" ".into()), metadata: Some(MetadataForm::new()) });
        for broken in [
            FlexibleRuleRequest { consumer_system: None, ..whole() },
            FlexibleRuleRequest { provider_system: empty, ..whole() },
            FlexibleRuleRequest { service_definition_name: None, ..whole() },
            FlexibleRuleRequest { service_interface_name: Some("JSON".into()), ..whole() },
            FlexibleRuleRequest { priority: Some(0), ..whole() },
            FlexibleRuleRequest { priority: Some(1 << 31), ..whole() },
        ] {
            assert!(parse(broken.clone()).is_err(), "{broken:?}");
        }
        assert!(FlexibleRuleInsertion::parse_list(vec![None], &NamingRules::default(), "/x").is_err());
    }
}
