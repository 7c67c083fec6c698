//! Identity: what tells a data directory, a start of it, and a database from their copies (`docs/design/identity.md`).
//!
//! | identity | drawn | kept in |
//! |---|---|---|
//! | [`DatabaseId`] | once for a database | the database, its backups, and a note beside each part that belongs to it |
//! | [`Lineage`] | once for a data directory | `identity` in the directory |
//! | [`Incarnation`] | at each start | `identity` in the directory, with those of the starts before |
//!
//! Copies share the lineage, and know only the incarnations up to the time of the copy. So a peer that remembers the last
//! incarnation that it met can tell a restart from a copy or a restored backup ([`DirectoryIdentity::descends_from`]).

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use rusqlite::{Connection, OptionalExtension};

use crate::{
    database::params,
    draft::{Draft, OperationError},
};

/// The table has at most one row.
pub(crate) const MIGRATION: &str = "
CREATE TABLE identity (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    database TEXT NOT NULL
) STRICT;
";

/// File of a data directory with its lineage and incarnations.
const FILE: &str = "identity";
/// First line of that file.
const FORM: &str = "bodkin identity 1";
/// Starts that a directory remembers, the newest ones. A peer that has not met the directory for so many starts takes it for a copy.
pub const STARTS_MAX: usize = 1024;
/// Bytes of the file that are read: its lines have 17 each.
const FILE_BYTES_MAX: u64 = 32 * 1024;
/// Parts of a data directory that mean something only beside their database.
const PARTS: [(&str, &str); 2] = [("events", "event log"), ("audit", "audit log")];
/// File of a part that names its database.
const PART_FILE: &str = "database";
/// Where events are moved that are not wanted any more.
const DISCARDED: &str = "events.discarded";

macro_rules! drawn_number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(to, "{:016x}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdentity;

            fn from_str(text: &str) -> Result<Self, InvalidIdentity> {
                let is_number = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                is_number.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Self).ok_or(InvalidIdentity)
            }
        }
    };
}

drawn_number! {
    /// Identity of a data directory: drawn once, and shared by its copies.
    Lineage
}

drawn_number! {
    /// Identity of one start of a data directory.
    Incarnation
}

/// A text that is no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an identity is 16 digits and letters from a to f")]
pub struct InvalidIdentity;

/// Which data directory this process works on, and which start of the directory it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryIdentity {
    /// The directory.
    pub lineage: Lineage,
    /// This start.
    pub incarnation: Incarnation,
    /// Starts before this one, oldest first.
    earlier: Vec<Incarnation>,
}

impl DirectoryIdentity {
    /// Begins a new incarnation of a directory, which the caller has locked; one without an identity gets a lineage.
    ///
    /// Blocks until the incarnation is on the disk. A disk that does not take it, as a full one, leaves the last incarnation in
    /// force: its process has ended, because the directory is locked.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, holds no identity, or cannot be made.
    pub fn begin(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE);
        let Some(before) = read(&path)? else {
            let new = Self { lineage: Lineage(draw()?), incarnation: Incarnation(draw()?), earlier: Vec::new() };
            replace(&path, &new.text())?;
            return Ok(new);
        };
        let begun = before.clone().next(Incarnation(draw()?));
        match replace(&path, &begun.text()) {
            Ok(()) => Ok(begun),
            Err(error) => {
                tracing::warn!(%error, file = %path.display(), incarnation = %before.incarnation, "no new incarnation is noted: the last one stays in force");
                Ok(before)
            }
        }
    }

    fn next(self, incarnation: Incarnation) -> Self {
        let Self { lineage, incarnation: last, mut earlier } = self;
        earlier.push(last);
        let excess = (earlier.len() + 1).saturating_sub(STARTS_MAX);
        earlier.drain(..excess);
        Self { lineage, incarnation, earlier }
    }

    /// Returns true if `incarnation` is an earlier start of this directory, up to the time at which this one was copied.
    pub fn descends_from(&self, incarnation: Incarnation) -> bool {
        self.earlier.contains(&incarnation)
    }

    fn text(&self) -> String {
        let starts = self.earlier.iter().chain([&self.incarnation]);
        let lines: String = starts.map(|incarnation| format!("{incarnation}\n")).collect();
        format!("{FORM}\n{}\n{lines}", self.lineage)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next() != Some(FORM) {
            return None;
        }
        let lineage = lines.next()?.parse().ok()?;
        let mut earlier = lines.map(str::parse).collect::<Result<Vec<Incarnation>, _>>().ok()?;
        let incarnation = earlier.pop()?;
        Some(Self { lineage, incarnation, earlier })
    }
}

fn read(path: &Path) -> io::Result<Option<DirectoryIdentity>> {
    let damaged = || {
        let told = format!(
            "{} holds no identity of a data directory: restore it from the directory's backup, or remove it, and peers take the directory for a new one",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, told)
    };
    match fs::metadata(path) {
        Ok(file) if file.len() > FILE_BYTES_MAX => Err(damaged()),
        Ok(_) => DirectoryIdentity::parse(&fs::read_to_string(path)?).map(Some).ok_or_else(damaged),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A random number that is not 0.
fn draw() -> io::Result<u64> {
    let mut bytes = [0; 8];
    loop {
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
        match u64::from_le_bytes(bytes) {
            0 => {}
            drawn => return Ok(drawn),
        }
    }
}

/// Writes a file in the place of the one before; a kill leaves either.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = File::create(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    File::open(path.parent().expect("a file is in a directory"))?.sync_all()
}

/// Identity of a database: 32 hexadecimal digits, drawn once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseId(String);

impl DatabaseId {
    /// Draws one.
    ///
    /// # Errors
    /// Returns an error if the system gives no random bytes.
    pub fn draw() -> io::Result<Self> {
        Ok(Self(format!("{:016x}{:016x}", draw()?, draw()?)))
    }
}

impl DatabaseId {
    /// The first half, as a number.
    pub fn half(&self) -> u64 {
        u64::from_str_radix(&self.0[..16], 16).expect("it is hexadecimal digits")
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl FromStr for DatabaseId {
    type Err = InvalidIdentity;

    fn from_str(text: &str) -> Result<Self, InvalidIdentity> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_id { Ok(Self(text.to_owned())) } else { Err(InvalidIdentity) }
    }
}

impl Draft<'_> {
    /// The identity of the database; `drawn` becomes that of one that has none yet.
    pub fn database_id(&mut self, drawn: &DatabaseId) -> Result<DatabaseId, OperationError> {
        let found = self.row("SELECT database FROM identity", (), |row| row.get::<String>(0))?;
        if let Some(Ok(id)) = found.map(|id| id.parse()) {
            return Ok(id);
        }
        self.run("INSERT OR REPLACE INTO identity (id, database) VALUES (1, ?1)", params![&*drawn.0])?;
        Ok(drawn.clone())
    }
}

/// Why a data directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A part belongs to another database.
    #[error(
        "the {part} in {directory} belongs to database {found}, and the database here is {expected}, in which ids name other systems: \
        restore the database that belongs to it (bodkin db restore), name the other data directory (--data) or shared database (--database, BODKIN_DATABASE), \
        or move the events aside (bodkin db discard-events)"
    )]
    OtherDatabase {
        /// The part, in words.
        part: &'static str,
        /// The data directory.
        directory: PathBuf,
        /// The database that the part belongs to.
        found: DatabaseId,
        /// The database of the directory.
        expected: DatabaseId,
    },
    /// A part belongs to a database, and the directory has none.
    #[error(
        "the {part} in {directory} belongs to database {found}, and the directory has no database: restore a copy (bodkin db restore), \
        name the other data directory (--data) or shared database (--database, BODKIN_DATABASE), or move the events aside (bodkin db discard-events)"
    )]
    MissingDatabase {
        /// The part, in words.
        part: &'static str,
        /// The data directory.
        directory: PathBuf,
        /// The database that the part belongs to.
        found: DatabaseId,
    },
    /// A part belongs to another database than the shared one that was named.
    #[error(
        "the {part} in {directory} belongs to database {found}, and --database (BODKIN_DATABASE) names {named}: name the database of this directory, \
        another data directory (--data), or move the events aside (bodkin db discard-events)"
    )]
    OtherShared {
        /// The part, in words.
        part: &'static str,
        /// The data directory.
        directory: PathBuf,
        /// The database that the part belongs to.
        found: DatabaseId,
        /// The shared database, in words.
        named: String,
    },
    /// A file cannot be read or written.
    #[error("{path} cannot be used: {error}")]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> IdentityError + '_ {
    move |error| IdentityError::File { path: path.to_owned(), error }
}

/// Returns the database that a part of a directory belongs to; `None` if no part names one.
///
/// # Errors
/// Returns an error if a file cannot be read, or names no database.
pub fn database_of_parts(directory: &Path) -> Result<Option<DatabaseId>, IdentityError> {
    Ok(bound_part(directory)?.map(|(_, database)| database))
}

/// Returns the first part of a directory that names a database, in words, and its database.
///
/// # Errors
/// Returns an error if a file cannot be read, or names no database.
pub(crate) fn bound_part(directory: &Path) -> Result<Option<(&'static str, DatabaseId)>, IdentityError> {
    for (name, part) in PARTS {
        if let Some(database) = database_of(&directory.join(name).join(PART_FILE))? {
            return Ok(Some((part, database)));
        }
    }
    Ok(None)
}

fn database_of(path: &Path) -> Result<Option<DatabaseId>, IdentityError> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let invalid = |error: InvalidIdentity| in_file(path)(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
            text.trim_end().parse().map(Some).map_err(invalid)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(in_file(path)(error)),
    }
}

/// The identity of a SQLite database; `None` if none was drawn yet.
///
/// # Errors
/// Returns the database's error. An identity that is none counts as missing.
pub(crate) fn of_database(connection: &Connection) -> rusqlite::Result<Option<DatabaseId>> {
    let found = connection.query_row("SELECT database FROM identity", [], |row| row.get::<_, String>(0)).optional()?;
    Ok(found.and_then(|id| id.parse().ok()))
}

/// Looks whether every part of a directory that names a database names this one.
///
/// # Errors
/// Returns an error if a part belongs to another database.
pub fn check_parts(directory: &Path, database: &DatabaseId) -> Result<(), IdentityError> {
    unbound_parts(directory, database).map(drop)
}

/// Notes beside each part of a directory that it belongs to this database. A disk that does not take the note is tried again at the next start.
///
/// # Errors
/// Returns an error if a part belongs to another database; then nothing is noted.
pub fn bind_parts(directory: &Path, database: &DatabaseId) -> Result<(), IdentityError> {
    for path in unbound_parts(directory, database)? {
        if let Err(error) = replace(&path, &format!("{database}\n")) {
            tracing::warn!(%error, file = %path.display(), "the database that a part of the data directory belongs to is not noted");
        }
    }
    Ok(())
}

/// The files of parts that are there and name no database.
fn unbound_parts(directory: &Path, database: &DatabaseId) -> Result<Vec<PathBuf>, IdentityError> {
    let mut unbound = Vec::new();
    for (name, part) in PARTS {
        let place = directory.join(name);
        let path = place.join(PART_FILE);
        match database_of(&path)? {
            Some(found) if found != *database => {
                return Err(IdentityError::OtherDatabase { part, directory: directory.to_owned(), found, expected: database.clone() });
            }
            Some(_) => {}
            None if place.is_dir() => unbound.push(path),
            None => {}
        }
    }
    Ok(unbound)
}

/// Moves the events of a directory aside, which the caller has locked, and has the other parts belong to whichever database comes next.
///
/// Returns where the events are; `None` if there were none.
///
/// # Errors
/// Returns an error if a file cannot be moved.
pub fn discard_events(directory: &Path) -> Result<Option<PathBuf>, IdentityError> {
    for (name, _) in PARTS {
        let path = directory.join(name).join(PART_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(in_file(&path)(error)),
            _ => {}
        }
    }
    let events = directory.join(PARTS[0].0);
    if !events.is_dir() {
        return Ok(None);
    }
    let mut number = 1;
    let aside = loop {
        let name = if number == 1 { DISCARDED.to_owned() } else { format!("{DISCARDED}-{number}") };
        let aside = directory.join(name);
        if !aside.exists() {
            break aside;
        }
        number += 1;
    };
    fs::rename(&events, &aside).map_err(in_file(&events))?;
    Ok(Some(aside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_of_directory_does_not_descend_from_later_starts() {
        let place = tempfile::tempdir().unwrap();
        let [original, copy] = ["original", "copy"].map(|name| place.path().join(name));
        for directory in [&original, &copy] {
            fs::create_dir(directory).unwrap();
        }
        let first = DirectoryIdentity::begin(&original).unwrap();
        fs::copy(original.join(FILE), copy.join(FILE)).unwrap();
        let restarted = DirectoryIdentity::begin(&original).unwrap();
        let copied = DirectoryIdentity::begin(&copy).unwrap();
        assert_eq!([restarted.lineage, copied.lineage], [first.lineage; 2]);
        assert!(restarted.descends_from(first.incarnation) && copied.descends_from(first.incarnation));
        assert!(!copied.descends_from(restarted.incarnation) && !restarted.descends_from(copied.incarnation));
        assert!(!restarted.descends_from(restarted.incarnation), "it is not its own predecessor");
    }

    #[test]
    fn only_the_newest_starts_are_remembered() {
        let begin = DirectoryIdentity { lineage: Lineage(1), incarnation: Incarnation(1), earlier: Vec::new() };
        let last = (2..=STARTS_MAX as u64 + 5).fold(begin, |identity, start| identity.next(Incarnation(start)));
        assert_eq!(DirectoryIdentity::parse(&last.text()), Some(last.clone()));
        assert!(last.text().len() as u64 <= FILE_BYTES_MAX);
        assert!(!last.descends_from(Incarnation(5)) && last.descends_from(Incarnation(6)));
    }

    #[test]
    fn full_disk_leaves_last_incarnation_in_force() {
        let place = tempfile::tempdir().unwrap();
        let first = DirectoryIdentity::begin(place.path()).unwrap();
        // The system's device for a disk that is always full.
        std::os::unix::fs::symlink("/dev/full", place.path().join("identity.next")).unwrap();
        assert_eq!(DirectoryIdentity::begin(place.path()).unwrap(), first);
        fs::remove_file(place.path().join("identity.next")).unwrap();
        assert!(DirectoryIdentity::begin(place.path()).unwrap().descends_from(first.incarnation));
    }

    #[test]
    fn file_without_identity_is_refused_with_remedy() {
        let place = tempfile::tempdir().unwrap();
        for text in
            ["", "bodkin identity 1\n", "bodkin identity 1\n0000000000000001\n", "bodkin identity 2\n0000000000000001\n0000000000000001\n"]
        {
            fs::write(place.path().join(FILE), text).unwrap();
            let error = DirectoryIdentity::begin(place.path()).unwrap_err();
            assert!(error.to_string().contains("remove it"), "{text:?}: {error}");
        }
    }

    #[test]
    fn part_of_another_database_is_refused_until_discarded() {
        let place = tempfile::tempdir().unwrap();
        for name in ["events", "audit"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let [own, other] = [DatabaseId::draw().unwrap(), DatabaseId::draw().unwrap()];
        assert_eq!(database_of_parts(place.path()).unwrap(), None);
        bind_parts(place.path(), &own).unwrap();
        bind_parts(place.path(), &own).unwrap();
        assert_eq!(database_of_parts(place.path()).unwrap(), Some(own.clone()));
        let told = bind_parts(place.path(), &other).unwrap_err().to_string();
        assert!(told.contains(&own.to_string()) && told.contains(&other.to_string()) && told.contains("discard-events"), "{told}");
        assert_eq!(discard_events(place.path()).unwrap(), Some(place.path().join("events.discarded")));
        bind_parts(place.path(), &other).unwrap();
        assert_eq!(database_of(&place.path().join("audit").join(PART_FILE)).unwrap(), Some(other));
    }
}
