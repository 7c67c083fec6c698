//! Which event log this is: positions mean something in one log only.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Name of the file in the log's directory: the identity as 16 hexadecimal digits and a line feed.
const FILE: &str = "identity";

/// Identity of an event log, drawn when its directory is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(pub u64);

/// Returns the identity of the log in `directory`, drawn now if it has none. A file that holds no identity is replaced. Blocks on the disk.
///
/// # Errors
/// Returns an error if the directory can neither be read nor written.
pub fn identity(directory: &Path) -> io::Result<LogId> {
    let file = directory.join(FILE);
    match fs::read_to_string(&file) {
        Ok(text) => match u64::from_str_radix(text.trim_end(), 16) {
            Ok(found) => return Ok(LogId(found)),
            Err(_) => tracing::warn!(file = %file.display(), "the event log's identity cannot be read, so it gets another one"),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    // Databases keep it as a number with a sign.
    let drawn = LogId(u64::from_le_bytes(bytes) >> 1);
    write(directory, drawn)?;
    Ok(drawn)
}

/// Writes the identity of the log in `directory`, which is made if it is missing. Blocks on the disk.
///
/// # Errors
/// Returns the error of the disk.
pub(super) fn write(directory: &Path, identity: LogId) -> io::Result<()> {
    let (file, LogId(number)) = (directory.join(FILE), identity);
    fs::create_dir_all(directory)?;
    let new = directory.join(format!("{FILE}.new"));
    let mut writes = File::create(&new)?;
    writeln!(writes, "{number:016x}")?;
    writes.sync_all()?;
    fs::rename(&new, &file)?;
    File::open(directory)?.sync_all()
}

/// Returns true if `directory` has a file with an identity.
pub(super) fn is_written(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_stays_and_differs_between_directories() {
        let place = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| place.path().join(name));
        let drawn = identity(&first).unwrap();
        assert_eq!(identity(&first).unwrap(), drawn);
        assert_ne!(identity(&second).unwrap(), drawn);
        fs::write(first.join(FILE), "").unwrap();
        let again = identity(&first).unwrap();
        assert_ne!(again, drawn);
        assert_eq!(identity(&first).unwrap(), again);
    }
}
