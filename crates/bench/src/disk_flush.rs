//! What the disk itself takes to make a small write durable: the floor of every durable answer.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::statistics::Latencies;

/// Writes that are measured.
const WRITES: usize = 200;
/// Size of each, a page of the database.
const WRITE_BYTES: usize = 4096;
/// Longest pause between two of them.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Appends and flushes again and again in this directory, one behind the other.
///
/// # Errors
/// The directory cannot be written.
pub fn measure(directory: &Path) -> anyhow::Result<Latencies> {
    measure_paced(directory, Duration::ZERO)
}

/// Appends and flushes again and again in this directory, with a pause of this length in front of each, of 20 ms at the most: a disk, and the processors that wait for it, take
/// longer when they have slept.
///
/// # Errors
/// The directory cannot be written.
pub fn measure_paced(directory: &Path, pause: Duration) -> anyhow::Result<Latencies> {
    let path = directory.join("flush-probe");
    let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let page = [0x5a; WRITE_BYTES];
    let mut latencies = Latencies::default();
    for _ in 0..WRITES {
        if !pause.is_zero() {
            thread::sleep(pause.min(PAUSE_MAX));
        }
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
        let began = Instant::now();
        let paced = measure_paced(directory.path(), Duration::from_millis(1)).unwrap();
        assert_eq!(paced.count(), WRITES as u64);
        assert!(began.elapsed() >= Duration::from_millis(WRITES as u64), "the pauses are made");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
