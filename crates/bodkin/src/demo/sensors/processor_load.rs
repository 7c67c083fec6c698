//! Processor load from `/proc/stat`: the share of time the cores were not idle.

use std::collections::BTreeMap;

use super::{Absent, Reading, Sensor, read_text};

/// Load of all cores and of each, in percent, since the reading before.
#[derive(Debug, Default)]
pub struct ProcessorLoad {
    before: BTreeMap<String, Ticks>,
}

/// Clock ticks of one core since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    total: u64,
}

impl Sensor for ProcessorLoad {
    fn service(&self) -> &'static str {
        "processor-load"
    }

    fn unit(&self) -> &'static str {
        "percent"
    }

    fn read(&mut self) -> Result<Reading, Absent> {
        let ticks = parse(&read_text("/proc/stat")?);
        let load = |(core, now): (&String, &Ticks)| (core.clone(), load_percent(self.before.get(core).copied().unwrap_or_default(), *now));
        let mut parts: BTreeMap<String, f64> = ticks.iter().map(load).collect();
        self.before = ticks;
        match parts.remove("cpu") {
            Some(value) => Ok(Reading { value, parts }),
            None => Err(Absent::new("/proc/stat has no line for the processor")),
        }
    }
}

/// Load between two readings, 0 to 100; 0 if no tick has passed.
fn load_percent(before: Ticks, now: Ticks) -> f64 {
    let (busy, total) = (now.busy.saturating_sub(before.busy), now.total.saturating_sub(before.total));
    if total == 0 { 0.0 } else { 100.0 * busy.min(total) as f64 / total as f64 }
}

/// Lines `cpu[N] user nice system idle iowait irq softirq steal ...`; guest time is part of user time.
fn parse(stat: &str) -> BTreeMap<String, Ticks> {
    const COUNTED_COLUMNS: usize = 8;
    let parse_line = |line: &str| {
        let (core, columns) = line.split_once(' ')?;
        let columns: Vec<u64> = columns.split_whitespace().take(COUNTED_COLUMNS).map_while(|column| column.parse().ok()).collect();
        let idle = columns.get(3)? + columns.get(4)?;
        let total: u64 = columns.iter().sum();
        Some((core.to_owned(), Ticks { busy: total - idle, total }))
    };
    stat.lines().filter(|line| line.starts_with("cpu")).filter_map(parse_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  13356 0 3158 375340 440 0 40 14 500 0\ncpu0 6356 0 1231 188572 59 0 13 3 0 0\nintr 12 0\nctxt 9\n";

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        let ticks = parse(STAT);
        assert_eq!(ticks["cpu"], Ticks { busy: 13356 + 3158 + 40 + 14, total: 13356 + 3158 + 375340 + 440 + 40 + 14 });
        assert_eq!(ticks.keys().collect::<Vec<_>>(), ["cpu", "cpu0"]);
        assert!(parse("cpu0 1 2\ncpu1 x\n").is_empty());
    }

    #[test]
    fn load_is_a_share_of_the_ticks_that_passed() {
        let before = Ticks { busy: 100, total: 1000 };
        assert_eq!(load_percent(before, Ticks { busy: 125, total: 1100 }), 25.0);
        assert_eq!(load_percent(before, before), 0.0);
        assert_eq!(load_percent(before, Ticks { busy: 0, total: 0 }), 0.0);
    }
}
