//! Clocks: how fine they are, what they are made of, whether the time of day is kept right.

use std::{fs, path::Path, process::Command, time::Duration};

use nix::time::{ClockId, clock_getres};

use super::finding::Finding;

/// The coarsest resolution that deadlines of milliseconds can be kept with.
const RESOLUTION_MAX: Duration = Duration::from_micros(100);
/// Clock sources that take microseconds to read.
const SLOW_SOURCES: [&str; 4] = ["acpi_pm", "hpet", "jiffies", "pit"];
const SOURCE_FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// systemd-timesyncd makes this file when the clock was set.
const TIMESYNCD_FILE: &str = "/run/systemd/timesync/synchronized";

/// Looks at the clocks.
pub fn examine() -> Vec<Finding> {
    vec![resolution(), source(), synchronised()]
}

fn resolution() -> Finding {
    let clocks = [
        ("CLOCK_MONOTONIC", ClockId::CLOCK_MONOTONIC),
        ("CLOCK_REALTIME", ClockId::CLOCK_REALTIME),
        ("CLOCK_BOOTTIME", ClockId::CLOCK_BOOTTIME),
    ];
    let resolutions = clocks.map(|(name, id)| (name, clock_getres(id).map(Duration::from)));
    let told: Vec<String> = resolutions
        .iter()
        .map(|(name, resolution)| match resolution {
            Ok(resolution) => format!("{name} {} ns", resolution.as_nanos()),
            Err(error) => format!("{name} cannot be read ({error})"),
        })
        .collect();
    let told = format!("resolution: {}", told.join(", "));
    if resolutions.iter().any(|(_, resolution)| resolution.is_err()) {
        Finding::problem("clocks", told, "run a Linux kernel with all three clocks; leases and deadlines are measured on them")
    } else if resolutions.iter().any(|(_, resolution)| resolution.is_ok_and(|resolution| resolution > RESOLUTION_MAX)) {
        Finding::warning("clocks", told, "enable high-resolution timers in the kernel: deadlines cannot be kept finer than its clocks")
    } else {
        Finding::ok("clocks", told)
    }
}

fn source() -> Finding {
    let Ok(source) = fs::read_to_string(SOURCE_FILE) else {
        return Finding::ok("clock source", "this system does not tell what its clock is made of");
    };
    let source = source.trim();
    if SLOW_SOURCES.contains(&source) {
        let told = format!("{source}: every look at the clock takes microseconds");
        Finding::warning(
            "clock source",
            told,
            "see what /sys/devices/system/clocksource/clocksource0/available_clocksource offers; tsc and kvm-clock are fast",
        )
    } else {
        Finding::ok("clock source", source)
    }
}

/// Events carry the time of day: between machines it must be the same.
fn synchronised() -> Finding {
    const ADVICE: &str = "run a time service (systemd-timesyncd, chrony) on every machine of the cloud: events carry the time of day, and \
        publishers whose clock is off by more than two minutes may be refused";
    match told_by_timedatectl().or_else(|| Path::new(TIMESYNCD_FILE).exists().then_some(true)) {
        Some(true) => Finding::ok("time of day", "synchronised"),
        Some(false) => Finding::warning("time of day", "not synchronised", ADVICE),
        None => Finding::warning("time of day", "this system does not tell whether its clock is synchronised", ADVICE),
    }
}

fn told_by_timedatectl() -> Option<bool> {
    let output = Command::new("timedatectl").args(["show", "--property=NTPSynchronized", "--value"]).output().ok()?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}
