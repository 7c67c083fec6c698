//! `bodkin status`: a node at a glance, on one screen.

use std::collections::BTreeMap;

use bodkin_client::{
    CallError,
    answer::{NodeOverview, PlatformState},
};
use clap::Args;
use http::StatusCode;
use serde_json::json;

use super::{details::Details, printer::Printer, registry::RegistryOptions};
use crate::{DONE, FAILED};

/// Options of `bodkin status`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Exit codes: 0 nothing is suspended or unprotected, 1 something is, or the node does not answer, 3 not for this caller."
)]
pub struct StatusOptions {
    #[command(flatten)]
    registry: RegistryOptions,
}

/// Prints it; gives the exit code.
pub async fn run(options: StatusOptions, printer: Printer) -> anyhow::Result<u8> {
    let monitor = options.registry.monitor()?;
    let overview = match monitor.overview().await {
        Err(CallError::Unexpected { address, status: StatusCode::SERVICE_UNAVAILABLE, body }) => {
            let told = Details::default().with("node", format!("{address}, which answers and does not serve")).with("why", body.trim());
            printer.one(&json!({"node": address, "why": body.trim()}), &told)?;
            return Ok(FAILED);
        }
        overview => overview?,
    };
    let platform = monitor.platform().await?;
    let troubles = troubles(&overview.numbers, &platform);
    printer.one(
        &json!({"node": monitor.address(), "overview": overview, "platform": platform, "troubles": troubles}),
        &details(&monitor.address(), &overview, &platform, &troubles),
    )?;
    Ok(if troubles.is_empty() { DONE } else { FAILED })
}

fn number(numbers: &BTreeMap<String, f64>, name: &str) -> f64 {
    numbers.get(name).copied().unwrap_or_default()
}

/// What is not as it should be just now, most urgent first, each with what to do.
fn troubles(numbers: &BTreeMap<String, f64>, platform: &PlatformState) -> Vec<String> {
    let is = |name| number(numbers, name) > 0.0;
    let leads_alone = is("bodkin_pair_leads") && !is("bodkin_pair_protected");
    let told = [
        (is("bodkin_audit_suspended"), "the audit log cannot be written, and changes are refused: make room on its disk".to_owned()),
        (is("bodkin_event_log_suspended"), "the event log keeps nothing: make room on its disk".to_owned()),
        (leads_alone, "the Backup is out, and nothing is protected: start it, or look why it cannot follow".to_owned()),
        (
            is("bodkin_guarantee_suspended"),
            format!(
                "deadlines are not guaranteed: the longest stall of the last minute was {} us, and {} us are stated; bodkin doctor looks for the cause",
                platform.worst_us, platform.blocking_us
            ),
        ),
        (is("bodkin_backup_far"), "replicas take longer to the Backup than bounds on losses were admitted with".to_owned()),
    ];
    told.into_iter().filter(|(is, _)| *is).map(|(_, told)| told).collect()
}

fn details(address: &str, overview: &NodeOverview, platform: &PlatformState, troubles: &[String]) -> Details {
    let count = |name: &str| format!("{}", number(&overview.numbers, name));
    let of = |names: &[(&str, &str)]| names.iter().map(|(name, what)| format!("{} {what}", count(name))).collect::<Vec<_>>().join(", ");
    let mode = if overview.secure { "secure" } else { "insecure" };
    let details = Details::default()
        .with("node", format!("{address}, bodkin {}, {mode}, up for {}", overview.version, lasted(overview.uptime_s)))
        .with("cloud", &overview.cloud)
        .with("pair", pair(&overview.numbers))
        .with("deadlines", deadlines(platform))
        .with("threads", format!("{}: {}", platform.scheduling.policy, platform.scheduling.why))
        .with(
            "holds",
            of(&[
                ("bodkin_systems", "systems"),
                ("bodkin_services", "services"),
                ("bodkin_authorization_rules", "rules"),
                ("bodkin_event_subscriptions", "subscriptions"),
                ("bodkin_topics", "real-time topics"),
            ]),
        )
        .with(
            "events",
            of(&[
                ("bodkin_events_published_total", "published"),
                ("bodkin_events_delivered_total", "delivered"),
                ("bodkin_events_lost_total", "lost"),
                ("bodkin_dead_letters_total", "given up"),
                ("bodkin_events_waiting", "waiting"),
            ]),
        )
        .with(
            "real-time",
            of(&[
                ("bodkin_topic_dispatched_total", "dispatched"),
                ("bodkin_topic_late_total", "late"),
                ("bodkin_topic_shed_total", "shed"),
            ]),
        )
        .with(
            "replicas",
            of(&[("bodkin_replicas_sent_total", "sent"), ("bodkin_replicas_saved_total", "saved"), ("bodkin_replicas_late_total", "late")]),
        )
        .with(
            "kept",
            format!(
                "{}, {} of event log",
                of(&[("bodkin_event_log_events", "events"), ("bodkin_audit_entries", "audit entries")]),
                bytes(number(&overview.numbers, "bodkin_event_log_bytes"))
            ),
        )
        .with("memory", memory(number(&overview.numbers, "bodkin_resident_memory_bytes")))
        .with("connections", of(&[("bodkin_control_connections", "to core systems"), ("bodkin_event_connections", "for events")]));
    match troubles {
        [] => details.with("trouble", "none"),
        troubles => troubles.iter().fold(details, |details, trouble| details.with("TROUBLE", trouble)),
    }
}

fn pair(numbers: &BTreeMap<String, f64>) -> String {
    let Some(epoch) = numbers.get("bodkin_pair_epoch") else { return "none: a cloud by itself".to_owned() };
    match number(numbers, "bodkin_pair_protected") > 0.0 {
        true => format!("leads in epoch {epoch}, the Backup is in sync"),
        false => format!("leads in epoch {epoch}, WITHOUT a Backup"),
    }
}

fn deadlines(platform: &PlatformState) -> String {
    let PlatformState { guarantee, worst_us, blocking_us, .. } = platform;
    match (worst_us, blocking_us) {
        (0, 0) => format!("{guarantee}: no longest stall is stated, and none was measured yet"),
        (0, _) => format!("{guarantee}: {blocking_us} us are stated as the longest stall, and none was measured yet"),
        (_, 0) => format!("{guarantee}: no longest stall is stated; the longest of the last minute was {worst_us} us"),
        _ => format!("{guarantee}: the longest stall of the last minute was {worst_us} us of {blocking_us} us stated"),
    }
}

/// What the process has, which `/proc` tells: none has nothing.
fn memory(resident_bytes: f64) -> String {
    if resident_bytes > 0.0 { bytes(resident_bytes) } else { "not known: /proc is not mounted there".to_owned() }
}

/// A time in the two units that matter.
fn lasted(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn bytes(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} GB", value / 1e9),
        value if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        value if value >= 1e3 => format!("{:.1} kB", value / 1e3),
        value => format!("{value} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(told: &[(&str, f64)]) -> BTreeMap<String, f64> {
        told.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn what_is_suspended_or_unprotected_is_told_and_what_has_been_is_not() {
        let platform = PlatformState { worst_us: 70, blocking_us: 60, ..PlatformState::default() };
        let told = |of: &[(&str, f64)]| troubles(&numbers(of), &platform);
        assert!(told(&[("bodkin_events_lost_total", 5.0), ("bodkin_topic_late_total", 1.0)]).is_empty());
        assert!(told(&[("bodkin_pair_leads", 1.0), ("bodkin_pair_protected", 1.0)]).is_empty());
        assert!(told(&[("bodkin_pair_leads", 1.0), ("bodkin_pair_protected", 0.0)])[0].contains("the Backup is out"));
        let both = told(&[("bodkin_guarantee_suspended", 1.0), ("bodkin_audit_suspended", 1.0)]);
        assert!(both.len() == 2 && both[0].contains("changes are refused") && both[1].contains("70 us, and 60 us are stated"), "{both:?}");
    }

    #[test]
    fn a_screen_holds_it() {
        let overview = NodeOverview {
            uptime_s: 3_725,
            numbers: numbers(&[("bodkin_resident_memory_bytes", 12_345_678.0)]),
            ..NodeOverview::default()
        };
        let printed = details("127.0.0.1:8440", &overview, &PlatformState::default(), &["one".to_owned(), "two".to_owned()]).to_string();
        assert!(printed.lines().count() <= 24, "{printed}");
        let bare = details("127.0.0.1:8440", &NodeOverview::default(), &PlatformState::default(), &[]).to_string();
        assert!(bare.contains("none was measured yet") && bare.contains("memory       not known"), "{bare}");
        for part in ["up for 1 h 2 min", "12.3 MB", "TROUBLE      one", "a cloud by itself"] {
            assert!(printed.contains(part), "{part} is not in\n{printed}");
        }
    }
}
