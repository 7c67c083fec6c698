//! Watch on the brokers: which of them lead, at which times.
//!
//! A thread on each broker's own host reads the broker's metrics over the loopback interface, so that an isolated broker
//! is watched too. [`two_leaders`] decides from the samples.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::nodes::{MONITOR_PORT, gauge};
use super::plant::{Plant, Site};
use crate::http::Http;
use crate::wire::Caller;

/// Time between two samples of one broker.
const SAMPLE_EVERY: Duration = Duration::from_millis(25);
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Changes between brokers that one fault may cause: to the other broker, and back after a stall.
const CHANGES_MAX: usize = 4;

/// A broker's statement that it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The broker.
    pub site: Site,
    /// Epoch in which it leads.
    pub epoch: u64,
    /// When it was asked.
    pub asked: Instant,
    /// When its answer had arrived.
    pub answered: Instant,
}

/// The threads that watch.
pub struct Watch {
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<anyhow::Result<()>>>,
}

impl Watch {
    /// Starts a thread for each site.
    ///
    /// # Errors
    /// Returns an error if the system gives no thread.
    pub fn start(plant: &Arc<Plant>, sites: &[Site], operator: &Caller) -> anyhow::Result<Self> {
        let mut watch = Self { samples: Arc::default(), stop: Arc::default(), threads: Vec::new() };
        for site in sites.iter().copied() {
            let (plant, samples, stop) = (Arc::clone(plant), Arc::clone(&watch.samples), Arc::clone(&watch.stop));
            let operator = operator.clone();
            let thread = thread::Builder::new().name("watch".into()).spawn(move || {
                plant.enter(site)?;
                run(site, &operator, &samples, &stop);
                Ok(())
            });
            watch.threads.push(thread?);
        }
        Ok(watch)
    }

    /// Takes the samples since the last call, ordered by time.
    pub fn take(&self) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner));
        samples.sort_by_key(|sample| sample.asked);
        samples
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // A thread that could not enter its namespace has nothing to report: the clients fail there, too.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn run(site: Site, operator: &Caller, samples: &Mutex<Vec<Sample>>, stop: &AtomicBool) {
    let mut link: Option<Http> = None;
    while !stop.load(Relaxed) {
        thread::sleep(SAMPLE_EVERY);
        if link.is_none() {
            link = Http::connect((Ipv4Addr::LOCALHOST, MONITOR_PORT).into(), operator, ANSWER_MAX).ok();
        }
        let Some(http) = &mut link else { continue };
        let asked = Instant::now();
        let Ok(answer) = http.exchange("GET", "/metrics", "", "") else {
            link = None;
            continue;
        };
        let metrics = answer.text();
        if let (Some(1), Some(epoch)) = (gauge(&metrics, "bodkin_pair_leads"), gauge(&metrics, "bodkin_pair_epoch")) {
            let sample = Sample { site, epoch, asked, answered: Instant::now() };
            samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        }
    }
}

/// Returns two brokers that lead at once, in words, if the samples show it.
///
/// A broker that leads in one epoch at two times leads between them. Another broker that leads between them, or in the same epoch,
/// is a second leader. Brokers that lead in turn more than [`CHANGES_MAX`] times compete for the lead: each of their epochs may be too
/// short for two samples.
pub fn two_leaders(samples: &[Sample]) -> Option<String> {
    for (index, one) in samples.iter().enumerate() {
        let mut later = samples[index + 1..].iter().filter(|sample| (sample.site, sample.epoch) == (one.site, one.epoch));
        let Some(last) = later.next_back() else { continue };
        // Between the answer to the first question and the last question it led.
        let between = |other: &&Sample| other.asked >= one.answered && other.answered <= last.asked;
        if let Some(other) = samples.iter().filter(|other| other.site != one.site).find(between) {
            return Some(format!(
                "{} led in epoch {} while {} led in epoch {}",
                other.site.name(),
                other.epoch,
                one.site.name(),
                one.epoch
            ));
        }
    }
    let changes = samples.windows(2).filter(|pair| pair[0].site != pair[1].site).count();
    if changes > CHANGES_MAX {
        let (first, last) = (samples[0].epoch, samples[samples.len() - 1].epoch);
        return Some(format!("the leader changed {changes} times, from epoch {first} to {last}"));
    }
    let same = |one: &Sample| samples.iter().find(|other| other.site != one.site && other.epoch == one.epoch);
    let (one, other) = samples.iter().find_map(|one| Some((one, same(one)?)))?;
    Some(format!("{} and {} led in one epoch, {}", one.site.name(), other.site.name(), one.epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of (site, epoch, asked, answered), in milliseconds.
    fn samples(list: &[(Site, u64, u64, u64)]) -> Vec<Sample> {
        let start = Instant::now();
        let at = |milliseconds: &u64| start + Duration::from_millis(*milliseconds);
        list.iter()
            .map(|(site, epoch, asked, answered)| Sample { site: *site, epoch: *epoch, asked: at(asked), answered: at(answered) })
            .collect()
    }

    #[test]
    fn successive_leaders_are_not_two_leaders() {
        let in_turn = samples(&[(Site::First, 1, 0, 1), (Site::First, 1, 20, 21), (Site::Second, 2, 21, 30), (Site::First, 3, 40, 41)]);
        assert_eq!(two_leaders(&in_turn), None);
    }

    #[test]
    fn leader_within_the_others_epoch_is_found() {
        let at_once = samples(&[(Site::First, 1, 0, 1), (Site::Second, 2, 5, 8), (Site::First, 1, 20, 21)]);
        assert!(two_leaders(&at_once).unwrap().contains("second led in epoch 2 while first led in epoch 1"));
    }

    #[test]
    fn answers_that_overlap_decide_nothing() {
        let overlapping = samples(&[(Site::First, 1, 0, 10), (Site::Second, 2, 5, 15), (Site::First, 1, 9, 12)]);
        assert_eq!(two_leaders(&overlapping), None);
    }

    #[test]
    fn leaders_that_alternate_are_found() {
        let site = |turn: u64| if turn.is_multiple_of(2) { Site::First } else { Site::Clone };
        let list = |turns: u64| (0..turns).map(|turn| (site(turn), turn, 10 * turn, 10 * turn + 1)).collect::<Vec<_>>();
        assert_eq!(two_leaders(&samples(&list(5))), None);
        assert!(two_leaders(&samples(&list(6))).unwrap().contains("changed 5 times, from epoch 0 to 5"));
    }

    #[test]
    fn one_epoch_has_one_leader() {
        assert!(two_leaders(&samples(&[(Site::First, 4, 0, 1), (Site::Second, 4, 30, 31)])).unwrap().contains("in one epoch, 4"));
    }
}
