//! The end of serving: what has come is answered, and nothing behind it.

use std::time::Duration;

use tokio::{sync::watch, time::timeout};

/// Tells those who serve that the cloud stops, and knows when the last of them has done so.
#[derive(Default)]
pub struct Stopping(watch::Sender<bool>);

impl Stopping {
    /// Has everybody stop, and waits until they have; false if that would take longer than `patience`.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.0.send_replace(true);
        timeout(patience, self.0.closed()).await.is_ok()
    }

    /// Whoever serves is waited for until this is dropped.
    pub fn serve(&self) -> Serving {
        Serving(self.0.subscribe())
    }
}

/// Somebody who serves.
pub struct Serving(watch::Receiver<bool>);

impl Serving {
    /// Whether the cloud stops.
    pub fn is_over(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when the cloud stops.
    pub async fn over(&mut self) {
        // A cloud that is gone has stopped.
        let _ = self.0.wait_for(|stops| *stops).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_serves_is_waited_for() {
        let stopping = Stopping::default();
        assert!(stopping.stop(Duration::from_secs(60)).await, "nobody serves");
        let mut serving = stopping.serve();
        assert!(serving.is_over());
        serving.over().await;
        assert!(!stopping.stop(Duration::from_millis(1)).await, "somebody serves");
        drop(serving);
        assert!(stopping.stop(Duration::from_secs(60)).await);
    }
}
