//! A cloud that moves from a database of its own into a shared one.

use std::collections::BTreeMap;

use bodkin_store::shared::{Migrated, migrate};
use rusqlite::{Connection, types::ValueRef};
use serde_json::Value;

use super::*;

/// Topics and graphs do not move (a cloud that has some is refused), and of a pair's leader nothing is to be kept.
const EMPTY: [&str; 4] = ["real_time_topic", "graph", "leader", "identity"];
/// What operations at random do not make.
const MORE: &str = "
    INSERT INTO onboarding_grant (system_name, secret_hash, uses_left, expires_at, alternative_names, created_at)
        VALUES ('press-*', x'00ff27', 3, 4102444800, '[\"press.local\"]', 1);
    INSERT INTO onboarding_grant (system_name, device, uses_left, expires_at, alternative_names, created_at)
        VALUES ('valve', 'a device', 1, 4102444800, '[]', 2);
    DELETE FROM onboarding_grant WHERE device IS NOT NULL;
    INSERT OR IGNORE INTO cloud_relay (cloud_id, relay_id) SELECT cloud.id, relay.id FROM cloud, relay ORDER BY 1, 2 LIMIT 1;
    INSERT INTO authorization_inter_cloud (consumer_cloud_id, provider_system_id, service_id, created_at, updated_at)
        SELECT cloud.id, system_.id, service_definition.id, 5, 6 FROM cloud, system_, service_definition ORDER BY 1, 2, 3 LIMIT 2;
    INSERT INTO authorization_inter_cloud_interface_connection (authorization_inter_cloud_id, interface_id)
        SELECT authorization_inter_cloud.id, service_interface.id FROM authorization_inter_cloud, service_interface;
    INSERT INTO logs (log_id, entry_date_ms, logger, log_level, system_name, message) VALUES ('1', 7, 'of it', 2, NULL, 'it''s \\ \"said\"');
    INSERT INTO delivery (subscription_id, cursor, paused) SELECT id, 40 + id, id % 2 FROM subscription ORDER BY id LIMIT 2;
    UPDATE delivery SET cursor = NULL WHERE paused;
    INSERT OR REPLACE INTO delivery_present (id, position) VALUES (1, 77);
    INSERT INTO dead_letter (subscription_id, first_position, last_position, is_range, events, attempts, reason, died_at)
        SELECT id, 3, 9, 1, 5, 2, 'refused with 500', 8 FROM subscription ORDER BY id LIMIT 1;
    INSERT INTO audit_checkpoint (id, number, hash) VALUES (1, 12, 'ab');
    INSERT INTO audited_ledger (id, bytes) VALUES (1, 2048);
    INSERT INTO certificate_line (number, authority, serial, action, name, not_after, node, line) VALUES (1, 'a', '4f', 'issue', 'n', 9, 'bodkin-primary', '{}');";

/// A row by its columns: truth is a number, bytes are hexadecimal digits.
type Row = BTreeMap<String, Value>;

#[test]
#[ignore = "peer: ./x test --all"]
fn every_row_of_every_table_moves_with_its_id() {
    let Some(server) = Server::start() else { return skip("every_row_of_every_table_moves_with_its_id") };
    let place = TempDir::new().unwrap();
    let opened = Store::open(place.path()).unwrap();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    for operation in operations(900).into_iter().filter(leaves_rows) {
        // What is refused is refused.
        let _ = runtime.block_on(carry_out(&opened.store, operation));
    }
    opened.close();
    let own = Connection::open(place.path().join("bodkin.sqlite")).unwrap();
    own.execute_batch(MORE).unwrap();
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let names: Vec<String> = own.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let before: BTreeMap<&str, Vec<Row>> = names.iter().map(|name| (name.as_str(), of_file(&own, name))).collect();
    let without_rows: Vec<&str> = before.iter().filter(|(_, rows)| rows.is_empty()).map(|(name, _)| *name).collect();
    assert_eq!(without_rows.iter().collect::<BTreeSet<_>>(), EMPTY.iter().collect(), "what has no rows shows nothing");
    let migrate_to = |place: &TempDir| migrate(place.path(), &DatabasePlace::parse(&server.url()).unwrap());
    let refused = || migrate_to(&place).unwrap_err();
    for (table, row, what) in
        [("real_time_topic", "('HEAT', '{}')", "real-time topics"), ("graph", "('mean', '', NULL, NULL, NULL)", "graphs")]
    {
        own.execute_batch(&format!("INSERT INTO {table} VALUES {row}")).unwrap();
        let told = refused().to_string();
        assert!(told.contains(&format!("the cloud has {what}")), "{told}");
        own.execute_batch(&format!("DELETE FROM {table}")).unwrap();
    }
    assert_eq!(server.sql("cloud", "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bodkin%'"), "0", "nothing was written");
    drop(own);

    let Migrated { rows, .. } = migrate_to(&place).unwrap();
    assert_eq!(rows, before.values().map(Vec::len).sum::<usize>());
    let node = std::fs::read_to_string(place.path().join("node")).unwrap();
    for (name, rows) in before.iter().filter(|(name, _)| !EMPTY.contains(name)) {
        let there = of_server(&server, node.trim(), name);
        assert_eq!(&there, rows, "{name}");
    }

    // A start without the shared database would serve the cloud a second time.
    let refused = Store::open(place.path()).err().expect("it is refused").to_string();
    assert!(["--database", "bodkin.sqlite.moved"].iter().all(|word| refused.contains(word)), "{refused}");
    assert!(!place.path().join("bodkin.sqlite").exists());
    assert_eq!(migrate_to(&place).unwrap_err().to_string().matches("was moved before").count(), 1);

    // Both go on alike once the move is undone: what comes next has the same id.
    std::fs::rename(place.path().join("bodkin.sqlite.moved"), place.path().join("bodkin.sqlite")).unwrap();
    let (own, shared) = (Store::open(place.path()).unwrap(), Node::start(&server));
    assert_eq!(Snapshot::clone(&own.store.snapshot()), shared.snapshot());
    let next = |store: &Store| {
        let system = system(9_999);
        runtime.block_on(store.write(move |draft| draft.register_system(&system), |_, id| id.0)).unwrap()
    };
    assert_eq!(next(&own.store), next(shared.store()));
}

/// Whether an operation makes or changes what moves; those that take rows away are left out, so that every table has some.
fn leaves_rows(operation: &Operation) -> bool {
    use Operation::{ClearFlexibleStore, DeclareTopic, Remove, RemoveUnreachable, Unregister, UnregisterSystem};
    let takes =
        matches!(operation, Remove { .. } | RemoveUnreachable { .. } | Unregister { .. } | UnregisterSystem { .. } | ClearFlexibleStore);
    !takes && !matches!(operation, DeclareTopic { .. })
}

fn of_file(own: &Connection, table: &str) -> Vec<Row> {
    let mut statement = own.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let value = |value: ValueRef<'_>| match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Text(text) => std::str::from_utf8(text).unwrap().into(),
        ValueRef::Blob(bytes) => bytes.iter().fold("\\x".to_owned(), |text, byte| format!("{text}{byte:02x}")).into(),
        ValueRef::Real(_) => panic!("no table has such numbers"),
    };
    let rows = statement.query_map([], |row| {
        columns.iter().enumerate().map(|(at, name)| Ok((name.clone(), value(row.get_ref(at)?)))).collect::<rusqlite::Result<Row>>()
    });
    sorted(rows.unwrap().map(Result::unwrap).collect())
}

fn of_server(server: &Server, node: &str, table: &str) -> Vec<Row> {
    let sql = format!("SET search_path = bodkin_node_{node}, bodkin; SELECT row_to_json(t) FROM {table} t");
    let told = server.sql("cloud", &sql);
    let rows = told.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str::<Row>(line).unwrap());
    let truth = |value: Value| value.as_bool().map_or(value, |truth| i64::from(truth).into());
    sorted(rows.map(|row| row.into_iter().map(|(name, value)| (name, truth(value))).collect()).collect())
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}
