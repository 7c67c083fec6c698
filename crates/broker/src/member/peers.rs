//! Processes that use the other nodes' names: which process counts as the node, and why another one is refused.
//!
//! Promises are safe only if each name is one process. A voter therefore binds a name to one incarnation, the *holder*, and
//! refuses every other incarnation while the holder is alive or holds a promise. "Alive" means that frames arrive; an open
//! connection proves nothing. The two nodes that see the third one exchange [`Ballot::Sighting`]s, so that they bind its name
//! to the same process: a holder is *confirmed* when the other node has named it in answer to this node's sighting, or when
//! the other node has been silent for so long that its promises have expired. Ballots of a process that is not confirmed
//! count for nothing. A node that was stopped for longer than a lease has to confirm all holders again, because the others
//! may have decided without it.

use std::{cmp::Reverse, time::Duration};

use super::{Member, Output};
use crate::{
    epoch::{Node, PairId},
    event::Incarnation,
    time::Instant,
    wire::{Ballot, Claim},
};

/// Refused incarnations that are remembered for each node; the oldest is forgotten.
const REFUSED_MAX: usize = 4;

/// One process of a node: a restarted process is another incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The name that its greeting and its certificate show.
    pub node: Node,
    /// The run of the process.
    pub incarnation: Incarnation,
}

/// Why a process is not taken for the node that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum GreetingRefusal {
    /// The name is this node's own, or the pair has no such node.
    #[error("it names a node that this pair does not have at another address")]
    NotAMember,
    /// The former process of the node may still act: it was heard recently, or holds a promise.
    #[error("the node's former process was heard a moment ago or holds a vote: it is waited for")]
    Predecessor {
        /// When to try again, if the former process has ended.
        retry_after: Duration,
    },
    /// Another process of the same node is alive.
    #[error(
        "another process of the same node is running: stop one of the two. Each node of a pair is one process with one data directory; look \
        for a wrong --role, a copied machine, or a replaced host that has returned"
    )]
    Duplicate {
        /// The process that counts.
        holder: Incarnation,
    },
    /// The process belongs to another pair.
    #[error("it belongs to another pair ({theirs}, and this node to {ours}): give each pair a witness and addresses of its own")]
    OtherPair {
        /// The pair that this node has met.
        ours: PairId,
        /// The pair that the process has met.
        theirs: PairId,
    },
}

/// An incarnation that was refused while another one held the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Refused {
    incarnation: Incarnation,
    first_at: Instant,
    /// The holder was heard long after this process was, so both run.
    is_duplicate: bool,
}

/// Known processes that use one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct View {
    holder: Option<Incarnation>,
    /// The other node has agreed to the holder, or could not be asked.
    is_confirmed: bool,
    /// Counts this node's claims: the other node has to answer the newest one with the holder.
    claim_number: u64,
    /// The holder is connected to this node.
    is_connected: bool,
    /// When the last frame of the holder arrived.
    heard_at: Instant,
    /// When the third node last reported that the holder is alive.
    reported_at: Option<Instant>,
    refused: Vec<Refused>,
}

/// Known processes of all names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peers {
    views: [View; 3],
    /// The last heartbeat, if there are any, and since when no pause between two was longer than a lease.
    beat_at: Option<Instant>,
    awake_since: Instant,
    /// The number of the last claim of each node that this node has taken.
    taken: [u64; 3],
    /// Until when each node counts as refusing this process.
    rejected_until: [Option<Instant>; 3],
}

impl Peers {
    /// Nothing is known. Other nodes count as heard at the start, because they may have promised something before.
    pub fn new(now: Instant) -> Self {
        let view = View {
            holder: None,
            is_confirmed: false,
            claim_number: 0,
            is_connected: false,
            heard_at: now,
            reported_at: None,
            refused: Vec::new(),
        };
        Self { views: [view.clone(), view.clone(), view], beat_at: None, awake_since: now, taken: [0; 3], rejected_until: [None; 3] }
    }

    fn of(&self, node: Node) -> &View {
        &self.views[node.index()]
    }

    fn of_mut(&mut self, node: Node) -> &mut View {
        &mut self.views[node.index()]
    }
}

impl View {
    fn knows_duplicate(&self, incarnation: Incarnation) -> bool {
        self.refused.iter().any(|refused| refused.incarnation == incarnation && refused.is_duplicate)
    }

    /// Whether an incarnation greeted before a time, and was refused.
    fn greeted_before(&self, incarnation: Incarnation, at: Instant) -> bool {
        self.refused.iter().any(|refused| refused.incarnation == incarnation && refused.first_at < at)
    }

    /// Records that an incarnation is refused; true if it is known by now that it and the holder both run.
    fn refuse(&mut self, incarnation: Incarnation, now: Instant, alive: Duration) -> bool {
        let last_heard = self.is_connected.then_some(self.heard_at).max(self.reported_at);
        if let Some(refused) = self.refused.iter_mut().find(|refused| refused.incarnation == incarnation) {
            refused.is_duplicate |= last_heard.is_some_and(|heard| heard >= refused.first_at.plus(alive));
            return refused.is_duplicate;
        }
        if self.refused.len() >= REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push(Refused { incarnation, first_at: now, is_duplicate: false });
        false
    }
}

impl Member {
    /// Binds a node's name to the process that greets, or says why another process keeps it.
    ///
    /// The caller keeps the connection only if the greeting is accepted, has at most one connection of a node, and reports its
    /// end with [`Input::Gone`](super::Input::Gone). `pair` is the pair that the process has met.
    ///
    /// # Errors
    /// A [`GreetingRefusal`], which the caller sends to the process before it closes the connection.
    ///
    /// # Panics
    /// If time falls.
    pub fn greet(&mut self, now: Instant, peer: Peer, pair: Option<PairId>, outputs: &mut Vec<Output>) -> Result<(), GreetingRefusal> {
        self.turn(now, outputs);
        if peer.node == self.config.node || !self.config.has(peer.node) {
            return Err(GreetingRefusal::NotAMember);
        }
        self.is_of_pair(pair)?;
        if let Some(free_at) = self.held_by_other_until(peer) {
            let alive = self.config.alive();
            let view = self.peers.of_mut(peer.node);
            let is_duplicate = view.refuse(peer.incarnation, now, alive);
            return Err(match view.holder.filter(|_| is_duplicate) {
                Some(holder) => GreetingRefusal::Duplicate { holder },
                None => GreetingRefusal::Predecessor { retry_after: free_at.since(now) },
            });
        }
        // Only a process that counts names the pair.
        self.wanted.pair = self.wanted.pair.or(pair);
        self.bind(peer, true);
        self.report_all(outputs);
        self.write(outputs);
        Ok(())
    }

    /// The pair that this node has met; `None` until a leader was elected. The first leader offers an identity, and keeps it when a voter has it: were
    /// it kept before, a leader that dies at once would come back to a pair that has got another one.
    pub fn pair(&self) -> Option<PairId> {
        self.wanted.pair.or_else(|| self.lead.as_ref().map(|_| self.config.new_pair))
    }

    /// Gives the pair an identity, if it has none.
    pub(super) fn name_pair(&mut self) {
        self.wanted.pair = self.wanted.pair.or(Some(self.config.new_pair));
    }

    /// The process that counts as a node, while it is connected.
    pub fn connected(&self, node: Node) -> Option<Peer> {
        let view = self.peers.of(node);
        view.holder.filter(|_| view.is_connected).map(|incarnation| Peer { node, incarnation })
    }

    /// A node that has met no pair takes the name of any.
    fn is_of_pair(&self, theirs: Option<PairId>) -> Result<(), GreetingRefusal> {
        match (self.wanted.pair, theirs) {
            (Some(ours), Some(theirs)) if ours != theirs => Err(GreetingRefusal::OtherPair { ours, theirs }),
            _ => Ok(()),
        }
    }

    fn bind(&mut self, peer: Peer, is_connected: bool) {
        let Peer { node, incarnation } = peer;
        let now = self.now;
        if self.peers.of(node).holder != Some(incarnation) {
            let view = self.peers.of_mut(node);
            (view.holder, view.reported_at) = (Some(incarnation), None);
            self.doubt_holder(node);
            // The process counts its claims from the beginning.
            self.peers.taken[node.index()] = 0;
            // What the former process asked for is not answered to this one.
            self.renewal = self.renewal.filter(|renewal| renewal.from != node);
            if let Some(ask) = self.asks.get_mut(node.index()) {
                *ask = None;
            }
        }
        let view = self.peers.of_mut(node);
        view.is_connected = is_connected;
        if is_connected {
            view.heard_at = now;
        }
    }

    /// Has the holder of a name confirmed again, by an answer to a new claim.
    fn doubt_holder(&mut self, node: Node) {
        let view = self.peers.of_mut(node);
        (view.is_confirmed, view.claim_number) = (false, view.claim_number + 1);
    }

    /// After a pause longer than a lease the others may have decided without this node.
    pub(super) fn wake_up(&mut self, now: Instant) {
        if self.peers.beat_at.is_some_and(|beat_at| now.since(beat_at) > self.config.lease) {
            (self.peers.beat_at, self.peers.awake_since) = (Some(now), now);
            Node::ALL.into_iter().for_each(|node| self.doubt_holder(node));
        }
    }

    /// Until when another process, or another connection of the same one, keeps the name.
    fn held_by_other_until(&self, peer: Peer) -> Option<Instant> {
        let view = self.peers.of(peer.node);
        let is_other = view.holder.is_some_and(|holder| holder != peer.incarnation);
        // A restarted process is silent for the promises of the one before. This one ran beside the holder, so its silence may be over.
        let ran_beside = is_other && view.greeted_before(peer.incarnation, view.heard_at);
        let alive = self.config.alive();
        let heard = (view.is_connected || ran_beside).then(|| view.heard_at.plus(alive));
        let reported = view.reported_at.filter(|_| is_other).map(|at| at.plus(alive));
        let promised = self.promise.filter(|promise| promise.to.node == peer.node && promise.to != peer).map(|promise| promise.until);
        [heard, reported, promised].into_iter().flatten().max().filter(|until| self.now < *until)
    }

    /// How firmly this node by itself takes the holder for the node.
    fn claim(&self, node: Node) -> Claim {
        let view = self.peers.of(node);
        let is_heard = view.is_connected && self.now < view.heard_at.plus(self.config.alive());
        let holds_promise = self.promise.is_some_and(|promise| promise.to.node == node && self.now < promise.until);
        if holds_promise || is_heard && view.is_confirmed && self.lead.is_some() {
            Claim::Promised
        } else if !is_heard {
            Claim::Remembered
        } else if view.is_confirmed {
            Claim::Agreed
        } else {
            Claim::Heard
        }
    }

    /// A node's connection has ended.
    pub(super) fn gone(&mut self, node: Node, outputs: &mut Vec<Output>) {
        self.peers.of_mut(node).is_connected = false;
        self.report_all(outputs);
    }

    /// A frame of a node's connection has arrived: it also means that the node accepts this process.
    pub(super) fn heard(&mut self, node: Node) {
        let now = self.now;
        let view = self.peers.of_mut(node);
        if view.is_connected {
            view.heard_at = now;
            self.peers.rejected_until[node.index()] = None;
        }
    }

    /// Another node refuses this process's greeting.
    pub(super) fn rejected(&mut self, by: Node, until: Instant) {
        let kept = &mut self.peers.rejected_until[by.index()];
        *kept = (*kept).max(Some(until));
    }

    /// Whether another node takes another process for this node: two of them must not lead.
    pub(super) fn is_rejected(&self) -> bool {
        self.peers.rejected_until.iter().flatten().any(|until| self.now < *until)
    }

    /// The process whose ballots count as the node's; `None` if it is not connected, or not confirmed yet.
    pub(super) fn confirmed(&mut self, node: Node) -> Option<Peer> {
        let is_silent = |third| self.now >= self.peers.of(third).heard_at.max(self.peers.awake_since).plus(self.config.alive());
        let is_alone = self.third(node).is_none_or(is_silent);
        let view = self.peers.of_mut(node);
        let incarnation = view.holder.filter(|_| view.is_connected)?;
        view.is_confirmed |= is_alone && !view.knows_duplicate(incarnation);
        view.is_confirmed.then_some(Peer { node, incarnation })
    }

    /// The node that sees `node` besides this one.
    fn third(&self, node: Node) -> Option<Node> {
        self.config.others().find(|other| *other != node)
    }

    /// A heartbeat: the others learn that this process lives, and what it sees.
    pub(super) fn beat(&mut self, outputs: &mut Vec<Output>) {
        self.peers.beat_at = Some(self.now);
        self.report_all(outputs);
    }

    /// Reports to each connected node the process that this one takes for the third node.
    pub(super) fn report_all(&mut self, outputs: &mut Vec<Output>) {
        self.config.others().for_each(|to| self.report(to, outputs));
    }

    pub(super) fn report(&mut self, to: Node, outputs: &mut Vec<Output>) {
        let (true, Some(node)) = (self.peers.of(to).is_connected, self.third(to)) else { return };
        let (number, answers) = (self.peers.of(node).claim_number, self.peers.taken[to.index()]);
        let (incarnation, claim) = (self.peers.of(node).holder, self.claim(node));
        let (epoch, pair) = (self.wanted.epoch, self.pair());
        self.send(to, Ballot::Sighting { epoch, pair, node, incarnation, claim, number, answers }, outputs);
    }

    /// Another node reports the process that it takes for the third node.
    pub(super) fn sighted(&mut self, from: Node, ballot: Ballot, outputs: &mut Vec<Output>) {
        let Ballot::Sighting { pair, node, incarnation, claim: theirs, number, answers, .. } = ballot else {
            unreachable!("sightings only")
        };
        if let Err(refusal) = self.is_of_pair(pair) {
            return self.disconnect(from, refusal, outputs);
        }
        self.wanted.pair = self.wanted.pair.or(pair);
        self.peers.taken[from.index()] = number;
        let (Some(seen), true) = (incarnation, Some(node) == self.third(from)) else { return };
        let (now, ours) = (self.now, self.claim(node));
        let alive = self.config.alive();
        let view = self.peers.of_mut(node);
        match view.holder {
            Some(holder) if holder == seen => {
                view.is_confirmed |= answers >= view.claim_number;
                view.reported_at = (theirs > Claim::Remembered).then_some(now);
                // The other node waits for an answer.
                if theirs == Claim::Heard {
                    self.report(from, outputs);
                }
                return;
            }
            _ if theirs == Claim::Remembered => return,
            Some(holder) if ours > Claim::Remembered && (ours, Reverse(holder)) > (theirs, Reverse(seen)) => {
                view.refuse(seen, now, alive);
                return self.report(from, outputs);
            }
            Some(holder) if ours > Claim::Remembered => {
                view.refused.retain(|refused| refused.incarnation != holder);
                view.refused.push(Refused { incarnation: holder, first_at: now, is_duplicate: true });
                view.refused.drain(..view.refused.len().saturating_sub(REFUSED_MAX));
            }
            _ => {}
        }
        self.disconnect(node, GreetingRefusal::Duplicate { holder: seen }, outputs);
        self.bind(Peer { node, incarnation: seen }, false);
        self.peers.of_mut(node).reported_at = Some(now);
        self.report_all(outputs);
    }

    fn disconnect(&mut self, node: Node, refusal: GreetingRefusal, outputs: &mut Vec<Output>) {
        let view = self.peers.of_mut(node);
        if std::mem::take(&mut view.is_connected) {
            outputs.push(Output::Disconnect { node, refusal });
        }
    }
}
