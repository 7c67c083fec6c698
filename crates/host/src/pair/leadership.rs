//! Whether a node of the pair leads: written by its thread, read by every request and by the shard without a lock.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};

use bodkin_broker::{Epoch, Instant};

use super::{boot_time, troubles::Troubles};

/// The pair has no witness, or this node is it.
const NO_WITNESS: u8 = 0;
/// It is not connected.
const AWAY: u8 = 1;
/// It is.
const CONNECTED: u8 = 2;

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
    troubles: Troubles,
}

impl Default for Leadership {
    fn default() -> Self {
        let [until_ns, epoch, taken_over, unreached, granted_ns] = [0; 5].map(AtomicU64::new);
        let [is_protected, is_held, finds_no_leader, refuses_changes] = [false; 4].map(AtomicBool::new);
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
            troubles,
        }
    }
}

impl Leadership {
    /// Returns true if this node may accept, dispatch, and acknowledge at this instant: it holds the lease, and its shard and database have what the
    /// leader before it has answered.
    pub fn leads(&self) -> bool {
        boot_time().nanos() < self.until_ns.load(SeqCst) && self.taken_over.load(SeqCst) == self.epoch.load(SeqCst)
    }

    /// Returns true if this node may act at this instant: it leads its pair, or is a cloud by itself, which has no leadership.
    pub fn may_act(leadership: Option<&Self>) -> bool {
        leadership.is_none_or(Self::leads)
    }

    /// Records that the shard has taken over in an epoch. Until then requests are refused: the vote alone brings no state.
    pub(crate) fn takeover_completed(&self, epoch: Epoch) {
        self.taken_over.store(epoch.0, SeqCst);
    }

    /// Whether it takes new requests: it leads, and is not about to hand that over.
    pub fn takes_requests(&self) -> bool {
        self.leads() && !self.is_held.load(SeqCst)
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
        let until = Instant::from_nanos(self.until_ns.load(SeqCst));
        (self.epoch(), until)
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
