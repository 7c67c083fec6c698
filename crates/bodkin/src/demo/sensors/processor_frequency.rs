//! Processor frequency: from `cpufreq` in `/sys` where the kernel steers it, otherwise from `/proc/cpuinfo`.

use std::{collections::BTreeMap, fs};

use super::{Absent, Reading, Sensor, read_text};

const CPUS: &str = "/sys/devices/system/cpu";
const KILOHERTZ_PER_MEGAHERTZ: f64 = 1000.0;

/// Mean frequency of the cores and that of each, in MHz.
#[derive(Debug)]
pub struct ProcessorFrequency;

impl Sensor for ProcessorFrequency {
    fn service(&self) -> &'static str {
        "processor-frequency"
    }

    fn unit(&self) -> &'static str {
        "MHz"
    }

    fn read(&mut self) -> Result<Reading, Absent> {
        let mut parts = from_sys();
        if parts.is_empty() {
            parts = parse_cpuinfo(&read_text("/proc/cpuinfo")?);
        }
        if parts.is_empty() {
            return Err(Absent::new("neither cpufreq in /sys nor /proc/cpuinfo gives a frequency"));
        }
        Ok(Reading { value: parts.values().sum::<f64>() / parts.len() as f64, parts })
    }
}

fn from_sys() -> BTreeMap<String, f64> {
    let Ok(cores) = fs::read_dir(CPUS) else { return BTreeMap::new() };
    let frequency = |entry: fs::DirEntry| {
        let kilohertz = fs::read_to_string(entry.path().join("cpufreq/scaling_cur_freq")).ok()?;
        Some((entry.file_name().into_string().ok()?, parse_kilohertz(&kilohertz)?))
    };
    cores.flatten().filter_map(frequency).collect()
}

fn parse_kilohertz(text: &str) -> Option<f64> {
    Some(text.trim().parse::<f64>().ok()? / KILOHERTZ_PER_MEGAHERTZ)
}

/// Blocks of `key : value` lines, one a core.
fn parse_cpuinfo(cpuinfo: &str) -> BTreeMap<String, f64> {
    let value = |line: &str, key: &str| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(|value| value.trim().to_owned());
    let parse_block = |block: &str| {
        let core = block.lines().find_map(|line| value(line, "processor"))?;
        let megahertz = block.lines().find_map(|line| value(line, "cpu MHz"))?.parse().ok()?;
        Some((format!("cpu{core}"), megahertz))
    };
    cpuinfo.split("\n\n").filter_map(parse_block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sources_are_read() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: x\ncpu MHz\t\t: 2596.142\n\nprocessor\t: 1\ncpu MHz\t\t: 800.5\n\nprocessor\t: 2\n\n";
        assert_eq!(parse_cpuinfo(cpuinfo), BTreeMap::from([("cpu0".into(), 2596.142), ("cpu1".into(), 800.5)]));
        assert_eq!(parse_kilohertz("1800000\n"), Some(1800.0));
        assert_eq!(parse_kilohertz("<unknown>"), None);
    }
}
