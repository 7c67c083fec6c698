//! What holds for every endpoint alike: methods, bodies, content types, ids (reference sections 1.2, 1.4 and 3.1).

use std::collections::{BTreeMap, BTreeSet};

use super::endpoint::{AbsentRow, ENDPOINTS, Endpoint, Takes};
use super::table::{BAD_PAYLOAD, Row, check};
use crate::support::cloud::Cloud;

/// No row has it.
const ABSENT_ID: &str = "999999999";
const JSON: &str = "application/json";

fn with_body() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.takes != Takes::Nothing)
}

/// A request to `endpoint` with nothing wrong but `bytes`.
fn sending(endpoint: &Endpoint, claim: &str, content_type: &'static str, bytes: impl Into<Vec<u8>>) -> Row {
    Row::new(claim, endpoint.method, endpoint.target(ABSENT_ID)).sending(content_type, bytes)
}

/// Methods by path. A path below a pattern, as `mgmt/systems` below `mgmt/{id}`, may have those of the pattern too.
fn methods_by_path() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for endpoint in ENDPOINTS {
        methods.entry(endpoint.path).or_default().insert(endpoint.method);
    }
    methods
}

/// Whether `path` is also one of a pattern's ids, for which a framework may answer instead.
fn is_below_a_pattern(path: &str) -> bool {
    let (parent, _) = path.rsplit_once('/').expect("a path has a slash");
    ENDPOINTS.iter().any(|endpoint| endpoint.path.strip_suffix("/{id}") == Some(parent))
}

#[test]
fn no_endpoint_is_listed_twice() {
    let known: BTreeSet<(&str, &str)> = ENDPOINTS.iter().map(|endpoint| (endpoint.method, endpoint.path)).collect();
    assert_eq!(known.len(), ENDPOINTS.len());
}

#[test]
fn a_path_without_a_method_tells_the_ones_it_has() {
    let cloud = Cloud::shared();
    let mut wrong = Vec::new();
    for (path, methods) in methods_by_path() {
        if is_below_a_pattern(path) && !path.contains('{') {
            continue;
        }
        let target = path.split('{').next().unwrap_or_default().to_string() + if path.contains('{') { "1" } else { "" };
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"].into_iter().filter(|method| !methods.contains(method)) {
            let answer = cloud.call(method, &target, None);
            let allow = answer.header("allow").unwrap_or_default();
            let mut told: BTreeSet<&str> = allow.split(',').map(str::trim).collect();
            // What every GET also serves, and what every path may.
            told.retain(|method| !matches!(*method, "HEAD" | "OPTIONS"));
            if (answer.status, &told, answer.body.len()) != (405, &methods, 0) {
                wrong.push(format!("{method} {target}: {} with Allow {allow:?}, not {methods:?}", answer.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_body_is_needed_where_one_is_taken() {
    let cloud = Cloud::shared();
    let rows = with_body().map(|endpoint| Row::new("no body", endpoint.method, endpoint.target(ABSENT_ID)).empty(400));
    check(&cloud, &rows.collect::<Vec<_>>());
}

#[test]
fn a_stated_length_of_nothing_is_refused_with_the_full_url() {
    let cloud = Cloud::shared();
    let row = |endpoint: &Endpoint| {
        let url = format!("http://{}{}", cloud.address(endpoint.system()), endpoint.target(ABSENT_ID));
        sending(endpoint, "Content-Length: 0", JSON, "").bad_payload(url)
    };
    check(&cloud, &with_body().map(row).collect::<Vec<_>>());
}

#[test]
fn a_body_where_none_is_taken_is_refused_with_the_full_url() {
    let cloud = Cloud::shared();
    let row = |endpoint: &Endpoint| {
        let url = format!("http://{}{}", cloud.address(endpoint.system()), endpoint.target(ABSENT_ID));
        sending(endpoint, "with a body", JSON, "{}").bad_payload(url)
    };
    check(&cloud, &ENDPOINTS.iter().filter(|endpoint| endpoint.takes == Takes::Nothing).map(row).collect::<Vec<_>>());
}

#[test]
fn what_is_not_json_is_400_without_a_body_everywhere() {
    let cloud = Cloud::shared();
    let malformed: [(&str, &[u8]); 7] = [
        ("cut", b"{"),
        ("a word", b"nonsense"),
        ("no value", b"{\"a\":}"),
        ("a comma too many", b"{\"a\":1,}"),
        ("no UTF-8", b"{\"a\":\"\xff\xfe\"}"),
        ("a text", b"\"text\""),
        ("a number", b"7"),
    ];
    let rows = with_body().flat_map(|endpoint| malformed.iter().map(|(claim, bytes)| sending(endpoint, claim, JSON, *bytes).empty(400)));
    check(&cloud, &rows.collect::<Vec<_>>());
}

#[test]
fn a_list_for_an_object_and_an_object_for_a_list_are_400_without_a_body() {
    let cloud = Cloud::shared();
    let row = |endpoint: &Endpoint| {
        let other = if endpoint.takes == Takes::List { "{}" } else { "[]" };
        sending(endpoint, other, JSON, other).empty(400)
    };
    check(&cloud, &with_body().map(row).collect::<Vec<_>>());
}

#[test]
fn a_body_that_does_not_say_it_is_json_is_415_everywhere() {
    let cloud = Cloud::shared();
    let kinds = ["text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"];
    let row = |endpoint: &Endpoint, kind: &'static str| {
        let body = endpoint.body().expect("it takes one").to_string();
        sending(endpoint, kind, kind, body).empty(415)
    };
    let rows = with_body().flat_map(|endpoint| kinds.map(|kind| row(endpoint, kind)));
    check(&cloud, &rows.collect::<Vec<_>>());
}

#[test]
fn a_row_that_is_not_there_is_400_not_404() {
    let cloud = Cloud::shared();
    let row = |endpoint: &Endpoint| {
        let row = Row::new("absent row", endpoint.method, endpoint.target(ABSENT_ID));
        let row = match endpoint.body() {
            Some(body) => row.sending(JSON, body.to_string()),
            None => row,
        };
        match (endpoint.is_flexible_store, endpoint.absent) {
            (true, _) => row.refused(400, BAD_PAYLOAD),
            (false, AbsentRow::Refused) => row.invalid_parameter(),
            (false, AbsentRow::Void) => row.void(),
        }
    };
    check(&cloud, &with_id().map(row).collect::<Vec<_>>());
}

fn with_id() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.has_id())
}

#[test]
fn an_id_below_1_is_refused_by_the_controller_and_one_that_is_no_number_by_the_framework() {
    let cloud = Cloud::shared();
    let mut rows = Vec::new();
    for endpoint in with_id() {
        let row = |id: &str| {
            let row = Row::new(format!("id {id}"), endpoint.method, endpoint.target(id));
            if let Some(body) = endpoint.body() { row.sending(JSON, body.to_string()) } else { row }
        };
        for id in ["0", "-1", "-9223372036854775808"] {
            rows.push(if endpoint.is_flexible_store { row(id).refused(400, BAD_PAYLOAD) } else { row(id).bad_payload(endpoint.path) });
        }
        for id in ["x1", "1.5", "9223372036854775808", "1%2B"] {
            rows.push(row(id).empty(400));
        }
    }
    check(&cloud, &rows);
}

#[test]
fn a_flexible_store_that_is_off_refuses_every_request_to_it() {
    let cloud = Cloud::shared();
    let row = |endpoint: &Endpoint| {
        let row = Row::new("off", endpoint.method, endpoint.target("1"));
        let row = if let Some(body) = endpoint.body() { row.sending(JSON, body.to_string()) } else { row };
        row.refused(400, BAD_PAYLOAD)
    };
    check(&cloud, &ENDPOINTS.iter().filter(|endpoint| endpoint.is_flexible_store).map(row).collect::<Vec<_>>());
}

#[test]
fn a_required_parameter_that_is_missing_or_mistyped_is_400_without_a_body() {
    let cloud = Cloud::shared();
    let mut rows = Vec::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| !endpoint.query.is_empty()) {
        let pairs: Vec<&str> = endpoint.query.split('&').collect();
        for left_out in &pairs {
            let name = left_out.split('=').next().unwrap_or_default();
            let is_optional = match (name, endpoint.path) {
                // Absent means empty, as clients of 4.1.3 send it.
                ("service_uri", _) => true,
                // Needed unless the address detector is on: the controller's check, not the framework's.
                ("address", path) => path.starts_with("/serviceregistry"),
                _ => false,
            };
            let rest: Vec<&str> = pairs.iter().filter(|pair| *pair != left_out).copied().collect();
            if !is_optional {
                rows.push(Row::new(format!("without {name}"), endpoint.method, format!("{}?{}", endpoint.path, rest.join("&"))).empty(400));
            }
        }
        let mistyped = endpoint.query.replace("port=1", "port=http");
        rows.push(Row::new("a port of letters", endpoint.method, format!("{}?{mistyped}", endpoint.path)).empty(400));
    }
    check(&cloud, &rows);
}

#[test]
fn a_slash_behind_the_path_changes_nothing() {
    let cloud = Cloud::shared();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.method == "GET" && !endpoint.path.contains('{')) {
        let (with, without) = (cloud.get(&format!("{}/", endpoint.path)), cloud.get(endpoint.path));
        assert_eq!(with.status, without.status, "{}/", endpoint.path);
        assert_eq!(with.header("content-type"), without.header("content-type"), "{}/", endpoint.path);
    }
}
