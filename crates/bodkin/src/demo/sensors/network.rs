//! Network traffic from `/proc/net/dev`, without the loopback interface.

use std::{collections::BTreeMap, time::Instant};

use super::{Absent, Reading, Sensor, rate::Rate, read_text};

/// Received and sent per network interface, in KiB/s, since the reading before.
#[derive(Debug, Default)]
pub struct Network {
    rate: Rate,
}

impl Sensor for Network {
    fn service(&self) -> &'static str {
        "network-traffic"
    }

    fn unit(&self) -> &'static str {
        "KiB/s"
    }

    fn read(&mut self) -> Result<Reading, Absent> {
        let counters = parse(&read_text("/proc/net/dev")?);
        if counters.is_empty() {
            Err(Absent::new("/proc/net/dev lists no interface but loopback"))
        } else {
            Ok(self.rate.kibibytes_per_second(Instant::now(), counters))
        }
    }
}

/// Lines `name: received-bytes packets errs drop fifo frame compressed multicast sent-bytes ...`, under two of heading.
fn parse(dev: &str) -> BTreeMap<String, u64> {
    let parse_line = |line: &str| {
        let (name, columns) = line.rsplit_once(':')?;
        let name = Some(name.trim()).filter(|name| *name != "lo")?;
        let columns: Vec<u64> = columns.split_whitespace().map_while(|column| column.parse().ok()).collect();
        Some([(format!("{name} received"), *columns.first()?), (format!("{name} sent"), *columns.get(8)?)])
    };
    dev.lines().filter_map(parse_line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_but_loopback_are_counted() {
        let dev = "Inter-|   Receive          |  Transmit\n face |bytes    packets errs|bytes\n    lo:    3193      29    0    0    0     0          0         0     3193\n\
                   eth0: 57201334    2126    0    0    0     0          0         0   141003    1455    0\n";
        assert_eq!(parse(dev), BTreeMap::from([("eth0 received".into(), 57_201_334), ("eth0 sent".into(), 141_003)]));
        assert!(parse("eth0: 1 2\n").is_empty());
    }
}
