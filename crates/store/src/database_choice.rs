//! Checks that a data directory is started on the database that it belongs to, before a database is opened or made.
//!
//! A start that is refused here leaves no empty database behind, neither a file nor tables in PostgreSQL.

use std::path::{Path, PathBuf};

use crate::{
    OpenError,
    identity::{self, DatabaseId, IdentityError},
    open::DATABASE_FILE,
    shared::NODE_FILE,
};

/// The database of a cloud that was moved to a shared database.
pub(crate) const MOVED_FILE: &str = "bodkin.sqlite.moved";

/// Why a data directory without a database of its own has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Its cloud was moved to a shared database. The file is the database from before.
    Moved(PathBuf),
    /// It is the directory of a node of a shared database.
    Shared,
}

/// Returns where the database of a directory is, if it is none in the directory.
pub fn elsewhere(directory: &Path) -> Option<Elsewhere> {
    let moved = directory.join(MOVED_FILE);
    match directory.join(DATABASE_FILE).exists() {
        true => None,
        false if moved.exists() => Some(Elsewhere::Moved(moved)),
        false => directory.join(NODE_FILE).exists().then_some(Elsewhere::Shared),
    }
}

/// Refuses to make a database in the directory of a node whose database is shared.
///
/// # Errors
/// Returns an error if the directory's cloud is in a shared database.
pub(crate) fn refuse_elsewhere(directory: &Path) -> Result<(), OpenError> {
    match elsewhere(directory) {
        None => Ok(()),
        Some(Elsewhere::Moved(file)) => Err(OpenError::Moved { directory: directory.to_owned(), file }),
        Some(Elsewhere::Shared) => {
            let database = identity::database_of_parts(directory)?.map_or_else(String::new, |database| format!(" {database}"));
            Err(OpenError::OfShared { directory: directory.to_owned(), database })
        }
    }
}

/// Refuses to make a database beside an event log or audit log of another database.
///
/// # Errors
/// Returns an error if the directory has no database and a part of it belongs to one.
pub(crate) fn refuse_missing(directory: &Path) -> Result<(), IdentityError> {
    if directory.join(DATABASE_FILE).exists() {
        return Ok(());
    }
    match identity::bound_part(directory)? {
        None => Ok(()),
        Some((part, found)) => Err(IdentityError::MissingDatabase { part, directory: directory.to_owned(), found }),
    }
}

/// Refuses a shared database to which the event log and audit log of a directory do not belong. `cloud` is `None` if it has no cloud yet.
///
/// # Errors
/// Returns an error if a part of the directory belongs to another database.
pub fn refuse_other_shared(directory: &Path, cloud: Option<&DatabaseId>) -> Result<(), IdentityError> {
    let other = |part, found| {
        let named = cloud.map_or_else(|| "an empty one".to_owned(), ToString::to_string);
        Err(IdentityError::OtherShared { part, directory: directory.to_owned(), found, named })
    };
    match cloud {
        Some(cloud) => match identity::check_parts(directory, cloud) {
            Err(IdentityError::OtherDatabase { part, found, .. }) => other(part, found),
            checked => checked,
        },
        None => identity::bound_part(directory)?.map_or(Ok(()), |(part, found)| other(part, found)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Store;

    #[test]
    fn start_without_shared_database_is_refused_and_makes_none() {
        let place = tempfile::tempdir().unwrap();
        let refused = || Store::open(place.path()).err().expect("it is refused").to_string();
        fs::write(place.path().join(NODE_FILE), "0000000000000001\n").unwrap();
        assert!(refused().contains("--database"), "{}", refused());
        fs::write(place.path().join(MOVED_FILE), "").unwrap();
        let told = refused();
        assert!(["--database", MOVED_FILE, "rename"].iter().all(|word| told.contains(word)), "{told}");
        assert!(!place.path().join(DATABASE_FILE).exists());
        fs::rename(place.path().join(MOVED_FILE), place.path().join(DATABASE_FILE)).unwrap();
        Store::open(place.path()).unwrap().close();
    }

    #[test]
    fn missing_database_beside_events_is_refused_and_not_made() {
        let place = tempfile::tempdir().unwrap();
        let [own, other] = [(); 2].map(|()| DatabaseId::draw().unwrap());
        fs::create_dir(place.path().join("events")).unwrap();
        identity::bind_parts(place.path(), &own).unwrap();
        let told = Store::open(place.path()).err().expect("it is refused").to_string();
        assert!(["--database", &own.to_string(), "discard-events"].iter().all(|word| told.contains(word)), "{told}");
        assert!(!place.path().join(DATABASE_FILE).exists());
        for cloud in [None, Some(&other)] {
            let told = refuse_other_shared(place.path(), cloud).unwrap_err().to_string();
            assert!(told.contains("--database") && told.contains(&own.to_string()), "{told}");
        }
        refuse_other_shared(place.path(), Some(&own)).unwrap();
    }
}
