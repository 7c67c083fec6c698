//! A look at a database that is to be shared, which changes nothing: for diagnosis.

use super::{place::DatabasePlace, schema, session::Session};
use crate::identity::DatabaseId;

/// What it is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The server's version.
    pub server: String,
    /// Version of the cloud's tables; `None`: there are none yet.
    pub version: Option<i64>,
    /// The version that this Bodkin works with.
    pub version_known: i64,
    /// Whether tables can be made, as the first node does.
    pub may_make: bool,
    /// Identity of its cloud, if it has tables of a release with identities.
    pub cloud: Option<DatabaseId>,
    /// Nodes that are connected.
    pub nodes: i64,
    /// Settings under which a crash of the server may lose what was answered.
    pub unsafe_settings: Vec<String>,
    /// Whether commits wait for a standby, so that one that takes over has what was answered.
    pub awaits_standby: bool,
}

const NODES: &str = "SELECT count(DISTINCT split_part(application_name, ' ', 2)) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'bodkin % follows'";

/// Connects and looks; gives what is wrong in the server's words.
pub fn look(place: &DatabasePlace) -> Result<Look, String> {
    // A session waits on a thread that may.
    let looked = std::thread::scope(|scope| scope.spawn(|| look_waiting(place)).join());
    looked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn look_waiting(place: &DatabasePlace) -> Result<Look, String> {
    // No node: what a node keeps for itself is not looked at.
    let session = Session::connect(place, "none", "doctor").map_err(|error| error.to_string())?;
    let version = schema::version(&session).map_err(|error| error.to_string())?;
    let cloud = schema::cloud(&session).map_err(|error| error.to_string())?;
    let read = || {
        let unsafe_settings =
            session.rows("SELECT name::text FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'", ())?;
        Ok(Look {
            server: session.one("SELECT current_setting('server_version')", ())?.unwrap_or_default(),
            version,
            version_known: schema::VERSION,
            may_make: session.one("SELECT has_database_privilege(current_database(), 'CREATE')", ())? == Some(true),
            cloud,
            nodes: session.one(NODES, ())?.unwrap_or_default(),
            awaits_standby: session.one("SELECT current_setting('synchronous_standby_names') <> ''", ())? == Some(true),
            unsafe_settings: unsafe_settings.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?,
        })
    };
    read().map_err(|error: crate::DatabaseError| error.to_string())
}
