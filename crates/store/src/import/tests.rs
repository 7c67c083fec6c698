use bodkin_arrowhead::record::{DefinitionId, RuleId, SystemId};

use super::*;
use crate::Store;

/// A small cloud, with a row in each table that cannot be taken.
const DUMP: &str = "
CREATE TABLE `service_interface` (`id` bigint(20), `interface_name` varchar(255), `created_at` timestamp, `updated_at` timestamp);
INSERT INTO `service_interface` VALUES (1,'HTTP-INSECURE-JSON','2020-01-02 03:04:05','2020-01-02 03:04:05'),(4,'no interface','2020-01-02 03:04:05','2020-01-02 03:04:05');
INSERT INTO `system_` (`id`,`system_name`,`address`,`port`,`authentication_info`,`metadata`,`created_at`,`updated_at`) VALUES
 (7,'Sensor','192.0.2.7',9000,'MIIB','room=7, sort=a%2Cb+c%3D%C3%BC','2020-01-02 03:04:05','2021-01-02 03:04:05'),
 (9,'display','display.plant.example',9001,NULL,'','2020-01-02 03:04:05','2020-01-02 03:04:05'),
 (10,'no_name','192.0.2.10',9000,NULL,NULL,'2020-01-02 03:04:05','2020-01-02 03:04:05');
INSERT INTO service_definition (id, service_definition) VALUES (3,'temperature');
INSERT INTO service_registry (id,service_id,system_id,service_uri,end_of_validity,secure,metadata,version) VALUES
 (5,3,7,'/temperature','2031-05-06 07:08:09','TOKEN','unit=celsius',2),(6,3,10,'','0000-00-00 00:00:00','NOT_SECURE',NULL,NULL);
INSERT INTO service_registry_interface_connection (id,service_registry_id,interface_id) VALUES (1,5,1),(2,6,1),(3,5,4);
INSERT INTO authorization_intra_cloud (id,consumer_system_id,provider_system_id,service_id) VALUES (2,9,7,3);
INSERT INTO authorization_intra_cloud_interface_connection (id,authorization_intra_cloud_id,interface_id) VALUES (1,2,1);
INSERT INTO cloud (id,operator,name,secure,neighbor,own_cloud,authentication_info) VALUES (1,'acme','plant',1,0,1,NULL),(2,'acme','harbour',1,1,0,'MIIC');
INSERT INTO relay (id,address,port,secure,authentication_info,exclusive,type) VALUES (1,'192.0.2.99',61617,1,NULL,0,'GENERAL_RELAY');
INSERT INTO cloud_gatekeeper_relay (id,cloud_id,relay_id) VALUES (1,2,1);
INSERT INTO cloud_gateway_relay (id,cloud_id,relay_id) VALUES (1,2,1);
INSERT INTO foreign_system (id,provider_cloud_id,system_name,address,port) VALUES (1,2,'crane','198.51.100.1',1);
INSERT INTO authorization_inter_cloud (id,consumer_cloud_id,provider_system_id,service_id) VALUES (1,2,7,3);
INSERT INTO orchestrator_store (id,consumer_system_id,provider_system_id,foreign_,service_id,service_interface_id,priority,attribute) VALUES
 (1,9,7,0,3,1,5,'a=b'),(2,9,1,1,3,1,2,NULL),(3,9,44,0,3,1,1,NULL);
INSERT INTO orchestrator_store_flexible (id,consumer_system_name,provider_system_name,service_definition_name,priority) VALUES (1,'display',NULL,'temperature',3);
INSERT INTO event_type (id,event_type_name) VALUES (8,'Overheated');
INSERT INTO subscription (id,system_id,event_type_id,filter_meta_data,match_meta_data,only_predefined_publishers,notify_uri) VALUES
 (6,9,8,'unit=celsius',1,1,'hot'),(7,7,8,NULL,0,0,'/x y');
INSERT INTO subscription_publisher_connection (id,subscription_id,system_id,authorized) VALUES (1,6,7,1);
INSERT INTO choreographer_plan (id,name) VALUES (1,'x'),(2,'y');
INSERT INTO logs (log_id) VALUES ('x');
";

#[test]
fn rows_are_taken_with_their_ids_and_what_cannot_be_is_told() {
    let place = tempfile::tempdir().unwrap();
    let tried = import(place.path(), DUMP, false).unwrap();
    let imported = import(place.path(), DUMP, true).unwrap();
    assert_eq!(tried, imported, "a trial changes nothing, and tells the same");
    let told: Vec<String> = imported.refused.iter().map(|row| format!("{} {}", row.table, row.id.as_deref().unwrap_or("-"))).collect();
    let refused = [
        "service_interface 4",
        "system_ 10",
        "service_registry 6",
        "subscription 7",
        "service_registry_interface_connection 2",
        "service_registry_interface_connection 3",
        "orchestrator_store 3",
    ];
    let mut expected: Vec<String> = refused.iter().map(|row| (*row).to_owned()).collect();
    let mut found = told.clone();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{:?}", imported.refused);
    assert_eq!((imported.refused_count, imported.refused[0].line), (7, 3));
    assert!(imported.refused.iter().any(|row| row.table == "system_" && row.why.contains("no_name") && row.why.contains("invalid format")));
    assert_eq!(imported.left, BTreeMap::from([("choreographer_plan".to_owned(), 2)]));

    let opened = Store::open(place.path()).unwrap();
    let snapshot = opened.store.snapshot().clone();
    let sensor = snapshot.system(SystemId(7)).unwrap();
    let metadata = sensor.metadata.as_ref().unwrap().pairs();
    assert_eq!((sensor.system_name.as_str(), metadata["room"].as_str(), metadata["sort"].as_str()), ("sensor", "7", "a,b c=ü"));
    assert_eq!(snapshot.definition(DefinitionId(3)).unwrap().service_definition.as_str(), "temperature");
    assert_eq!(snapshot.rules().map(|rule| rule.id).collect::<Vec<_>>(), [RuleId(2)]);
    drop(snapshot);
    opened.close();

    let database = Connection::open(place.path().join(DATABASE_FILE)).unwrap();
    let all = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(all("SELECT id || ' ' || foreign_ || ' ' || priority FROM orchestrator_store ORDER BY priority"), ["2 1 1", "1 0 2"]);
    assert_eq!(all("SELECT interface_name FROM service_interface ORDER BY id"), ["HTTP-INSECURE-JSON", "HTTP-SECURE-JSON"]);
    assert_eq!(all("SELECT datetime(end_of_validity, 'unixepoch') || ' ' || version FROM service_registry"), ["2031-05-06 07:08:09 2"]);
    assert_eq!(all("SELECT notify_uri || ' ' || filter_meta_data FROM subscription"), ["/hot {\"unit\":\"celsius\"}"]);
    assert_eq!(all("SELECT cloud_id || ' ' || relay_id FROM cloud_relay"), ["2 1"]);
    assert_eq!(all("SELECT datetime(updated_at, 'unixepoch') FROM system_ WHERE id = 7"), ["2021-01-02 03:04:05"]);
}

#[test]
fn a_registry_that_is_there_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    import(place.path(), DUMP, true).unwrap();
    let again = import(place.path(), DUMP, true).unwrap_err().to_string();
    assert!(again.contains("2 rows in system_ already") && again.contains("--data"), "{again}");
    let opened = Store::open(place.path()).unwrap();
    assert!(matches!(import(place.path(), DUMP, true), Err(ImportError::Open(OpenError::InUse { .. }))));
    opened.close();
}

#[test]
fn what_is_no_dump_of_arrowheads_is_refused_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let told = |dump: &str| import(&place.path().join("data"), dump, true).unwrap_err().to_string();
    assert!(told("CREATE TABLE `x` (`a` int); INSERT INTO `x` VALUES (1);").contains("no rows of Arrowhead's tables"));
    assert!(told("INSERT INTO system_ (id) VALUES (1").contains("line 1"));
    assert!(!place.path().join("data").exists(), "nothing was made");
}
