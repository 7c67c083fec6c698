//! Paging and sorting of the lists under /mgmt (reference section 1.5), on a cloud of its own because rows are counted.

use super::table::{BAD_PAYLOAD, INVALID_PARAMETER, Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system, texts};
use crate::support::cloud::{Cloud, Launch};

/// The lists of this issue, each with its own base path.
const LISTS: [&str; 6] = [
    "/serviceregistry/mgmt",
    "/serviceregistry/mgmt/systems",
    "/serviceregistry/mgmt/services",
    "/serviceregistry/mgmt/interfaces",
    "/authorization/mgmt/intracloud",
    "/eventhandler/mgmt/subscriptions",
];

/// A cloud with at least five rows in every list.
fn filled() -> Cloud {
    let cloud = Launch::new().start();
    let consumer = cloud.register_system("list-consumer", 1);
    for (index, name) in ["echo", "alpha", "delta", "charlie", "bravo"].into_iter().enumerate() {
        let port = 9300 - u16::try_from(index).expect("five of them");
        let mut entry = service(&format!("list-{name}"), system(name, port));
        entry["interfaces"] = serde_json::json!([format!("{name}-INSECURE-JSON")]);
        entry["providerSystem"]["address"] = format!("127.0.0.{}", 10 + index).into();
        let entry = cloud.register(&entry);
        cloud.allow(consumer, number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
        cloud.subscribe(&subscription(&format!("list-{name}"), system("list-consumer", 1), "/notify"));
    }
    cloud
}

fn ids(cloud: &Cloud, target: &str) -> Vec<i64> {
    let answer = cloud.get(target).expect_status(200).json();
    list(&answer, "/data").iter().map(|row| number(row, "/id")).collect()
}

#[test]
fn a_list_is_whole_and_in_the_order_of_ids_without_parameters() {
    let cloud = filled();
    for path in LISTS {
        let answer = cloud.get(path).expect_status(200).json();
        let all = ids(&cloud, path);
        assert_eq!(number(&answer, "/count"), all.len() as i64, "{path}");
        assert!(all.len() >= 5 && all.is_sorted(), "{path}: {all:?}");
    }
}

#[test]
fn a_page_is_a_window_and_count_is_of_the_whole_table() {
    let cloud = filled();
    for path in LISTS {
        let all = ids(&cloud, path);
        let page = |parameters: &str| ids(&cloud, &format!("{path}?{parameters}"));
        assert_eq!(page("page=0&item_per_page=2"), all[..2], "{path}");
        assert_eq!(page("page=1&item_per_page=2"), all[2..4], "{path}");
        assert_eq!(page("page=-3&item_per_page=2"), all[..2], "{path}: below 0 is 0");
        assert_eq!(page("page=0&item_per_page=0"), all, "{path}: below 1 is unlimited");
        assert_eq!(page("page=1000&item_per_page=2"), Vec::<i64>::new(), "{path}: beyond the end");
        let second: Vec<i64> = all.iter().rev().skip(2).take(2).copied().collect();
        assert_eq!(page("page=1&item_per_page=2&direction=DESC"), second, "{path}");
        let count = number(&cloud.get(&format!("{path}?page=1&item_per_page=2")).json(), "/count");
        assert_eq!(count, all.len() as i64, "{path}");
    }
}

#[test]
fn a_direction_is_read_in_any_case_and_times_sort() {
    let cloud = filled();
    for path in LISTS {
        let all = ids(&cloud, path);
        let backwards: Vec<i64> = all.iter().rev().copied().collect();
        let orders = [("direction=asc", &all), ("direction=DESC", &backwards), ("direction=desc", &backwards), ("sort_field=id", &all)];
        for (parameters, expected) in orders {
            assert_eq!(&ids(&cloud, &format!("{path}?{parameters}")), expected, "{path}?{parameters}");
        }
        for field in ["createdAt", "updatedAt"] {
            let answer = cloud.get(&format!("{path}?sort_field={field}&direction=DESC")).expect_status(200).json();
            let times = texts(list(&answer, "/data"), &format!("/{field}"));
            assert!(times.iter().rev().is_sorted(), "{path} by {field}: {times:?}");
        }
    }
}

#[test]
fn half_a_page_a_wrong_direction_and_an_unknown_field_are_refused() {
    let cloud = Cloud::shared();
    for path in LISTS {
        let get = |parameters: &str| Row::get(parameters.to_string(), format!("{path}?{parameters}"));
        let rows = [
            get("page=0").refused(400, BAD_PAYLOAD),
            get("item_per_page=3").refused(400, BAD_PAYLOAD),
            get("direction=UP").refused(400, BAD_PAYLOAD).saying_first("Invalid sort direction flag"),
            get("sort_field=colour")
                .refused(400, INVALID_PARAMETER)
                .saying_first("Sortable field with reference 'colour' is not available"),
        ];
        check(&cloud, &rows);
    }
}

#[test]
fn systems_and_interfaces_sort_by_their_own_fields() {
    let cloud = filled();
    let by = |path: &str, field: &str| {
        let answer = cloud.get(&format!("/serviceregistry/mgmt/{path}?sort_field={field}")).expect_status(200).json();
        list(&answer, "/data").clone()
    };
    for (path, field) in [("systems", "systemName"), ("systems", "address"), ("interfaces", "interfaceName")] {
        let sorted = texts(&by(path, field), &format!("/{field}"));
        assert!(sorted.is_sorted(), "{path} by {field}: {sorted:?}");
    }
    let ports: Vec<Option<i64>> = by("systems", "port").iter().map(|row| row["port"].as_i64()).collect();
    assert!(ports.is_sorted(), "{ports:?}");
}

#[test]
fn a_field_of_another_list_is_not_available() {
    let cloud = Cloud::shared();
    let fields = [
        ("/serviceregistry/mgmt/services", "serviceDefinition"),
        ("/serviceregistry/mgmt", "systemName"),
        ("/authorization/mgmt/intracloud", "address"),
        ("/eventhandler/mgmt/subscriptions", "eventType"),
    ];
    let row = |(path, field)| Row::get(field, format!("{path}?sort_field={field}")).refused(400, INVALID_PARAMETER);
    check(&cloud, &fields.map(row));
}
