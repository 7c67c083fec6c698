//! Whom this cloud asks, what it answers, and what it makes of answers.

use super::*;
use crate::{form::ServiceQueryForm, name::*, snapshot::Change, utc::UtcTime};

fn timestamps() -> Timestamps {
    let now = UtcTime::from_unix_seconds(0);
    Timestamps { created_at: now, updated_at: now }
}

fn cloud(id: i64, name: &str, neighbor: bool) -> Arc<Cloud> {
    Arc::new(Cloud {
        id: CloudId(id),
        operator: CloudName::from_stored("o"),
        name: CloudName::from_stored(name),
        secure: true,
        neighbor,
        own_cloud: name == "own",
        authentication_info: Some("key".into()),
        relays: Vec::new(),
        accepted_events: Default::default(),
        timestamps: timestamps(),
    })
}

/// The own cloud, two neighbours and a distant one. Two sensors of this one offer temperature over JSON and CBOR; `near` may use sensor 1 over both, and
/// sensor 2 over JSON.
fn world() -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (id, name, neighbor) in [(1, "own", false), (2, "near", true), (3, "next", true), (4, "far", false)] {
        snapshot.apply(Change::Cloud(cloud(id, name, neighbor)));
    }
    let service_definition = ServiceDefinition::from_stored("temperature");
    snapshot.apply(Change::Definition(Arc::new(Definition { id: DefinitionId(1), service_definition, timestamps: timestamps() })));
    for (id, name) in [(1, "HTTP-SECURE-JSON"), (2, "HTTP-SECURE-CBOR")] {
        let interface_name = InterfaceName::from_stored(name);
        snapshot.apply(Change::Interface(Arc::new(Interface { id: InterfaceId(id), interface_name, timestamps: timestamps() })));
    }
    for id in [1, 2] {
        snapshot.apply(Change::System(Arc::new(System {
            id: SystemId(id),
            system_name: SystemName::from_stored(&format!("sensor-{id}")),
            address: crate::address::Address::from_stored("host"),
            port: 8000,
            authentication_info: None,
            metadata: None,
            timestamps: timestamps(),
        })));
        snapshot.apply(Change::Entry(Arc::new(Entry {
            id: EntryId(id),
            definition: DefinitionId(1),
            provider: SystemId(id),
            service_uri: "/".into(),
            end_of_validity: None,
            secure: Security::Certificate,
            metadata: None,
            version: 1,
            interfaces: vec![InterfaceId(1), InterfaceId(2)],
            timestamps: timestamps(),
        })));
        snapshot.apply(Change::InterCloudRule(Arc::new(InterCloudRule {
            id: InterCloudRuleId(id),
            cloud: CloudId(2),
            provider: SystemId(id),
            definition: DefinitionId(1),
            interfaces: if id == 1 { vec![InterfaceId(1), InterfaceId(2)] } else { vec![InterfaceId(1)] },
            timestamps: timestamps(),
        })));
    }
    snapshot
}

fn named(name: &str) -> Option<CloudRequest> {
    Some(CloudRequest { operator: Some("O".into()), name: Some(name.into()), ..CloudRequest::default() })
}

#[test]
fn preferred_clouds_are_asked_or_else_all_neighbours() {
    for (preferred, expected) in [
        (&[][..], &["near", "next"][..]),
        (&["far"], &["far"]),
        (&["FAR", "near", "far"], &["near", "far"]),
        (&["unknown"], &["near", "next"]),
        (&["own"], &["near", "next"]),
    ] {
        let preferred: Vec<_> = preferred.iter().map(|name| named(name)).chain([None]).collect();
        let asked = asked_clouds(&world(), &preferred).unwrap();
        assert_eq!(asked.iter().map(|cloud| cloud.name.as_str()).collect::<Vec<_>>(), expected, "{preferred:?}");
    }
    assert_eq!(asked_clouds(&Snapshot::default(), &[]).unwrap_err().error_code, 400);
}

fn question(asker: &str, service: &str, gateway_is_present: bool, mandatory: bool) -> Result<Question, ArrowheadError> {
    let requested_service = ServiceQueryForm { service_definition_requirement: Some(service.into()), ..ServiceQueryForm::default() };
    let form = GsdPollRequest {
        requested_service: Some(requested_service),
        requester_cloud: named(asker),
        gateway_is_present: Some(gateway_is_present),
        ..GsdPollRequest::default()
    };
    Question::parse(form, &cloud(2, "near", true), mandatory)
}

#[test]
fn another_cloud_is_offered_what_its_rules_grant() {
    let snapshot = world();
    let answer = |asker: i64, service: &str| {
        let question = question("near", service, true, true).unwrap();
        let offered = question.offered(&snapshot, snapshot.cloud(CloudId(asker)).unwrap());
        serde_json::to_value(question.answer(&snapshot, &offered)).unwrap()
    };
    let mut granted = answer(2, "Temperature");
    assert_eq!(granted["providerCloud"].take()["name"], "own");
    let expected = serde_json::json!({
        "providerCloud": null, "requiredServiceDefinition": "temperature", "availableInterfaces": ["HTTP-SECURE-CBOR", "HTTP-SECURE-JSON"],
        "numOfProviders": 2, "qosMeasurements": null, "serviceMetadata": null, "gatewayIsMandatory": true, "verifiedRelays": []
    });
    assert_eq!(granted, expected);
    // Neither who has no rule nor who asks for another service learns anything.
    for (asker, service) in [(3, "temperature"), (2, "humidity")] {
        assert_eq!(answer(asker, service), serde_json::to_value(DiscoveryAnswer::default()).unwrap(), "{asker} {service}");
    }
}

#[test]
fn who_asks_for_measurements_is_answered_those_who_were_measured() {
    use crate::orchestrator::{Found, Measured};
    let snapshot = world();
    // Upstream's word, as both forms have it.
    let asked: GsdPollRequest = crate::json::parse_object(r#"{"needQoSMeasurements":true}"#).unwrap();
    assert_eq!(
        (asked.need_qos_measurements, serde_json::to_value(&asked).unwrap()["needQoSMeasurements"].clone()),
        (Some(true), true.into())
    );
    let told: crate::form::GsdQueryForm = crate::json::parse_object(r#"{"needQoSMeasurements":true}"#).unwrap();
    assert_eq!(told.need_qos_measurements, Some(true));
    let question = || Question { needs_quality: true, ..question("near", "temperature", true, false).unwrap() };
    let offered = question().offered(&snapshot, snapshot.cloud(CloudId(2)).unwrap());
    let answer =
        |found: Option<fn(&EntryView) -> Found>| serde_json::to_value(question().measured_answer(&snapshot, &offered, found)).unwrap();
    let first = |view: &EntryView| {
        let attempts = [Some(Duration::from_micros(1_500)), None];
        let measured = Measured::of(&attempts, &attempts, Duration::from_millis(5)).counted(20, 19);
        Found { service: (view.provider.id == SystemId(1)).then_some(measured), is_probed: true, ..Found::default() }
    };
    let measured = answer(Some(first));
    assert_eq!((&measured["numOfProviders"], measured["qosMeasurements"].as_array().map(Vec::len)), (&1.into(), Some(1)), "{measured}");
    let mut form = measured["qosMeasurements"][0].clone();
    assert_eq!(form["serviceRegistryEntry"].take()["provider"]["systemName"], "sensor-1");
    let expected = serde_json::json!({
        "serviceRegistryEntry": null, "providerAvailable": true, "lastAccessAt": null, "minResponseTime": 2, "maxResponseTime": 2,
        "meanResponseTimeWithTimeout": 4, "meanResponseTimeWithoutTimeout": 2, "jitterWithTimeout": 2, "jitterWithoutTimeout": 0,
        "sent": 2, "received": 1, "sentAll": 20, "receivedAll": 19, "lostPerMeasurementPercent": 50
    });
    assert_eq!(form, expected);
    let nobody = answer(Some(|_| Found::default()));
    assert_eq!(
        (&nobody["numOfProviders"], &nobody["qosMeasurements"]),
        (&0.into(), &serde_json::json!([])),
        "there are some, of whom nothing is known"
    );
    assert_eq!(answer(None), serde_json::to_value(DiscoveryAnswer::default()).unwrap(), "nothing is measured here at all");
}

#[test]
fn a_question_is_its_senders_and_needs_a_gateway_where_one_is_mandatory() {
    assert!(question("NEAR", "t", false, false).is_ok());
    assert_eq!(question("next", "t", true, true).unwrap_err().error_code, 401);
    assert!(question("near", "t", false, true).unwrap_err().error_message.contains("gateways only"));
    assert!(question("near", " ", true, true).is_err());
}

#[test]
fn answers_are_collected_and_failures_counted() {
    let offers = || GsdPollResponse { provider_cloud: named("whatever"), num_of_providers: Some(3), ..GsdPollResponse::default() };
    let silent = || Err(ArrowheadError::timeout("near has not answered within 30 s."));
    let refused = || Err(ArrowheadError::auth("no"));
    let of = |outcomes: Vec<Outcome>| {
        let outcomes = outcomes.into_iter().enumerate().map(|(index, outcome)| (cloud(index as i64 + 2, "near", true), outcome));
        collect(outcomes.collect())
    };
    let found = of(vec![Ok(offers()), silent(), Ok(GsdPollResponse::default())]).unwrap();
    assert_eq!((found.results.len(), found.unsuccessful_requests), (1, 1));
    assert_eq!(found.results[0].provider_cloud.as_ref().map(|cloud| cloud.id), Some(CloudId(2)), "as it is known here");
    assert_eq!(of(vec![Ok(GsdPollResponse::default()), refused()]).unwrap().unsuccessful_requests, 1);
    assert_eq!(of(vec![refused(), silent()]), Err(ArrowheadError::auth("no")));
    assert_eq!(of(vec![silent(), refused()]).unwrap_err().error_code, 504);
}
