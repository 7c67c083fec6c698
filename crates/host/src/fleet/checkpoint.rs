//! How far a lane had come, on disk: what counts where the stream itself does not say it, because it has nothing of the lane.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bodkin_store::event_log::{LogId, Position};

/// Bytes of the file that are read.
const BYTES_MAX: usize = 128;
/// The version of its form.
const FORM: &str = "1";

/// How far a lane had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its count of positions.
    pub epoch: u64,
    /// The last position that the stream has acknowledged; 0: none.
    pub position: u64,
    /// Where it goes on in the event log.
    pub from: Position,
}

/// The file of a lane in the directory of those that go to one stream.
pub fn path_of(directory: &Path, lane: &str) -> PathBuf {
    // A lane's name is a token of a subject, which may have a slash. No two names have one file.
    directory.join(format!("{}.lane", lane.replace('%', "%25").replace('/', "%2F")))
}

/// What a file is written as, until it takes the place of the one before.
fn next_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

/// Writes a file in the place of the one before; whoever is killed meanwhile has either.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().expect("what is noted is in a directory");
    fs::create_dir_all(directory)?;
    let next = next_of(path);
    let mut file = File::create(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    // A file that is new begins something, which a power failure must not have begin later.
    File::open(directory)?.sync_all()
}

/// Why a file is not believed.
fn damaged(path: &Path, told: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {told}", path.display()))
}

/// The numbers of a file; `None`: there is none. One that has something else is an error, in which `told` says what that means.
pub fn read_numbers(path: &Path, told: &str) -> io::Result<Option<Vec<u64>>> {
    match fs::read(path) {
        Ok(bytes) => numbers(&bytes).map(Some).ok_or_else(|| damaged(path, told)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(bytes.get(..bytes.len().min(BYTES_MAX))?).ok()?.strip_suffix('\n')?;
    let numbers = text.strip_prefix(FORM)?.strip_prefix(' ')?;
    numbers.split(' ').map(|number| number.parse().ok()).collect()
}

/// Writes numbers in the place of those before; whoever is killed meanwhile has either.
pub fn write_numbers(path: &Path, numbers: &[u64]) -> io::Result<()> {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    replace(path, &format!("{FORM} {}\n", numbers.join(" ")))
}

impl Checkpoint {
    /// Reads the checkpoint of a lane that reads the event log `log`; `None` if there is none.
    ///
    /// A checkpoint of another event log begins a new epoch with the first record of this one: positions of the other one mean nothing here.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is no checkpoint.
    pub fn read(path: &Path, log: LogId) -> io::Result<Option<Self>> {
        let told = "is no checkpoint of a lane; remove it, and the lane begins with the present";
        match read_numbers(path, told)?.as_deref() {
            None => Ok(None),
            // Of an earlier release.
            Some(&[epoch, position, from]) if epoch > 0 => Ok(Some(Self { epoch, position, from: Position(from) })),
            Some(&[epoch, position, from, of]) if epoch > 0 && of == log.0 => Ok(Some(Self { epoch, position, from: Position(from) })),
            Some(&[epoch, position, _, _]) if epoch > 0 => {
                let file = path.display();
                tracing::error!(%file, epoch, position, "a lane's event log was replaced: events of the former log that were not forwarded are lost");
                Ok(Some(Self { epoch: epoch.saturating_add(1), position: 0, from: Position(0) }))
            }
            Some(_) => Err(damaged(path, told)),
        }
    }

    /// Writes it in the place of the one before.
    ///
    /// # Errors
    /// Returns the disk's error.
    pub fn write(&self, path: &Path, log: LogId) -> io::Result<()> {
        write_numbers(path, &[self.epoch, self.position, self.from.0, log.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let place = tempfile::tempdir().expect("a directory");
        let path = path_of(place.path(), "a/b");
        let log = LogId(5);
        assert_eq!(Checkpoint::read(&path, log).expect("none"), None);
        for position in [0, 77] {
            let checkpoint = Checkpoint { epoch: 3, position, from: Position(12) };
            checkpoint.write(&path, log).expect("written");
            assert_eq!(Checkpoint::read(&path, log).expect("read"), Some(checkpoint));
            let replaced = Checkpoint { epoch: 4, position: 0, from: Position(0) };
            assert_eq!(Checkpoint::read(&path, LogId(6)).expect("read"), Some(replaced), "of another event log");
        }
        let names = ["a/b", "a%b", "a%2Fb", "a%25b", "ab"].map(|lane| path_of(place.path(), lane));
        assert!(names.iter().enumerate().all(|(at, name)| !names[..at].contains(name) && name.parent() == Some(place.path())));
        // What was taken from the fleet is noted beside, by another thread.
        assert_ne!(next_of(&path_of(place.path(), "from-fleet")), next_of(&place.path().join("from-fleet.taken")));
        for text in ["", "1 2 3 4", "1 2 3\n", "1 1 1 1 1 1\n", "2 1 1 1\n", "1 0 1 1\n", "1 0 1 1 1\n", "1 1 x 1\n"] {
            fs::write(&path, text).expect("written");
            assert!(Checkpoint::read(&path, log).is_err_and(|error| error.to_string().contains("remove it")), "{text:?}");
        }
    }
}
