//! What the disk itself takes to make a small write durable: the floor of every durable answer.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use crate::statistics::Latencies;

/// Writes that are measured.
const WRITES: usize = 200;
/// Size of each, a page of the database.
const WRITE_BYTES: usize = 4096;

/// Appends and flushes again and again in this directory.
///
/// # Errors
/// The directory cannot be written.
pub fn measure(directory: &Path) -> anyhow::Result<Latencies> {
    let path = directory.join("flush-probe");
    let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let page = [0x5a; WRITE_BYTES];
    let mut latencies = Latencies::default();
    for _ in 0..WRITES {
        let started = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        latencies.record(started.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_measured_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(measure(directory.path()).unwrap().count(), WRITES as u64);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
