//! What the cloud's authority has issued, as the operator sees and revokes it over port 8440.

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{TrustDirectory, tls};
use serde_json::{Value, json};

use crate::support::arrowhead::{list, system as form};
use crate::support::cloud::Cloud;
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, Client, DAY, SecureCloud};

const PATH: &str = "/api/v1/certificates";

#[test]
fn the_operator_sees_what_was_issued_and_what_is_revoked_counts_no_more() {
    let secure = SecureCloud::start([]);
    let trust = TrustDirectory::new(secure.trust("cloud.crt").parent().expect("a directory"));
    let identity = trust.ensure_identity(&SystemName::from_stored("sensor-9"), &[], tls::now(), 90 * DAY).expect("an identity");
    let (operator, sensor) = (Client::system("sysop"), Client::new(Some(&identity)));
    let told = |query: &str| list(&operator.expect(&secure.cloud, "GET", &format!("{PATH}{query}"), None, 200).json(), "/data").to_vec();

    let newest = told("?item_per_page=1");
    let serial = identity.certificate().serial_text();
    assert_eq!((newest.len(), &newest[0]["serial"], &newest[0]["name"]), (1, &json!(serial), &json!(format!("sensor-9.{CLOUD}"))));
    assert_eq!((&newest[0]["state"], &newest[0]["revokedAt"]), (&json!("valid"), &Value::Null));
    assert_eq!(newest[0]["notAfter"], json!(identity.certificate().not_after()));
    assert!(told("").len() > 1 && told("?state=revoked").is_empty());
    assert!(told("?item_per_page=1&page=1")[0]["serial"] != json!(serial));

    sensor.expect(&secure.cloud, "POST", "/serviceregistry/register-system", Some(&form("sensor-9", 9)), 201);
    let revoke = format!("{PATH}/{}/revoke", serial.to_uppercase());
    assert_eq!(operator.expect(&secure.cloud, "POST", &revoke, None, 200).json()["state"], "revoked");
    let is_refused = || sensor.call(&secure.cloud, "GET", "/serviceregistry/echo", None).is_err();
    assert!(eventually(is_refused), "who is revoked still comes in");
    let revoked = told("?state=revoked");
    assert_eq!((revoked.len(), &revoked[0]["serial"]), (1, &json!(serial)));
    // It is revoked once.
    let again = operator.expect(&secure.cloud, "POST", &revoke, None, 200).json();
    assert_eq!(again["revokedAt"], revoked[0]["revokedAt"]);
    let audit = operator.expect(&secure.cloud, "GET", "/api/v1/audit?kind=change", None, 200).json();
    let by_operator = |entry: &Value| entry["what"] == format!("POST {revoke}") && entry["caller"] == format!("sysop.{CLOUD}");
    assert!(list(&audit, "/data").iter().any(by_operator), "{audit}");
}

#[test]
fn certificates_are_for_the_operator_only_and_mistakes_are_told() {
    let secure = SecureCloud::shared();
    let operator = Client::system("sysop");
    Client::system("nosy").expect(&secure.cloud, "GET", PATH, None, 403);
    Client::system("nosy").expect(&secure.cloud, "POST", &format!("{PATH}/01/revoke"), None, 403);
    for (query, told) in [("?state=young", "not 'young'"), ("?page=-1", "whole number"), ("?item_per_page=0", "1 to 10000")] {
        let problem = operator.expect(&secure.cloud, "GET", &format!("{PATH}{query}"), None, 400).json();
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(told)), "{problem}");
    }
    operator.expect(&secure.cloud, "POST", &format!("{PATH}/0badcafe/revoke"), None, 404);
    let insecure = Cloud::shared();
    let problem = insecure.get(PATH).expect_status(409).json();
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("insecure mode")), "{problem}");
}
