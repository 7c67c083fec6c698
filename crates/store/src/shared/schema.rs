//! The tables in PostgreSQL: those of `crate::schema` at one of its versions, in the schema `bodkin`, and what each node keeps for itself in one of its own.
//!
//! Ids are given as SQLite gives them: whatever is tried to be put in takes one, and an operation that is refused gives it back. So a cloud answers the
//! same on either database. Writers come one after another, so that costs no concurrency.

use super::{
    claim,
    session::{Session, schema_of},
};
use crate::{database::DatabaseError, identity::DatabaseId};

/// The version of the tables, and the oldest Bodkin's that work with them is the same.
pub(crate) const VERSION: i64 = STEPS.len() as i64;
/// The first version of the tables in which a cloud has an identity.
const CLOUD_SINCE: i64 = 2;
/// What each version has beside the one before it. Nodes of the earlier version work on beside those of this one: nothing that they know has changed.
const STEPS: [&str; 4] = [SHARED, NODES, ACCOUNTS, claim::TABLE];
/// Held while tables are looked at and made.
const LOCK: i64 = 0x626f_646b_696e_0001;

/// Why a database cannot be shared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error(
        "its tables are of version {found}, and this Bodkin works with version {VERSION}. Bring every node of the cloud to the same release"
    )]
    Other { found: i64 },
    #[error("the schema bodkin in it has tables that no Bodkin has made: name another database")]
    Foreign,
    #[error(
        "{0}. Its owner has to run: GRANT CREATE, CONNECT ON DATABASE ... TO ...; and the tables of the schema bodkin have to be this user's"
    )]
    Rights(DatabaseError),
    #[error(
        "this user may not read and change all of its tables ({tables}). Their owner has to run: GRANT SELECT, INSERT, UPDATE, DELETE, REFERENCES ON ALL TABLES IN SCHEMA bodkin TO ..."
    )]
    Closed { tables: String },
    #[error(transparent)]
    Database(DatabaseError),
}

impl From<DatabaseError> for SchemaError {
    fn from(error: DatabaseError) -> Self {
        // insufficient_privilege
        if error.state() == Some("42501") { Self::Rights(error) } else { Self::Database(error) }
    }
}

/// Makes the tables that are missing; nodes that begin at the same time do so one after another.
pub(crate) fn prepare(session: &Session, node: &str) -> Result<(), SchemaError> {
    session.batch("BEGIN")?;
    let prepared = make(session, node);
    // What was not made is taken back; a connection that is gone has nothing to take back.
    let end = session.batch(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" });
    prepared?;
    Ok(end?)
}

fn make(session: &Session, node: &str) -> Result<(), SchemaError> {
    session.batch(&format!("SELECT pg_advisory_xact_lock({LOCK})"))?;
    let found = version(session)?;
    let done = match found {
        None => 0,
        Some(found) if (1..=VERSION).contains(&found) => usize::try_from(found).expect("it is one of the steps"),
        Some(found) => return Err(SchemaError::Other { found }),
    };
    if done < STEPS.len() {
        session.batch(&in_byte_order(&format!("{}; UPDATE bodkin.shared SET version = {VERSION}", STEPS[done..].join(";"))))?;
    }
    if let Some(tables) = session.one::<Option<String>>(CLOSED, ())?.flatten() {
        return Err(SchemaError::Closed { tables });
    }
    let own = schema_of(node);
    if session.one::<bool>("SELECT to_regnamespace(?1) IS NOT NULL", [&own])? != Some(true) {
        session.batch(&in_byte_order(&format!("CREATE SCHEMA {own}; {OWN}")))?;
    }
    session.batch(&LOGS.replace("OWN.", &format!("{own}.")))?;
    Ok(())
}

/// The tables with which this user may not do all that a node does.
const CLOSED: &str = "SELECT string_agg(tablename, ', ' ORDER BY tablename) FROM pg_tables, quote_ident(tablename) AS quoted
    WHERE schemaname = 'bodkin' AND NOT (has_table_privilege('bodkin.' || quoted, 'SELECT') AND has_table_privilege('bodkin.' || quoted, 'INSERT')
        AND has_table_privilege('bodkin.' || quoted, 'UPDATE') AND has_table_privilege('bodkin.' || quoted, 'DELETE')
        AND has_table_privilege('bodkin.' || quoted, 'REFERENCES'))";

/// The version of the tables; `None` where there are none.
pub(crate) fn version(session: &Session) -> Result<Option<i64>, SchemaError> {
    if session.one::<bool>("SELECT to_regclass('bodkin.shared') IS NOT NULL", ())? != Some(true) {
        let is_there = session.one::<bool>("SELECT to_regnamespace('bodkin') IS NOT NULL", ())?;
        return if is_there == Some(true) { Err(SchemaError::Foreign) } else { Ok(None) };
    }
    Ok(session.one("SELECT version FROM bodkin.shared", ())?)
}

/// Returns the identity of the cloud in the database; `None` if there are no tables, or tables of a release before identities.
pub(crate) fn cloud(session: &Session) -> Result<Option<DatabaseId>, SchemaError> {
    if version(session)?.is_none_or(|version| version < CLOUD_SINCE) {
        return Ok(None);
    }
    Ok(session.one::<String>("SELECT cloud FROM bodkin.shared", ())?.and_then(|cloud| cloud.parse().ok()))
}

/// Texts are compared and ordered by their bytes, whatever the database's language.
fn in_byte_order(sql: &str) -> String {
    sql.replace(" TEXT", " TEXT COLLATE \"C\"").replace("ID_OF(", "BIGINT PRIMARY KEY DEFAULT bodkin.next_id(")
}

/// `shared` has one row: whoever writes holds it until the commit, so that commits have an order, which `change` tells.
const SHARED: &str = "
CREATE SCHEMA bodkin;
CREATE TABLE bodkin.shared (one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL, number BIGINT NOT NULL);
CREATE TABLE bodkin.change (number BIGINT PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), touched BIGINT[] NOT NULL);
CREATE TABLE bodkin.id_counter (name TEXT PRIMARY KEY, last BIGINT NOT NULL);
CREATE FUNCTION bodkin.next_id(kind text) RETURNS bigint LANGUAGE sql AS
    'UPDATE bodkin.id_counter SET last = last + 1 WHERE name = $1 RETURNING last';
CREATE FUNCTION bodkin.instr(text, text) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT strpos($1, $2)::bigint';
CREATE TABLE bodkin.system_ (id ID_OF('system_'), system_name TEXT NOT NULL, address TEXT NOT NULL, port BIGINT NOT NULL,
    authentication_info TEXT, metadata TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, UNIQUE (system_name, address, port));
CREATE TABLE bodkin.service_definition (id ID_OF('service_definition'), service_definition TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE TABLE bodkin.service_interface (id ID_OF('service_interface'), interface_name TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE TABLE bodkin.service_registry (id ID_OF('service_registry'),
    service_id BIGINT NOT NULL REFERENCES bodkin.service_definition ON DELETE CASCADE,
    system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE, service_uri TEXT NOT NULL, end_of_validity BIGINT,
    secure TEXT NOT NULL, metadata TEXT, version BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    UNIQUE (service_id, system_id, service_uri));
CREATE INDEX service_registry_system ON bodkin.service_registry (system_id);
CREATE INDEX service_registry_end ON bodkin.service_registry (end_of_validity) WHERE end_of_validity IS NOT NULL;
CREATE TABLE bodkin.service_registry_interface_connection (
    service_registry_id BIGINT NOT NULL REFERENCES bodkin.service_registry ON DELETE CASCADE,
    interface_id BIGINT NOT NULL REFERENCES bodkin.service_interface ON DELETE CASCADE, PRIMARY KEY (service_registry_id, interface_id));
CREATE INDEX service_registry_interface_interface ON bodkin.service_registry_interface_connection (interface_id);
CREATE TABLE bodkin.authorization_intra_cloud (id ID_OF('authorization_intra_cloud'),
    consumer_system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE,
    provider_system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE,
    service_id BIGINT NOT NULL REFERENCES bodkin.service_definition ON DELETE CASCADE, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    UNIQUE (consumer_system_id, provider_system_id, service_id));
CREATE INDEX authorization_intra_cloud_provider ON bodkin.authorization_intra_cloud (provider_system_id);
CREATE INDEX authorization_intra_cloud_service ON bodkin.authorization_intra_cloud (service_id);
CREATE TABLE bodkin.authorization_intra_cloud_interface_connection (
    authorization_intra_cloud_id BIGINT NOT NULL REFERENCES bodkin.authorization_intra_cloud ON DELETE CASCADE,
    interface_id BIGINT NOT NULL REFERENCES bodkin.service_interface ON DELETE CASCADE,
    PRIMARY KEY (authorization_intra_cloud_id, interface_id));
CREATE INDEX authorization_intra_cloud_interface_interface ON bodkin.authorization_intra_cloud_interface_connection (interface_id);
CREATE TABLE bodkin.event_type (id ID_OF('event_type'), event_type_name TEXT NOT NULL UNIQUE, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE TABLE bodkin.subscription (id ID_OF('subscription'),
    event_type_id BIGINT NOT NULL REFERENCES bodkin.event_type ON DELETE CASCADE,
    system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE, notify_uri TEXT NOT NULL, filter_meta_data TEXT,
    match_meta_data BOOLEAN NOT NULL, start_date BIGINT, end_date BIGINT, only_predefined_publishers BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, min_severity TEXT, payload_filter TEXT, deadline_us BIGINT, loss_tolerance BIGINT,
    UNIQUE (event_type_id, system_id));
CREATE INDEX subscription_system ON bodkin.subscription (system_id);
CREATE INDEX subscription_end ON bodkin.subscription (end_date) WHERE end_date IS NOT NULL;
CREATE TABLE bodkin.subscription_publisher_connection (subscription_id BIGINT NOT NULL REFERENCES bodkin.subscription ON DELETE CASCADE,
    system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE, PRIMARY KEY (subscription_id, system_id));
CREATE INDEX subscription_publisher_system ON bodkin.subscription_publisher_connection (system_id);
CREATE TABLE bodkin.cloud (id ID_OF('cloud'), operator TEXT NOT NULL, name TEXT NOT NULL, secure BOOLEAN NOT NULL,
    neighbor BOOLEAN NOT NULL, own_cloud BOOLEAN NOT NULL, authentication_info TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    accepted_events TEXT NOT NULL DEFAULT '[]', UNIQUE (operator, name));
CREATE TABLE bodkin.relay (id ID_OF('relay'), address TEXT NOT NULL, port BIGINT NOT NULL, authentication_info TEXT UNIQUE,
    secure BOOLEAN NOT NULL, exclusive BOOLEAN NOT NULL, type TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    UNIQUE (address, port));
CREATE TABLE bodkin.cloud_relay (cloud_id BIGINT NOT NULL REFERENCES bodkin.cloud ON DELETE CASCADE,
    relay_id BIGINT NOT NULL REFERENCES bodkin.relay ON DELETE CASCADE, PRIMARY KEY (cloud_id, relay_id));
CREATE INDEX cloud_relay_relay ON bodkin.cloud_relay (relay_id);
CREATE TABLE bodkin.foreign_system (id ID_OF('foreign_system'),
    provider_cloud_id BIGINT NOT NULL REFERENCES bodkin.cloud ON DELETE CASCADE, system_name TEXT NOT NULL, address TEXT NOT NULL,
    port BIGINT NOT NULL, authentication_info TEXT, metadata TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    UNIQUE (provider_cloud_id, system_name, address, port));
CREATE TABLE bodkin.authorization_inter_cloud (id ID_OF('authorization_inter_cloud'),
    consumer_cloud_id BIGINT NOT NULL REFERENCES bodkin.cloud ON DELETE CASCADE,
    provider_system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE,
    service_id BIGINT NOT NULL REFERENCES bodkin.service_definition ON DELETE CASCADE, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    UNIQUE (consumer_cloud_id, provider_system_id, service_id));
CREATE INDEX authorization_inter_cloud_provider ON bodkin.authorization_inter_cloud (provider_system_id);
CREATE INDEX authorization_inter_cloud_service ON bodkin.authorization_inter_cloud (service_id);
CREATE TABLE bodkin.authorization_inter_cloud_interface_connection (
    authorization_inter_cloud_id BIGINT NOT NULL REFERENCES bodkin.authorization_inter_cloud ON DELETE CASCADE,
    interface_id BIGINT NOT NULL REFERENCES bodkin.service_interface ON DELETE CASCADE,
    PRIMARY KEY (authorization_inter_cloud_id, interface_id));
CREATE INDEX authorization_inter_cloud_interface_interface ON bodkin.authorization_inter_cloud_interface_connection (interface_id);
CREATE TABLE bodkin.orchestrator_store (id ID_OF('orchestrator_store'),
    consumer_system_id BIGINT NOT NULL REFERENCES bodkin.system_ ON DELETE CASCADE,
    service_id BIGINT NOT NULL REFERENCES bodkin.service_definition ON DELETE CASCADE,
    service_interface_id BIGINT NOT NULL REFERENCES bodkin.service_interface ON DELETE CASCADE, foreign_ BOOLEAN NOT NULL,
    provider_system_id BIGINT NOT NULL, priority BIGINT NOT NULL, attribute TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    UNIQUE (consumer_system_id, service_id, service_interface_id, priority),
    UNIQUE (consumer_system_id, service_id, service_interface_id, provider_system_id, foreign_));
CREATE INDEX orchestrator_store_service ON bodkin.orchestrator_store (service_id);
CREATE INDEX orchestrator_store_interface ON bodkin.orchestrator_store (service_interface_id);
CREATE TABLE bodkin.orchestrator_store_flexible (id ID_OF('orchestrator_store_flexible'), consumer_system_name TEXT,
    consumer_system_metadata TEXT, provider_system_name TEXT, provider_system_metadata TEXT, service_definition_name TEXT NOT NULL,
    service_interface_name TEXT, service_metadata TEXT, priority BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE TABLE bodkin.qos_reservation (id ID_OF('qos_reservation'), reserved_provider_id BIGINT NOT NULL, reserved_service_id BIGINT NOT NULL,
    consumer_system_name TEXT NOT NULL, consumer_address TEXT NOT NULL, consumer_port BIGINT NOT NULL, reserved_to BIGINT NOT NULL,
    temporary_lock BOOLEAN NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, UNIQUE (reserved_provider_id, reserved_service_id));
CREATE INDEX qos_reservation_end ON bodkin.qos_reservation (reserved_to);
CREATE TABLE bodkin.onboarding_grant (id ID_OF('onboarding_grant'), system_name TEXT NOT NULL, secret_hash BYTEA, device TEXT UNIQUE,
    uses_left BIGINT NOT NULL, expires_at BIGINT NOT NULL, alternative_names TEXT NOT NULL, created_at BIGINT NOT NULL,
    CHECK ((secret_hash IS NULL) <> (device IS NULL)));
CREATE TABLE bodkin.logs (id ID_OF('logs'), log_id TEXT NOT NULL, entry_date_ms BIGINT NOT NULL, logger TEXT NOT NULL,
    log_level BIGINT NOT NULL, system_name TEXT, message TEXT NOT NULL);
CREATE TABLE bodkin.real_time_topic (event_type TEXT PRIMARY KEY, declaration TEXT NOT NULL);
CREATE TABLE bodkin.graph (name TEXT PRIMARY KEY, file TEXT NOT NULL);
CREATE TABLE bodkin.leader (id BIGINT PRIMARY KEY CHECK (id = 1), host TEXT NOT NULL, monitor_port BIGINT NOT NULL, secure BOOLEAN NOT NULL);
INSERT INTO bodkin.id_counter SELECT table_name, CASE WHEN table_name = 'service_interface' THEN 2 ELSE 0 END
    FROM information_schema.columns WHERE table_schema = 'bodkin' AND column_name = 'id' AND table_name <> 'leader';
INSERT INTO bodkin.service_interface (id, interface_name, created_at, updated_at)
    VALUES (1, 'HTTP-SECURE-JSON', extract(epoch FROM now())::bigint, extract(epoch FROM now())::bigint),
        (2, 'HTTP-INSECURE-JSON', extract(epoch FROM now())::bigint, extract(epoch FROM now())::bigint);
INSERT INTO bodkin.shared VALUES (1, 1, 0);
";

/// What version 2 has beside version 1: the nodes, and a name of the cloud's that no other has.
const NODES: &str = "
CREATE TABLE bodkin.node (name TEXT PRIMARY KEY, release TEXT NOT NULL, host TEXT NOT NULL, monitor_port BIGINT NOT NULL, secure BOOLEAN NOT NULL,
    started_us BIGINT NOT NULL, commit BIGINT NOT NULL, clock_ahead_us BIGINT NOT NULL, keeper BOOLEAN NOT NULL, seen_at TIMESTAMPTZ NOT NULL);
ALTER TABLE bodkin.shared ADD COLUMN cloud TEXT NOT NULL DEFAULT md5(random()::text || clock_timestamp()::text)";

/// What version 3 has beside version 2: the account of certificates, copies of the nodes' audit logs, and what a node says of the cloud's authority.
const ACCOUNTS: &str = "
CREATE TABLE bodkin.certificate_line (number BIGINT PRIMARY KEY, authority TEXT NOT NULL, serial TEXT NOT NULL, action TEXT NOT NULL, name TEXT,
    not_after BIGINT, node TEXT NOT NULL, line TEXT NOT NULL, UNIQUE (authority, serial, action));
CREATE INDEX certificate_line_name ON bodkin.certificate_line (authority, name);
CREATE TABLE bodkin.audit_line (node TEXT NOT NULL, number BIGINT NOT NULL, at_us BIGINT NOT NULL, line TEXT, hash TEXT,
    PRIMARY KEY (node, number), CHECK ((line IS NULL) <> (hash IS NULL)));
CREATE INDEX audit_line_at ON bodkin.audit_line (at_us);
ALTER TABLE bodkin.node ADD COLUMN authority TEXT NOT NULL DEFAULT '', ADD COLUMN issues BOOLEAN NOT NULL DEFAULT FALSE";

/// What is about files and connections of one node: where its deliveries are in its event log, and where its audit log ended. Found in front of what
/// is shared, by the search path.
const OWN: &str = "
CREATE TABLE delivery (subscription_id BIGINT PRIMARY KEY REFERENCES bodkin.subscription ON DELETE CASCADE, cursor BIGINT, paused BOOLEAN NOT NULL);
CREATE TABLE delivery_present (id BIGINT PRIMARY KEY CHECK (id = 1), position BIGINT NOT NULL);
CREATE TABLE dead_letter (id BIGINT PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
    subscription_id BIGINT NOT NULL REFERENCES bodkin.subscription ON DELETE CASCADE, first_position BIGINT NOT NULL,
    last_position BIGINT NOT NULL, is_range BOOLEAN NOT NULL, events BIGINT NOT NULL, attempts BIGINT NOT NULL, reason TEXT NOT NULL,
    died_at BIGINT NOT NULL);
CREATE INDEX dead_letter_subscription ON dead_letter (subscription_id, first_position);
CREATE TABLE audit_checkpoint (id BIGINT PRIMARY KEY CHECK (id = 1), number BIGINT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE audited_ledger (id BIGINT PRIMARY KEY CHECK (id = 1), bytes BIGINT NOT NULL);
";

/// What the tables of a node's own have beside those of earlier releases: a node of one of these adds its rows without it.
const LOGS: &str = "
ALTER TABLE OWN.delivery_present ADD COLUMN IF NOT EXISTS log BIGINT, ADD COLUMN IF NOT EXISTS after_record BYTEA;
ALTER TABLE OWN.delivery ADD COLUMN IF NOT EXISTS after_record BYTEA;
ALTER TABLE OWN.dead_letter ADD COLUMN IF NOT EXISTS log BIGINT;
";
