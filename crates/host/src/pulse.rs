//! Whether a running cloud lives, for who watches that.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{
    inbox::{Inbox, Message},
    server::Server,
};

/// Asks the data plane of a local cloud whether it takes its turns.
#[derive(Clone)]
pub struct Pulse(Arc<Inbox>);

impl Pulse {
    /// Completes with the next turn that the shard takes; false: it has ended.
    pub async fn beat(&self) -> bool {
        let (asked, answered) = oneshot::channel();
        self.0.post(Message::Beat(asked));
        answered.await.is_ok()
    }
}

impl Server {
    /// Whether its data plane lives.
    pub fn pulse(&self) -> Pulse {
        Pulse(self.monitor.api.inbox.clone())
    }
}
