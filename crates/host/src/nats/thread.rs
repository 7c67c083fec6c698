//! The thread that carries a line: how it begins, and how it is told to end.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    time::Duration,
};

use crate::inbox::Inbox;

/// How long whoever stops waits for the thread, which may be in the middle of connecting.
const END_MAX: Duration = Duration::from_secs(2);

/// Tells a thread whether it is to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether it is.
    pub fn is_told(&self) -> bool {
        self.0.load(Acquire)
    }
}

/// A thread that carries a line, and waits for it and for an inbox of messages.
#[derive(Debug)]
pub(crate) struct LineThread<M> {
    name: &'static str,
    inbox: Arc<Inbox<M>>,
    stop: Stop,
    /// Closed when it has ended.
    ended: mpsc::Receiver<()>,
}

impl<M: Send + 'static> LineThread<M> {
    /// Begins a thread that this inbox wakes. Whenever it is woken, `run` asks whether it is to end.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(name: &'static str, inbox: Arc<Inbox<M>>, run: impl FnOnce(Stop) + Send + 'static) -> io::Result<Self> {
        let (stop, (ending, ended)) = (Stop::default(), mpsc::channel::<()>());
        let told = stop.clone();
        std::thread::Builder::new().name(name.into()).spawn(move || {
            run(told);
            drop(ending);
        })?;
        Ok(Self { name, inbox, stop, ended })
    }

    /// What wakes it.
    pub fn inbox(&self) -> &Arc<Inbox<M>> {
        &self.inbox
    }

    /// Ends it. Waits for [`END_MAX`] at the most, so it is not for a thread that serves others.
    pub fn stop(self) {
        self.stop.0.store(true, Release);
        self.inbox.wake();
        // It sends nothing: this is its end, or the time's.
        if self.ended.recv_timeout(END_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!(thread = self.name, "a thread that connects to NATS is still at that, and is left");
        }
    }
}

#[cfg(test)]
mod tests {
    use mio::{Events, Poll, Token, Waker};

    use super::*;

    #[test]
    fn a_thread_that_waits_is_woken_to_end_and_waited_for() {
        let mut poll = Poll::new().expect("a poll");
        let inbox = Arc::new(Inbox::<()>::new(Waker::new(poll.registry(), Token(0)).expect("a waker")));
        let has_ended = Arc::new(AtomicBool::new(false));
        let ending = has_ended.clone();
        let run = move |stop: Stop| {
            while !stop.is_told() {
                poll.poll(&mut Events::with_capacity(1), None).expect("it waits");
            }
            ending.store(true, Release);
        };
        LineThread::start("test", inbox, run).expect("a thread").stop();
        assert!(has_ended.load(Acquire));
    }
}
