//! A copy of the database in one file, made while a Bodkin works on it or not, and put back in the place of what is there.
//!
//! The copy is a database that is whole in itself. It has everything that management rules over; the event log, the audit log and the trust directory are
//! files of their own. Putting it back goes the way of a node of a pair that is sent its leader's database: it is loaded first, then comes in one
//! transaction, and what the database keeps for this node alone (where the audit log ended) stays.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use crate::{
    OpenError,
    database::DatabaseError,
    identity::{self, DatabaseId, IdentityError},
    inspection::{self, InspectionError},
    open::{self, DATABASE_FILE},
    replica::{Replica, ReplicaError},
};

/// Who has the copy has the registry: only its owner reads it.
const OWN_RIGHTS: u32 = 0o600;
/// How long a lock of the database's is waited for; commits take none that is in the way.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Bytes of a piece that is put back at once.
const PART_BYTES: usize = 1 << 20;
/// A table that every Bodkin's database has.
const OWN_TABLE: &str = "service_registry";

/// What a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafetyCopy {
    /// Its size.
    pub bytes: u64,
    /// The version of its tables.
    pub schema: u32,
}

/// What the database has that was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The version of the tables that the copy had; they are brought up to date.
    pub schema: u32,
    /// Registered systems.
    pub systems: usize,
    /// Service Registry entries.
    pub services: usize,
    /// What was there before.
    pub before: Before,
    /// Where the events are that were discarded.
    pub discarded: Option<PathBuf>,
}

/// What becomes of the events in a directory that a database is put back into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// They stay; a copy of another database is refused.
    Keep,
    /// They are moved aside, so that a copy of another database can be put back.
    Discard,
}

/// What was in the place of a database that was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// No database.
    Nothing,
    /// One that was damaged: it lies beside now, as `bodkin.sqlite.damaged`.
    Damaged,
    /// One that was whole, with so many systems and services.
    Replaced {
        /// Registered systems.
        systems: usize,
        /// Service Registry entries.
        services: usize,
        /// A copy of it, beside the database.
        kept: PathBuf,
    },
}

/// Why there is no copy, or it was not put back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SafetyCopyError {
    /// Nothing to copy.
    #[error("there is no database in {0}: name the data directory of the local cloud (--data)")]
    NoDatabase(PathBuf),
    /// Nothing is overwritten.
    #[error("{0} is there already: name a file that is not, or move that one away")]
    Exists(PathBuf),
    /// Nothing is made that was not asked for.
    #[error("there is no folder {0} that the copy could be made in: make it, or name a file elsewhere")]
    NoFolder(PathBuf),
    /// A file cannot be read or written.
    #[error("{path} cannot be used: {error}")]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The database cannot be copied.
    #[error("the database cannot be copied: {0}. bodkin doctor looks whether it is whole")]
    Database(#[from] DatabaseError),
    /// What was copied is not whole.
    #[error("the database is damaged, and so is the copy, which was removed: {0}. Restore the database from an older one")]
    Damaged(String),
    /// The file is none of ours, or not whole.
    #[error("{path} is no copy of a Bodkin's database that can be used: {why}. Name a file that bodkin db backup has made")]
    NoCopy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newer Bodkin has made it.
    #[error("{path} has tables of version {found}, and this Bodkin knows {known}: restore it with the Bodkin that made it, or a newer one")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// The copy and the events are not of one database.
    #[error(
        "{path} is a copy of database {found}, and {directory} belongs to database {expected}: its event log and audit log speak of other systems. \
        Name a copy of database {expected}, or another data directory (--data); --discard-events moves the events of {directory} aside and takes the copy"
    )]
    OtherDatabase {
        /// The copy.
        path: PathBuf,
        /// Which database it is of.
        found: DatabaseId,
        /// The data directory.
        directory: PathBuf,
        /// Which database that belongs to.
        expected: DatabaseId,
    },
    /// The parts of the data directory do not say which database they belong to.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The data directory cannot be used, or a Bodkin uses it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not be taken over.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
}

impl From<rusqlite::Error> for SafetyCopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Copies the database in `directory` into `file`, which must not be there. A Bodkin that works on it goes on.
pub fn make(directory: &Path, file: &Path) -> Result<SafetyCopy, SafetyCopyError> {
    let database = directory.join(DATABASE_FILE);
    if !exists(&database)? {
        return Err(SafetyCopyError::NoDatabase(directory.to_owned()));
    }
    if exists(file)? {
        return Err(SafetyCopyError::Exists(file.to_owned()));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(SafetyCopyError::NoFolder(folder.to_owned()));
    }
    // Beside the file until it is whole, and then under its name.
    let part = with_suffix(file, ".part");
    let made = make_part(directory, &database, &part, file).and_then(|copy| {
        fs::rename(&part, file).map_err(in_file(file))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(in_file(folder))?;
        Ok(copy)
    });
    if made.is_err() {
        // What cannot be removed was not made.
        let _ = fs::remove_file(&part);
    }
    made
}

/// Makes the part; what is wrong with it is told of the file that was asked for.
fn make_part(directory: &Path, database: &Path, part: &Path, file: &Path) -> Result<SafetyCopy, SafetyCopyError> {
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(OWN_RIGHTS).open(part).map_err(in_file(file))?;
    let (from, lock) = source(directory, database)?;
    copy(&from, part)?;
    drop(lock);
    made.sync_all().map_err(in_file(file))?;
    let (faults, schema) = look_at(part).map_err(|error| SafetyCopyError::Damaged(error.to_string()))?;
    match faults.into_iter().next() {
        Some(fault) => Err(SafetyCopyError::Damaged(fault)),
        None => Ok(SafetyCopy { bytes: made.metadata().map_err(in_file(file))?.len(), schema }),
    }
}

/// The database to be read as a Bodkin leaves it that works on it, or as it lies there if none does; with what keeps one from beginning meanwhile.
fn source(directory: &Path, database: &Path) -> Result<(Connection, Option<File>), SafetyCopyError> {
    let lock = open::take(directory);
    let connection = match &lock {
        Err(OpenError::InUse { .. }) => Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        // Who may read it, and not write beside it, may copy it.
        _ => inspection::open(database).map_err(|error| match error {
            InspectionError::File(error) => in_file(database)(error),
            InspectionError::Database(error) => error.into(),
        })?,
    };
    connection.busy_timeout(WAIT_MAX)?;
    Ok((connection, lock.ok()))
}

/// All at once, so that it is of one instant: writers of the write-ahead log wait for nobody meanwhile.
fn copy(from: &Connection, to: &Path) -> Result<(), SafetyCopyError> {
    let mut copy = Connection::open(to)?;
    match Backup::new(from, &mut copy)?.step(-1)? {
        StepResult::Done => Ok(()),
        other => Err(SafetyCopyError::Damaged(format!("another process holds it ({other:?}) for more than {} s", WAIT_MAX.as_secs()))),
    }
}

/// Puts the copy in `file` in the place of the database in `directory`, which no Bodkin may use. A database there is kept: a whole one is copied beside, as
/// `bodkin.sqlite.replaced` or with a number behind that, a damaged one is moved away.
///
/// Ids that were given since the copy was made are not given again, where the database that is replaced still says which.
///
/// # Errors
/// Returns an error if the copy is of another database than the events and the audit log, and `events` are to be kept.
pub fn put_back(directory: &Path, file: &Path, events: Events) -> Result<PutBack, SafetyCopyError> {
    let schema = judge(file)?;
    let (found, expected) = (identity_of(file)?, own_identity(directory)?);
    if let (Some(found), Some(expected), Events::Keep) = (&found, &expected, events)
        && found != expected
    {
        let (path, directory) = (file.to_owned(), directory.to_owned());
        return Err(SafetyCopyError::OtherDatabase { path, found: found.clone(), directory, expected: expected.clone() });
    }
    let is_there = exists(&directory.join(DATABASE_FILE))?;
    let (mut replica, before) = match Replica::open(directory) {
        Ok(replica) if is_there => {
            let before = keep(directory, &replica)?;
            (replica, before)
        }
        Ok(replica) => (replica, Before::Nothing),
        Err(OpenError::Damaged { .. }) => {
            move_away(directory)?;
            (Replica::open(directory)?, Before::Damaged)
        }
        Err(error) => return Err(error.into()),
    };
    // A copy of another database is not taken over beside its events.
    let discarded = if events == Events::Discard { identity::discard_events(directory)? } else { None };
    replica.begin_copy()?;
    let (mut from, mut part) = (File::open(file).map_err(in_file(file))?, vec![0; PART_BYTES]);
    loop {
        match from.read(&mut part).map_err(in_file(file))? {
            0 => break,
            bytes => replica.part(&part[..bytes])?,
        }
    }
    // It says nothing of what this node has had of another one.
    replica.end_copy(None)?;
    let (systems, services) = {
        let snapshot = replica.published().load();
        (snapshot.systems().len(), snapshot.entries().len())
    };
    let _lock = replica.lock().map_err(in_file(directory))?;
    let connection = replica.into_connection();
    // A copy of an earlier release names no database: it becomes the one that the events belong to.
    if let (None, Some(expected)) = (&found, &expected) {
        connection.execute("INSERT OR REPLACE INTO identity (id, database) VALUES (1, ?1)", [expected.to_string()])?;
    }
    if let Before::Replaced { kept, .. } = &before
        && found.is_none_or(|found| Some(found) == expected)
    {
        keep_counters(&connection, kept)?;
    }
    Ok(PutBack { schema, systems, services, before, discarded })
}

/// Moves the events in `directory`, which no Bodkin may use, aside: they belong to another database. Returns where they are, if there were any.
///
/// # Errors
/// Returns an error if the directory is in use, or a file cannot be moved.
pub fn discard_events(directory: &Path) -> Result<Option<PathBuf>, SafetyCopyError> {
    let _lock = open::take(directory)?;
    Ok(identity::discard_events(directory)?)
}

/// The database that a directory belongs to: by its event log and audit log, or by the database in it.
fn own_identity(directory: &Path) -> Result<Option<DatabaseId>, SafetyCopyError> {
    if let Some(id) = identity::database_of_parts(directory)? {
        return Ok(Some(id));
    }
    let database = directory.join(DATABASE_FILE);
    // One that is damaged says nothing.
    Ok(if exists(&database)? { identity_of(&database).unwrap_or_default() } else { None })
}

/// The identity of a database in a file; `None` if it has none, as those of earlier releases.
fn identity_of(file: &Path) -> Result<Option<DatabaseId>, SafetyCopyError> {
    let no_copy = |why: String| SafetyCopyError::NoCopy { path: file.to_owned(), why };
    let connection = inspection::open(file).map_err(|error| no_copy(error.to_string()))?;
    if !inspection::has_table(&connection, "identity")? {
        return Ok(None);
    }
    Ok(identity::of_database(&connection)?)
}

/// Has ids go on behind those of another database of the same cloud: events in the log name systems by them.
fn keep_counters(connection: &Connection, other: &Path) -> rusqlite::Result<()> {
    connection.execute("ATTACH ?1 AS other", [&*other.to_string_lossy()])?;
    let raised = connection.execute_batch(
        "UPDATE main.sqlite_sequence SET seq = max(seq, coalesce((SELECT seq FROM other.sqlite_sequence AS o WHERE o.name = sqlite_sequence.name), 0));
        INSERT INTO main.sqlite_sequence (name, seq) SELECT name, seq FROM other.sqlite_sequence
            WHERE name NOT IN (SELECT name FROM main.sqlite_sequence);",
    );
    connection.execute_batch("DETACH other")?;
    raised
}

/// Copies what is about to be replaced, under the first name that is free: nothing that was kept before is overwritten.
fn keep(directory: &Path, replica: &Replica) -> Result<Before, SafetyCopyError> {
    let database = directory.join(DATABASE_FILE);
    let name = |number: u32| if number == 1 { ".replaced".to_owned() } else { format!(".replaced-{number}") };
    let mut number = 1;
    while exists(&with_suffix(&database, &name(number)))? {
        number += 1;
    }
    let kept = with_suffix(&database, &name(number));
    make(directory, &kept)?;
    let snapshot = replica.published().load();
    Ok(Before::Replaced { systems: snapshot.systems().len(), services: snapshot.entries().len(), kept })
}

/// Gives the version of the tables of a copy that can be used.
fn judge(file: &Path) -> Result<u32, SafetyCopyError> {
    let no_copy = |why: String| SafetyCopyError::NoCopy { path: file.to_owned(), why };
    File::open(file).map_err(in_file(file))?;
    if fs::metadata(with_suffix(file, "-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(no_copy("it has a write-ahead log beside it, as a database that is in use".to_owned()));
    }
    let (faults, schema) = look_at(file).map_err(|error| no_copy(error.to_string()))?;
    if let Some(fault) = faults.first() {
        return Err(no_copy(format!("it is damaged: {fault}")));
    }
    let known = crate::schema::newest();
    if schema > known {
        return Err(SafetyCopyError::Newer { path: file.to_owned(), found: schema, known });
    }
    let is_ours = inspection::open(file).and_then(|connection| Ok(inspection::has_table(&connection, OWN_TABLE)?));
    match is_ours.map_err(|error| no_copy(error.to_string()))? {
        true => Ok(schema),
        false => Err(no_copy("it has other tables".to_owned())),
    }
}

/// What a database of one file is like.
fn look_at(file: &Path) -> Result<(Vec<String>, u32), InspectionError> {
    let connection = inspection::open(file)?;
    Ok((inspection::faults(&connection)?, inspection::schema(&connection)?))
}

/// A damaged database keeps its log beside it, and makes way.
fn move_away(directory: &Path) -> Result<(), SafetyCopyError> {
    let _lock = open::take(directory)?;
    let database = directory.join(DATABASE_FILE);
    let away = with_suffix(&database, ".damaged");
    // The log first: without its database it belongs to nothing, and must not come to belong to the next one.
    for suffix in ["-wal", "-shm", ""] {
        let from = with_suffix(&database, suffix);
        if exists(&from)? {
            fs::rename(&from, with_suffix(&away, suffix)).map_err(in_file(&from))?;
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn exists(path: &Path) -> Result<bool, SafetyCopyError> {
    path.try_exists().map_err(in_file(path))
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> SafetyCopyError + '_ {
    move |error| SafetyCopyError::File { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use tempfile::TempDir;

    use super::*;
    use crate::Store;

    /// A data directory whose database has a registered system of this name, and is closed.
    fn directory(name: &str) -> TempDir {
        let place = TempDir::new().unwrap();
        Store::open(place.path()).unwrap().close();
        let connection = Connection::open(place.path().join(DATABASE_FILE)).unwrap();
        let insert = "INSERT INTO system_ (system_name, address, port, created_at, updated_at) VALUES (?1, '127.0.0.1', 1, 0, 0)";
        connection.execute(insert, [name]).unwrap();
        place
    }

    fn systems(directory: &Path) -> Vec<String> {
        let opened = Store::open(directory).unwrap();
        let names = opened.store.snapshot().systems().map(|system| system.system_name.to_string()).collect();
        opened.close();
        names
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn a_copy_is_put_back_in_the_place_of_what_is_there() {
        let (one, other, copies) = (directory("one"), directory("other"), TempDir::new().unwrap());
        let file = copies.path().join("copy");
        let copy = make(one.path(), &file).unwrap();
        assert_eq!((copy.schema, copy.bytes), (crate::schema::newest(), fs::metadata(&file).unwrap().len()));
        assert_eq!((names(copies.path()), fs::metadata(&file).unwrap().mode() & 0o777), (vec!["copy".to_owned()], 0o600));
        let back = put_back(other.path(), &file, Events::Keep).unwrap();
        let replaced = other.path().join("bodkin.sqlite.replaced");
        assert_eq!((back.systems, &back.before), (1, &Before::Replaced { systems: 1, services: 0, kept: replaced.clone() }));
        assert_eq!(systems(other.path()), ["one"]);
        let again = put_back(other.path(), &replaced, Events::Keep).unwrap();
        assert_eq!(systems(other.path()), ["other"], "who has restored the wrong copy goes back");
        assert!(matches!(again.before, Before::Replaced { kept, .. } if kept.ends_with("bodkin.sqlite.replaced-2")));
        let new = copies.path().join("new/directory");
        assert_eq!(put_back(&new, &file, Events::Keep).unwrap().before, Before::Nothing);
        assert_eq!(systems(&new), ["one"], "a directory that is not there is made");
    }

    /// Has the database in a directory be this one, with an event log.
    fn identify(directory: &Path, id: &DatabaseId) {
        let connection = Connection::open(directory.join(DATABASE_FILE)).unwrap();
        connection.execute("INSERT INTO identity (id, database) VALUES (1, ?1)", [id.to_string()]).unwrap();
        fs::create_dir(directory.join("events")).unwrap();
        identity::bind_parts(directory, id).unwrap();
    }

    #[test]
    fn copy_of_another_database_is_refused_with_both_identities() {
        let (one, other, copies) = (directory("one"), directory("other"), TempDir::new().unwrap());
        let ids = [DatabaseId::draw().unwrap(), DatabaseId::draw().unwrap()];
        identify(one.path(), &ids[0]);
        identify(other.path(), &ids[1]);
        let file = copies.path().join("copy");
        make(one.path(), &file).unwrap();
        let told = put_back(other.path(), &file, Events::Keep).unwrap_err().to_string();
        assert!(ids.iter().all(|id| told.contains(&id.to_string())) && told.contains("--discard-events"), "{told}");
        assert_eq!(systems(other.path()), ["other"], "nothing was changed");
        // Also where the database is gone.
        fs::remove_file(other.path().join(DATABASE_FILE)).unwrap();
        assert!(matches!(put_back(other.path(), &file, Events::Keep), Err(SafetyCopyError::OtherDatabase { .. })));
        let back = put_back(other.path(), &file, Events::Discard).unwrap();
        assert_eq!(back.discarded, Some(other.path().join("events.discarded")));
        identity::bind_parts(other.path(), &ids[0]).unwrap();
    }

    /// A standby whose host served another cloud before.
    #[test]
    fn leaders_copy_is_refused_beside_foreign_events() {
        let (leader, standby, copies) = (directory("leader"), directory("standby"), TempDir::new().unwrap());
        let ids = [DatabaseId::draw().unwrap(), DatabaseId::draw().unwrap()];
        identify(leader.path(), &ids[0]);
        identify(standby.path(), &ids[1]);
        let file = copies.path().join("copy");
        make(leader.path(), &file).unwrap();
        let received = || {
            let mut replica = Replica::open(standby.path()).unwrap();
            replica.begin_copy().unwrap();
            replica.part(&fs::read(&file).unwrap()).unwrap();
            replica.end_copy(None)
        };
        let told = received().unwrap_err().to_string();
        assert!(ids.iter().all(|id| told.contains(&id.to_string())) && told.contains("discard-events"), "{told}");
        assert_eq!(systems(standby.path()), ["standby"], "nothing was changed");
        discard_events(standby.path()).unwrap();
        received().unwrap();
        assert_eq!(systems(standby.path()), ["leader"]);
    }

    #[test]
    fn restored_database_gives_no_id_again() {
        let (place, copies) = (directory("one"), TempDir::new().unwrap());
        identify(place.path(), &DatabaseId::draw().unwrap());
        let file = copies.path().join("copy");
        make(place.path(), &file).unwrap();
        let insert = "INSERT INTO system_ (system_name, address, port, created_at, updated_at) VALUES (?1, '127.0.0.1', ?2, 0, 0)";
        let add = |name: &str, port: u16| {
            let connection = Connection::open(place.path().join(DATABASE_FILE)).unwrap();
            connection.execute(insert, (name, port)).unwrap();
            connection.last_insert_rowid()
        };
        let later = add("later", 2);
        put_back(place.path(), &file, Events::Keep).unwrap();
        assert_eq!(systems(place.path()), ["one"]);
        assert!(add("other", 3) > later, "events in the log name {later}");
    }

    #[test]
    fn a_database_in_use_is_copied_and_not_replaced() {
        let (place, copies) = (directory("one"), TempDir::new().unwrap());
        let file = copies.path().join("copy");
        let opened = Store::open(place.path()).unwrap();
        make(place.path(), &file).unwrap();
        assert!(matches!(put_back(place.path(), &file, Events::Keep), Err(SafetyCopyError::Open(OpenError::InUse { .. }))));
        opened.close();
        assert_eq!(put_back(place.path(), &file, Events::Keep).unwrap().systems, 1);
    }

    #[test]
    fn a_damaged_database_makes_way() {
        let (place, copies) = (directory("one"), TempDir::new().unwrap());
        let file = copies.path().join("copy");
        make(place.path(), &file).unwrap();
        fs::write(place.path().join(DATABASE_FILE), b"no database at all, but long enough to be looked at".repeat(100)).unwrap();
        assert_eq!(put_back(place.path(), &file, Events::Keep).unwrap().before, Before::Damaged);
        assert_eq!(systems(place.path()), ["one"]);
        assert!(names(place.path()).contains(&"bodkin.sqlite.damaged".to_owned()));
    }

    #[test]
    fn what_is_no_copy_of_ours_changes_nothing() {
        let (place, copies) = (directory("one"), TempDir::new().unwrap());
        let path = |name: &str| copies.path().join(name);
        make(place.path(), &path("good")).unwrap();
        assert!(matches!(make(place.path(), &path("good")), Err(SafetyCopyError::Exists(_))));
        assert!(matches!(make(copies.path(), &path("none")), Err(SafetyCopyError::NoDatabase(_))));
        assert!(matches!(make(place.path(), &path("none/copy")), Err(SafetyCopyError::NoFolder(folder)) if folder == path("none")));
        fs::create_dir(path("taken.part")).unwrap();
        let told = make(place.path(), &path("taken")).unwrap_err().to_string();
        assert!(told.contains("taken cannot be used") && !told.contains(".part"), "{told}");
        fs::write(path("text"), "a text").unwrap();
        Connection::open(path("foreign")).unwrap().execute_batch("CREATE TABLE other (a)").unwrap();
        fs::write(path("empty"), "").unwrap();
        fs::copy(path("good"), path("newer")).unwrap();
        Connection::open(path("newer")).unwrap().pragma_update(None, "user_version", crate::schema::newest() + 1).unwrap();
        fs::copy(path("good"), path("used")).unwrap();
        fs::write(path("used-wal"), "something").unwrap();
        let mut bytes = fs::read(path("good")).unwrap();
        bytes[4096..].fill(0xAA);
        fs::write(path("damaged"), bytes).unwrap();
        for name in ["text", "foreign", "empty", "used", "damaged"] {
            let refused = put_back(place.path(), &path(name), Events::Keep);
            assert!(matches!(refused, Err(SafetyCopyError::NoCopy { .. })), "{name}: {refused:?}");
        }
        assert!(matches!(put_back(place.path(), &path("newer"), Events::Keep), Err(SafetyCopyError::Newer { .. })));
        assert!(matches!(put_back(place.path(), &path("missing"), Events::Keep), Err(SafetyCopyError::File { .. })));
        assert_eq!(systems(place.path()), ["one"]);
    }
}
