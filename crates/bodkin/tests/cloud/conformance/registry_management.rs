//! Service Registry: the management paths of this issue (reference section 3.1).

use serde_json::json;

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system, texts, with};
use crate::support::cloud::Cloud;

/// Every path with an id that is read, and whether it is also deleted.
const BY_ID: [&str; 4] =
    ["/serviceregistry/mgmt", "/serviceregistry/mgmt/systems", "/serviceregistry/mgmt/services", "/serviceregistry/mgmt/interfaces"];

#[test]
fn an_id_below_one_is_a_bad_payload_and_a_missing_one_an_invalid_parameter() {
    let cloud = Cloud::shared();
    let mut rows = Vec::new();
    for path in BY_ID {
        for method in ["GET", "DELETE"] {
            rows.push(Row::new("id 0", method, format!("{path}/0")).bad_payload(format!("{path}/{{id}}")));
            rows.push(Row::new("id -1", method, format!("{path}/-1")).bad_payload(format!("{path}/{{id}}")));
            rows.push(Row::new("no such id", method, format!("{path}/999999999")).invalid_parameter());
        }
    }
    check(&cloud, &rows);
}

#[test]
fn an_entry_made_by_management_is_read_listed_and_deleted() {
    let cloud = Cloud::shared();
    let entry = with(service("mgmt-entry", system("mgmt-entry", 9401)), "/serviceUri", "/x");
    let created = cloud.post("/serviceregistry/mgmt", &entry).expect_status(201).json();
    let id = number(&created, "/id");
    let listed = cloud.get("/serviceregistry/mgmt").json();
    let row = list(&listed, "/data").iter().find(|row| row["id"] == id).expect("it is listed");
    let read = cloud.get(&format!("/serviceregistry/mgmt/{id}")).expect_status(200).json();
    assert_eq!(row, &read);
    check(
        &cloud,
        &[
            Row::post("a second time", "/serviceregistry/mgmt", &entry).invalid_parameter().saying_last(" already exists."),
            Row::post("no interfaces", "/serviceregistry/mgmt", &with(entry.clone(), "/interfaces", json!([])))
                .bad_payload("/serviceregistry/mgmt"),
            Row::delete("delete", format!("/serviceregistry/mgmt/{id}")).void(),
            Row::delete("delete again", format!("/serviceregistry/mgmt/{id}")).invalid_parameter(),
            Row::get("its system stays", format!("/serviceregistry/mgmt/systems/{}", number(&created, "/provider/id"))),
        ],
    );
}

#[test]
fn a_system_made_by_management_is_read_listed_and_deleted_with_its_rows() {
    let cloud = Cloud::shared();
    let request = with(with(system("Mgmt-System", 9402), "/metadata", json!({"a": "b"})), "/authenticationInfo", "key");
    let created = cloud.post("/serviceregistry/mgmt/systems", &request).expect_status(201).json();
    let id = number(&created, "/id");
    assert_eq!((&created["systemName"], &created["metadata"]), (&json!("mgmt-system"), &json!({"a": "b"})));
    let entry = cloud.register(&service("mgmt-system", system("mgmt-system", 9402)));
    assert_eq!(number(&entry, "/provider/id"), id);
    let listed = cloud.get("/serviceregistry/mgmt/systems").json();
    assert!(texts(list(&listed, "/data"), "/systemName").contains(&"mgmt-system".to_string()));
    check(
        &cloud,
        &[
            Row::post("a second time", "/serviceregistry/mgmt/systems", &request).invalid_parameter(),
            Row::post("bad port", "/serviceregistry/mgmt/systems", &with(request.clone(), "/port", 65536))
                .bad_payload("/serviceregistry/mgmt/systems"),
            Row::delete("delete", format!("/serviceregistry/mgmt/systems/{id}")).void(),
            Row::get("it is gone", format!("/serviceregistry/mgmt/systems/{id}")).invalid_parameter(),
            Row::get("its entry too", format!("/serviceregistry/mgmt/{}", number(&entry, "/id"))).invalid_parameter(),
        ],
    );
}

#[test]
fn a_deleted_definition_takes_its_entries_and_rules_along() {
    let cloud = Cloud::shared();
    let entry = cloud.register(&service("mgmt-definition", system("mgmt-definition", 9403)));
    let consumer = cloud.register_system("mgmt-definition-c", 9403);
    let definition = number(&entry, "/serviceDefinition/id");
    let rule = cloud.allow(consumer, number(&entry, "/provider/id"), definition, &[INSECURE_JSON_ID]);
    check(
        &cloud,
        &[
            Row::get("read", format!("/serviceregistry/mgmt/services/{definition}")).is("/serviceDefinition", "mgmt-definition"),
            Row::delete("delete", format!("/serviceregistry/mgmt/services/{definition}")).void(),
            Row::get("it is gone", format!("/serviceregistry/mgmt/services/{definition}")).invalid_parameter(),
            Row::get("its entry too", format!("/serviceregistry/mgmt/{}", number(&entry, "/id"))).invalid_parameter(),
            Row::get("its rule too", format!("/authorization/mgmt/intracloud/{rule}")).invalid_parameter(),
            Row::get("its provider stays", format!("/serviceregistry/mgmt/systems/{}", number(&entry, "/provider/id"))),
        ],
    );
}

#[test]
fn a_deleted_interface_is_taken_out_of_its_entries() {
    let cloud = Cloud::shared();
    let names = json!(["MGMT_GONE-INSECURE-JSON", "HTTP-INSECURE-JSON"]);
    let entry = cloud.register(&with(service("mgmt-interface", system("mgmt-interface", 9404)), "/interfaces", names));
    let interfaces = cloud.get("/serviceregistry/mgmt/interfaces").json();
    let row = list(&interfaces, "/data").iter().find(|row| row["interfaceName"] == "MGMT_GONE-INSECURE-JSON");
    let id = number(row.expect("the interface was made"), "/id");
    check(
        &cloud,
        &[
            Row::get("read", format!("/serviceregistry/mgmt/interfaces/{id}")).is("/interfaceName", "MGMT_GONE-INSECURE-JSON"),
            Row::delete("delete", format!("/serviceregistry/mgmt/interfaces/{id}")).void(),
            Row::get("it is gone", format!("/serviceregistry/mgmt/interfaces/{id}")).invalid_parameter(),
            Row::get("the entry keeps the other", format!("/serviceregistry/mgmt/{}", number(&entry, "/id")))
                .has_length("/interfaces", 1)
                .is("/interfaces/0/interfaceName", "HTTP-INSECURE-JSON"),
        ],
    );
}

#[test]
fn the_two_first_interfaces_are_there_from_the_start() {
    let cloud = Cloud::shared();
    let row = |id: i64, name: &str| Row::get(name.to_string(), format!("/serviceregistry/mgmt/interfaces/{id}")).is("/interfaceName", name);
    check(&cloud, &[row(1, "HTTP-SECURE-JSON"), row(2, "HTTP-INSECURE-JSON")]);
}
