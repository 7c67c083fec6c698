//! A workload as the configuration of a broker: topics with what they promise, and what the platform is assumed to hold.

use std::fmt::Write;

use super::workload::Workload;

/// What the topics promise besides what the workload says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// An event is safe when its subscriber has acknowledged it.
    Acknowledged,
    /// As in the paper: also when it has been handed to the kernel.
    Host,
}

/// x of the paper's examples (Wang 2019, section 3.3), in ms.
const FAILOVER_MS: u32 = 50;
/// Lease, heartbeat, detection, redirection, in ms: together below x.
const LEASE_MS: [(&str, u32); 4] = [("lease_ms", 30), ("heartbeat_ms", 5), ("detect_jitter_ms", 8), ("redirect_ms", 6)];

/// The keys of `bodkin up` for this workload: nothing but topics, without an event log, for the paper's messages are in memory.
pub fn topic_file(workload: &Workload, coverage: Coverage, is_pair: bool) -> String {
    let mut file = String::from("event_log = false\n\n[platform]\nclock_error_us = 50\nblocking_ms = 6\n");
    let mut line = |text: std::fmt::Arguments| writeln!(file, "{text}").expect("a string takes everything");
    if is_pair {
        line(format_args!("failover_ms = {FAILOVER_MS}\ndrift_ppm = 200\nbroker_backup_ms = 0.05"));
        for (key, value) in LEASE_MS {
            line(format_args!("{key} = {value}"));
        }
    }
    for group in &workload.groups {
        let infinite = |number: Option<u64>| number.map_or_else(|| "\"inf\"".to_string(), |number| number.to_string());
        line(format_args!("\n[[topic]]\nevent_type = \"{}\"\ncount = {}", group.name, group.topics));
        line(format_args!("period_us = {}\ndeadline_us = {}", group.period_ns / 1000, infinite(group.deadline_ns.map(|ns| ns / 1000))));
        line(format_args!("loss_tolerance = {}\nretention = {}", infinite(group.loss_tolerance.map(u64::from)), group.retention));
        line(format_args!("broker_subscriber_max_ms = 1\ndispatch_cost_us = 1\nreplica_cost_us = 1"));
        // A bound on losses needs a pair to hold it.
        if coverage == Coverage::Host && group.loss_tolerance.is_some() {
            line(format_args!("coverage = \"host\""));
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::workload::tests::small;

    #[test]
    fn every_group_is_one_entry_with_the_words_of_the_topic_file() {
        let mut workload = small();
        workload.groups[1].loss_tolerance = None;
        let file = topic_file(&workload, Coverage::Host, true);
        assert_eq!(file.matches("[[topic]]").count(), 2);
        for part in [
            "event_type = \"FAST\"\ncount = 7\nperiod_us = 20000\ndeadline_us = 20000\nloss_tolerance = 0\nretention = 1\n",
            "count = 1\n",
            "loss_tolerance = \"inf\"",
            "failover_ms = 50",
        ] {
            assert!(file.contains(part), "{file}");
        }
        assert_eq!(file.matches("coverage").count(), 1);
        let alone = topic_file(&workload, Coverage::Acknowledged, false);
        assert!(!alone.contains("failover") && !alone.contains("coverage"));
    }
}
