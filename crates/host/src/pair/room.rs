//! Tests whether a disk takes new data, before a change or an event has to be written there.
//!
//! The thread that writes a candidate's record runs the test now and then. The other candidate is sent the result, so that a
//! leader with a full disk hands over to a standby that has room, and to no other.

use std::{fs, io, path::Path};

/// Name of the test file in the data directory. The file exists during a test only.
const FILE: &str = "room.test";
/// Bytes that a test writes: as many as a database that has refused a change is tried again with.
const BYTES: usize = 1 << 20;

/// Tests whether the disk of a directory takes new data. Blocks on the disk.
///
/// The file is removed before the system writes it back, so that a test costs no writes of the device.
///
/// # Errors
/// Returns the error of the disk if the file cannot be written or removed.
pub fn test(directory: &Path) -> io::Result<()> {
    let path = directory.join(FILE);
    let written = fs::write(&path, vec![0; BYTES]);
    match fs::remove_file(&path) {
        // A disk that did not even take the name.
        Err(error) if error.kind() == io::ErrorKind::NotFound => written,
        removed => written.and(removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_test_leaves_no_file() {
        let place = tempfile::tempdir().unwrap();
        test(place.path()).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        assert!(test(&place.path().join("missing")).is_err());
        // The system's device for a disk that is always full.
        std::os::unix::fs::symlink("/dev/full", place.path().join(FILE)).unwrap();
        assert_eq!(test(place.path()).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "the file of a failed test is removed too");
    }
}
