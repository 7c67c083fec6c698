//! The answer of `bodkin topic check` for people: a table of the topics, what is refused and how it would not be, and the platform's sums.

use std::{io, path::Path};

use bodkin_broker::{
    timing::{CoreView, Deadlines, Nanos, Plan, Reason, Span, Verdict},
    topic::{LeaseTimes, Platform, TopicSpec},
};

use super::{
    super::{details::Details, printer::Printer, table::Table, write_out},
    report::{shortfall_told, told},
};
use crate::topic_file::{Entry, TopicFile};

/// Refusals that are explained; there may be many, all of one kind.
const EXPLAINED_MAX: usize = 32;

/// Prints everything.
pub(super) fn print(path: &Path, file: &TopicFile, plan: &Plan, printer: Printer) -> io::Result<()> {
    printer.table(&topics(file, plan), "no topics")?;
    let refused = || file.topics.iter().zip(&plan.verdicts).filter(|(_, verdict)| verdict.placed.is_err());
    for (topic, verdict) in refused().take(EXPLAINED_MAX) {
        write_out(&explained(path, topic, verdict))?;
    }
    match refused().count() {
        0 => {}
        count @ ..=EXPLAINED_MAX => write_out(&format!("\n{count} of {} entries are refused\n", file.topics.len()))?,
        count => write_out(&format!("\n{count} of {} entries are refused; the first {EXPLAINED_MAX} are explained\n", file.topics.len()))?,
    }
    write_out(&format!("\n{}", sums(file, plan)))
}

fn topics(file: &TopicFile, plan: &Plan) -> Table {
    let mut table =
        Table::new(&["EVENT TYPE", "COUNT", "DISPATCH", "REPLICATE", "N", "MIN", "M", "MAX", "EXPECTED", "PAPER", "BACKUP", "VERDICT"]);
    for (topic, Verdict { deadlines, placed }) in file.topics.iter().zip(&plan.verdicts) {
        let spec = &topic.form.spec;
        table.push([
            topic.event_type.as_str().to_owned(),
            topic.form.count.to_string(),
            deadlines.dispatch.to_string(),
            deadlines.replicate.to_string(),
            spec.retention.to_string(),
            deadlines.retention_min.map_or("none".to_owned(), |least| least.to_string()),
            spec.mark_every.to_string(),
            deadlines.mark_every_max.map_or("-".to_owned(), |most| most.to_string()),
            expected(deadlines).to_owned(),
            if deadlines.paper_replicates { "replicate" } else { "skip" }.to_owned(),
            deadlines.backup_entries.map_or("unbounded".to_owned(), |entries| entries.to_string()),
            if placed.is_ok() { "admitted" } else { "REFUSED" }.to_owned(),
        ]);
    }
    table
}

/// What is likely to become of replicas.
fn expected(deadlines: &Deadlines) -> &'static str {
    match (deadlines.replicate, deadlines.replication_predicted_cancelled()) {
        (Span::Infinite, _) => "none",
        (Span::Finite(_), true) => "cancelled",
        (Span::Finite(_), false) => "replicated",
    }
}

fn explained(path: &Path, topic: &Entry, verdict: &Verdict) -> String {
    let Err(refusal) = &verdict.placed else { return String::new() };
    let mut text = format!("\n{}:{}: {} is refused\n", path.display(), topic.line, topic.event_type.as_str());
    for reason in &refusal.reasons {
        text += &format!("  because {reason}\n");
        text += &formula(reason, &verdict.deadlines);
    }
    for (index, way) in refusal.ways.iter().enumerate() {
        let changes: Vec<String> = way.iter().copied().map(told).collect();
        let lead = if index == 0 { "would be admitted with" } else { "                or with" };
        text += &format!("  {lead} {}\n", changes.join(" and "));
    }
    if refusal.ways.is_empty() {
        text += "  no change of one of its keys was found with which it would be admitted\n";
    }
    text
}

/// Where the figures of a reason come from.
fn formula(reason: &Reason, deadlines: &Deadlines) -> String {
    match reason {
        Reason::Dispatch { .. } => "          (D - PB - BS_max - eps; dispatch_cost + blocking)\n".to_owned(),
        Reason::Replicate { .. } => {
            let least = deadlines.retention_min.map_or("no N".to_owned(), |least| format!("N = {least}"));
            format!("          ((N + L + 1 - M) * T - J - x - BB - eps - PB; batch_cost + replica_cost + blocking; {least} would do)\n")
        }
        Reason::MarkEvery { .. } => "          (M is at most L + 1, whatever N and x are)\n".to_owned(),
        Reason::Load { .. } | Reason::Demand { .. } => String::new(),
    }
}

/// What is the same for all topics, and what they come to.
fn sums(file: &TopicFile, plan: &Plan) -> Details {
    let platform = &file.platform;
    let mut details = Details::default().with("fail-over x", failover(platform));
    if let Some(implied) = platform.failover_shortfall() {
        details = details.with(
            "  REFUSED",
            format!("{}; or write platform.failover_ms = {}", shortfall_told(platform, implied), implied.in_unit(1_000_000)),
        );
    }
    for (core, view) in plan.cores.iter().enumerate().filter(|(_, view)| view.topics > 0) {
        details = details.with("core", format!("{core}: {}", core_told(view)));
    }
    let latency = plan.failover_latency.map_or("no bound: a topic with a bound on losses has no deadline".to_owned(), |latency| {
        format!("events are at most {} later than their deadlines (x + promote + drain)", rounded_up(latency))
    });
    let details = details.with("at a fail-over", latency);
    let zero = taken_as_zero(platform, file.topics.iter().map(|topic| &topic.form.spec));
    let details = details.with_some("taken as zero", (!zero.is_empty()).then(|| zero.join(", ")));
    let unsought = (plan.unsought > 0).then(|| format!("for {} entries without room no change was sought", plan.unsought));
    details.with_some("not searched", unsought)
}

fn failover(platform: &Platform) -> String {
    let lease = platform.lease;
    let parts = || {
        format!(
            "lease {} * (1 + {} ppm) + heartbeat {} + detect_jitter {} + redirect {} = {}",
            lease.lease,
            lease.drift_ppm,
            lease.heartbeat,
            lease.detect_jitter,
            lease.redirect,
            lease.failover()
        )
    };
    match platform.failover {
        Some(stated) if lease == LeaseTimes::default() => format!("{stated} as stated; nothing is stated of the lease"),
        Some(stated) => format!("{stated} as stated; {}", parts()),
        None => parts(),
    }
}

fn core_told(view: &CoreView) -> String {
    let lead = view.replica_lead.map(|lead| format!("; replicas are begun {} before their deadline at the latest", rounded_up(lead)));
    let recovery = view
        .recovery
        .map(|recovery| format!("; at a fail-over {} events at once, dispatched within {}", recovery.events, rounded_up(recovery.drain)));
    format!("{} topics, load {}{}{}", view.topics, view.load, lead.unwrap_or_default(), recovery.unwrap_or_default())
}

fn rounded_up(time: Nanos) -> Nanos {
    Nanos::from_micros(time.micros_up())
}

/// What every topic, or the platform, leaves at zero, so that nothing is claimed that nobody has said.
fn taken_as_zero<'t>(platform: &Platform, topics: impl Iterator<Item = &'t TopicSpec>) -> Vec<&'static str> {
    let mut longest = [
        ("publisher_broker", Nanos::ZERO),
        ("broker_subscriber_max", Nanos::ZERO),
        ("dispatch_cost", Nanos::ZERO),
        ("replica_cost", Nanos::ZERO),
        ("broker_backup", platform.broker_backup),
        ("clock_error", platform.clock_error),
        ("blocking", platform.blocking),
    ];
    for topic in topics {
        let of_topic = [topic.publisher_broker, topic.broker_subscriber_max, topic.dispatch_cost, topic.replica_cost];
        longest.iter_mut().zip(of_topic).for_each(|((_, longest), time)| *longest = time.max(*longest));
    }
    longest.into_iter().filter(|(_, time)| *time == Nanos::ZERO).map(|(key, _)| key).collect()
}
