//! A workload as the configuration of a broker: topics with what they promise, and what the platform is assumed to hold.

use std::fmt::Write;

use super::workload::{Group, Workload};

/// Events of each topic that the Backup of Wang 2019, section 3.6.3, keeps.
pub const BACKUP_BUFFER: u32 = 10;

/// BS and BB, as the brokers are told.
const BROKER_SUBSCRIBER_MS: u32 = 1;
const BROKER_BACKUP_MS: f64 = 0.05;

/// Of which topics events are replicated at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Of all that bound losses.
    Bounded,
    /// Of those of which Proposition 1 of Wang 2019, section 3.3, says so: the others reach their subscribers, it assumes, before they had to be replicated.
    Proposition1,
}

/// When events go to the Backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// As late as the bounds allow, or not at all if they are safe before.
    Lazy,
    /// When they come.
    Eager,
    /// All that is not covered, at every multiple of a period.
    Periodic {
        /// In ms.
        period_ms: u32,
    },
    /// Never: the topics bound no losses, publishers send again what they keep.
    Never,
}

/// M: one event of so many is replicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// M = 1.
    Every,
    /// M = max(L, 1).
    Tolerance,
}

/// What decides which event goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Each topic's own deadline, and its own bound on losses.
    Deadline,
    /// When it was published: no topic differs from another, for all have the longest deadline of the workload, and a bound on losses.
    Arrival,
}

/// x and what it is made of, in ms (`docs/formats/topics.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailOver {
    /// x.
    failover: u32,
    lease: u32,
    heartbeat: u32,
    detect_jitter: u32,
    redirect: u32,
}

impl FailOver {
    /// x of 50 ms, that of Wang 2019, section 3.3.
    pub const MS_50: Self = Self { failover: 50, lease: 30, heartbeat: 5, detect_jitter: 8, redirect: 6 };
    /// x of 40 ms: Table 4.1 has topics with a period of 50 ms that keep one event and may lose none.
    pub const MS_40: Self = Self { failover: 40, lease: 24, heartbeat: 4, detect_jitter: 6, redirect: 5 };
}

/// What a broker is told besides the workload.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Of which topics.
    pub selection: Selection,
    /// Of a pair.
    pub failover: Option<FailOver>,
    /// When events go to the Backup.
    pub replication: Replication,
    /// How many of them.
    pub marks: Marks,
    /// How long a replica may wait for others, in ms.
    pub batch_window_ms: u32,
    /// What goes first.
    pub order: Order,
    /// Events of each stream that the Backup keeps although they are covered.
    pub backup_keeps: u32,
}

impl Terms {
    /// Of a pair that replicates every event as late as it may.
    pub const PAIR: Self = Self {
        selection: Selection::Bounded,
        failover: Some(FailOver::MS_50),
        replication: Replication::Lazy,
        marks: Marks::Every,
        batch_window_ms: 0,
        order: Order::Deadline,
        backup_keeps: 0,
    };
    /// Of one node, which cannot bound losses.
    pub const ALONE: Self = Self { failover: None, replication: Replication::Never, ..Self::PAIR };
}

impl Terms {
    /// Whether events of these topics go to the Backup. Proposition 1 skips what `x + BB - BS <= (N + L) * T - D` holds for.
    fn replicates(self, group: &Group) -> bool {
        let (Some(tolerance), true) = (group.loss_tolerance, self.replication != Replication::Never) else { return false };
        let (Selection::Proposition1, Some(deadline_ns)) = (self.selection, group.deadline_ns) else { return true };
        let ms = |ns: u64| ns as f64 / 1e6;
        let failover_ms = self.failover.map_or(0.0, |failover| f64::from(failover.failover));
        let sent_again_ms = f64::from(group.retention + tolerance) * ms(group.period_ns);
        failover_ms + BROKER_BACKUP_MS - f64::from(BROKER_SUBSCRIBER_MS) > sent_again_ms - ms(deadline_ns)
    }
}

/// The keys of `bodkin up` for this workload: nothing but topics, without an event log, for the papers' messages are in memory.
pub fn topic_file(workload: &Workload, terms: Terms) -> String {
    let mut file = String::from("event_log = false\n");
    let mut line = |text: std::fmt::Arguments| writeln!(file, "{text}").expect("a string takes everything");
    match terms.replication {
        Replication::Lazy | Replication::Never => {}
        Replication::Eager => line(format_args!("replication = \"eager\"")),
        Replication::Periodic { period_ms } => line(format_args!("replication = \"periodic\"\nreplication_period_ms = {period_ms}")),
    }
    if terms.backup_keeps > 0 {
        line(format_args!("backup_keeps = {}", terms.backup_keeps));
    }
    line(format_args!("\n[platform]\nclock_error_us = 50\nblocking_ms = 6"));
    if let Some(FailOver { failover, lease, heartbeat, detect_jitter, redirect }) = terms.failover {
        line(format_args!("failover_ms = {failover}\nlease_ms = {lease}\nheartbeat_ms = {heartbeat}\ndetect_jitter_ms = {detect_jitter}"));
        line(format_args!("redirect_ms = {redirect}\ndrift_ppm = 200\nbroker_backup_ms = {BROKER_BACKUP_MS}"));
    }
    if terms.batch_window_ms > 0 {
        line(format_args!("batch_window_ms = {}", terms.batch_window_ms));
    }
    for group in &workload.groups {
        let group = if terms.order == Order::Arrival { like_all(group, workload) } else { group.clone() };
        line(format_args!("\n{}", topic(&group, terms)));
    }
    file
}

/// The group without what makes it differ from the others of the workload.
fn like_all(group: &Group, workload: &Workload) -> Group {
    let deadline_ns = workload.groups.iter().filter_map(|group| group.deadline_ns).max();
    let widest = workload.groups.iter().filter_map(|group| group.loss_tolerance).max();
    Group { deadline_ns, loss_tolerance: group.loss_tolerance.or(widest), ..group.clone() }
}

fn topic(group: &Group, terms: Terms) -> String {
    let Group { name, topics, period_ns, deadline_ns, retention, .. } = group;
    let infinite = |number: Option<u64>| number.map_or_else(|| "\"inf\"".to_string(), |number| number.to_string());
    let tolerance = group.loss_tolerance.filter(|_| terms.replicates(group));
    let (period, deadline) = (period_ns / 1000, infinite(deadline_ns.map(|ns| ns / 1000)));
    let mut topic = format!("[[topic]]\nevent_type = \"{name}\"\ncount = {topics}\nperiod_us = {period}\ndeadline_us = {deadline}\n");
    topic += &format!("loss_tolerance = {}\nretention = {retention}\n", infinite(tolerance.map(u64::from)));
    topic += &format!("broker_subscriber_max_ms = {BROKER_SUBSCRIBER_MS}\ndispatch_cost_us = 1\nreplica_cost_us = 1\n");
    if let Some(tolerance) = tolerance.filter(|_| terms.marks == Marks::Tolerance) {
        topic += &format!("mark_every = {}\n", tolerance.max(1));
    }
    topic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::workload::tests::small;

    fn workload() -> Workload {
        let mut workload = small();
        workload.groups[0].loss_tolerance = Some(3);
        workload.groups[1].loss_tolerance = None;
        workload
    }

    #[test]
    fn every_group_is_one_entry_with_the_words_of_the_topic_file() {
        let terms = Terms { marks: Marks::Tolerance, replication: Replication::Eager, ..Terms::PAIR };
        let file = topic_file(&workload(), terms);
        assert_eq!(file.matches("[[topic]]").count(), 2);
        for part in [
            "event_type = \"FAST\"\ncount = 7\nperiod_us = 20000\ndeadline_us = 20000\nloss_tolerance = 3\nretention = 1\n",
            "mark_every = 3",
            "count = 1\n",
            "loss_tolerance = \"inf\"",
            "failover_ms = 50",
            "event_log = false\nreplication = \"eager\"\n\n[platform]",
        ] {
            assert!(file.contains(part), "{file}");
        }
        assert_eq!(file.matches("mark_every").count(), 1);
    }

    #[test]
    fn one_node_and_no_replication_bound_no_losses() {
        let alone = topic_file(&workload(), Terms::ALONE);
        assert!(!alone.contains("failover") && !alone.contains("loss_tolerance = 3"));
        let never = topic_file(&workload(), Terms { replication: Replication::Never, batch_window_ms: 40, ..Terms::PAIR });
        assert_eq!((never.matches("loss_tolerance = \"inf\"").count(), never.matches("retention = 1").count()), (2, 2));
        assert!(never.contains("batch_window_ms = 40"));
    }

    #[test]
    fn in_order_of_arrival_no_topic_differs_from_another() {
        let terms = Terms { order: Order::Arrival, replication: Replication::Periodic { period_ms: 25 }, backup_keeps: 10, ..Terms::PAIR };
        let file = topic_file(&workload(), terms);
        assert_eq!((file.matches("deadline_us = 50000").count(), file.matches("loss_tolerance = 3").count()), (2, 2), "{file}");
        assert!(file.contains("replication = \"periodic\"\nreplication_period_ms = 25\nbackup_keeps = 10\n"), "{file}");
    }

    #[test]
    fn what_x_is_made_of_is_less_than_x() {
        for FailOver { failover, lease, heartbeat, detect_jitter, redirect } in [FailOver::MS_50, FailOver::MS_40] {
            assert!(lease + heartbeat + detect_jitter + redirect < failover);
        }
    }
}
