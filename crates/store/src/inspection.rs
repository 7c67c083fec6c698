//! A look at a database from outside, which changes nothing: for diagnosis, while a Bodkin works on it or not.

use std::{fs, io, path::Path};

use rusqlite::{Connection, OpenFlags};

use crate::{
    database::DatabaseError,
    identity::{self, DatabaseId},
    open::DATABASE_FILE,
    schema as tables,
};

/// Faults that are told; one is enough to know.
const FAULTS_MAX: usize = 10;

/// What a database is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What SQLite's quick check finds wrong; empty when it is whole.
    pub faults: Vec<String>,
    /// Version of its tables.
    pub schema: u32,
    /// The newest version of tables that this Bodkin works with.
    pub schema_known: u32,
    /// Bytes of the database file.
    pub bytes: u64,
}

/// Why a database cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// The system's words.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The database's words.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<rusqlite::Error> for InspectionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Looks at the database in `directory`; `None` if there is none.
pub fn inspect(directory: &Path) -> Result<Option<Inspection>, InspectionError> {
    let Some(connection) = open_in(directory)? else { return Ok(None) };
    let (faults, schema) = (faults(&connection)?, schema(&connection)?);
    Ok(Some(Inspection { faults, schema, schema_known: tables::newest(), bytes: fs::metadata(directory.join(DATABASE_FILE))?.len() }))
}

/// The relays that the database in `directory` has, `HOST:PORT` each; none where it has no such table yet.
pub fn relays(directory: &Path) -> Result<Vec<String>, InspectionError> {
    let Some(connection) = open_in(directory)? else { return Ok(Vec::new()) };
    if !has_table(&connection, "relay")? {
        return Ok(Vec::new());
    }
    let mut query = connection.prepare("SELECT address, port FROM relay ORDER BY id")?;
    let place = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, u16>(1)?));
    let places = query.query_map([], place)?.collect::<Result<Vec<_>, _>>()?;
    // An IPv6 address is told from its port by brackets.
    let told =
        |(address, port): (String, u16)| if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
    Ok(places.into_iter().map(told).collect())
}

/// In which mode the database in `directory` is used, `true` for the secure one; `None` where it does not say so yet.
///
/// # Errors
/// The database cannot be read.
pub fn was_secure(directory: &Path) -> Result<Option<bool>, InspectionError> {
    let Some(connection) = open_in(directory)? else { return Ok(None) };
    if !has_table(&connection, "cloud")? {
        return Ok(None);
    }
    let mut query = connection.prepare("SELECT secure FROM cloud WHERE own_cloud")?;
    let modes = query.query_map([], |row| row.get::<_, bool>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(modes.first().copied())
}

/// The identity of the database in `directory`; `None` where it has none yet.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn database_id(directory: &Path) -> Result<Option<DatabaseId>, InspectionError> {
    let Some(connection) = open_in(directory)? else { return Ok(None) };
    if !has_table(&connection, "identity")? {
        return Ok(None);
    }
    Ok(identity::of_database(&connection)?)
}

/// Whether there is a table of this name.
pub(crate) fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    connection.query_row(count, [name], |row| Ok(row.get::<_, i64>(0)? > 0))
}

/// What SQLite's quick check finds wrong.
pub(crate) fn faults(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// The version of a database's tables.
pub(crate) fn schema(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Opens the database in `directory` to be read; `None` if there is none.
pub(crate) fn open_in(directory: &Path) -> Result<Option<Connection>, InspectionError> {
    let file = directory.join(DATABASE_FILE);
    if file.try_exists()? { Ok(Some(open(&file)?)) } else { Ok(None) }
}

/// Without a write-ahead log nobody has the database open and nothing is left to recover: it is read as it is, and SQLite
/// makes no files beside it.
pub(crate) fn open(file: &Path) -> Result<Connection, InspectionError> {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    if Path::new(&log).try_exists()? {
        return Ok(Connection::open_with_flags(file, flags - OpenFlags::SQLITE_OPEN_URI)?);
    }
    let path = file.canonicalize()?;
    let uri = format!("file:{}?immutable=1", path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23"));
    Ok(Connection::open_with_flags(uri, flags)?)
}

#[cfg(test)]
mod tests {
    use crate::Store;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_database_is_looked_at_whether_it_is_open_or_not() {
        let place = tempfile::Builder::new().prefix("a%20?#b").tempdir().unwrap();
        assert_eq!(inspect(place.path()).unwrap(), None);
        let opened = Store::open(place.path()).unwrap();
        let whole = inspect(place.path()).unwrap().unwrap();
        assert_eq!((whole.faults.as_slice(), whole.schema), ([].as_slice(), whole.schema_known));
        opened.close();
        let before = names(place.path());
        assert_eq!(inspect(place.path()).unwrap().unwrap().schema, whole.schema);
        assert_eq!(names(place.path()), before);
    }

    #[test]
    fn a_damaged_database_is_told() {
        let place = tempfile::TempDir::new().unwrap();
        Store::open(place.path()).unwrap().close();
        let file = place.path().join(DATABASE_FILE);
        let mut bytes = fs::read(&file).unwrap();
        let length = bytes.len();
        bytes[4096..length].fill(0xAA);
        fs::write(&file, bytes).unwrap();
        assert!(inspect(place.path()).map_or(true, |found| !found.unwrap().faults.is_empty()));
        fs::write(&file, b"no database").unwrap();
        assert!(inspect(place.path()).is_err());
    }
}
