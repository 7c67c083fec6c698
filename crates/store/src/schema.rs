//! The tables (reference section 13), brought up to date at every start.

use rusqlite::Connection;

use crate::{
    accepted_event, audit, certificate_line, cloud, database::DatabaseError, delivery, flexible_store, graph, identity, leader, log,
    onboarding, orchestrator_store, relay, reservation, topic,
};

/// Steps from an empty database to the present one; `user_version` counts those done.
const MIGRATIONS: &[&str] = &[
    SPINE,
    EVENT_FILTERS,
    log::MIGRATION,
    delivery::MIGRATION,
    cloud::MIGRATION,
    orchestrator_store::MIGRATION,
    flexible_store::MIGRATION,
    reservation::MIGRATION,
    ENDS,
    audit::MIGRATION,
    onboarding::MIGRATION,
    audit::LEDGER_MIGRATION,
    topic::MIGRATION,
    SUBSCRIPTION_BOUNDS,
    graph::MIGRATION,
    relay::MIGRATION,
    leader::MIGRATION,
    accepted_event::MIGRATION,
    graph::MOVES_MIGRATION,
    graph::PREVIOUS_MIGRATION,
    delivery::LOGS_MIGRATION,
    identity::MIGRATION,
    certificate_line::MIGRATION,
];

const SPINE: &str = "
CREATE TABLE system_ (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    system_name TEXT NOT NULL,
    address TEXT NOT NULL,
    port INTEGER NOT NULL,
    authentication_info TEXT,
    metadata TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (system_name, address, port)
) STRICT;
CREATE TABLE service_definition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    service_definition TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE service_interface (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    interface_name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE service_registry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    service_id INTEGER NOT NULL REFERENCES service_definition (id) ON DELETE CASCADE,
    system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    service_uri TEXT NOT NULL,
    end_of_validity INTEGER,
    secure TEXT NOT NULL,
    metadata TEXT,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (service_id, system_id, service_uri)
) STRICT;
CREATE INDEX service_registry_system ON service_registry (system_id);
CREATE TABLE service_registry_interface_connection (
    service_registry_id INTEGER NOT NULL REFERENCES service_registry (id) ON DELETE CASCADE,
    interface_id INTEGER NOT NULL REFERENCES service_interface (id) ON DELETE CASCADE,
    PRIMARY KEY (service_registry_id, interface_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX service_registry_interface_interface ON service_registry_interface_connection (interface_id);
CREATE TABLE authorization_intra_cloud (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer_system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    provider_system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    service_id INTEGER NOT NULL REFERENCES service_definition (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (consumer_system_id, provider_system_id, service_id)
) STRICT;
CREATE INDEX authorization_intra_cloud_provider ON authorization_intra_cloud (provider_system_id);
CREATE INDEX authorization_intra_cloud_service ON authorization_intra_cloud (service_id);
CREATE TABLE authorization_intra_cloud_interface_connection (
    authorization_intra_cloud_id INTEGER NOT NULL REFERENCES authorization_intra_cloud (id) ON DELETE CASCADE,
    interface_id INTEGER NOT NULL REFERENCES service_interface (id) ON DELETE CASCADE,
    PRIMARY KEY (authorization_intra_cloud_id, interface_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX authorization_intra_cloud_interface_interface ON authorization_intra_cloud_interface_connection (interface_id);
CREATE TABLE event_type (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type_name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE subscription (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type_id INTEGER NOT NULL REFERENCES event_type (id) ON DELETE CASCADE,
    system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    notify_uri TEXT NOT NULL,
    filter_meta_data TEXT,
    match_meta_data INTEGER NOT NULL,
    start_date INTEGER,
    end_date INTEGER,
    only_predefined_publishers INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (event_type_id, system_id)
) STRICT;
CREATE INDEX subscription_system ON subscription (system_id);
CREATE TABLE subscription_publisher_connection (
    subscription_id INTEGER NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    system_id INTEGER NOT NULL REFERENCES system_ (id) ON DELETE CASCADE,
    PRIMARY KEY (subscription_id, system_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscription_publisher_system ON subscription_publisher_connection (system_id);
INSERT INTO service_interface (id, interface_name, created_at, updated_at)
    VALUES (1, 'HTTP-SECURE-JSON', unixepoch(), unixepoch()), (2, 'HTTP-INSECURE-JSON', unixepoch(), unixepoch());
";

const EVENT_FILTERS: &str = "
ALTER TABLE subscription ADD COLUMN min_severity TEXT;
ALTER TABLE subscription ADD COLUMN payload_filter TEXT;
";

const SUBSCRIPTION_BOUNDS: &str = "
ALTER TABLE subscription ADD COLUMN deadline_us INTEGER;
ALTER TABLE subscription ADD COLUMN loss_tolerance INTEGER;
";

/// What has an end is found by it, and most rows have none.
const ENDS: &str = "
CREATE INDEX service_registry_end ON service_registry (end_of_validity) WHERE end_of_validity IS NOT NULL;
CREATE INDEX subscription_end ON subscription (end_date) WHERE end_date IS NOT NULL;
";

/// Why the tables are not what this version works with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    /// A newer Bodkin has worked with the database.
    #[error("its schema is version {found}, and this version of Bodkin knows {known}. Use the newer Bodkin that wrote it")]
    Newer { found: usize, known: usize },
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<rusqlite::Error> for SchemaError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Sets the connection's modes and brings the tables up to date.
pub(crate) fn prepare(connection: &mut Connection) -> Result<(), SchemaError> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    migrate(connection)
}

/// Brings the tables up to date, each step in a transaction of its own.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), SchemaError> {
    let done = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize;
    if done > MIGRATIONS.len() {
        return Err(SchemaError::Newer { found: done, known: MIGRATIONS.len() });
    }
    for (index, step) in MIGRATIONS.iter().enumerate().skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", index as u32 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

/// The version of the tables that this Bodkin works with.
pub(crate) fn newest() -> u32 {
    MIGRATIONS.len() as u32
}

/// Prepared statements kept: all there are.
const STATEMENTS_MAX: usize = 256;
