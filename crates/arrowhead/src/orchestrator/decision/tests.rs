//! An explanation is the decision's own: it names what was given, and a reason for everything that was not.

use std::{collections::BTreeMap, sync::Arc};

use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::{
    access::Access,
    address::Address,
    caller::Caller,
    explanation::{Outcome, Unwatched, Verdict},
    form::{OrchestrationForm, PreferredProvider, ServiceQueryForm, SystemRequest},
    metadata::Metadata,
    name::{InterfaceName, NamingRules, ServiceDefinition, SystemName},
    orchestrator::{Sender, StoreKind},
    record::*,
    snapshot::Change,
};

fn now() -> UtcTime {
    UtcTime::from_unix_seconds(1_000_000)
}

const HEAT: DefinitionId = DefinitionId(1);
const CONSUMER: SystemId = SystemId(100);
const INTERFACES: [&str; 2] = ["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"];

/// A provider, what it offers, and what stands in its way.
#[derive(Clone, Debug)]
struct Provider {
    is_ipv6: bool,
    is_offering: bool,
    /// 1 is the first interface, 2 the second, 3 both.
    interfaces: usize,
    metadata: bool,
    rule: Option<usize>,
    is_kept_by_another: bool,
    is_stored: bool,
    is_flexible: bool,
    is_preferred: bool,
}

#[derive(Clone, Debug)]
struct Question {
    flags: Vec<&'static str>,
    interface: Option<usize>,
    wants_metadata: bool,
    store: StoreKind,
}

fn provider() -> impl Strategy<Value = Provider> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, 1..4usize, option::of(1..4usize)).prop_map(|(flags, interfaces, rule)| Provider {
        is_ipv6: flags.0,
        is_offering: flags.1,
        interfaces,
        metadata: flags.2,
        rule,
        is_kept_by_another: flags.3,
        is_stored: flags.4,
        is_flexible: flags.5,
        is_preferred: flags.6,
    })
}

fn question() -> impl Strategy<Value = Question> {
    let names = vec!["overrideStore", "matchmaking", "onlyPreferred", "metadataSearch", "onlyIPv4AddressResponse"];
    let flags = proptest::sample::subsequence(names, 0..=5);
    (flags, option::of(0..2usize), any::<bool>(), any::<bool>()).prop_map(|(flags, interface, wants_metadata, is_flexible)| Question {
        flags,
        interface,
        wants_metadata,
        store: if is_flexible { StoreKind::Flexible } else { StoreKind::Plain },
    })
}

fn ids(set: usize) -> Vec<InterfaceId> {
    [(1, InterfaceId(1)), (2, InterfaceId(2))].into_iter().filter(|(bit, _)| set & bit != 0).map(|(_, id)| id).collect()
}

fn pairs() -> Metadata {
    Metadata::from(BTreeMap::from([("unit".to_owned(), "celsius".to_owned())]))
}

fn snapshot(providers: &[Provider]) -> Snapshot {
    let timestamps = Timestamps { created_at: now(), updated_at: now() };
    let mut snapshot = Snapshot::default();
    let mut apply = |change| snapshot.apply(change);
    let definition = ServiceDefinition::from_stored("heat");
    apply(Change::Definition(Arc::new(Definition { id: HEAT, service_definition: definition.clone(), timestamps })));
    for (id, name) in (1..).zip(INTERFACES) {
        let interface_name = InterfaceName::from_stored(name);
        apply(Change::Interface(Arc::new(Interface { id: InterfaceId(id), interface_name, timestamps })));
    }
    let system = |id: SystemId, name: &str, address: &str| System {
        id,
        system_name: SystemName::from_stored(name),
        address: Address::parse(address, &NamingRules::default()).unwrap(),
        port: u16::try_from(id.0).unwrap(),
        authentication_info: None,
        metadata: None,
        timestamps,
    };
    apply(Change::System(Arc::new(system(CONSUMER, "display", "10.0.0.9"))));
    for (number, provider) in (1..).zip(providers) {
        let id = SystemId(number);
        apply(Change::System(Arc::new(system(id, &format!("p{number}"), if provider.is_ipv6 { "2001:db8::1" } else { "10.0.0.1" }))));
        if provider.is_offering {
            apply(Change::Entry(Arc::new(Entry {
                id: EntryId(number),
                definition: HEAT,
                provider: id,
                service_uri: "".into(),
                end_of_validity: None,
                secure: Security::NotSecure,
                metadata: provider.metadata.then(pairs),
                version: 1,
                interfaces: ids(provider.interfaces),
                timestamps,
            })));
        }
        if let Some(interfaces) = provider.rule {
            let rule =
                Rule { id: RuleId(number), consumer: CONSUMER, provider: id, definition: HEAT, interfaces: ids(interfaces), timestamps };
            apply(Change::Rule(Arc::new(rule)));
        }
        if provider.is_kept_by_another {
            apply(Change::Reservation(Arc::new(Reservation {
                id: ReservationId(number),
                provider: id,
                definition: HEAT,
                consumer: SystemKey::new("another", "10.0.0.8", 1),
                reserved_to: UtcTime::from_unix_seconds(2_000_000),
                temporary_lock: false,
                timestamps,
            })));
        }
        if provider.is_stored {
            apply(Change::StoreEntry(Arc::new(StoreEntry {
                id: StoreEntryId(number),
                group: StoreGroup { consumer: CONSUMER, definition: HEAT, interface: InterfaceId(1) },
                provider: StoreProvider::Local(id),
                priority: u32::try_from(number).unwrap(),
                attribute: None,
                timestamps,
            })));
        }
        if provider.is_flexible {
            let describer = |name: &str| SystemDescriber { system_name: Some(SystemName::from_stored(name)), metadata: None };
            apply(Change::FlexibleRule(Arc::new(FlexibleRule {
                id: FlexibleRuleId(number),
                consumer_system: describer("display"),
                provider_system: describer(&format!("p{number}")),
                service_definition: definition.clone(),
                service_interface: None,
                service_metadata: None,
                priority: 1,
                timestamps,
            })));
        }
    }
    snapshot
}

/// `None` where the form is refused.
fn orchestration(question: &Question, providers: &[Provider], snapshot: &Snapshot) -> Option<Orchestration> {
    let named = |system: &System| SystemRequest {
        system_name: Some(system.system_name.to_string()),
        address: Some(system.address.as_str().to_owned()),
        port: Some(system.port.into()),
        ..SystemRequest::default()
    };
    let of_id = |id: SystemId| named(snapshot.system(id).expect("it was made"));
    let preferred = (1..).zip(providers).filter(|(_, provider)| provider.is_preferred);
    let preferred = preferred.map(|(id, _)| Some(PreferredProvider { provider_system: Some(of_id(SystemId(id))), provider_cloud: None }));
    let form = OrchestrationForm {
        requester_system: Some(of_id(CONSUMER)),
        requested_service: Some(ServiceQueryForm {
            service_definition_requirement: Some("heat".into()),
            interface_requirements: question.interface.map(|which| vec![Some(INTERFACES[which].to_owned())]),
            metadata_requirements: question.wants_metadata.then(|| BTreeMap::from([("unit".into(), Some("celsius".into()))])),
            ..ServiceQueryForm::default()
        }),
        orchestration_flags: Some(question.flags.iter().map(|flag| ((*flag).to_owned(), Some(true))).collect()),
        preferred_providers: Some(preferred.collect()),
        ..OrchestrationForm::default()
    };
    let form = Access::OwnNeeds.admit(&Caller::Anonymous).unwrap().permit(form).unwrap();
    Orchestration::parse(form, Sender::Requester, question.store, None, false).ok()
}

fn decide(snapshot: &Snapshot, orchestration: &Orchestration, witness: &mut impl Witness) -> Vec<EntryView> {
    let candidates = candidates(snapshot, orchestration, witness).unwrap();
    orchestrate(snapshot, orchestration, candidates, now(), |_| 0, witness).unwrap()
}

fn entries(views: &[EntryView]) -> Vec<EntryId> {
    views.iter().map(|view| view.entry.id).collect()
}

proptest! {
    #[test]
    fn an_explanation_has_a_reason_for_everything(providers in vec(provider(), 0..5), question in question()) {
        let snapshot = snapshot(&providers);
        let Some(orchestration) = orchestration(&question, &providers, &snapshot) else { return Ok(()) };
        let mut steps = Vec::new();
        let usable = decide(&snapshot, &orchestration, &mut steps);
        prop_assert_eq!(entries(&usable), entries(&decide(&snapshot, &orchestration, &mut Unwatched)), "being watched changes nothing");

        let explanation = orchestration.explain(&snapshot, steps, &usable);
        prop_assert_eq!(explanation.outcome == Outcome::Granted, !usable.is_empty());
        let mut passed = Vec::new();
        for service in &explanation.services {
            let reason = service.steps.iter().rev().find(|step| step.verdict == Verdict::Refused);
            match service.verdict {
                Verdict::Passed => passed.push(service.service.entry.id),
                Verdict::Refused => prop_assert!(reason.is_some(), "{:?} is left out without a reason", service),
            }
        }
        let mut given = entries(&usable);
        given.sort_unstable();
        passed.sort_unstable();
        prop_assert_eq!(passed, given);
        if usable.is_empty() {
            let refused = |step: &Step| step.verdict == Verdict::Refused;
            prop_assert!(explanation.steps.iter().any(refused) || !explanation.services.is_empty(), "{:?}", explanation);
        }
        if explanation.outcome == Outcome::Denied {
            let asked = question.interface.map_or(3, |which| which + 1);
            let may = |provider: &Provider| provider.is_offering && provider.rule.is_some_and(|rule| rule & provider.interfaces & asked != 0);
            let fits = |provider: &&Provider| !question.flags.contains(&"onlyIPv4AddressResponse") || !provider.is_ipv6;
            let wants = |provider: &&Provider| !(question.wants_metadata && question.flags.contains(&"metadataSearch")) || provider.metadata;
            let stored = |provider: &&Provider| question.flags.contains(&"overrideStore") || provider.is_stored;
            prop_assert!(!providers.iter().filter(fits).filter(wants).filter(stored).any(may), "{:?}", explanation);
        }
        if question.flags.contains(&"overrideStore") {
            let offering = providers.iter().filter(|provider| provider.is_offering).count();
            prop_assert_eq!(explanation.services.len(), offering, "every registered service is explained");
        }
    }
}
