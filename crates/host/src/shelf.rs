//! A folder of JSON files that commands write and the operator reads over port 8440: reports of measurements, nets.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::utc::UtcTime;
use serde::Serialize;
use serde_json::Value;

/// Longest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files that are listed: the newest.
pub const FILES_MAX: usize = 1_000;
/// Entries of the folder that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// Longest name of a file, its ending included.
const NAME_BYTES_MAX: usize = 128;
const ENDING: &str = ".json";

/// A folder; it need not be there.
#[derive(Clone, Debug)]
pub struct Shelf(PathBuf);

/// A file as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShelfFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written; null where the system does not say.
    pub modified_at: Option<UtcTime>,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum NoFile {
    /// No name that a file may have.
    #[error(
        "'{0}' is no name of a file here: letters, digits, '.', '-' and '_', at most {NAME_BYTES_MAX} of them, none of the dots first, and {ENDING} at the end"
    )]
    Name(String),
    /// It is not there.
    #[error("there is no file {0}")]
    Missing(String),
    /// It is too long.
    #[error("{name} has {bytes} bytes, and at most {FILE_BYTES_MAX} are read")]
    TooLong {
        /// Which one.
        name: String,
        /// How long it is.
        bytes: u64,
    },
    /// It is no JSON.
    #[error("{name} is no JSON: {error}")]
    NoJson {
        /// Which one.
        name: String,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The system does not give it.
    #[error("{name} cannot be read: {error}")]
    System {
        /// Which one.
        name: String,
        /// The system's words.
        error: io::Error,
    },
}

impl Shelf {
    /// The folder at this place.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its files, the newest first, at most [`FILES_MAX`]; a folder that is not there has none. Links are not followed. Blocks.
    pub fn files(&self) -> io::Result<Vec<ShelfFile>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries.take(ENTRIES_MAX) {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Who has removed it meanwhile has removed it.
            let Ok(metadata) = entry.metadata() else { continue };
            if is_name(&name) && metadata.is_file() {
                let since_1970 = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
                let modified_at = since_1970.map(|since| UtcTime::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)));
                files.push(ShelfFile { name, bytes: metadata.len(), modified_at });
            }
        }
        files.sort_by(|a, b| b.modified_at.cmp(&a.modified_at).then_with(|| a.name.cmp(&b.name)));
        files.truncate(FILES_MAX);
        Ok(files)
    }

    /// A file's text, which is JSON. Blocks.
    pub fn read(&self, name: &str) -> Result<String, NoFile> {
        if !is_name(name) {
            return Err(NoFile::Name(name.to_owned()));
        }
        let path = self.0.join(name);
        let system = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => NoFile::Missing(name.to_owned()),
            _ => NoFile::System { name: name.to_owned(), error },
        };
        let metadata = fs::symlink_metadata(&path).map_err(system)?;
        if !metadata.is_file() {
            return Err(NoFile::Missing(name.to_owned()));
        }
        let too_long = |bytes| NoFile::TooLong { name: name.to_owned(), bytes };
        if metadata.len() > FILE_BYTES_MAX {
            return Err(too_long(metadata.len()));
        }
        let mut text = String::new();
        fs::File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)).map_err(system)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(too_long(text.len() as u64));
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(NoFile::NoJson { name: name.to_owned(), error }),
        }
    }
}

/// Whether a name stays in the folder and is that of a file of its kind.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.len() <= NAME_BYTES_MAX
        && name.len() > ENDING.len()
        && name.ends_with(ENDING)
        && !name.starts_with('.')
        && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_newest_file_is_first_and_only_json_is_listed() {
        let place = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(place.path().join("reports"));
        assert_eq!(shelf.files().unwrap(), []);
        fs::create_dir(shelf.path()).unwrap();
        for (name, age_s) in [("old.json", 100), ("new.json", 1), ("notes.txt", 0), (".hidden.json", 0), ("sp ace.json", 0)] {
            let path = shelf.path().join(name);
            fs::write(&path, "{}").unwrap();
            fs::File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
        }
        fs::create_dir(shelf.path().join("folder.json")).unwrap();
        std::os::unix::fs::symlink(shelf.path().join("old.json"), shelf.path().join("link.json")).unwrap();
        let files = shelf.files().unwrap();
        assert_eq!(files.iter().map(|file| (file.name.as_str(), file.bytes)).collect::<Vec<_>>(), [("new.json", 2), ("old.json", 2)]);
        assert!(files.iter().all(|file| file.modified_at.is_some()));
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read_and_nothing_that_is_no_json() {
        let place = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(place.path().join("reports"));
        fs::create_dir(shelf.path()).unwrap();
        fs::write(place.path().join("secret.json"), "{}").unwrap();
        std::os::unix::fs::symlink("../secret.json", shelf.path().join("link.json")).unwrap();
        let told = |name: &str| shelf.read(name).unwrap_err().to_string();
        for name in ["../secret.json", "/etc/passwd", "..json/", "", ".json", "a/b.json", "a\0.json", &"a".repeat(200)] {
            assert!(told(name).contains("is no name of a file here"), "{name}");
        }
        assert!(told("link.json").contains("there is no file") && told("none.json").contains("there is no file"));
        fs::write(shelf.path().join("broken.json"), "{").unwrap();
        assert!(told("broken.json").contains("is no JSON"));
        fs::File::create(shelf.path().join("long.json")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(told("long.json").contains("at most"));
        fs::write(shelf.path().join("whole.json"), "{\"a\": 1}\n").unwrap();
        assert_eq!(shelf.read("whole.json").unwrap(), "{\"a\": 1}\n");
    }
}
