//! `bench intercloud`: orchestrations in one cloud that lead to a provider of another, through a relay between them.
//!
//! The cases are those of Deliorman 2020, section 5.6.2: the cloud under test is the one that asks (1), and then its neighbor's answers are fixed, or the one that is
//! asked (2). Both clouds are processes of the bench's own, in secure mode; the relay is in the neighbor. One orchestration is two dialogues of four sealed messages.

mod chain;
mod goals;
mod hop;
mod neighbors;
mod provider;
mod secured;
mod tunnels;

use crate::expectation::{BodyRule, Expectation};
use crate::load;
use crate::machine::Conditions;
use crate::open_files;
use crate::options::{Case, InterCloudOptions, Mode};
use crate::published;
use crate::report::{Outcome, Report};
use crate::scene::Batch;
use crate::stages::Stages;
use crate::statistics::Figure;
use hop::Hop;
use neighbors::AT_ONCE;
pub use neighbors::{IF_NOTHING_HERE, Neighbors};
use tunnels::{Tunnels, Way};

/// Short answers that are asked for by each way.
const ROUND_TRIPS: u32 = 500;
/// Orchestrations before each run, one after the other.
const WARM_UP_REQUESTS: u32 = 20;

/// Runs both cases as the options say, and reports them.
///
/// # Errors
/// A cloud does not start, the two do not meet, or nothing is answered at all. Single failed orchestrations are in the report.
pub fn run(options: &InterCloudOptions) -> anyhow::Result<Report> {
    // Of a session that is held, both ends are here.
    let held = if options.gateway { 2 * options.sessions } else { 0 };
    open_files::allow(options.simultaneous().max().unwrap_or(0).max(held) as usize)?;
    let mut report = Report::new("orchestrations that lead to another cloud".into());
    let warm_up = format!("{WARM_UP_REQUESTS} orchestrations before each run");
    let server = "two own clouds in secure mode with authorities of their own, the relay in the neighbor, started by the bench".to_owned();
    let mut conditions =
        Conditions::begin("placed by the kernel; load, both clouds and relay on one machine".into(), server, warm_up, options.repeat);
    conditions.start_from(format!("case 2: {} services in the cloud that is asked, each with a rule for the other", options.services));
    let mut ratios = Vec::new();
    for case in options.cases()? {
        let neighbors = Neighbors::start(case, options)?;
        if options.gateway {
            through_tunnels(&neighbors, options, &mut report, &mut ratios)?;
        }
        hops(&neighbors, case, options, &mut report)?;
        let sequential = (options.sequential > 0).then_some(Mode::Sequential { count: options.sequential });
        let modes = sequential.into_iter().chain(options.simultaneous().map(|count| Mode::Simultaneous { count }));
        for mode in modes {
            let mut outcome = Outcome::new(format!("{}, {}", case.name(), load::title(&[mode])));
            for _ in 0..options.repeat {
                measured(&neighbors, mode, options.gateway, &mut outcome)?;
            }
            report.outcomes.push(outcome);
        }
        neighbors.close()?;
    }
    report.comparisons = vec![goals::table(&report.outcomes, options.gateway, &ratios)];
    ratios.into_iter().for_each(|(what, ratio)| report.ratio(what, ratio));
    report.note("case 1: the cloud under test asks its neighbor, whose answers are fixed; case 2: the neighbor asks the cloud under test, which decides".into());
    report.note(
        "parts of Rocha 2019, Figure 5.5, as mean ms: gsd_* of the dialogue that finds the cloud, icn_* of the one that negotiates: wait (until it is its turn), call (until the other Gatekeeper has acknowledged), answer (from there to its answer), of which decide is its registry, authorization and orchestration; of a negotiation that leads by a tunnel open_provider (a part of decide) and open_consumer (behind the answer)".into(),
    );
    report.note("sequential: on one kept connection; simultaneous: a new connection with a full handshake for each, no answer is taken before the last is released".into());
    report.note(
        "a hop is one message's passage of the relay: half of what the way there and back takes longer than over one TLS connection".into(),
    );
    if options.gateway {
        report.note("every orchestration opens a tunnel; the tunnels of a run are closed behind it".into());
        report.note(
            "tunnel: four TLS connections, between consumer, Gateway, relay, Gateway and provider, the relay in the asking cloud's process; forwarders: as many connections, through threads of the bench that only read from one and write to the next. A way is one connection, by turns".into(),
        );
        report.note(
            "sessions: one connection each, entered (TCP and TLS at the tunnel's port), used and kept; MB of resident memory above what both clouds had after the very first session, in all runs".into(),
        );
    }
    report.published = published::of_intercloud();
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// What sessions hold of memory, and what goes through them. It comes first: what orchestrations leave in the processes is no session's.
fn through_tunnels(
    neighbors: &Neighbors,
    options: &InterCloudOptions,
    report: &mut Report,
    ratios: &mut Vec<(String, f64)>,
) -> anyhow::Result<()> {
    let tunnels = Tunnels::prepare(neighbors, options.sessions)?;
    if options.sessions > 0 {
        // One zero for all runs: what a run leaves behind is in the next one's figures. The first, in processes that have not had so many, is told by itself.
        let idle = tunnels.idle()?;
        for (runs, which) in [(options.repeat.min(1), "the first run of the processes"), (options.repeat.saturating_sub(1), "later runs")] {
            let mut outcome = Outcome::new(format!("{} sessions, {which}", options.sessions));
            for _ in 0..runs {
                tunnels.hold(options.sessions, &idle, &mut outcome)?;
            }
            if runs > 0 {
                report.outcomes.push(outcome);
            }
        }
    }
    if options.tunnel_mb > 0 {
        let mut outcomes = Way::ALL.map(|way| Outcome::new(format!("{} MB by {}", options.tunnel_mb, way.name())));
        for turn in 0..options.repeat {
            tunnels.compare(options.tunnel_mb * 1_000_000, ROUND_TRIPS, turn, &mut outcomes)?;
        }
        for (key, what) in [("to_provider_mb_per_s", "to the provider"), ("to_consumer_mb_per_s", "to the consumer")] {
            let [_, forwarded, tunnel] = outcomes.each_ref().map(|outcome| outcome.series.summary(key));
            if let (Some(forwarded @ 0.1..), Some(tunnel)) = (forwarded, tunnel) {
                ratios.push((format!("throughput {what}, {} to {}", Way::Tunnel.name(), Way::Forwarded.name()), tunnel / forwarded));
            }
        }
        report.outcomes.extend(outcomes);
    }
    Ok(())
}

/// What the relay adds to messages of each length.
fn hops(neighbors: &Neighbors, case: Case, options: &InterCloudOptions, report: &mut Report) -> anyhow::Result<()> {
    if options.relay_messages == 0 {
        return Ok(());
    }
    let hop = Hop::at(neighbors)?;
    for length in hop::LENGTHS {
        let mut outcome = Outcome::new(format!("{}, messages of {length} bytes through the relay", case.name()));
        for _ in 0..options.repeat {
            hop.measure(length, options.relay_messages, &mut outcome)?;
        }
        report.outcomes.push(outcome);
    }
    Ok(())
}

/// One run, behind its warm-up. Where each leads through a tunnel, no tunnel stays.
fn measured(neighbors: &Neighbors, mode: Mode, is_by_gateway: bool, outcome: &mut Outcome) -> anyhow::Result<()> {
    let flag = if matches!(mode, Mode::Sequential { .. }) { IF_NOTHING_HERE } else { AT_ONCE };
    let batch = |count| {
        Ok::<_, anyhow::Error>(Batch {
            endpoint: neighbors.asking.orchestrator()?.clone(),
            requests: neighbors.orchestrations(count, flag)?,
            callers: Vec::new(),
            expectation: Expectation { status: 200, body: BodyRule::FilledList("response") },
        })
    };
    load::one(Mode::Sequential { count: WARM_UP_REQUESTS }, &batch(WARM_UP_REQUESTS)?)?;
    if is_by_gateway {
        neighbors.close_tunnels()?;
    }
    let clouds = [&neighbors.asking, &neighbors.asked];
    let times = || clouds.map(|cloud| Stages::read(cloud.api()?)).into_iter().collect::<anyhow::Result<Vec<_>>>();
    let processor = || clouds.map(|cloud| cloud.processor_time()).into_iter().collect::<anyhow::Result<Vec<_>>>();
    for resident in clouds.iter().filter_map(|cloud| cloud.resident()) {
        resident.reset_peak()?;
    }
    let (times_before, processor_before) = (times()?, processor()?);
    let (mut figures, measured) = load::one(mode, &batch(mode.count())?)?;
    let (times_after, processor_after) = (times()?, processor()?);
    for ((cloud, name), (before, after)) in clouds.iter().zip(["asking", "asked"]).zip(times_before.iter().zip(&times_after)) {
        let added = after.dialogues_since(before);
        for (subject, prefix) in [("gsd_poll", "gsd"), ("icn_proposal", "icn")] {
            for (part, stage) in added.get(subject).into_iter().flatten() {
                figures.push(Figure::median(format!("{prefix}_{part}_ms"), stage.mean_us() / 1e3));
            }
        }
        outcome.add_stages(after.since(before).into_iter().map(|(system, stages)| (format!("{name} {system}"), stages)).collect());
        if let Some(resident) = cloud.resident() {
            figures.push(Figure::max(format!("{name}_peak_rss_mb"), resident.peak_mb()?));
        }
    }
    for ((before, after), name) in processor_before.iter().zip(&processor_after).zip(["asking", "asked"]) {
        if let (Some(before), Some(after)) = (before, after) {
            figures.push(Figure::median(format!("{name}_cpu_s"), (*after - *before).as_secs_f64()));
        }
    }
    figures.push(Figure::sum("answered", measured.latencies.count()));
    outcome.push(figures, measured);
    if is_by_gateway { neighbors.close_tunnels() } else { Ok(()) }
}
