//! Service Registry: the network address detector (reference section 1.7).

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{service, system, without};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Answer;

const DETECTOR: [&str; 2] = ["--use-network-address-detector", "true"];

/// Registers a system whose request went through proxies.
fn register_through(cloud: &Cloud, body: &Value, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    let bytes = body.to_string().into_bytes();
    cloud.connect(System::ServiceRegistry).request("POST", "/serviceregistry/register-system", &headers, Some(&bytes)).expect("an answer")
}

#[test]
fn the_detector_is_off_unless_it_is_chosen() {
    let cloud = Cloud::shared();
    let skipped = "Address detection process was skipped.";
    check(
        &cloud,
        &[
            Row::post("no address", "/serviceregistry/register-system", &without(system("detect-off", 1), "/address"))
                .bad_payload("/serviceregistry/register-system")
                .saying_first("Network address verification failure: ")
                .saying_last(skipped),
            Row::delete("no address to unregister", "/serviceregistry/unregister-system?system_name=detect-off&port=1")
                .bad_payload("/serviceregistry/unregister-system"),
        ],
    );
}

#[test]
fn a_system_without_a_valid_address_gets_that_of_its_connection() {
    let cloud = Launch::new().flags(DETECTOR).start();
    let invalid = json!({"systemName": "detect", "address": "0.0.0.0", "port": 2});
    let entry = service("detect", without(system("detect", 3), "/address"));
    let parameters = "service_definition=detect&system_name=detect&port=3&service_uri=";
    check(
        &cloud,
        &[
            Row::post("none", "/serviceregistry/register-system", &without(system("detect", 1), "/address"))
                .created()
                .is("/address", "127.0.0.1"),
            Row::post("an invalid one", "/serviceregistry/register-system", &invalid).created().is("/address", "127.0.0.1"),
            Row::post(
                "a valid one stays",
                "/serviceregistry/register-system",
                &json!({"systemName": "detect", "address": "192.0.2.7", "port": 1}),
            )
            .created()
            .is("/address", "192.0.2.7"),
            Row::post("of a service", "/serviceregistry/register", &entry).created().is("/provider/address", "127.0.0.1"),
            Row::delete("unregister it", format!("/serviceregistry/unregister?{parameters}")).void(),
            Row::delete("and the system", "/serviceregistry/unregister-system?system_name=detect&port=1").void(),
            Row::post("management gives addresses", "/serviceregistry/mgmt/systems", &without(system("detect", 9), "/address"))
                .bad_payload("/serviceregistry/mgmt/systems"),
        ],
    );
}

#[test]
fn a_proxy_tells_for_whom_it_asks_and_nobody_else_does() {
    let body = |port: u16| without(system("detect-proxy", port), "/address");
    let open = Launch::new().flags(DETECTOR).start();
    let answer = register_through(&open, &body(1), &[("X-Forwarded-For", "198.51.100.1")]).expect_status(201).json();
    assert_eq!(answer["address"], "127.0.0.1", "a header of nobody we know");
    let behind = Launch::new().flags(DETECTOR).flags(["--filter-proxy-addresses", "127.0.0.1,10.0.0.1"]).start();
    let address =
        |port: u16, headers: &[(&str, &str)]| register_through(&behind, &body(port), headers).expect_status(201).json()["address"].clone();
    assert_eq!(address(1, &[("Forwarded", "for=203.0.113.9, for=198.51.100.1;by=x, for=10.0.0.1")]), "198.51.100.1");
    assert_eq!(address(2, &[("X-Forwarded-For", "203.0.113.9, 198.51.100.2")]), "198.51.100.2");
    assert_eq!(address(3, &[("X-Forwarded-For", "198.51.100.3"), ("X-Forwarded-For", "10.0.0.1")]), "198.51.100.3");
    assert_eq!(address(4, &[("Forwarded", "for=\"[2001:db8::1]:99\"")]), "2001:0db8:0000:0000:0000:0000:0000:0001");
    let told = register_through(&behind, &body(5), &[]).expect_status(400).json();
    assert!(told["errorMessage"].as_str().is_some_and(|text| text.ends_with("Address detection process was unsuccessful.")), "{told}");
}

#[test]
fn a_proxy_that_is_no_address_is_refused_at_start() {
    let refusal = Launch::new().flags(["--filter-proxy-addresses", "proxy.local"]).try_start().err().expect("it does not start");
    assert!(refusal.stderr.contains("proxy.local") && refusal.stderr.contains("filter_proxy_addresses"), "{}", refusal.stderr);
}
