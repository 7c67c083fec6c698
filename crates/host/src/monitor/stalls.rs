//! The numbers of what deadlines and bounds on losses rest on: stalls, clocks, ways, fail-overs.

use super::Number;
use crate::stall::{Guarantee, Stalls};

/// What is so now, or was in the last minute.
pub(super) fn gauges(stalls: &Stalls) -> [Number; 9] {
    let is_suspended = stalls.guarantee() == Guarantee::Suspended;
    [
        ("bodkin_stall_worst_seconds", "Longest stall of the machine in the last minute.", stalls.machine_ns().unwrap_or_default()),
        ("bodkin_turn_worst_seconds", "Longest turn of a shard in the last minute.", stalls.shard_ns().unwrap_or_default()),
        (
            "bodkin_clock_difference_seconds",
            "By how much the farthest clock of a DEALER's host differs from ours for certain.",
            stalls.clock_difference_ns(),
        ),
        (
            "bodkin_guarantee_suspended",
            "1 while the machine stalls for longer, a clock differs by more, or events come later, than deadlines were admitted with.",
            u64::from(is_suspended),
        ),
        (
            "bodkin_publisher_excess_seconds",
            "By how much events came later than the longest way from their publishers in the last minute.",
            stalls.publisher_excess_ns(),
        ),
        (
            "bodkin_backup_way_seconds",
            "How long a replica took to the Backup in the last minute at the most, half of the way there and back.",
            stalls.backup_way_ns(),
        ),
        (
            "bodkin_failover_seconds",
            "From the last grant to the leader before until a publisher was back, at the last fail-over to this node; 0 without one.",
            stalls.failover_ns(),
        ),
        ("bodkin_failover_long", "1 for a minute behind a fail-over that took longer than x.", u64::from(stalls.failover_was_long())),
        (
            "bodkin_backup_far",
            "1 while replicas take longer to the Backup than bounds on losses were admitted with.",
            u64::from(stalls.backup_is_far()),
        ),
    ]
}
