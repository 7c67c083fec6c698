//! Memory from `/proc/meminfo`.

use std::collections::BTreeMap;

use super::{Absent, Reading, Sensor, read_text};

const KIBIBYTES_PER_MEBIBYTE: f64 = 1024.0;

/// Memory that programs cannot have any more, beside all there is and what is available, in MiB.
#[derive(Debug)]
pub struct Memory;

impl Sensor for Memory {
    fn service(&self) -> &'static str {
        "memory-used"
    }

    fn unit(&self) -> &'static str {
        "MiB"
    }

    fn read(&mut self) -> Result<Reading, Absent> {
        parse(&read_text("/proc/meminfo")?).ok_or_else(|| Absent::new("/proc/meminfo lacks MemTotal or MemAvailable"))
    }
}

fn parse(meminfo: &str) -> Option<Reading> {
    let mebibytes = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / KIBIBYTES_PER_MEBIBYTE)
    };
    let (total, available) = (mebibytes("MemTotal")?, mebibytes("MemAvailable")?);
    Some(Reading { value: total - available, parts: BTreeMap::from([("total".into(), total), ("available".into(), available)]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_is_what_is_not_available() {
        let reading = parse("MemTotal:        2048 kB\nMemFree:  10 kB\nMemAvailable:    1024 kB\n").unwrap();
        assert_eq!((reading.value, reading.parts["total"], reading.parts["available"]), (1.0, 2.0, 1.0));
        assert_eq!(parse("MemTotal: 2048 kB\n"), None);
    }
}
