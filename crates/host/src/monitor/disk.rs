//! The numbers of the disk of the data directory.

use super::Number;
use crate::disk::DataDisk;

/// What is there now.
pub(super) fn gauges(disk: &DataDisk) -> impl Iterator<Item = Number> + use<> {
    let free = ("bodkin_data_free_bytes", "Bytes that may still be written on the disk of the data directory.");
    let free = disk.free_bytes().map(|bytes| (free.0, free.1, bytes));
    let told = [
        ("bodkin_event_log_max_bytes", "Bytes that the event log's files may have at the most.", disk.event_log_bytes_max()),
        (
            "bodkin_database_suspended",
            "1 since the database did not take a change until it takes one: its disk is full or fails, or a shared database refuses it.",
            u64::from(disk.refuses()),
        ),
    ];
    told.into_iter().chain(free)
}

/// What has been counted since the start.
pub(super) fn counters(disk: &DataDisk) -> Number {
    (
        "bodkin_database_refused_commits_total",
        "Commits that the database did not take; their changes were answered 503.",
        disk.refused_commits(),
    )
}
