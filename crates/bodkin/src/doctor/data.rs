//! The data directory: may it be written, is there space, how fast is its disk, who uses it; the database; the event log.

use std::{
    fs,
    io::{self, Write},
    path::{self, Path, PathBuf},
    time::{Duration, Instant},
};

use bodkin_store::{
    database_choice::{self, Elsewhere},
    identity,
    inspection::{self, Inspection},
};
use nix::{
    sys::statvfs::statvfs,
    unistd::{AccessFlags, access},
};

use super::{finding::Finding, processes::holder};
use crate::{cli::status::troubles::FREE_BYTES_MIN, owner, settings::Settings};

/// Syncs that are timed.
const SYNCS: usize = 20;
/// A sync that is slower makes every registration slow.
const SYNC_SLOW: Duration = Duration::from_millis(20);
const MIB: u64 = 1 << 20;

/// Looks at the data directory.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    let all = "complete settings have every option";
    let directory = settings.data.clone().expect(all);
    let directory = path::absolute(&directory).unwrap_or(directory);
    let event_log_bytes_max = settings.event_log.expect(all).then(|| settings.event_log_bytes_max.expect(all));
    // A name that is too long, or a folder above that may not be looked into: it is not simply missing.
    if let Err(error) = directory.symlink_metadata()
        && error.kind() != io::ErrorKind::NotFound
        && error.kind() != io::ErrorKind::NotADirectory
    {
        let told = format!("{} cannot be made: {error}", directory.display());
        return vec![Finding::problem("data", told, "give --data a directory that this user can make")];
    }
    let Some(there) = existing(&directory) else {
        return vec![Finding::problem("data", format!("nothing of the path {} exists", directory.display()), "give --data a directory")];
    };
    let mut found = vec![writable(&directory, &there)];
    found.push(space(&there, event_log_bytes_max.unwrap_or_default()));
    found.push(sync_time(&there));
    if there == directory {
        found.push(lock(&directory));
        if !settings.is_shared() {
            if let Some(elsewhere) = database_choice::elsewhere(&directory) {
                found.push(no_database_named(&elsewhere));
            } else {
                found.push(database(&directory));
                found.extend(belongs_together(&directory));
            }
        }
        // One that cannot be read is told already.
        let was_secure = inspection::was_secure(&directory).ok().flatten().filter(|_| settings.adopt_data != Some(true));
        found.extend(was_secure.and_then(|was_secure| mode(was_secure, settings.insecure == Some(true))));
        found.extend(event_log_bytes_max.map(|bytes_max| event_log(&directory, bytes_max)));
    }
    found
}

/// The directory, or the nearest above it that exists: there it would be made.
fn existing(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|path| path.symlink_metadata().is_ok()).map(Path::to_owned)
}

fn writable(directory: &Path, there: &Path) -> Finding {
    let shown = directory.display();
    if there.is_symlink() && !there.exists() {
        let told = format!("{} is a link to what is not there", there.display());
        return Finding::problem("data", told, "make what it names, or give --data a directory");
    }
    if !there.is_dir() {
        return Finding::problem("data", format!("{} is no directory", there.display()), "give --data a directory");
    }
    if let Err(error) = owner::refuse_root(there) {
        return Finding::problem("data", format!("{error:#}"), "be that user, or give --data a directory of root's");
    }
    match access(there, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) if there == directory => Finding::ok("data", format!("{shown} can be written")),
        // Rights do not tell it all: nobody makes one in /proc. This one is gone again at once.
        Ok(()) => match tempfile::tempdir_in(there) {
            Ok(_) => Finding::ok("data", format!("{shown} does not exist; bodkin up makes it in {}", there.display())),
            Err(error) => {
                let told = format!("{shown} does not exist, and none can be made in {}: {}", there.display(), cause(&error));
                Finding::problem("data", told, "give --data a directory that this user can make")
            }
        },
        Err(error) => {
            let told = format!("{} cannot be written: {error}", there.display());
            Finding::problem("data", told, "give --data a directory that this user may write, or change its owner")
        }
    }
}

/// The system's words, without the name that was tried.
fn cause(error: &io::Error) -> String {
    error.get_ref().and_then(|inner| inner.source()).map_or_else(|| error.to_string(), ToString::to_string)
}

fn space(there: &Path, event_log_bytes_max: u64) -> Finding {
    let free = match statvfs(there) {
        // On processors of 32 bits both are shorter.
        Ok(system) => u128::from(system.blocks_available()) * u128::from(system.fragment_size()),
        Err(error) => return Finding::warning("space", format!("free space is not known: {error}"), "see df"),
    };
    judge_space(u64::try_from(free).unwrap_or(u64::MAX), event_log_bytes_max)
}

fn judge_space(free: u64, event_log_bytes_max: u64) -> Finding {
    let told = format!("{} MiB are free; the event log takes at most {} MiB", free / MIB, event_log_bytes_max / MIB);
    if free < FREE_BYTES_MIN {
        Finding::problem("space", told, "make space: a full disk refuses every change, and keeps no events")
    } else if free < FREE_BYTES_MIN + event_log_bytes_max {
        Finding::warning("space", told, "make space, or give a smaller --event-log-bytes-max: on a full disk no events are kept")
    } else {
        Finding::ok("space", told)
    }
}

/// Times syncs of a file without a name, which leaves nothing behind.
fn sync_time(there: &Path) -> Finding {
    match timed_syncs(there) {
        Ok(mut times) => {
            times.sort_unstable();
            let (median, worst) = (times[SYNCS / 2], times[SYNCS - 1]);
            let told = format!("a sync takes {} us, the slowest of {SYNCS} took {} us", median.as_micros(), worst.as_micros());
            if median > SYNC_SLOW {
                Finding::warning("disk", told, "use a faster disk: every registration and durable event waits for one")
            } else {
                Finding::ok("disk", told)
            }
        }
        Err(error) => {
            Finding::problem("disk", format!("a file in {} cannot be written: {error}", there.display()), "see df and the mount's options")
        }
    }
}

fn timed_syncs(there: &Path) -> io::Result<Vec<Duration>> {
    let mut file = tempfile::tempfile_in(there)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn lock(directory: &Path) -> Finding {
    let file = directory.join("lock").canonicalize();
    match file.ok().and_then(|file| holder(&file)) {
        Some(process) => Finding::ok("lock", format!("the data directory is in use by {process}; another bodkin up would be refused")),
        None => Finding::ok("lock", "no process uses the data directory"),
    }
}

fn database(directory: &Path) -> Finding {
    const RESTORE: &str = "stop Bodkin, then restore the database from a backup, or move it away (with its -wal file) to start empty";
    match inspection::inspect(directory) {
        Ok(None) => Finding::ok("database", "there is none yet; bodkin up makes it"),
        Ok(Some(Inspection { faults, schema, schema_known, bytes })) => {
            let told = format!("{bytes} bytes, schema version {schema} of {schema_known}");
            if let Some(fault) = faults.first() {
                Finding::problem("database", format!("{told}, damaged: {fault}"), RESTORE)
            } else if schema > schema_known {
                Finding::problem("database", format!("{told}: a newer Bodkin wrote it"), "use that Bodkin")
            } else {
                Finding::ok("database", format!("{told}, whole"))
            }
        }
        Err(error) => Finding::problem("database", format!("it cannot be read: {error}"), RESTORE),
    }
}

/// The directory of a node of a shared database, if none is named.
fn no_database_named(elsewhere: &Elsewhere) -> Finding {
    let found = match elsewhere {
        Elsewhere::Moved(file) => {
            format!("the cloud was moved to a shared database, and none is named; its database from before is {}", file.display())
        }
        Elsewhere::Shared => "the directory belongs to a node of a shared database, and none is named".to_owned(),
    };
    Finding::problem("identity", found, "name the shared database (--database, BODKIN_DATABASE)")
}

/// Events and an audit log of another database than the one that is there.
fn belongs_together(directory: &Path) -> Option<Finding> {
    let (parts, own) = (identity::database_of_parts(directory), inspection::database_id(directory));
    match (parts, own) {
        (Ok(Some(parts)), Ok(own)) if own.as_ref() != Some(&parts) => Some(Finding::problem(
            "identity",
            format!(
                "events and audit log belong to database {parts}, and the database is {}",
                own.map_or_else(|| "missing".to_owned(), |own| own.to_string())
            ),
            "restore a copy of that database (bodkin db restore), name it if it is a shared one (--database, BODKIN_DATABASE), or move the events aside (bodkin db discard-events)",
        )),
        (Ok(Some(parts)), Ok(_)) => Some(Finding::ok("identity", format!("database, events and audit log are of database {parts}"))),
        (Ok(None), _) => None,
        (Err(error), _) => Some(Finding::problem("identity", error.to_string(), "restore the file from a backup of the directory")),
        // What is wrong with the database is told of it.
        (_, Err(_)) => None,
    }
}

/// Data of the other mode, which is refused.
fn mode(was_secure: bool, insecure: bool) -> Option<Finding> {
    let name = |secure: bool| if secure { "secure" } else { "insecure" };
    let told = format!("it was used in {} mode, and {} mode is asked for", name(was_secure), name(!insecure));
    let advice = "start in that mode (--insecure or without it), give another --data, or take it over as it is with --adopt-data";
    (was_secure == insecure).then(|| Finding::problem("database", told, advice))
}

/// The files under `events/`, whatever shards they are of.
fn event_log(directory: &Path, bytes_max: u64) -> Finding {
    let events = directory.join("events");
    if !events.exists() {
        return Finding::ok("event log", "there is none yet; bodkin up makes it");
    }
    match sizes(&events) {
        Ok((files, bytes)) => {
            Finding::ok("event log", format!("{files} files with {bytes} of at most {bytes_max} bytes in {}", events.display()))
        }
        Err(error) => Finding::problem(
            "event log",
            format!("{} cannot be read: {error}", events.display()),
            "give this user the right to read and write it, or switch the log off with --event-log false",
        ),
    }
}

/// Files and their bytes in the directories of a directory.
fn sizes(directory: &Path) -> io::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for shard in fs::read_dir(directory)? {
        let shard = shard?;
        // A note beside them names the database that they belong to.
        if !shard.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(shard.path())? {
            files += 1;
            bytes += file?.metadata()?.len();
        }
    }
    Ok((files, bytes))
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn space_must_do_for_the_event_log_too() {
        for (free, verdict) in [(2048 * MIB, Verdict::Ok), (1000 * MIB, Verdict::Warning), (10 * MIB, Verdict::Problem)] {
            assert_eq!(judge_space(free, 1024 * MIB).verdict, verdict, "{free}");
        }
    }

    #[test]
    fn a_directory_that_is_to_be_made_is_looked_at_where_it_would_be() {
        let place = tempfile::TempDir::new().unwrap();
        let missing = place.path().join("a/b");
        assert_eq!(existing(&missing), Some(place.path().to_owned()));
        assert!(writable(&missing, place.path()).found.contains("does not exist"));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_a_problem() {
        let place = tempfile::TempDir::new().unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for (directory, told) in [
            (PathBuf::from("/proc/bodkin"), "none can be made in /proc"),
            (link.join("data"), "is a link to what is not there"),
            (place.path().join("x".repeat(300)), "cannot be made"),
        ] {
            let mut settings = Settings::defaults();
            settings.data = Some(directory);
            let data = examine(&settings).into_iter().next().unwrap();
            assert!(data.verdict == Verdict::Problem && data.found.contains(told), "{data:?}");
        }
    }

    #[test]
    fn data_of_the_other_mode_is_a_problem() {
        let verdicts =
            [(true, false), (false, true), (true, true), (false, false)].map(|(was_secure, insecure)| mode(was_secure, insecure).is_some());
        assert_eq!(verdicts, [false, false, true, true]);
    }

    #[test]
    fn syncs_leave_nothing_behind() {
        let place = tempfile::TempDir::new().unwrap();
        assert_eq!(timed_syncs(place.path()).unwrap().len(), SYNCS);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
