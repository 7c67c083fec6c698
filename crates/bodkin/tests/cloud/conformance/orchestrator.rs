//! Orchestrator: dynamic orchestration with its flags (reference sections 5.1 and 5.2).

use std::net::TcpListener;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::table::{BAD_PAYLOAD, Row, check};
use crate::support::arrowhead::{list, number, service, system, texts, with, without};
use crate::support::cloud::Cloud;
use crate::support::instant::utc;
use crate::support::ports::held_port;

const ORCHESTRATION: &str = "/orchestrator/orchestration";

/// A service with some providers, and a consumer who may use all of them.
struct Stage<'a> {
    cloud: &'a Cloud,
    name: &'a str,
    consumer: i64,
}

impl<'a> Stage<'a> {
    fn new(cloud: &'a Cloud, name: &'a str) -> Self {
        Self { cloud, name, consumer: cloud.register_system(&format!("{name}-consumer"), 9700) }
    }

    /// Registers `name-which` as it is after `change` and allows its interfaces to the consumer.
    fn provider(&self, which: &str, port: u16, change: impl FnOnce(Value) -> Value) -> Value {
        let entry = self.unruled(which, port, change);
        let interfaces: Vec<i64> = list(&entry, "/interfaces").iter().map(|row| number(row, "/id")).collect();
        self.allow(&entry, &interfaces);
        entry
    }

    fn unruled(&self, which: &str, port: u16, change: impl FnOnce(Value) -> Value) -> Value {
        let provider = system(&format!("{}-{which}", self.name), port);
        self.cloud.register(&change(service(self.name, provider)))
    }

    fn allow(&self, entry: &Value, interfaces: &[i64]) {
        self.cloud.allow(self.consumer, number(entry, "/provider/id"), number(entry, "/serviceDefinition/id"), interfaces);
    }

    /// A form for dynamic orchestration of the service with more flags.
    fn form(&self, flags: Value) -> Value {
        let mut all = json!({"overrideStore": true});
        for (flag, value) in flags.as_object().expect("flags") {
            all[flag] = value.clone();
        }
        json!({"requesterSystem": system(&format!("{}-consumer", self.name), 9700),
            "requestedService": {"serviceDefinitionRequirement": self.name}, "orchestrationFlags": all})
    }

    /// The short names of the providers orchestrated, in the order answered.
    #[track_caller]
    fn orchestrate(&self, form: &Value) -> Vec<String> {
        let answer = self.cloud.post(ORCHESTRATION, form).expect_status(200).json();
        let names = texts(list(&answer, "/response"), "/provider/systemName");
        names.iter().map(|name| name[self.name.len() + 1..].to_string()).collect()
    }

    #[track_caller]
    fn orchestrate_sorted(&self, form: &Value) -> Vec<String> {
        let mut names = self.orchestrate(form);
        names.sort();
        names
    }
}

fn unchanged(entry: Value) -> Value {
    entry
}

#[test]
fn a_result_has_every_member_and_keeps_its_nulls() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-result");
    stage.provider("one", 9701, |entry| with(with(entry, "/serviceUri", "/here"), "/version", 3));
    let answer = cloud.post(ORCHESTRATION, &stage.form(json!({}))).json();
    let mut members: Vec<&str> = answer["response"][0].as_object().expect("a result").keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = ["authorizationTokens", "interfaces", "metadata", "provider", "secure", "service", "serviceUri", "version", "warnings"];
    assert_eq!(members, expected);
    check(
        &cloud,
        &[Row::post("one result", ORCHESTRATION, &stage.form(json!({})))
            .has_length("/response", 1)
            .is("/response/0/provider/systemName", "orch-result-one")
            .is("/response/0/provider/address", "127.0.0.1")
            .is("/response/0/provider/port", 9701)
            .lacks("/response/0/provider/authenticationInfo")
            .has("/response/0/provider/id")
            .is("/response/0/service/serviceDefinition", "orch-result")
            .has("/response/0/service/id")
            .is("/response/0/serviceUri", "/here")
            .is("/response/0/secure", "NOT_SECURE")
            .is("/response/0/metadata", json!({}))
            .is("/response/0/interfaces/0/interfaceName", "HTTP-INSECURE-JSON")
            .is("/response/0/version", 3)
            .is("/response/0/authorizationTokens", Value::Null)
            .is("/response/0/warnings", json!(["TTL_UNKNOWN"]))],
    );
}

#[test]
fn an_incomplete_form_is_refused() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-form");
    stage.provider("one", 9702, unchanged);
    let form = stage.form(json!({}));
    let preferred =
        |provider: Value| with(with(form.clone(), "/preferredProviders", json!([provider])), "/orchestrationFlags/onlyPreferred", true);
    let rows = [
        ("no requester", without(form.clone(), "/requesterSystem")),
        ("null requester", with(form.clone(), "/requesterSystem", Value::Null)),
        ("blank requester name", with(form.clone(), "/requesterSystem/systemName", " ")),
        ("no requester address", without(form.clone(), "/requesterSystem/address")),
        ("no requester port", without(form.clone(), "/requesterSystem/port")),
        ("no service", without(form.clone(), "/requestedService")),
        ("null service", with(form.clone(), "/requestedService", Value::Null)),
        ("blank definition", with(form.clone(), "/requestedService/serviceDefinitionRequirement", " ")),
        ("no definition", with(form.clone(), "/requestedService", json!({}))),
        ("only preferred but none", with(form.clone(), "/orchestrationFlags/onlyPreferred", true)),
        (
            "only preferred but in another cloud",
            preferred(json!({"providerSystem": system("orch-form-one", 9702), "providerCloud": {"operator": "a", "name": "b"}})),
        ),
        ("a preferred provider without a port", preferred(json!({"providerSystem": {"systemName": "a", "address": "b"}}))),
    ];
    check(&cloud, &rows.map(|(claim, body)| Row::post(claim, ORCHESTRATION, &body).refused(400, BAD_PAYLOAD)));
    let missing = Row::post("the origin is told", ORCHESTRATION, &without(form, "/requesterSystem"));
    check(&cloud, &[missing.bad_payload(ORCHESTRATION)]);
}

#[test]
fn other_clouds_need_a_gatekeeper() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-gatekeeper");
    stage.provider("one", 9703, unchanged);
    let rows = ["externalServiceRequest", "triggerInterCloud"].map(|flag| {
        let form = with(stage.form(json!({flag: true})), "/requesterCloud", json!({"operator": "a", "name": "b"}));
        Row::post(flag, ORCHESTRATION, &form).refused(400, BAD_PAYLOAD).saying_last("Orchestrator runs in NO GATEKEEPER mode.")
    });
    check(&cloud, &rows);
    assert_eq!(stage.orchestrate(&stage.form(json!({"enableInterCloud": true}))), ["one"], "only a fall-back");
    let elsewhere = with(stage.form(json!({"enableInterCloud": true})), "/requestedService/serviceDefinitionRequirement", "orch-no-such");
    assert_eq!(stage.orchestrate(&elsewhere), Vec::<String>::new());
}

#[test]
fn an_unknown_service_is_empty_before_the_consumer_is_looked_up() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-unknown");
    stage.provider("one", 9704, unchanged);
    let nobody = with(stage.form(json!({})), "/requesterSystem/systemName", "orch-nobody");
    let nothing = with(nobody.clone(), "/requestedService/serviceDefinitionRequirement", "orch-no-such");
    check(
        &cloud,
        &[
            Row::post("nothing is found", ORCHESTRATION, &nothing).is("", json!({"response": []})),
            Row::post("an unregistered consumer of something", ORCHESTRATION, &nobody)
                .invalid_parameter()
                .saying_first("Consumer with name: ")
                .saying_last("is not exist in the database."),
        ],
    );
}

#[test]
fn only_ruled_providers_and_interfaces_are_answered() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-rules");
    let two = |entry| with(entry, "/interfaces", json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"]));
    let one = stage.unruled("one", 9705, two);
    stage.unruled("two", 9705, two);
    let form = stage.form(json!({}));
    assert_eq!(stage.orchestrate(&form), Vec::<String>::new(), "registered, but without rules");
    stage.allow(&one, &[number(&one, "/interfaces/1/id")]);
    let asked_for_other = with(form.clone(), "/requestedService/interfaceRequirements", json!(["HTTP-INSECURE-JSON"]));
    check(
        &cloud,
        &[
            Row::post("one of two interfaces", ORCHESTRATION, &form)
                .has_length("/response", 1)
                .is("/response/0/provider/systemName", "orch-rules-one")
                .has_length("/response/0/interfaces", 1)
                .is("/response/0/interfaces/0/interfaceName", "HTTP-INSECURE-XML"),
            Row::post("the other was asked for", ORCHESTRATION, &asked_for_other).is("/response", json!([])),
        ],
    );
}

#[test]
fn results_come_in_the_registrys_order_and_matchmaking_gives_one_of_them() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-match");
    for which in ["c", "a", "d", "b"] {
        stage.provider(which, 9706, unchanged);
    }
    let found = cloud.query(&json!({"serviceDefinitionRequirement": "orch-match"}));
    let registry: Vec<String> = texts(list(&found, "/serviceQueryData"), "/provider/systemName");
    let orchestrated = stage.orchestrate(&stage.form(json!({})));
    assert_eq!(orchestrated.iter().map(|which| format!("orch-match-{which}")).collect::<Vec<_>>(), registry);

    let mut seen = Vec::new();
    for _ in 0..100 {
        let chosen = stage.orchestrate(&stage.form(json!({"matchmaking": true})));
        assert_eq!(chosen.len(), 1);
        seen.extend(chosen);
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 1, "the choice among four is random: a hundred equal ones have odds of 4 to the minus 99");
}

#[test]
fn preferred_providers_are_chosen_first_or_alone() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-preferred");
    for which in ["a", "b", "c"] {
        stage.provider(which, 9707, unchanged);
    }
    let preferring = |flags: Value, names: &[&str]| {
        let providers: Vec<Value> = names.iter().map(|name| json!({"providerSystem": system(name, 9707)})).collect();
        with(stage.form(flags), "/preferredProviders", json!(providers))
    };
    for _ in 0..20 {
        let chosen = stage.orchestrate(&preferring(json!({"matchmaking": true}), &["orch-nobody", "ORCH-Preferred-B"]));
        assert_eq!(chosen, ["b"]);
    }
    let only = json!({"onlyPreferred": true});
    assert_eq!(stage.orchestrate_sorted(&preferring(only.clone(), &["orch-preferred-c", "orch-preferred-a"])), ["a", "c"]);
    assert_eq!(stage.orchestrate(&preferring(only.clone(), &["orch-nobody"])), Vec::<String>::new());
    assert_eq!(stage.orchestrate(&preferring(json!({}), &["orch-preferred-b"])).len(), 3, "a preference alone drops nobody");
    let unmatched = stage.orchestrate(&preferring(json!({"matchmaking": true}), &["orch-nobody"]));
    assert_eq!(unmatched.len(), 1, "no preferred one found: any");
}

#[test]
fn metadata_is_looked_at_only_when_the_flag_is_set() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-metadata");
    stage.provider("with", 9708, |entry| with(entry, "/metadata", json!({"unit": "celsius"})));
    stage.provider("without", 9708, unchanged);
    let asking = |flags: Value| with(stage.form(flags), "/requestedService/metadataRequirements", json!({"unit": "celsius"}));
    assert_eq!(stage.orchestrate_sorted(&asking(json!({}))), ["with", "without"]);
    assert_eq!(stage.orchestrate_sorted(&asking(json!({"metadataSearch": false}))), ["with", "without"]);
    assert_eq!(stage.orchestrate(&asking(json!({"metadataSearch": true}))), ["with"]);
    check(
        &cloud,
        &[Row::post("metadata is answered", ORCHESTRATION, &asking(json!({"metadataSearch": true})))
            .is("/response/0/metadata", json!({"unit": "celsius"}))],
    );
}

#[test]
fn the_ping_flag_replaces_the_forms_own() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-ping");
    let listening = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let closed = held_port();
    stage.provider("alive", listening.local_addr().expect("an address").port(), unchanged);
    stage.provider("dead", closed, unchanged);
    assert_eq!(stage.orchestrate(&stage.form(json!({"pingProviders": true}))), ["alive"]);
    let only_in_form = with(stage.form(json!({"pingProviders": false})), "/requestedService/pingProviders", true);
    assert_eq!(stage.orchestrate_sorted(&only_in_form), ["alive", "dead"]);
}

#[test]
fn address_flags_keep_the_union_of_the_types_set() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-address");
    for (which, address) in [("host", "localhost"), ("four", "127.0.0.1"), ("six", "::1")] {
        stage.provider(which, 9709, |entry| with(entry, "/providerSystem/address", address));
    }
    let ask = |flags: Value| stage.orchestrate_sorted(&stage.form(flags));
    assert_eq!(ask(json!({})), ["four", "host", "six"]);
    assert_eq!(ask(json!({"onlyIPAddressResponse": true})), ["four", "six"]);
    assert_eq!(ask(json!({"onlyIPv4AddressResponse": true})), ["four"]);
    assert_eq!(ask(json!({"onlyIPv6AddressResponse": true})), ["six"]);
    assert_eq!(ask(json!({"onlyIPv4AddressResponse": true, "onlyIPv6AddressResponse": true})), ["four", "six"]);
}

#[test]
fn the_filters_of_the_query_apply() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-filters");
    stage.provider("old", 9710, unchanged);
    stage.provider("new", 9710, |entry| with(entry, "/version", 2));
    let ask =
        |member: &str, value: Value| stage.orchestrate_sorted(&with(stage.form(json!({})), &format!("/requestedService/{member}"), value));
    assert_eq!(ask("versionRequirement", json!(2)), ["new"]);
    assert_eq!(ask("maxVersionRequirement", json!(1)), ["old"]);
    assert_eq!(ask("securityRequirements", json!(["NOT_SECURE"])), ["new", "old"]);
    assert_eq!(ask("securityRequirements", json!(["TOKEN"])), Vec::<String>::new());
    assert_eq!(ask("interfaceRequirements", json!(["http-insecure-json"])), ["new", "old"]);
}

#[test]
fn warnings_tell_how_long_an_entry_is_valid() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "orch-warnings");
    let in_a_minute = utc(SystemTime::now() + Duration::from_secs(60));
    let in_ten_minutes = utc(SystemTime::now() + Duration::from_secs(600));
    let cases = [
        ("unknown", None, json!(["TTL_UNKNOWN"])),
        ("expired", Some("2001-01-01T00:00:00Z".to_string()), json!(["TTL_EXPIRED"])),
        ("expiring", Some(in_a_minute), json!(["TTL_EXPIRING"])),
        ("valid", Some(in_ten_minutes), json!([])),
    ];
    for (which, end, _) in &cases {
        stage.provider(which, 9711, |entry| with(entry, "/endOfValidity", end.clone()));
    }
    let answer = cloud.post(ORCHESTRATION, &stage.form(json!({}))).expect_status(200).json();
    let results = list(&answer, "/response");
    assert_eq!(results.len(), cases.len(), "an expired one is still answered");
    for (which, _, warnings) in cases {
        let name = format!("orch-warnings-{which}");
        let result = results.iter().find(|result| result["provider"]["systemName"] == name).expect("it is answered");
        assert_eq!(result["warnings"], warnings, "{which}");
    }
}
