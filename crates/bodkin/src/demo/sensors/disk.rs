//! Disk traffic from `/proc/diskstats`: whole disks, not their partitions nor disks made of memory or files.

use std::{collections::BTreeMap, path::Path, time::Instant};

use super::{Absent, Reading, Sensor, rate::Rate, read_text};

/// The kernel's sector in `/proc/diskstats`, whatever the disk's own.
const SECTOR_BYTES: u64 = 512;

/// Read and written per disk, in KiB/s, since the reading before.
#[derive(Debug, Default)]
pub struct Disk {
    rate: Rate,
}

impl Sensor for Disk {
    fn service(&self) -> &'static str {
        "disk-traffic"
    }

    fn unit(&self) -> &'static str {
        "KiB/s"
    }

    fn read(&mut self) -> Result<Reading, Absent> {
        let counters = parse(&read_text("/proc/diskstats")?, |name| Path::new("/sys/block").join(name).join("device").exists());
        if counters.is_empty() {
            Err(Absent::new("/proc/diskstats lists no disk"))
        } else {
            Ok(self.rate.kibibytes_per_second(Instant::now(), counters))
        }
    }
}

/// Lines `major minor name reads merged sectors-read ms writes merged sectors-written ...`; gives bytes.
fn parse(diskstats: &str, is_disk: impl Fn(&str) -> bool) -> BTreeMap<String, u64> {
    let parse_line = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let name = *columns.get(2).filter(|name| is_disk(name))?;
        let bytes = |column: usize| Some(columns.get(column)?.parse::<u64>().ok()?.saturating_mul(SECTOR_BYTES));
        Some([(format!("{name} read"), bytes(5)?), (format!("{name} written"), bytes(9)?)])
    };
    diskstats.lines().filter_map(parse_line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_disks_become_bytes() {
        let diskstats =
            "   7  0 loop0 1 0 9 0 0 0 9 0 0 0 0\n 254  0 vda 34759 7939 100 22018 7025 15983 3 2991 0 5964 25249\n 254  1 vda1 1 1\n x\n";
        assert_eq!(parse(diskstats, |name| name == "vda"), BTreeMap::from([("vda read".into(), 51200), ("vda written".into(), 1536)]));
        assert!(parse(diskstats, |name| name == "vda1").is_empty());
    }
}
