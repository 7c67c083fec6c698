//! The answer of `bodkin topic check` for programs: `docs/formats/topics.md`. Microseconds are whole: deadlines are rounded down, what they
//! have to hold is rounded up; `null` is infinite, or that there is no bound.

use bodkin_broker::{
    timing::{Change, Deadlines, Key, Nanos, Plan, Reason, Span, Verdict},
    topic::{LossTolerance, Platform},
};
use serde::Serialize;

use crate::topic_file::{Entry, TopicFile};

/// The whole answer.
#[derive(Serialize)]
pub(super) struct Report {
    admitted: bool,
    platform: PlatformReport,
    topics: Vec<TopicReport>,
    demand: DemandReport,
    cores: Vec<CoreReport>,
    failover_latency_us: Option<i64>,
    unsought: usize,
}

/// The arithmetic of x.
#[derive(Serialize)]
struct PlatformReport {
    admitted: bool,
    failover_us: i64,
    failover_stated_us: Option<i64>,
    failover_implied_us: i64,
    reasons: Vec<String>,
    changes: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct TopicReport {
    event_type: String,
    line: usize,
    count: u32,
    admitted: bool,
    loss_tolerance: Option<u32>,
    retention: u32,
    retention_min: Option<u32>,
    mark_every: u32,
    mark_every_max: Option<u32>,
    dispatch_us: Option<i64>,
    dispatch_feasible: bool,
    replicate_us: Option<i64>,
    replicate_feasible: bool,
    replication_predicted_cancelled: bool,
    cancel_slack_us: Option<i64>,
    paper_prop1_replicates: bool,
    backup_entries: Option<u64>,
    cores: Vec<PlacementReport>,
    reasons: Vec<String>,
    changes: Vec<Vec<String>>,
}

/// So many of an entry's topics on a core.
#[derive(Serialize)]
struct PlacementReport {
    core: usize,
    count: u32,
}

/// Whether the jobs of everything that was asked for fit, and where they first do not.
#[derive(Serialize)]
struct DemandReport {
    feasible: bool,
    first_violation: Option<ViolationReport>,
}

#[derive(Serialize)]
struct ViolationReport {
    event_type: String,
    core: usize,
    #[serde(flatten)]
    what: Violation,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Violation {
    Load { load_ppm: u64, load_max_ppm: u64 },
    Overrun { level: u8, at_ns: i64, demand_ns: i64, supply_ns: i64, exact: bool },
}

#[derive(Serialize)]
struct CoreReport {
    core: usize,
    topics: u64,
    load_ppm: u64,
    replica_lead_us: Option<i64>,
    recovery_events: Option<u64>,
    drain_us: Option<i64>,
}

impl Report {
    pub fn of(file: &TopicFile, plan: &Plan) -> Self {
        let platform = PlatformReport::of(&file.platform);
        let violations = file.topics.iter().zip(&plan.verdicts).filter_map(|(topic, verdict)| {
            let (core, what) = verdict.placed.as_ref().err()?.reasons.iter().find_map(violation)?;
            Some(ViolationReport { event_type: topic.event_type.as_str().to_owned(), core, what })
        });
        let first_violation = violations.into_iter().next();
        let cores = plan.cores.iter().enumerate().map(|(core, view)| CoreReport {
            core,
            topics: view.topics,
            load_ppm: view.load.ppm(),
            replica_lead_us: view.replica_lead.map(Nanos::micros_up),
            recovery_events: view.recovery.map(|recovery| recovery.events),
            drain_us: view.recovery.map(|recovery| recovery.drain.micros_up()),
        });
        Self {
            admitted: plan.is_admitted() && platform.admitted,
            platform,
            topics: file.topics.iter().zip(&plan.verdicts).map(|(topic, verdict)| TopicReport::of(topic, verdict)).collect(),
            demand: DemandReport { feasible: first_violation.is_none(), first_violation },
            cores: cores.collect(),
            failover_latency_us: plan.failover_latency.map(Nanos::micros_up),
            unsought: plan.unsought,
        }
    }
}

impl PlatformReport {
    fn of(platform: &Platform) -> Self {
        let shortfall = platform.failover_shortfall();
        Self {
            admitted: shortfall.is_none(),
            failover_us: platform.failover().micros_up(),
            failover_stated_us: platform.failover.map(Nanos::micros_up),
            failover_implied_us: platform.lease.failover().micros_up(),
            reasons: shortfall.iter().map(|implied| shortfall_told(platform, *implied)).collect(),
            changes: shortfall.iter().map(|implied| vec![told(Change { key: Key::Failover, value: implied.get() })]).collect(),
        }
    }
}

/// Why a stated x is refused.
pub(super) fn shortfall_told(platform: &Platform, implied: Nanos) -> String {
    let stated = platform.failover.unwrap_or_default();
    format!("a fail-over is stated to take {stated} at the most, and the lease implies {implied}: with that the topics are checked")
}

/// A change as it would be written into the file.
pub(super) fn told(change: Change) -> String {
    if change.key == Key::Failover { format!("platform.{change}") } else { change.to_string() }
}

impl TopicReport {
    fn of(topic: &Entry, Verdict { deadlines, placed }: &Verdict) -> Self {
        let Deadlines { dispatch, replicate, retention_min, mark_every_max, cancel_slack, paper_replicates, backup_entries, .. } =
            *deadlines;
        let spec = &topic.form.spec;
        let micros = |span: Span| span.finite().map(Nanos::micros);
        let refusal = placed.as_ref().err();
        let cores = placed.iter().flatten().map(|(core, count)| PlacementReport { core: *core, count: *count });
        let loss_tolerance = match spec.loss_tolerance {
            LossTolerance::AtMost(losses) => Some(losses),
            LossTolerance::Any => None,
        };
        Self {
            event_type: topic.event_type.as_str().to_owned(),
            line: topic.line,
            count: topic.form.count,
            admitted: refusal.is_none(),
            loss_tolerance,
            retention: spec.retention,
            retention_min,
            mark_every: spec.mark_every.get(),
            mark_every_max,
            dispatch_us: micros(dispatch),
            dispatch_feasible: deadlines.dispatch_feasible(),
            replicate_us: micros(replicate),
            replicate_feasible: deadlines.replicate_feasible(),
            replication_predicted_cancelled: deadlines.replication_predicted_cancelled(),
            cancel_slack_us: cancel_slack.and_then(micros),
            paper_prop1_replicates: paper_replicates,
            backup_entries,
            cores: cores.collect(),
            reasons: refusal.map(|refusal| refusal.reasons.iter().map(Reason::to_string).collect()).unwrap_or_default(),
            changes: refusal.map(|refusal| ways_told(&refusal.ways)).unwrap_or_default(),
        }
    }
}

fn ways_told(ways: &[Vec<Change>]) -> Vec<Vec<String>> {
    ways.iter().map(|way| way.iter().copied().map(told).collect()).collect()
}

fn violation(reason: &Reason) -> Option<(usize, Violation)> {
    match reason {
        Reason::Load { core, load, load_max } => Some((*core, Violation::Load { load_ppm: load.ppm(), load_max_ppm: load_max.ppm() })),
        Reason::Demand { core, overrun } => {
            let level = overrun.level.get();
            let (at_ns, demand_ns, exact) = (overrun.at.get(), overrun.demand.get(), overrun.is_exact);
            Some((*core, Violation::Overrun { level, at_ns, demand_ns, supply_ns: at_ns, exact }))
        }
        _ => None,
    }
}
