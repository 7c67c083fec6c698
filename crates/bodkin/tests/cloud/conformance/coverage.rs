//! `docs/formats/conformance.md`: every endpoint of the interface with the tests that show it. The table is made from the endpoints and
//! compared with the file; `WRITE_CONFORMANCE=1` writes it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::endpoint::{ENDPOINTS, Endpoint, Takes};
use crate::clouds::endpoints;

const WRITE_VARIABLE: &str = "WRITE_CONFORMANCE";

/// The one that fails when an endpoint has no successful call.
const TOUR: &str = "tour::every_endpoint_answers_a_good_request_in_its_shape";

/// Tests by what they hold for, beyond single endpoints.
const RULES: [(&str, &[&str]); 14] = [
    ("1.1 echo, `/`, documents", &["framework::every_system_answers_echo_with_and_without_a_trailing_slash", RECORDED]),
    ("1.2 malformed, missing, mistyped requests", &["every_endpoint::what_is_not_json_is_400_without_a_body_everywhere", RECORDED]),
    (
        "1.3 headers",
        &["framework::an_unknown_path_is_404_with_the_frameworks_json", "management_tool::the_browser_lets_the_tool_read_every_answer"],
    ),
    ("1.4 errors", &["every_endpoint::a_row_that_is_not_there_is_400_not_404", RECORDED]),
    ("1.5 paging", &["paging::every_list_is_cut_into_pages_that_make_it_whole_and_counts_all_rows"]),
    ("2 types, nulls", &[TOUR, RECORDED]),
    (
        "3 Service Registry",
        &[
            "registry_register::*",
            "registry_unregister::*",
            "registry_query::*",
            "registry_lookups::*",
            "registry_management::*",
            "registry_update::*",
            "registry_lists::*",
            "registry_addresses::*",
        ],
    ),
    ("4 Authorization", &["authorization::*", "authorization_check::*", "authorization_inter_cloud::*"]),
    (
        "5 Orchestrator",
        &[
            "orchestrator::*",
            "orchestrator_store::*",
            "orchestrator_store_management::*",
            "orchestrator_flexible::*",
            "orchestrator_reservations::*",
        ],
    ),
    ("6 Event Handler", &["event_handler::*", "event_delivery::*"]),
    ("10 self registration", &["self_registration::every_core_service_is_registered_where_its_system_listens"]),
    ("13 uniqueness, cascades", &["registry_management::*", "recorded::every_recorded_conversation_is_answered_as_it_was"]),
    ("14 jobs", &["registry_life::*"]),
    ("16 the management tool's calls", &["management_tool::the_management_tool_works_through_its_pages"]),
];

/// What holds for every endpoint between clouds, in secure mode.
const BETWEEN_CLOUDS: &str = "clouds::endpoints::every_endpoint_is_for_whom_it_is_and_answers_in_its_shape";

/// Tests of what is said between clouds: of the binary (`cloud`), and against software that is not written here (`peers`).
const RULES_BETWEEN_CLOUDS: [(&str, &[(&str, &str)]); 10] = [
    (
        "5.5 orchestrations that lead to other clouds",
        &[
            ("cloud", "clouds::a_consumer_of_one_cloud_uses_a_service_of_the_other"),
            ("peers", "clouds::clouds_on_hosts_of_their_own_meet_at_the_own_relay"),
            ("peers", "gatekeeper::a_java_gatekeeper_and_ours_ask_and_answer_each_other"),
        ],
    ),
    (
        "7 clouds and relays",
        &[
            ("cloud", "secure::gatekeeper::clouds_are_made_known_with_their_relays"),
            ("cloud", "secure::gatekeeper::relays_are_made_known_changed_and_forgotten"),
        ],
    ),
    (
        "7 GSD and ICN, both sides",
        &[
            ("cloud", BETWEEN_CLOUDS),
            ("cloud", "clouds::a_neighbour_that_is_gone_is_told_by_its_name_and_is_there_again_when_it_is_back"),
            ("peers", "gatekeeper::a_java_gatekeeper_and_ours_ask_and_answer_each_other"),
            ("peers", "several::of_two_neighbours_the_one_that_answers_is_heard_and_the_silent_one_counted"),
        ],
    ),
    (
        "7 tests of relays, 9.2 `SWITCH`",
        &[
            ("cloud", "clouds::a_cloud_that_has_just_been_made_known_is_reached_by_the_first_ping"),
            ("peers", "relay_test::a_java_monitor_and_our_gatekeeper_test_activemq_together"),
            ("peers", "relay_test::a_java_monitor_and_our_gatekeeper_test_artemis_together"),
        ],
    ),
    (
        "8 tunnels",
        &[
            ("cloud", "clouds::tunnels::a_service_of_a_cloud_behind_a_gateway_is_used_by_certificates_at_both_ends"),
            ("cloud", "clouds::tunnels::a_gateway_that_is_killed_in_the_middle_is_told_to_whoever_is_connected"),
            ("peers", "gateway::a_java_gateway_and_ours_carry_each_others_tunnels"),
        ],
    ),
    (
        "9 brokers",
        &[
            ("peers", "activemq::java_and_bodkin_hear_each_other_at_activemq"),
            ("peers", "activemq::java_and_bodkin_hear_each_other_at_artemis"),
            ("peers", "clouds::clouds_on_hosts_of_their_own_meet_at_activemq"),
            ("peers", "clouds::clouds_on_hosts_of_their_own_meet_at_artemis"),
            ("peers", "slow::activemq_dies_in_mid_transfer_and_is_back"),
            ("peers", "slow::artemis_dies_in_mid_transfer_and_is_back"),
        ],
    ),
    ("9.1 gatekeeper to gatekeeper", &[("peers", "gatekeeper::a_java_gatekeeper_and_ours_ask_and_answer_each_other")]),
    ("9.2 gateway to gateway", &[("peers", "gateway::a_java_gateway_and_ours_carry_each_others_tunnels")]),
    (
        "9.3 sealed messages",
        &[
            ("peers", "gatekeeper::a_java_gatekeeper_and_ours_ask_and_answer_each_other"),
            ("peers", "gateway::a_java_gateway_and_ours_carry_each_others_tunnels"),
        ],
    ),
    ("11 who may ask", &[("cloud", BETWEEN_CLOUDS)]),
];

const RECORDED: &str = "recorded::every_recorded_conversation_is_answered_as_it_was";

/// The tests that hold for an endpoint because of what it takes and gives.
fn tests_of(endpoint: &Endpoint) -> Vec<&'static str> {
    let mut tests = vec![TOUR, "every_endpoint::a_path_without_a_method_tells_the_ones_it_has"];
    match endpoint.takes {
        Takes::Nothing => tests.push("every_endpoint::a_body_where_none_is_taken_is_refused_with_the_full_url"),
        Takes::Object | Takes::List => tests.extend([
            "every_endpoint::a_body_is_needed_where_one_is_taken",
            "every_endpoint::a_stated_length_of_nothing_is_refused_with_the_full_url",
            "every_endpoint::what_is_not_json_is_400_without_a_body_everywhere",
            "every_endpoint::a_list_for_an_object_and_an_object_for_a_list_are_400_without_a_body",
            "every_endpoint::a_body_that_does_not_say_it_is_json_is_415_everywhere",
        ]),
    }
    if endpoint.has_id() {
        tests.push("every_endpoint::a_row_that_is_not_there_is_400_not_404");
        tests.push("every_endpoint::an_id_below_1_is_refused_by_the_controller_and_one_that_is_no_number_by_the_framework");
    }
    if !endpoint.sortable.is_empty() {
        tests.push("paging::every_list_is_cut_into_pages_that_make_it_whole_and_counts_all_rows");
        tests.push("paging::every_list_sorts_by_every_field_it_may_in_both_directions");
        tests.push("paging::every_list_refuses_half_a_page_a_wrong_direction_and_an_unknown_field");
    }
    if !endpoint.query.is_empty() {
        tests.push("every_endpoint::a_required_parameter_that_is_missing_or_mistyped_is_400_without_a_body");
    }
    if endpoint.is_flexible_store {
        tests.push("every_endpoint::a_flexible_store_that_is_off_refuses_every_request_to_it");
    }
    tests
}

fn document() -> String {
    let mut text = String::from(
        "# Conformance\n\nEvery endpoint of Arrowhead 4.6's Service Registry, Authorization, Orchestrator and Event Handler, in insecure mode, and the tests that \
         hold for it (those of Gatekeeper and Gateway are at the end): each is `crates/bodkin/tests/cloud/conformance/MODULE.rs`, run with `cargo test -p bodkin --test cloud MODULE::TEST`. This file is made by \
         `conformance::coverage` (`WRITE_CONFORMANCE=1` writes it), which fails when the two differ; an endpoint without a successful call fails \
         `tour`.\n\n## Endpoints\n\n",
    );
    let mut all: Vec<&str> = ENDPOINTS.iter().flat_map(tests_of).collect();
    all.sort_unstable();
    all.dedup();
    for (number, test) in (1..).zip(&all) {
        writeln!(text, "{number}. `{test}`").expect("a string takes everything");
    }
    text.push_str("\n| endpoint | tests |\n|---|---|\n");
    for endpoint in ENDPOINTS {
        let mut numbers: Vec<usize> =
            tests_of(endpoint).iter().map(|test| 1 + all.iter().position(|known| known == test).expect("it is among all")).collect();
        numbers.sort_unstable();
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        let tests = numbers.join(", ");
        writeln!(text, "| {} {} | {tests} |", endpoint.method, endpoint.path).expect("a string takes everything");
    }
    text.push_str("\n## Rules\n\n| section of the interface | tests |\n|---|---|\n");
    for (section, tests) in RULES {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        writeln!(text, "| {section} | {} |", tests.join(", ")).expect("a string takes everything");
    }
    write!(
        text,
        "\n## Between clouds\n\nEvery endpoint of Gatekeeper and Gateway, in secure mode; each is asked by the system that it is for, and refused to another one, by `{BETWEEN_CLOUDS}`, \
         which takes the list from the documents that a running cloud serves and fails when one of them is not asked.\n\n| endpoint |\n|---|\n"
    )
    .expect("a string takes everything");
    for endpoint in endpoints::ENDPOINTS {
        writeln!(text, "| {endpoint} |").expect("a string takes everything");
    }
    text.push_str(
        "\nOf tests named `peers` Java programs of the JMS and jose4j libraries are the other cloud, or hosts of their own (network namespaces) the two; `./x test --all` runs them.\n\n\
         | section of the interface | tests |\n|---|---|\n",
    );
    for (section, tests) in RULES_BETWEEN_CLOUDS {
        let tests: Vec<String> = tests.iter().map(|(target, test)| format!("{target} `{test}`")).collect();
        writeln!(text, "| {section} | {} |", tests.join(", ")).expect("a string takes everything");
    }
    text
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cloud/conformance")
}

#[test]
fn every_endpoint_has_its_row_and_every_test_named_there_exists() {
    let named = ENDPOINTS.iter().flat_map(tests_of).chain(RULES.iter().flat_map(|(_, tests)| tests.iter().copied()));
    for test in named {
        let (module, name) = test.split_once("::").expect("module and test");
        let file = here().join(format!("{module}.rs"));
        let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{test}: {}: {error}", file.display()));
        let exists = source
            .lines()
            .collect::<Vec<_>>()
            .windows(2)
            .any(|lines| lines[0].trim() == "#[test]" && (name == "*" || lines[1].trim().starts_with(&format!("fn {name}("))));
        assert!(exists, "there is no test {test}");
    }
    for (target, test) in RULES_BETWEEN_CLOUDS.iter().flat_map(|(_, tests)| tests.iter()) {
        let (module, name) = test.rsplit_once("::").expect("module and test");
        let file = here().join("../..").join(target).join(format!("{}.rs", module.replace("::", "/")));
        let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{test}: {}: {error}", file.display()));
        assert!(source.contains(&format!("\nfn {name}() {{")), "there is no test {test} of {target}");
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/conformance.md");
    let document = document();
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(&file, &document).expect("the document is written");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == document, "docs/formats/conformance.md is not what its table says: write it with {WRITE_VARIABLE}=1");
}
