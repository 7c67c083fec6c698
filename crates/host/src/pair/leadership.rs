//! Whether a node of the pair leads: written by its thread, read by every request and by the shard without a lock.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst},
};

use bodkin_broker::{Epoch, Instant};
use tokio::sync::watch;

use super::{boot_time, troubles::Troubles};

/// The pair has no witness, or this node is it.
const NO_WITNESS: u8 = 0;
/// It is not connected.
const AWAY: u8 = 1;
/// It is.
const CONNECTED: u8 = 2;

/// Maximum size of the standby's ledger lines that wait. The standby sends further ones again.
pub const OFFERED_BYTES_MAX: usize = 64 * 1024;

/// Whether this node leads, for everybody who has to ask.
#[derive(Debug)]
pub struct Leadership {
    until_ns: AtomicU64,
    epoch: AtomicU64,
    /// The last epoch for which the shard has completed its takeover; 0: none.
    taken_over: AtomicU64,
    is_protected: AtomicBool,
    /// Other nodes of the pair that this one is not connected to.
    unreached: AtomicU64,
    /// Whether the witness is connected: one of [`NO_WITNESS`], [`AWAY`], [`CONNECTED`].
    witness: AtomicU8,
    /// Nothing new is to be taken by requests: the lead is about to be handed over.
    is_held: AtomicBool,
    /// Whether this broker finds no leader, and cannot lead.
    finds_no_leader: AtomicBool,
    /// Whether this leader's database, event log or audit log does not take what it is given.
    refuses_changes: AtomicBool,
    /// By how much the clock of the other candidate's host differs from ours at the least, in nanoseconds; the greatest number: it is not known.
    clock_difference_ns: AtomicU64,
    /// When this node last granted the other candidate a lease; 0: not since its start.
    granted_ns: AtomicU64,
    /// This node takes no part in the pair: its certificate is revoked.
    is_excluded: AtomicBool,
    lines: CertificateLines,
    troubles: Troubles,
}

/// Lines of certificate ledgers that this node repeats from its leader, and those that are in force here.
#[derive(Debug, Default)]
struct CertificateLines {
    /// Whether a local cloud with an authority takes them. Without one they are of no use.
    is_taken: AtomicBool,
    /// Counts the changes of the database that brought lines.
    repeated: AtomicU64,
    /// The value of `repeated` up to which they are in force.
    in_force: AtomicU64,
    /// Counts the copies of the leader's database that were received.
    copies: AtomicU64,
    /// Lines of the standby's own ledger, each with a line end: at most [`OFFERED_BYTES_MAX`] until they are taken.
    offered: Mutex<Vec<u8>>,
    news: watch::Sender<()>,
}

impl Default for Leadership {
    fn default() -> Self {
        let [until_ns, epoch, taken_over, unreached, granted_ns] = [0; 5].map(AtomicU64::new);
        let [is_protected, is_held, finds_no_leader, refuses_changes, is_excluded] = [false; 5].map(AtomicBool::new);
        let clock_difference_ns = AtomicU64::new(u64::MAX);
        let witness = AtomicU8::new(NO_WITNESS);
        let troubles = Troubles::default();
        Self {
            until_ns,
            epoch,
            taken_over,
            unreached,
            witness,
            granted_ns,
            is_protected,
            is_held,
            finds_no_leader,
            refuses_changes,
            clock_difference_ns,
            is_excluded,
            lines: CertificateLines::default(),
            troubles,
        }
    }
}

impl Leadership {
    /// Returns true if this node may accept, dispatch, and acknowledge at this instant: it holds the lease, and its shard and database have what the
    /// leader before it has answered.
    pub fn leads(&self) -> bool {
        let is_leader = boot_time().nanos() < self.until_ns.load(SeqCst) && self.taken_over.load(SeqCst) == self.epoch.load(SeqCst);
        is_leader && !self.is_excluded.load(SeqCst)
    }

    /// Returns true if this node may act at this instant: it leads its pair, or is a cloud by itself, which has no leadership.
    pub fn may_act(leadership: Option<&Self>) -> bool {
        leadership.is_none_or(Self::leads)
    }

    /// Records that the shard has taken over in an epoch. Until then requests are refused: the vote alone brings no state.
    pub(crate) fn takeover_completed(&self, epoch: Epoch) {
        self.taken_over.store(epoch.0, SeqCst);
    }

    /// Returns true if it takes new requests: it leads, is not about to hand that over, and refuses each certificate that was revoked at the leader before it.
    pub fn takes_requests(&self) -> bool {
        self.leads() && !self.is_held.load(SeqCst) && self.has_lines_in_force()
    }

    fn has_lines_in_force(&self) -> bool {
        let CertificateLines { is_taken, repeated, in_force, .. } = &self.lines;
        !is_taken.load(SeqCst) || in_force.load(SeqCst) == repeated.load(SeqCst)
    }

    /// Records that the database has lines of certificate ledgers that are not in force here yet. Called before the leader receives the acknowledgement.
    pub(super) fn lines_repeated(&self, is_copy: bool) {
        self.lines.copies.fetch_add(u64::from(is_copy), SeqCst);
        self.lines.repeated.fetch_add(1, SeqCst);
        self.lines.news.send_replace(());
    }

    /// Begins to wait for lines: requests are refused until those in the database are in force.
    pub(crate) fn begin_lines(&self) {
        self.lines_repeated(true);
        self.lines.is_taken.store(true, SeqCst);
    }

    /// Returns the notifications of new lines.
    pub(crate) fn line_news(&self) -> watch::Receiver<()> {
        let mut news = self.lines.news.subscribe();
        news.mark_changed();
        news
    }

    /// Counts the changes that brought lines, and the copies among them. To be read before the lines are.
    pub(crate) fn lines(&self) -> (u64, u64) {
        // The copies last: one that comes in between is seen too early, which resets a cursor once more.
        (self.lines.repeated.load(SeqCst), self.lines.copies.load(SeqCst))
    }

    /// Records that the lines up to this count of changes are in force.
    pub(crate) fn lines_in_force(&self, repeated: u64) {
        self.lines.in_force.store(repeated, SeqCst);
    }

    /// Keeps lines of the standby's ledger until [`Self::take_offered`]. Without a local cloud that takes lines, and without space, they are dropped.
    pub(super) fn lines_offered(&self, lines: &[u8]) {
        let mut offered = self.lines.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lines.is_taken.load(SeqCst) && offered.len() + lines.len() <= OFFERED_BYTES_MAX {
            offered.extend_from_slice(lines);
            drop(offered);
            self.lines.news.send_replace(());
        }
    }

    /// Returns the lines of the standby's ledger that were received since the last call.
    pub(crate) fn take_offered(&self) -> Vec<u8> {
        std::mem::take(&mut self.lines.offered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has this node take no part in the pair, or take part again.
    pub(super) fn exclude(&self, is_excluded: bool) {
        self.is_excluded.store(is_excluded, SeqCst);
    }

    /// Returns true if this node takes no part in the pair, because its certificate is revoked.
    pub fn is_excluded(&self) -> bool {
        self.is_excluded.load(SeqCst)
    }

    /// Nothing new is to be taken by requests, or it is again.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, SeqCst);
    }

    /// The epoch that it leads in, or has led in last.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(SeqCst))
    }

    /// The epoch, and until when it leads in it.
    pub(crate) fn read(&self) -> (Epoch, Instant) {
        // In the order opposite to `lead`, so that no epoch is taken together with the end of one behind it.
        let until_ns = if self.is_excluded() { 0 } else { self.until_ns.load(SeqCst) };
        (self.epoch(), Instant::from_nanos(until_ns))
    }

    /// Whether the Backup has everything that was answered, and will.
    pub fn is_protected(&self) -> bool {
        self.leads() && self.is_protected.load(SeqCst)
    }

    /// By how much the clock of the other candidate's host differs from ours at the least, in nanoseconds; `None`: it is not known.
    pub fn clock_difference_ns(&self) -> Option<u64> {
        Some(self.clock_difference_ns.load(SeqCst)).filter(|difference_ns| *difference_ns != u64::MAX)
    }

    pub(super) fn clock_differs(&self, difference_ns: Option<u64>) {
        self.clock_difference_ns.store(difference_ns.unwrap_or(u64::MAX), SeqCst);
    }

    /// The other candidate has been granted its lease.
    pub(crate) fn grants(&self, at: Instant) {
        self.granted_ns.store(at.nanos(), SeqCst);
    }

    /// When the other candidate was granted its lease last, by this node, in this run.
    pub(crate) fn granted_at(&self) -> Option<Instant> {
        Some(self.granted_ns.load(SeqCst)).filter(|granted_ns| *granted_ns > 0).map(Instant::from_nanos)
    }

    /// What is wrong with the pair just now.
    pub fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// Returns true if this broker has found no leader for longer than a failover takes, and cannot lead.
    pub fn has_no_leader(&self) -> bool {
        self.finds_no_leader.load(SeqCst)
    }

    /// Records whether this broker finds no leader; returns what was recorded before.
    pub(super) fn finds_no_leader(&self, finds_none: bool) -> bool {
        self.finds_no_leader.swap(finds_none, SeqCst)
    }

    /// Returns true if this leader's database, event log or audit log did not take what it was given last.
    pub fn refuses_changes(&self) -> bool {
        self.refuses_changes.load(SeqCst)
    }

    /// Records whether the database, the event log or the audit log refuses what it is given.
    pub fn note_refusing(&self, refuses: bool) {
        self.refuses_changes.store(refuses, SeqCst);
    }

    /// How many of the pair's other nodes this one is not connected to. A Backup that does not reach the witness cannot take over.
    pub fn unreached(&self) -> u64 {
        self.unreached.load(SeqCst)
    }

    /// Whether this node is connected to the witness; `None`: the pair has none, or this node is it.
    pub fn reaches_witness(&self) -> Option<bool> {
        match self.witness.load(SeqCst) {
            NO_WITNESS => None,
            witness => Some(witness == CONNECTED),
        }
    }

    /// To how many of the others it is connected, and whether the witness is among them, if there is one beside this node.
    pub(super) fn reaches(&self, connected: usize, others: usize, witness: Option<bool>) {
        self.unreached.store(others.saturating_sub(connected) as u64, SeqCst);
        self.witness.store(witness.map_or(NO_WITNESS, |is_connected| if is_connected { CONNECTED } else { AWAY }), SeqCst);
    }

    pub(super) fn protect(&self, is_protected: bool) {
        self.is_protected.store(is_protected, SeqCst);
    }

    pub(crate) fn lead(&self, epoch: Epoch, until: Instant) {
        self.epoch.store(epoch.0, SeqCst);
        self.until_ns.store(until.nanos(), SeqCst);
    }

    pub(super) fn fence(&self) {
        self.until_ns.store(0, SeqCst);
        self.protect(false);
        self.note_refusing(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader() -> Leadership {
        let leadership = Leadership::default();
        leadership.lead(Epoch(1), Instant::from_nanos(u64::MAX));
        leadership.takeover_completed(Epoch(1));
        leadership
    }

    #[test]
    fn repeated_lines_hold_requests_until_in_force() {
        let leadership = leader();
        leadership.lines_repeated(false);
        assert!(leadership.takes_requests(), "a local cloud without an authority takes no lines");
        leadership.begin_lines();
        assert!(leadership.leads() && !leadership.takes_requests());
        let (repeated, copies) = leadership.lines();
        // More lines are repeated while these are taken in.
        leadership.lines_repeated(true);
        leadership.lines_in_force(repeated);
        assert!(!leadership.takes_requests());
        let (repeated, more) = leadership.lines();
        assert_eq!(more, copies + 1);
        leadership.lines_in_force(repeated);
        assert!(leadership.takes_requests());
    }

    #[test]
    fn excluded_node_leads_at_no_instant() {
        let leadership = leader();
        leadership.exclude(true);
        leadership.lead(Epoch(1), Instant::from_nanos(u64::MAX));
        assert!(!leadership.leads() && !leadership.takes_requests());
        assert_eq!(leadership.read().1, Instant::default());
        leadership.exclude(false);
        assert!(leadership.leads());
    }

    #[test]
    fn offered_lines_are_bounded_and_taken_once() {
        let leadership = Leadership::default();
        leadership.lines_offered(b"early\n");
        leadership.begin_lines();
        leadership.lines_offered(b"one\n");
        leadership.lines_offered(&vec![b'x'; OFFERED_BYTES_MAX]);
        assert_eq!(leadership.take_offered(), b"one\n");
        assert_eq!(leadership.take_offered(), b"");
    }
}
