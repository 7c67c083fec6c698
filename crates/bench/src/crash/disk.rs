//! Small disks of nodes, which can be filled and stalled.
//!
//! A disk is an ext4 file system in an image file, mounted at a node's data directory.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

/// Size of a disk: what a node writes in a round fits several times.
const DISK_BYTES: u64 = 256 << 20;
static PIECE: [u8; 1 << 16] = [0; 1 << 16];
/// Smallest write by which a disk is filled.
const REST_BYTES: usize = 512;

/// A mounted disk; unmounted when dropped.
#[derive(Debug)]
pub struct Disk {
    place: PathBuf,
}

impl Disk {
    /// Makes a disk in the image file and mounts it.
    ///
    /// # Errors
    /// Returns an error if the system has no `mkfs.ext4` or no loop device, or does not mount the disk.
    pub fn mount(image: &Path, place: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(place)?;
        let file = File::create(image).and_then(|file| file.set_len(DISK_BYTES));
        file.with_context(|| format!("cannot write {}", image.display()))?;
        call("mkfs.ext4", &["-q", "-F"], &[image])?;
        call("mount", &["-o", "loop"], &[image, place])?;
        Ok(Self { place: place.to_owned() })
    }

    /// Fills the disk until the filler is dropped.
    ///
    /// # Errors
    /// Returns an error if the disk cannot be written for another reason than that it is full.
    pub fn fill(&self) -> anyhow::Result<Filler> {
        let filler = Filler { path: self.place.join("filler") };
        let mut file = File::create(&filler.path)?;
        let mut piece = PIECE.len();
        while piece >= REST_BYTES {
            match file.write_all(&PIECE[..piece]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => piece /= 2,
                Err(error) => return Err(error).context("cannot fill the disk"),
            }
        }
        Ok(filler)
    }

    /// Stalls every write to the disk for this long.
    ///
    /// # Errors
    /// Returns an error if the system does not freeze the file system.
    pub fn stall(&self, duration: Duration) -> anyhow::Result<()> {
        call("fsfreeze", &["-f"], &[&self.place])?;
        thread::sleep(duration);
        call("fsfreeze", &["-u"], &[&self.place])
    }
}

/// The file that fills a disk; removed when dropped.
#[derive(Debug)]
pub struct Filler {
    path: PathBuf,
}

impl Drop for Filler {
    fn drop(&mut self) {
        // It fails only if the disk is gone.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A disk that is busy is unmounted when its last user ends.
        let _ = call("umount", &["-l"], &[&self.place]);
    }
}

fn call(program: &str, options: &[&str], paths: &[&Path]) -> anyhow::Result<()> {
    let output = Command::new(program).args(options).args(paths).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run `{program}`: faults of disks need it"))?;
    if !output.status.success() {
        bail!("`{program} {}` failed: {}", options.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
