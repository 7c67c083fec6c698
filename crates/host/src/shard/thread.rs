//! The shard's thread, as its owner sees it.

use std::{io, sync::Arc, thread::JoinHandle};

use tokio::{sync::oneshot, task::JoinHandle as Task};

use super::Shard;
use crate::inbox::{Inbox, Message};

/// A running shard. It ends when this is dropped.
pub struct ShardThread {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl ShardThread {
    /// Runs a shard.
    pub fn start(shard: Shard) -> io::Result<Self> {
        let inbox = shard.inbox.clone();
        let thread = std::thread::Builder::new().name("shard-0".into()).spawn(|| shard.run())?;
        Ok(Self { inbox, thread: Some(thread) })
    }

    /// Stops serving, and writes out what is queued; gives the push tasks, which end with what they are posting. What a pair needs goes on:
    /// what is written to the database behind this is answered, too.
    pub async fn drain(&self) -> Option<Vec<Task<()>>> {
        let (drained, told) = oneshot::channel();
        self.inbox.post(Message::Stop { drained });
        told.await.ok()
    }

    /// Ends it.
    pub fn end(mut self) -> std::thread::Result<io::Result<()>> {
        self.inbox.post(Message::End);
        self.thread.take().expect("it is joined once").join()
    }
}

impl Drop for ShardThread {
    fn drop(&mut self) {
        self.inbox.post(Message::End);
    }
}
