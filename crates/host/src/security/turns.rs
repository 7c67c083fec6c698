//! Whose handshake is next on a port that has requests to answer: whoever is connected is answered before too many others are connected.
//!
//! Of a thousand clients that come at once each would have its handshake first and then its answer, so that nobody were answered before all handshakes are done. Handshakes that
//! go on beside requests have turns instead: the first clients have their answers while the last ones wait to be connected, which costs those nothing.

use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread::available_parallelism,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// Turns at the same time, for each core.
const TURNS_PER_CORE: usize = 4;
/// Requests under way, for each core, from which on handshakes have turns.
const REQUESTS_PER_CORE: usize = 4;
/// How long a client has its turn: who keeps us waiting longer goes on without.
pub(super) const TURN_TIME: Duration = Duration::from_millis(50);
/// Longest wait for a turn: behind it a client goes on without, so that those who begin handshakes and do not end them hold nobody up for longer.
const TURN_WAIT_MAX: Duration = Duration::from_secs(3);

/// The turns of a port, and the requests that are the reason for them.
#[derive(Debug)]
pub(super) struct Turns {
    turns: Semaphore,
    requests: AtomicUsize,
    requests_max: usize,
}

/// A request is under way for as long as this is there.
#[derive(Debug)]
pub struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Turns {
    /// As many as the cores of this machine can use.
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self::of(TURNS_PER_CORE * cores, REQUESTS_PER_CORE * cores)
    }

    fn of(turns: usize, requests_max: usize) -> Self {
        Self { turns: Semaphore::new(turns), requests: AtomicUsize::new(0), requests_max }
    }

    /// A request is being answered.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        self.requests.fetch_add(1, Relaxed);
        UnderWay(&self.requests)
    }

    /// Waits for a turn; `None`: none is needed, or the wait was too long.
    pub(super) async fn take(&self) -> Option<SemaphorePermit<'_>> {
        if self.requests.load(Relaxed) < self.requests_max {
            return None;
        }
        timeout(TURN_WAIT_MAX, self.turns.acquire()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Far longer than what needs no waiting takes, and no part of [`TURN_WAIT_MAX`] that matters.
    const AT_ONCE: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_port_that_has_little_to_answer_gives_no_turns() {
        let turns = Turns::of(1, 2);
        let _request = turns.begin();
        let begun = Instant::now();
        for _ in 0..10 {
            assert!(turns.take().await.is_none());
        }
        assert!(begun.elapsed() < AT_ONCE, "nobody waits");
    }

    #[tokio::test]
    async fn beside_requests_so_many_have_a_turn_and_the_next_one_has_it_when_one_is_done() {
        let turns = Turns::of(2, 1);
        let request = turns.begin();
        let (first, second) = (turns.take().await, turns.take().await);
        assert!(first.is_some() && second.is_some());
        {
            let third = turns.take();
            tokio::pin!(third);
            assert!(timeout(Duration::from_millis(20), &mut third).await.is_err(), "all turns are taken");
            drop(first);
            assert!(third.await.is_some());
        }
        drop((request, second));
        assert!(turns.take().await.is_none(), "there is nothing to answer any more");
    }

    #[tokio::test]
    async fn whoever_has_waited_too_long_goes_on_without() {
        let turns = Turns::of(1, 1);
        let _request = turns.begin();
        let _held = turns.take().await.expect("a turn");
        let begun = Instant::now();
        assert!(turns.take().await.is_none());
        assert!(begun.elapsed() >= TURN_WAIT_MAX, "{:?}", begun.elapsed());
    }
}
