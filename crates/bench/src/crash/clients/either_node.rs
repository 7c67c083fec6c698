//! Publishing by requests to either node: the other one is next after each refusal.

use std::thread;
use std::time::Instant;

use super::super::nodes::publishing_sites;
use super::super::plant::Site;
use super::{RETRY_AFTER, Scene};

/// Publishes until the publishers of the scene stop.
///
/// `connect` opens a link to a node. `exchange` publishes one event and sets when the next one is due; it returns whether the event was accepted, or `None` if
/// the link broke.
pub fn publish<L>(
    scene: &Scene,
    mut connect: impl FnMut(Site) -> Option<L>,
    mut exchange: impl FnMut(&mut L, &mut Instant) -> Option<bool>,
) {
    let sites = publishing_sites(&scene.settings);
    let mut links: Vec<Option<L>> = sites.iter().map(|_| None).collect();
    let mut at = 0;
    let mut due = Instant::now();
    while scene.publishers_run() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if links[at].is_none() {
            links[at] = connect(sites[at]);
        }
        let is_accepted = links[at].as_mut().and_then(|link| exchange(link, &mut due));
        if is_accepted.is_none() {
            links[at] = None;
        }
        if is_accepted != Some(true) {
            at = (at + 1) % sites.len();
            due = due.max(Instant::now() + RETRY_AFTER);
        }
    }
}
