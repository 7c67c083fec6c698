//! Every list, every paging parameter, every sortable field (reference section 1.5), on clouds of its own because rows are counted.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::endpoint::{ENDPOINTS, Endpoint};
use super::table::{BAD_PAYLOAD, INVALID_PARAMETER, Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system};
use crate::support::cloud::{Cloud, Launch};

/// Rows that every list has at least.
const ROWS_MIN: usize = 3;
/// The definition of `mgmt/servicedef/{serviceDefinition}`.
const DEFINITION: &str = "paging";

/// A cloud with rows in every list but the flexible store, and the id of the consumer of its rules and store entries.
fn filled() -> (Cloud, i64) {
    let cloud = Launch::new().start();
    let consumer = cloud.register_system("paging-consumer", 1);
    for (index, name) in ["echo", "alpha", "delta", "charlie", "bravo"].into_iter().enumerate() {
        let port = 9300 - u16::try_from(index).expect("five of them");
        let mut entry = service(DEFINITION, system(&format!("paging-{name}"), port));
        entry["interfaces"] = json!(["HTTP-INSECURE-JSON", format!("{name}-INSECURE-JSON")]);
        entry["providerSystem"]["address"] = format!("127.0.0.{}", 20 + index).into();
        let entry = cloud.register(&entry);
        cloud.register(&service(&format!("paging-{name}"), system("paging-other", 1)));
        let (provider, definition) = (number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"));
        cloud.allow(consumer, provider, definition, &[INSECURE_JSON_ID]);
        let rule = json!({"cloudId": 1, "providerIdList": [provider], "serviceDefinitionIdList": [definition],
            "interfaceIdList": [INSECURE_JSON_ID]});
        cloud.post("/authorization/mgmt/intercloud", &rule).expect_status(201);
        // Two groups, so that more than one entry has the top priority.
        let interfaces = ["HTTP-INSECURE-JSON".to_string(), format!("{name}-INSECURE-JSON")];
        for interface in &interfaces {
            let element = json!({"serviceDefinitionName": DEFINITION, "consumerSystemId": consumer, "serviceInterfaceName": interface,
                "providerSystem": {"systemName": format!("paging-{name}"), "address": format!("127.0.0.{}", 20 + index), "port": port},
                "priority": index + 1});
            let saved = cloud.post("/orchestrator/mgmt/store", &json!([element])).expect_status(200).json();
            assert_eq!(saved["count"], 1, "{saved}");
        }
        cloud.subscribe(&subscription(&format!("paging-{name}"), system("paging-consumer", 1), "/notify"));
    }
    (cloud, consumer)
}

/// A cloud with rows in the flexible store.
fn flexible() -> Cloud {
    let cloud = Launch::new().flags(["--use-flexible-store", "true"]).start();
    for priority in [7, 3, 5, 1] {
        let rule = json!({"consumerSystem": {"systemName": "paging"}, "providerSystem": {"systemName": format!("paging-{priority}")},
            "serviceDefinitionName": DEFINITION, "priority": priority});
        cloud.post("/orchestrator/mgmt/store/flexible", &json!([rule])).expect_status(201);
    }
    cloud
}

/// Asks for pages of one list.
struct Pages<'a> {
    cloud: &'a Cloud,
    endpoint: &'a Endpoint,
    body: Option<Value>,
}

impl Pages<'_> {
    fn row(&self, parameters: &str) -> Row {
        let row = Row::new(parameters, self.endpoint.method, format!("{}?{parameters}", self.endpoint.target(DEFINITION)));
        if let Some(body) = &self.body { row.sending("application/json", body.to_string()) } else { row }
    }

    #[track_caller]
    fn whole_answer(&self, parameters: &str) -> Value {
        let target = format!("{}?{parameters}", self.endpoint.target(DEFINITION));
        let answer = self.cloud.call(self.endpoint.method, &target, self.body.as_ref());
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        answer.json()
    }

    #[track_caller]
    fn rows(&self, parameters: &str) -> Vec<Value> {
        list(&self.whole_answer(parameters), "/data").clone()
    }
}

/// Every list, with rows in it; those of the flexible store are on a cloud that has one.
fn check_every_list(what: impl Fn(&Pages<'_>)) {
    let (cloud, consumer) = filled();
    let with_flexible_store = flexible();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| !endpoint.sortable.is_empty()) {
        let body = (endpoint.method == "POST").then(|| json!({"consumerSystemId": consumer, "serviceDefinitionName": DEFINITION}));
        let cloud = if endpoint.is_flexible_store { &with_flexible_store } else { &cloud };
        what(&Pages { cloud, endpoint, body });
    }
}

/// The value of a sortable field in a row. Logs name their system differently in the row and in the parameter.
fn field<'v>(row: &'v Value, name: &str) -> &'v Value {
    if name == "system" { &row["systemName"] } else { &row[name] }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_str().cmp(&b.as_str()),
    }
}

#[test]
fn every_list_is_cut_into_pages_that_make_it_whole_and_counts_all_rows() {
    check_every_list(|pages| {
        let path = pages.endpoint.path;
        // Log entries are added meanwhile: the order of their random ids is no window to count in.
        if path.ends_with("/logs") {
            return;
        }
        let whole = pages.rows("");
        assert!(whole.len() >= ROWS_MIN, "{path}: {} rows", whole.len());
        assert_eq!(pages.rows("direction=&sort_field="), whole, "{path}: empty parameters are as good as missing");
        assert_eq!(pages.rows("direction=ASC&sort_field=id"), whole, "{path}: the order of ids is the default");
        let mut together = Vec::new();
        for page in 0..whole.len().div_ceil(2) {
            let answer = pages.whole_answer(&format!("page={page}&item_per_page=2"));
            assert_eq!(answer["count"], whole.len(), "{path} page {page}");
            together.extend(list(&answer, "/data").clone());
        }
        assert_eq!(together, whole, "{path}");
        let beyond = pages.whole_answer(&format!("page={}&item_per_page=2", whole.len()));
        assert_eq!((&beyond["data"], &beyond["count"]), (&json!([]), &json!(whole.len())), "{path}");
        assert_eq!(pages.rows("page=-1&item_per_page=2"), whole[..2], "{path}: a page below 0 is 0");
        for unlimited in ["0", "-1", "1000000", "2147483647"] {
            assert_eq!(pages.rows(&format!("page=0&item_per_page={unlimited}")), whole, "{path}: {unlimited} a page");
        }
    });
}

#[test]
fn every_list_sorts_by_every_field_it_may_in_both_directions() {
    check_every_list(|pages| {
        for name in pages.endpoint.sortable {
            for (direction, descending) in [("ASC", false), ("desc", true), ("Asc", false), ("DESC", true)] {
                let rows = pages.rows(&format!("sort_field={name}&direction={direction}"));
                assert!(pages.endpoint.path.ends_with("/logs") || rows.len() >= ROWS_MIN);
                let in_order = rows.windows(2).all(|pair| {
                    let order = compare(field(&pair[0], name), field(&pair[1], name));
                    if descending { order.is_ge() } else { order.is_le() }
                });
                // Levels sort as the database stores them, by an order of its own.
                assert!(in_order || *name == "logLevel", "{} by {name} {direction}: {rows:#?}", pages.endpoint.path);
                assert!(rows.iter().all(|row| !field(row, name).is_null()), "{} has no {name}", pages.endpoint.path);
            }
        }
    });
}

#[test]
fn every_list_refuses_half_a_page_a_wrong_direction_and_an_unknown_field() {
    check_every_list(|pages| {
        let unknown = "Sortable field with reference 'colour' is not available";
        let mut rows = vec![
            pages.row("page=0").refused(400, BAD_PAYLOAD),
            pages.row("item_per_page=3").refused(400, BAD_PAYLOAD),
            pages.row("direction=%20").refused(400, BAD_PAYLOAD).saying_first("Invalid sort direction flag"),
            pages.row("direction=UP").refused(400, BAD_PAYLOAD).saying_first("Invalid sort direction flag"),
            pages.row("sort_field=colour").refused(400, INVALID_PARAMETER).saying_first(unknown),
            pages.row("page=first&item_per_page=2").empty(400),
            pages.row("page=0&item_per_page=two").empty(400),
            pages.row("page=0&item_per_page=99999999999999999999").empty(400),
        ];
        // A field of another list is not a field of this one.
        for foreign in ["priority", "systemName", "interfaceName", "operator", "logger"] {
            if !pages.endpoint.sortable.contains(&foreign) {
                rows.push(pages.row(&format!("sort_field={foreign}")).refused(400, INVALID_PARAMETER));
            }
        }
        check(pages.cloud, &rows);
    });
}
