//! One fault: it strikes, passes, and the pair becomes whole again.

use std::thread;
use std::time::{Duration, Instant};

use bodkin_broker::timing::Nanos;
use nix::sys::signal::Signal;

use super::fault::{CUT, Fault, LASTING};
use super::nodes::{Nodes, partner};
use super::plant::{Plant, Site};
use crate::options::CrashOptions;

/// Longest wait for another leader.
const LEADER_WAIT_MAX: Duration = Duration::from_secs(20);
/// How troubles begin that are about measured latencies.
const LATENCY_TROUBLES: [&str; 2] = ["deadlines are not guaranteed", "replicas take longer"];
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One fault and what followed.
pub struct Strike {
    /// When it struck.
    pub from: Instant,
    /// When the pair was whole again.
    pub until: Instant,
    /// Whether another broker led after the fault.
    pub is_replaced: bool,
    /// Whether it had to wait, because whoever led had no Backup in sync.
    pub has_waited: bool,
}

impl Strike {
    /// Until the publishers turned to another broker.
    pub fn gap(&self, led: &[Instant]) -> Option<Duration> {
        led.iter().find(|at| **at > self.from).map(|at| *at - self.from)
    }

    /// Whether somebody else leads if and only if the fault asks for it.
    pub fn is_as_expected(&self, fault: Fault) -> bool {
        fault.replaces_leader().is_none_or(|replaces| replaces == self.is_replaced)
    }

    /// How often the publishers turned to a leader meanwhile, the same one or another.
    pub fn turns(&self, led: &[Instant]) -> usize {
        led.iter().filter(|at| (self.from..=self.until).contains(*at)).count()
    }
}

/// Lets a fault happen, and makes all well again.
///
/// # Errors
/// Returns an error if a node ends by itself, no node leads, or the pair does not become whole again.
pub fn strike(plant: &Plant, nodes: &mut Nodes<'_>, fault: Fault, options: &CrashOptions) -> anyhow::Result<Strike> {
    // An event that only one broker holds is lost with that broker.
    let at_once = nodes.protected_leader();
    let leader = at_once.map_or_else(|| nodes.wait_until_protected(), Ok)?;
    let other = partner(leader);
    let from = Instant::now();
    match fault {
        Fault::None => thread::sleep(Duration::from_secs_f64(options.undisturbed_seconds)),
        Fault::Kill => nodes.kill(leader)?,
        Fault::HostLoss => {
            plant.set_wires(leader, false)?;
            nodes.kill(leader)?;
        }
        Fault::Stop1 | Fault::Stop20 | Fault::Stop200 | Fault::Stop2000 => stop(nodes, leader, fault)?,
        Fault::StopBackup => stop(nodes, other, fault)?,
        Fault::HandOver => {
            let answer = nodes.hand_over(leader)?;
            if answer.status != 200 {
                eprintln!("the switchover was refused: {}", answer.text());
                anyhow::ensure!(!answer.reason().is_empty(), "a switchover was refused without a reason, status {}", answer.status);
            }
        }
        Fault::CutPair => cut(plant, leader, other)?,
        Fault::CutPublishers => cut(plant, Site::Machine, leader)?,
        Fault::CutLeader => isolate(plant, leader)?,
        Fault::CutWitness => isolate(plant, Site::Witness)?,
        Fault::CutBackup => isolate(plant, other)?,
        Fault::KillWitness => nodes.kill(Site::Witness)?,
        Fault::KillBackup => nodes.kill(other)?,
        Fault::SecondPrimary => second_primary(nodes)?,
        Fault::CopiedPrimary => {
            nodes.copy_data(Site::First, Site::Clone)?;
            second_primary(nodes)?;
        }
        Fault::OtherWitness => {
            let mut lease = nodes.settings().lease;
            lease.lease = Nanos::new(2 * lease.lease.get());
            let file = nodes.configuration(lease, &[]);
            differ(nodes, leader, Site::Witness, &file)?;
        }
        Fault::OtherBackup => {
            let file = nodes.configuration(nodes.settings().lease, &[0]);
            differ(nodes, leader, other, &file)?;
        }
        Fault::FullBackup => {
            let _filler = nodes.disk(other)?.fill()?;
            thread::sleep(LASTING);
        }
        Fault::FullWitness => {
            let _filler = nodes.disk(Site::Witness)?.fill()?;
            nodes.kill(leader)?;
            thread::sleep(LASTING);
        }
        Fault::SlowBackup => nodes.disk(other)?.stall(CUT)?,
    }
    thread::sleep(Duration::from_secs_f64(options.seconds));
    let leader_then = self::leader(nodes)?;
    if fault == Fault::HostLoss {
        plant.set_wires(leader, true)?;
    }
    if let Some(ended) = nodes.ended().first() {
        anyhow::bail!("a node ended by itself: {ended}");
    }
    for site in [Site::Witness, Site::First, Site::Second] {
        nodes.revive(site)?;
    }
    if fault == Fault::OtherWitness {
        // It is silent for the longest lease that it may have granted, and the next fault needs its vote.
        thread::sleep(4 * Duration::from_nanos(nodes.settings().lease.lease.get().unsigned_abs()));
    }
    nodes.wait_until_protected()?;
    Ok(Strike { from, until: Instant::now(), is_replaced: leader_then != leader, has_waited: at_once.is_none() })
}

/// Runs a second process of the Primary for some seconds. It has to say why it does not lead.
fn second_primary(nodes: &mut Nodes<'_>) -> anyhow::Result<()> {
    nodes.revive(Site::Clone)?;
    thread::sleep(LASTING);
    let has_reason = nodes.has_warned(Site::Clone);
    nodes.remove(Site::Clone)?;
    anyhow::ensure!(has_reason, "a second Primary was not refused with a reason: its log has no warning and no error");
    Ok(())
}

/// Runs a node with another configuration for some seconds. The leader's status has to report it all the time.
fn differ(nodes: &mut Nodes<'_>, leader: Site, site: Site, file: &str) -> anyhow::Result<()> {
    nodes.kill(site)?;
    nodes.revive_differently(site, file)?;
    // The leader notices the end of the node first, which is a trouble too.
    let begin = Instant::now();
    let mut is_reported = true;
    while is_reported && begin.elapsed() < 2 * LASTING {
        thread::sleep(LASTING / 2);
        is_reported = has_trouble(&nodes.status(leader)?);
    }
    nodes.kill(site)?;
    anyhow::ensure!(is_reported, "the configuration of {} differs, and `bodkin status` reports no trouble of the pair", site.name());
    Ok(())
}

/// Returns true if a status reports a trouble other than latencies, which depend on the machine.
fn has_trouble(status: &serde_json::Value) -> bool {
    let troubles = status["troubles"].as_array().map(Vec::as_slice).unwrap_or_default();
    troubles.iter().filter_map(serde_json::Value::as_str).any(|trouble| !LATENCY_TROUBLES.iter().any(|start| trouble.starts_with(start)))
}

fn stop(nodes: &mut Nodes<'_>, site: Site, fault: Fault) -> anyhow::Result<()> {
    nodes.signal(site, Signal::SIGSTOP)?;
    thread::sleep(fault.stop().expect("it is a stop"));
    nodes.signal(site, Signal::SIGCONT)
}

fn cut(plant: &Plant, a: Site, b: Site) -> anyhow::Result<()> {
    plant.set_wire(a, b, false)?;
    thread::sleep(CUT);
    plant.set_wire(a, b, true)
}

fn isolate(plant: &Plant, site: Site) -> anyhow::Result<()> {
    plant.set_wires(site, false)?;
    thread::sleep(CUT);
    plant.set_wires(site, true)
}

/// Waits for a leader, and returns it.
fn leader(nodes: &mut Nodes<'_>) -> anyhow::Result<Site> {
    let deadline = Instant::now() + LEADER_WAIT_MAX;
    loop {
        if let Some(leader) = nodes.leader() {
            return Ok(leader);
        }
        if let Some(ended) = nodes.ended().first() {
            anyhow::bail!("a node ended by itself: {ended}");
        }
        anyhow::ensure!(Instant::now() < deadline, "nobody leads after {} s", LEADER_WAIT_MAX.as_secs());
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_no_trouble_of_pair() {
        let status = |troubles: &[&str]| serde_json::json!({"troubles": troubles});
        assert!(!has_trouble(&status(&[])) && !has_trouble(&status(&["replicas take longer to the Backup"])));
        assert!(has_trouble(&status(&["replicas take longer to the Backup", "the nodes' leases differ"])));
    }

    #[test]
    fn gap_ends_when_publishers_turn() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let led: Vec<Instant> = [0, 10, 20, 70, 80, 200].map(at).to_vec();
        let strike = |from, until| Strike { from: at(from), until: at(until), is_replaced: false, has_waited: false };
        assert_eq!(strike(25, 100).gap(&led), Some(Duration::from_millis(45)));
        assert_eq!(strike(300, 400).gap(&led), None);
        assert_eq!((strike(15, 75).turns(&led), strike(90, 150).turns(&led)), (2, 0));
        let same = strike(25, 100);
        assert_eq!([Fault::CutLeader, Fault::KillBackup, Fault::Stop20].map(|fault| same.is_as_expected(fault)), [false, true, true]);
    }
}
