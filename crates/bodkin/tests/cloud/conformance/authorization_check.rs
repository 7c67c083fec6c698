//! Authorization: the checks that Orchestrator and Event Handler ask for (reference section 4).

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system, texts, with};
use crate::support::cloud::Cloud;

const INTRACLOUD: &str = "/authorization/intracloud/check";
const SUBSCRIPTION: &str = "/authorization/subscription/check";

#[test]
fn an_intracloud_check_answers_the_ruled_interfaces_of_the_asked_providers() {
    let cloud = Cloud::shared();
    let consumer = cloud.register_system("check-consumer", 9601);
    let entry = |name: &str| {
        let entry = service("check-service", system(name, 9601));
        cloud.register(&with(entry, "/interfaces", json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"])))
    };
    let (ruled, unruled) = (entry("check-ruled"), entry("check-unruled"));
    let definition = number(&ruled, "/serviceDefinition/id");
    let (json_id, xml_id) = (number(&ruled, "/interfaces/0/id"), number(&ruled, "/interfaces/1/id"));
    let (ruled, unruled) = (number(&ruled, "/provider/id"), number(&unruled, "/provider/id"));
    cloud.allow(consumer, ruled, definition, &[json_id]);

    let ask = |providers: Value| json!({"consumer": system("CHECK-Consumer", 9601), "serviceDefinitionId": definition, "providerIdsWithInterfaceIds": providers});
    let all = ask(json!([
        {"id": unruled, "idList": [json_id, xml_id]}, {"id": ruled, "idList": [json_id, xml_id]}, {"id": 999_999_999, "idList": [json_id]},
    ]));
    let answer = cloud.post(INTRACLOUD, &all).expect_status(200).json();
    assert_eq!(answer["authorizedProviderIdsWithInterfaceIds"], json!([{"id": ruled, "idList": [json_id]}]));
    assert_eq!(answer["consumer"]["systemName"].as_str().map(str::to_lowercase).as_deref(), Some("check-consumer"));
    assert_eq!(answer["serviceDefinitionId"], definition);

    let unknown_definition = with(all.clone(), "/serviceDefinitionId", 999_999_999);
    let unregistered = with(all.clone(), "/consumer", system("check-nobody", 9601));
    let elsewhere = with(all, "/consumer/port", 9602);
    check(
        &cloud,
        &[
            Row::post("unknown definition", INTRACLOUD, &unknown_definition).invalid_parameter(),
            Row::post("unregistered consumer", INTRACLOUD, &unregistered)
                .invalid_parameter()
                .saying_first("Consumer with name: ")
                .mentioning("check-nobody"),
            Row::post("the consumer on another port", INTRACLOUD, &elsewhere)
                .invalid_parameter()
                .saying_last("is not exist in the database."),
            Row::post("no rule", INTRACLOUD, &ask(json!([{"id": unruled, "idList": [json_id]}])))
                .is("/authorizedProviderIdsWithInterfaceIds", json!([])),
            Row::post("no consumer", INTRACLOUD, &json!({"serviceDefinitionId": definition})).refused_as_any(400),
        ],
    );
}

#[test]
fn a_subscription_check_answers_the_providers_of_all_rules_of_the_consumer() {
    let cloud = Cloud::shared();
    let consumer = cloud.register_system("check-subscriber", 9603);
    cloud.register_system("check-lonely", 9603);
    let one = cloud.register(&service("check-pub-one", system("check-pub-one", 9603)));
    let again = cloud.register(&service("check-pub-again", system("check-pub-one", 9603)));
    let two = cloud.register(&service("check-pub-two", system("check-pub-two", 9603)));
    cloud.register_system("check-pub-three", 9603);
    for entry in [&one, &again, &two] {
        cloud.allow(consumer, number(entry, "/provider/id"), number(entry, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
    }
    let ask = |consumer: &str, publishers: Value| {
        let body = json!({"consumer": system(consumer, 9603), "publishers": publishers});
        let answer = cloud.post(SUBSCRIPTION, &body).expect_status(200).json();
        assert_eq!(answer["consumer"]["systemName"], consumer);
        let mut names = texts(list(&answer, "/publishers"), "/systemName");
        names.sort();
        names
    };
    assert_eq!(ask("check-subscriber", Value::Null), ["check-pub-one", "check-pub-two"], "each once");
    let two_and_three = json!([system("check-pub-two", 9603), system("check-pub-three", 9603)]);
    assert_eq!(ask("check-subscriber", two_and_three), ["check-pub-two"]);
    assert_eq!(ask("check-lonely", Value::Null), Vec::<String>::new());
    let row = Row::post("whole systems", SUBSCRIPTION, &json!({"consumer": system("check-subscriber", 9603), "publishers": null}));
    check(&cloud, &[row.has("/publishers/0/id").has("/publishers/0/createdAt").lacks("/publishers/0/metadata")]);
}
