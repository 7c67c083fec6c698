//! The shard's side of a replay: chunks go to the connection as it has room, and at the end the stream goes live without a gap.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Shard, connection::Phase};
use crate::{
    inbox::ConnectionKey,
    listening::{Listening, Since},
    replay::{self, Chunk, ReplayContext},
};

/// Bytes of a replay that may wait to be taken by the client before the next chunk is asked for.
const UNSENT_BYTES_MAX: usize = 512 * 1024;

/// A replay under way on a connection. The task ends when this is dropped.
#[derive(Debug)]
pub struct Replay {
    /// What is wanted.
    pub listening: Arc<Listening>,
    credit: mpsc::Sender<()>,
    /// Whether a chunk was asked for and has not come.
    is_asked: bool,
    /// Events of other nodes at the begin that the listener had not received and that are in no log here.
    unkept_before: u64,
}

impl Replay {
    fn ask(&mut self) {
        if !std::mem::replace(&mut self.is_asked, true) {
            // One place is enough, for no second chunk is asked for before the first has come; a task that failed has told it.
            let _ = self.credit.try_send(());
        }
    }
}

impl Shard {
    /// Begins a replay on a connection.
    pub(super) fn begin_replay(&mut self, slot: usize, listening: Listening, since: Since, context: ReplayContext) {
        let (credit, credits) = mpsc::channel(1);
        let listening = Arc::new(listening);
        let connection = &mut self.connections[slot];
        let key = ConnectionKey { slot, serial: connection.serial };
        self.context.runtime.spawn(replay::replay(key, listening.clone(), (since, self.nodes.token.clone()), credits, context));
        let unkept_before = self.nodes.lacks(&listening);
        let mut replay = Replay { listening, credit, is_asked: false, unkept_before };
        replay.ask();
        connection.begin_replay(replay);
        self.replaying += 1;
    }

    /// Takes a chunk of a replay. At the end of what is written, what was accepted since is at hand in memory, and then the
    /// stream is live; if it is too much to be at hand, the replay reads on.
    pub(super) fn replayed(&mut self, key: ConnectionKey, chunk: &Chunk) {
        let Some(connection) = self.connections.get_mut(key.slot).filter(|connection| connection.serial == key.serial) else { return };
        let Some(replay) = connection.replay.as_mut() else { return };
        replay.is_asked = false;
        connection.out().extend_from_slice(&chunk.frames);
        self.dirty.push(key.slot);
        if !chunk.is_end || !self.go_live(key.slot, chunk) {
            self.ask_for_replay(key.slot);
        }
    }

    /// Ends a stream whose replay cannot go on; its client comes back with the id of the last event it got.
    pub(super) fn replay_failed(&mut self, key: ConnectionKey) {
        if self.connections.get(key.slot).is_some_and(|connection| connection.serial == key.serial) {
            self.close(key.slot);
        }
    }

    /// Asks for the next chunk once the client has taken most of the last ones.
    pub(super) fn ask_for_replay(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if connection.unsent_bytes() < UNSENT_BYTES_MAX
            && let Some(replay) = &mut connection.replay
        {
            replay.ask();
        }
    }

    /// Hands over what was accepted since the chunk and subscribes in the same turn; false if that is not in memory any more.
    fn go_live(&mut self, slot: usize, chunk: &Chunk) -> bool {
        let log = self.log.as_ref().expect("what is replayed is logged");
        let Some(recent) = log.recent(chunk.next) else { return false };
        let connection = &mut self.connections[slot];
        let replay = connection.replay.take().expect("a replay is under way");
        let listening = replay.listening;
        // They came while the log was replayed, to those who were live.
        if self.nodes.lacks(&listening) > replay.unkept_before {
            connection.out().extend_from_slice(replay::LOST);
        }
        let snapshot = self.context.store.snapshot();
        let mut token = chunk.token.clone();
        for record in recent {
            if replay::is_loss(&record, &listening) {
                connection.out().extend_from_slice(replay::LOST);
            }
            let is_received = replay::is_received(&record, &listening, token.as_ref());
            if let Some(token) = &mut token {
                token.read(&record);
            }
            if is_received || record.topic != listening.event_type.as_str() {
                continue;
            }
            let Some(publication) = replay::publication(&record) else { continue };
            if listening.hears(&snapshot, &publication, &mut self.filter_text) {
                self.frames.clear();
                if let Some(token) = &token {
                    self.frames.set_token(token);
                }
                connection.out().extend_from_slice(self.frames.stream(listening.form, record.id, &publication));
            }
        }
        connection.out().extend_from_slice(b": live\n\n");
        drop(snapshot);
        self.replaying -= 1;
        if let Err(error) = self.listen(slot, listening) {
            tracing::warn!(%error, "a stream ends behind its replay");
            self.connections[slot].phase = Phase::Closing;
        }
        true
    }
}
