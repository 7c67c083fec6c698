//! A standby whose event log belongs to another cloud than its database.

use std::{fs, path::Path};

use super::nodes::Pair;
use crate::support::{cloud::Launch, secure::copy};

/// Returns the database that the events of a data directory belong to.
fn database_of_events(data: &Path) -> String {
    fs::read_to_string(data.join("events/database")).unwrap_or_default().trim().to_owned()
}

#[test]
fn standby_with_events_of_another_cloud_is_refused_at_start() {
    let (mut pair, _witness, backup, primary) = Pair::protected();
    assert_eq!(backup.stop(), Some(0));
    primary.protected(false);
    let own = database_of_events(&pair.data("primary"));
    assert_eq!(database_of_events(&pair.data("backup")), own, "a standby notes which cloud its events belong to");
    let place = tempfile::TempDir::new().expect("a temporary directory");
    let other = place.path().join("other");
    Launch::new().data(&other).start().stop();
    let events = pair.data("backup").join("events");
    fs::rename(&events, place.path().join("events")).expect("a directory");
    copy(&other.join("events"), &events);
    let (code, stderr) = pair.refused_backup();
    let names_both = [&own, &database_of_events(&other)].iter().all(|database| stderr.contains(&***database));
    assert!(code == Some(1) && names_both && stderr.contains("bodkin db discard-events"), "{stderr}");
    // With its own events the standby is accepted again.
    fs::remove_dir_all(&events).expect("a directory");
    fs::rename(place.path().join("events"), &events).expect("a directory");
    let _backup = pair.backup();
    primary.protected(true);
}
