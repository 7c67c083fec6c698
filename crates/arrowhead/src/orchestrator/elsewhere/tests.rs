//! Whom an orchestration leads to, and what is left of their answers.

use serde_json::json;

use super::*;
use crate::{json as form, record::*, utc::UtcTime};

fn cloud(id: i64, name: &str) -> Arc<Cloud> {
    Arc::new(Cloud::neighbor(id, "aitia", name))
}

fn elsewhere(flags: &[&str], preferred: &[(&str, &str)]) -> Option<Elsewhere> {
    let preferred: Vec<Value> = preferred
        .iter()
        .map(|(cloud, system)| {
            let system = json!({"systemName": system, "address": "10.0.0.1", "port": 80});
            match *cloud {
                "" => json!({"providerSystem": system}),
                name => json!({"providerSystem": system, "providerCloud": {"operator": "AITIA", "name": name}}),
            }
        })
        .collect();
    let text = json!({
        "requesterSystem": {"systemName": "display", "address": "10.0.0.9", "port": 1},
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "preferredProviders": preferred,
    });
    let form: OrchestrationForm = form::parse_object(&text.to_string()).unwrap();
    let flags = Flags(flags.iter().map(|flag| ((*flag).to_owned(), Some(true))).collect());
    Elsewhere::parse(&form, &flags, StoreKind::Plain, None)
}

#[test]
fn others_are_asked_when_the_flags_say_so() {
    let when = |flags: &[&str], preferred: &[(&str, &str)]| elsewhere(flags, preferred).map(|elsewhere| elsewhere.when);
    assert_eq!(when(&["triggerInterCloud"], &[]), Some(When::AtOnce));
    assert_eq!(when(&["triggerInterCloud", "overrideStore", "enableInterCloud"], &[]), Some(When::AtOnce));
    assert_eq!(when(&["overrideStore", "enableInterCloud"], &[]), Some(When::NothingHere));
    assert_eq!(when(&["overrideStore"], &[]), None);
    assert_eq!(when(&[], &[]), Some(When::ByStore));
    // Nobody elsewhere is wanted.
    assert_eq!(when(&["overrideStore", "enableInterCloud", "onlyPreferred"], &[("", "sensor")]), None);
    assert_eq!(when(&["overrideStore", "enableInterCloud", "onlyPreferred"], &[("two", "sensor")]), Some(When::NothingHere));
}

#[test]
fn what_is_required_goes_along_as_commands_and_needs_measurements() {
    let text = json!({
        "requesterSystem": {"systemName": "display", "address": "10.0.0.9", "port": 1}, "requestedService": {"serviceDefinitionRequirement": "heat"},
        "commands": {"qosExclusivity": "5"}, "qosRequirements": {"qosAvgRespTime": " 20 ", "unheard-of": "x"},
    });
    let form: OrchestrationForm = form::parse_object(&text.to_string()).unwrap();
    let quality = Quality::parse(form.qos_requirements.as_ref(), None, std::time::Duration::ZERO).unwrap();
    let asking = |flag: &str, quality| {
        let flags = Flags([(flag.to_owned(), Some(true)), ("enableQoS".to_owned(), Some(true))].into());
        Elsewhere::parse(&form, &flags, StoreKind::Plain, quality).unwrap()
    };
    let commands = |elsewhere: &Elsewhere| json!(elsewhere.negotiation(&cloud(2, "one")).commands);
    let needs = |elsewhere: &Elsewhere| elsewhere.discovery().need_qos_measurements;
    let required = asking("triggerInterCloud", Some(&quality));
    assert_eq!((commands(&required), needs(&required)), (json!({"qosAvgRespTime": "20", "qosExclusivity": "5"}), Some(true)));
    assert_eq!(commands(&required.keeping_nothing()), json!({"qosAvgRespTime": "20"}), "a look heeds it, and keeps nobody");
    let none = Quality::default();
    let unlimited = asking("triggerInterCloud", Some(&none));
    assert_eq!((commands(&unlimited), needs(&unlimited)), (json!({"qosExclusivity": "5"}), Some(false)));
    // The stores know no quality of service.
    let stored = asking("other", Some(&quality));
    assert_eq!((stored.when, commands(&stored), needs(&stored)), (When::ByStore, json!({"qosExclusivity": "5"}), Some(false)));

    let answers = |measurements: &str| {
        let answer = format!(r#"{{"providerCloud":{{}},"qosMeasurements":{measurements}}}"#);
        crate::gatekeeper::collect(vec![(cloud(2, "one"), Ok(form::parse_object(&answer).unwrap()))]).unwrap()
    };
    for (measurements, is_taken) in [("null", false), ("[]", false), ("[{}]", true)] {
        assert_eq!(required.check_offer(&answers(measurements), &cloud(2, "one")).is_ok(), is_taken, "{measurements}");
        assert!(unlimited.check_offer(&answers(measurements), &cloud(2, "one")).is_ok(), "{measurements}");
    }
    let nobody = crate::gatekeeper::collect(Vec::new()).unwrap();
    assert!(required.check_found(&nobody).is_err() && unlimited.check_found(&nobody).is_ok());
}

#[test]
fn clouds_of_preferred_providers_come_first_or_alone() {
    let answers = [cloud(2, "one"), cloud(3, "two")].map(|cloud| (cloud, Ok(form::parse_object(r#"{"providerCloud":{}}"#).unwrap())));
    let found = crate::gatekeeper::collect(answers.into()).unwrap();
    let order = |flags: &[&str], preferred: &[(&str, &str)]| {
        let clouds = elsewhere(flags, preferred).unwrap().in_order(&found);
        clouds.iter().map(|cloud| cloud.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(&["triggerInterCloud"], &[]), ["one", "two"]);
    assert_eq!(order(&["triggerInterCloud"], &[("Two", "sensor")]), ["two", "one"]);
    assert_eq!(order(&["triggerInterCloud", "onlyPreferred"], &[("two", "sensor")]), ["two"]);
    assert_eq!(order(&["triggerInterCloud", "onlyPreferred"], &[("three", "sensor")]), Vec::<String>::new());
}

#[test]
fn results_say_where_they_come_from() {
    let result = |name: &str| json!({"provider": {"systemName": name, "address": "10.0.0.1", "port": 80}, "warnings": ["TTL_UNKNOWN"]});
    let left = |flags: &[&str], preferred: &[(&str, &str)], answered: Vec<Value>| {
        let flags = [&["triggerInterCloud"], flags].concat();
        let results = elsewhere(&flags, preferred).unwrap().results(&cloud(2, "two"), answered);
        let name = |result: &Value| {
            assert_eq!(result["warnings"].as_array().unwrap().last().unwrap(), "FROM_OTHER_CLOUD", "{result}");
            result["provider"]["systemName"].as_str().unwrap().to_owned()
        };
        results.iter().map(name).collect::<Vec<_>>()
    };
    let both = || vec![result("first"), result("Sensor")];
    assert_eq!(left(&[], &[], both()), ["first", "Sensor"]);
    assert_eq!(left(&["matchmaking"], &[], both()), ["first"]);
    assert_eq!(left(&["matchmaking"], &[("two", "sensor")], both()), ["Sensor"]);
    assert_eq!(left(&["matchmaking"], &[("two", "sensor"), ("two", "first")], both()), ["Sensor"], "the first that is preferred");
    assert_eq!(left(&["onlyPreferred"], &[("two", "sensor")], both()), ["Sensor"]);
    assert_eq!(left(&["onlyPreferred"], &[("one", "sensor")], both()), Vec::<String>::new());
    // Behind a gateway nobody else is recognised.
    let tunnel = json!({"provider": {"systemName": "gateway", "address": "h", "port": 8000}, "warnings": ["VIA_GATEWAY"]});
    assert_eq!(left(&["onlyPreferred", "matchmaking"], &[("two", "sensor")], vec![tunnel]), ["gateway"]);
    // What is no result is none; a result without warnings gets one.
    let bare = json!({"provider": {"systemName": "bare"}});
    assert_eq!(left(&[], &[], vec![json!("text"), Value::Null, bare]), ["bare"]);
}

#[test]
fn a_stored_provider_is_asked_for_alone() {
    let now = UtcTime::from_unix_seconds(0);
    let system = ForeignSystem {
        id: ForeignSystemId(1),
        cloud: CloudId(2),
        system_name: "sensor".into(),
        address: "10.0.0.1".into(),
        port: 80,
        authentication_info: None,
        metadata: None,
        timestamps: Timestamps { created_at: now, updated_at: now },
    };
    let two = cloud(2, "two");
    let form = elsewhere(&[], &[]).unwrap().of_stored(&two, &system).negotiation(&two);
    assert_eq!((form.target_cloud_id, form.preferred_systems.unwrap().len()), (Some(2), 1));
    let flags: Vec<&str> = form.negotiation_flags.iter().flatten().map(|(flag, _)| flag.as_str()).collect();
    assert_eq!(flags, ["matchmaking", "onlyPreferred"]);
}
