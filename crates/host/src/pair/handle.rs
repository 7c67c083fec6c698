//! The node's side that the local cloud holds.

use std::{fmt, sync::Arc, time::Duration};

use bodkin_arrowhead::pinned::PAIR_NODES;
use bodkin_broker::Epoch;
use bodkin_store::{
    event_log::RecordName,
    following::{Report, Reporter},
};
use tokio::sync::oneshot;

use super::{
    Follows, Leadership, Message, Ticket,
    keeper::KeeperMessage,
    node::{HandOverError, HandedOver},
    trust::SharedTrust,
};
use crate::inbox::Inbox;

/// The node's side that the local cloud holds while it serves.
#[derive(Clone)]
pub struct PairHandle {
    pub(super) inbox: Arc<Inbox<Message>>,
    pub(super) leadership: Arc<Leadership>,
    /// A witness has none.
    pub(super) keeper: Option<Arc<Inbox<KeeperMessage>>>,
    /// In secure mode.
    pub(super) trust: Option<SharedTrust>,
    /// How long the right to lead lasts.
    pub lease: Duration,
    /// The system that this node is.
    pub name: &'static str,
}

impl fmt::Debug for PairHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairHandle").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

impl PairHandle {
    /// Of a node that hears nothing.
    #[cfg(test)]
    pub(crate) fn without_node(leadership: Arc<Leadership>, lease: Duration) -> Self {
        let waker = mio::Waker::new(mio::Poll::new().expect("a poll").registry(), super::node::WAKER).expect("a waker");
        Self { inbox: Arc::new(Inbox::new(waker)), leadership, keeper: None, trust: None, lease, name: PAIR_NODES[0] }
    }

    /// The system that the other candidate is.
    pub(crate) fn partner_name(&self) -> &'static str {
        if self.name == PAIR_NODES[0] { PAIR_NODES[1] } else { PAIR_NODES[0] }
    }

    /// Whether this node leads.
    pub fn leadership(&self) -> &Arc<Leadership> {
        &self.leadership
    }

    /// Who tells the keeper what became of the leader's changes.
    pub(crate) fn reporter(&self) -> Reporter {
        let (keeper, leadership) = (self.keeper.clone().expect("a candidate has a keeper"), self.leadership.clone());
        Box::new(move |report| {
            match &report {
                Report::Copied { .. } => leadership.lines_repeated(true),
                Report::Repeated { has_lines: true, .. } => leadership.lines_repeated(false),
                Report::Repeated { .. } | Report::Failed { .. } => {}
            }
            keeper.post(KeeperMessage::Report(report));
        })
    }

    /// A local cloud runs, and follows until this node leads.
    pub(crate) fn attach(&self, follows: Follows) {
        let shard = follows.shard.clone();
        self.keeper.as_ref().expect("a candidate has a keeper").post(KeeperMessage::Attached(Box::new(follows)));
        self.inbox.post(Message::Attached(shard));
    }

    /// The leader's records are on the disk, or why they are not.
    pub(crate) fn recorded(&self, ticket: Ticket, result: Result<(), String>) {
        self.keeper.as_ref().expect("a candidate has a keeper").post(KeeperMessage::Recorded { ticket, result });
    }

    /// What the event log has, for the leader at the other end of a connection.
    pub(crate) fn logged(&self, serial: u64, newest: Vec<RecordName>) {
        self.keeper.as_ref().expect("a candidate has a keeper").post(KeeperMessage::Logged { serial, newest });
    }

    /// The shard cannot wait for the Backup: it is out of sync from now on.
    pub(crate) fn backup_out(&self) {
        self.inbox.post(Message::BackupOut);
    }

    /// The Backup has everything that the leader of this epoch has.
    pub(crate) fn backup_in_sync(&self, epoch: Epoch) {
        self.inbox.post(Message::BackupInSync(epoch));
    }

    /// The replica channel has ended.
    pub(crate) fn channel_ended(&self, serial: u64) {
        self.inbox.post(Message::ChannelEnded { serial });
    }

    /// The local cloud ends, and its database is about to be closed.
    pub fn detach(&self) {
        self.inbox.post(Message::Detached);
        self.keeper.iter().for_each(|keeper| keeper.post(KeeperMessage::Detached));
    }

    /// Certificates and revocations of the pair's nodes are read again, on a thread of their own. Insecure mode has none.
    pub fn reload(&self) {
        if let Some(Err(error)) = self.trust.as_ref().map(SharedTrust::reload) {
            tracing::error!(%error, "the certificates of the pair's nodes are not read any more");
        }
    }

    /// Has the other candidate lead in place of this node. It is told when that one leads, or why it does not; meanwhile requests are refused.
    pub async fn hand_over(&self) -> Result<HandedOver, HandOverError> {
        let (told, done) = oneshot::channel();
        self.inbox.post(Message::HandOver(told));
        // A node that ends answers nobody.
        done.await.unwrap_or(Err(HandOverError::Overtaken))
    }

    /// The shard has answered everything that waited, and the Backup has it.
    pub(crate) fn drained(&self) {
        self.inbox.post(Message::Drained);
    }

    /// Excludes this node if its own certificate is among those that were revoked.
    pub(crate) fn note_revoked<'s>(&self, serials: impl Iterator<Item = &'s str>) {
        if let Some(trust) = &self.trust {
            trust.note_revoked(serials);
        }
    }

    /// Sends lines of this standby's certificate ledger to the leader. Those that do not arrive are to be sent again.
    pub(crate) fn offer_lines(&self, lines: Vec<u8>) {
        self.inbox.post(Message::Lines(lines));
    }

    /// The process is to end.
    pub fn end(&self) {
        self.inbox.post(Message::End);
    }
}
