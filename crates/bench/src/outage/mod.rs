//! `bench outage`: nodes that share a database and edges of a fleet, and what is lost when they, their links or their servers fail.
//!
//! [`plan`] draws the faults of a seed. A [`Stand`] has the processes and their links, [`strike`] lets a fault happen, [`load`]
//! publishes, registers and listens meanwhile. After each fault the [`Checker`](check) compares both ends of every path with the
//! promises. Finished faults are in a state file, as those of [`crash`](crate::crash) are; a rerun continues after them.

mod check;
mod fault;
mod ledger;
mod load;
mod member;
mod plan;
mod postgres;
mod stand;
mod strike;
mod table;
mod tls;

pub use fault::Fault;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use anyhow::ensure;

use self::check::{Checker, Settled};
use self::load::{Load, Scene};
use self::stand::Stand;
use self::strike::strike;
use crate::crash::state::{FaultResult, Saved};
use crate::machine::Conditions;
use crate::options::OutageOptions;
use crate::report::Report;
use crate::state::State;
use crate::statistics::Figure;

/// Runs the faults that the seed draws, and returns the report.
///
/// # Errors
/// Returns an error if a program is missing, nothing becomes ready, or the state file is of another campaign.
pub fn run(options: &OutageOptions) -> anyhow::Result<Report> {
    ensure!(!options.drawn().is_empty(), "full-node needs --with-disks");
    let mut saved = Saved::open(options.state.as_deref(), options.seed, State::fresh_seed(), &options.plan_text())?;
    let count = options.faults as usize;
    eprintln!("seed {}: {count} faults, {} of them done", saved.seed, saved.results.len());
    let servers = if options.tls { "in TLS with client certificates" } else { "without TLS" };
    let server = format!("own nodes, edges, insecure, and PostgreSQL and NATS {servers}, started by the bench");
    let mut conditions = Conditions::begin("placed by the kernel".into(), server, "until every path flows".into(), options.faults);
    while saved.results.len() < count {
        round(options, &mut saved)?;
    }
    let mut report = table::report(&saved, count);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// Runs faults on one stand until all are done, or the stand does not recover from one.
fn round(options: &OutageOptions, saved: &mut Saved) -> anyhow::Result<()> {
    let settle_max = Duration::from_secs_f64(options.settle_max_s);
    let mut stand = Stand::start(options)?;
    let scene = Arc::new(Scene::new(&stand, Duration::from_secs_f64(options.period_ms / 1e3)));
    let load = Load::start(&scene, &stand, saved.seed)?;
    let mut checker = Checker::new(&scene, &stand)?;
    let calm = checker.settle(&mut stand, &strike::Struck::default(), settle_max);
    ensure!(calm.account.breaches.is_empty(), "without a fault a promise is broken: {:?}", calm.account.breaches);
    let faults = options.drawn();
    while saved.results.len() < options.faults as usize {
        thread::sleep(Duration::from_secs_f64(options.seconds));
        let number = saved.results.len() + 1;
        let strikes = plan::strikes(saved.seed, number, &faults);
        let label = plan::label(&strikes);
        eprintln!("fault {number}: {}", described(&strikes, &stand));
        let mut struck = strike(&mut stand, &strikes);
        let Settled { after, mut account, counted_losses, lost_by_servers, is_whole } = checker.settle(&mut stand, &struck, settle_max);
        account.breaches.splice(0..0, struck.breaches.drain(..));
        let is_last = number == options.faults as usize;
        if is_last || !is_whole {
            account.breaches.extend(checker.registrations(&stand));
        }
        let figures = vec![
            Figure::sum("faults", 1),
            Figure::sum("breaches", account.breaches.len() as u64),
            Figure::median("settle_s", after.as_secs_f64()),
            Figure::sum("excused_losses", account.excused_losses),
            Figure::sum("excused_repeats", account.excused_repeats),
            Figure::sum("loss_reports", account.loss_reports),
            Figure::sum("counted_losses", counted_losses),
            Figure::sum("lost_by_servers", lost_by_servers),
            Figure::sum("same_identity", scene.same_identity.swap(0, Relaxed)),
        ];
        let mut result = FaultResult { number, fault: label, figures, breaches: account.breaches, ..FaultResult::default() };
        if !result.breaches.is_empty() {
            let parent = options.logs.clone().unwrap_or_else(|| PathBuf::from(format!("bodkin-outage-{}", saved.seed)));
            let directory = parent.join(format!("fault-{number}"));
            stand.keep_logs(&directory)?;
            result.logs = Some(directory);
        }
        result.print(saved.seed);
        saved.results.push(result);
        saved.write()?;
        if !is_whole {
            break;
        }
    }
    let [accepted, arrived] = scene.ledger().counts();
    eprintln!("{accepted} events and commands answered, {arrived} arrivals, {} registrations", scene.registrations(0).len());
    for (refusal, count) in scene.ledger().refusals() {
        eprintln!("{count} times refused: {refusal}");
    }
    drop(load);
    Ok(())
}

/// Returns the strikes with their members and times.
fn described(strikes: &[plan::Strike], stand: &Stand) -> String {
    let one = |strike: &plan::Strike| {
        let target = strike.target().map_or("server", |member| stand.members[member].name.as_str());
        format!("{} of {target} after {} ms for {} ms", strike.fault.name(), strike.after.as_millis(), strike.lasts.as_millis())
    };
    strikes.iter().map(one).collect::<Vec<_>>().join(", ")
}
