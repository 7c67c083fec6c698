//! The published snapshot is what the database holds, whatever was done to it; a follower's is the leader's.

mod following;
mod operations;

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use bodkin_arrowhead::{
    log::{LogEntry, LogLevel},
    snapshot::Snapshot,
    utc::UtcTime,
};
use bodkin_store::{Store, StoreError, replica::Replica, replication::Committed};
use proptest::prelude::*;

use crate::operations::{Operation, carry_out, operation};

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_reopened_store_holds_what_was_published(operations in prop::collection::vec(operation(), 1..60)) {
        holds_when_reopened(operations);
    }

    /// A copy is taken behind some operations; what follows is repeated.
    #[test]
    fn a_replica_is_the_same_row_by_row(operations in prop::collection::vec(operation(), 1..60), copied_behind in 0usize..60) {
        let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let following = Arc::new(Mutex::new(Replica::open(other.path()).unwrap()));
        let replica = following.clone();
        let mut is_copied = false;
        let outlet = Box::new(move |committed| match committed {
            Committed::Copy(path) => {
                let mut replica = replica.lock().unwrap();
                replica.begin_copy().unwrap();
                fs::read(path.unwrap()).unwrap().chunks(1000).for_each(|part| replica.part(part).unwrap());
                replica.end_copy(None).unwrap();
                is_copied = true;
            }
            Committed::Group(group) => {
                if is_copied {
                    replica.lock().unwrap().apply(group.operations.iter().map(|operation| (None, operation.as_slice()))).unwrap();
                }
                group.release();
            }
        });
        let opened = Store::open_replicated(directory.path(), outlet).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let place = copied_behind % operations.len();
        for (index, operation) in operations.into_iter().enumerate() {
            if index == place {
                opened.store.copy_to(directory.path().join("copy")).unwrap();
            }
            drop(runtime.block_on(carry_out(&opened.store, operation)));
        }
        let log = [LogEntry { entry_date: UtcTime::from_unix_seconds(1), logger: "l".into(), level: LogLevel::Info, system: None, message: "it's".into() }];
        runtime.block_on(opened.store.write(move |draft| draft.append_log(&log, 10), |_, ()| ())).unwrap();
        let published = Snapshot::clone(&opened.store.snapshot());
        opened.close();
        drop(following);
        prop_assert_eq!(rows(directory.path()), rows(other.path()));
        prop_assert_eq!(&published, &**Store::open(other.path()).unwrap().store.snapshot());
    }
}

fn holds_when_reopened(operations: Vec<Operation>) {
    let directory = tempfile::tempdir().unwrap();
    let opened = Store::open(directory.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for operation in operations {
        let told = format!("{operation:?}");
        if let Err(error @ StoreError::Unavailable(_)) = runtime.block_on(carry_out(&opened.store, operation)) {
            panic!("{told}: {error}");
        }
    }
    let published = Snapshot::clone(&opened.store.snapshot());
    opened.close();
    let reopened = Store::open(directory.path()).unwrap();
    assert_eq!(&published, &**reopened.store.snapshot());
}

#[test]
fn a_subscription_that_is_made_another_systems_is_no_more_the_former_ones() {
    holds_when_reopened(vec![
        Operation::RegisterSystem { system: 1 },
        Operation::RegisterSystem { system: 2 },
        Operation::Subscribe { event_type: 0, system: 1, sources: None, filter: false },
        Operation::UpdateSubscription { id: 1, event_type: 0, system: 2 },
        Operation::UnregisterSystem { system: 1 },
    ]);
}

/// Every row of every table, those that count ids included.
fn rows(directory: &Path) -> Vec<String> {
    columns(directory, usize::MAX)
}

/// The first columns of every row of every table.
fn columns(directory: &Path, columns_max: usize) -> Vec<String> {
    let connection = rusqlite::Connection::open(directory.join("bodkin.sqlite")).unwrap();
    // How far a node has followed is its own to know.
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'followed' ORDER BY name";
    let tables: Vec<String> = connection.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut rows = Vec::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count().min(columns_max);
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<_> = (0..columns).map(|column| row.get::<_, rusqlite::types::Value>(column).unwrap()).collect();
            rows.push(format!("{table} {values:?}"));
        }
    }
    rows
}

#[test]
fn a_directory_serves_one_store_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = Store::open(directory.path()).unwrap();
    let second = Store::open(directory.path()).err().expect("the directory is locked").to_string();
    assert!(second.contains("in use") && second.contains(&std::process::id().to_string()) && second.contains("--data"), "{second}");
    first.close();
    Store::open(directory.path()).unwrap();
}
