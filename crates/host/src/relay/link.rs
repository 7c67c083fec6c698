//! One relay's connection as its users have it, and all of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bodkin_relay::session::Sending;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::{
    Asked, Destination, Dialer, LinkState, Message, Messages, Notice, Relay, RelayError, RelayPlace, SENDS_MAX, check_bytes, check_message,
    task::{Ask, Task},
};

/// The relays that are connected to.
pub struct Relays {
    dialer: Dialer,
    links: Mutex<BTreeMap<RelayPlace, Arc<Link>>>,
}

impl Relays {
    /// None yet.
    pub fn new(dialer: Dialer) -> Self {
        Self { dialer, links: Mutex::default() }
    }

    /// The relay at a place; it is connected to from the first time on that somebody asks for it. Must be called within a tokio runtime.
    pub fn link(&self, place: &RelayPlace) -> Arc<dyn Relay> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.entry(place.clone()).or_insert_with(|| Link::start(place.clone(), self.dialer.clone())).clone()
    }

    /// Ends the connections to all other relays than those that are wanted: whoever still uses one is told ([`RelayError::Ended`]).
    pub fn keep(&self, wanted: impl Fn(&RelayPlace) -> bool) {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).retain(|place, link| {
            let is_wanted = wanted(place);
            if !is_wanted {
                link.end();
            }
            is_wanted
        });
    }

    /// All of them, in the order of their places.
    pub fn all(&self) -> Vec<Arc<dyn Relay>> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.values().map(|link| link.clone() as Arc<dyn Relay>).collect()
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.keep(|_| false);
    }
}

/// What the users of one relay share.
struct Link {
    place: RelayPlace,
    asks: mpsc::UnboundedSender<Ask>,
    notices: mpsc::UnboundedSender<Notice>,
    state: watch::Receiver<LinkState>,
    /// Places of those who send, or remove: so many asks wait at the most, and as many again of those who have given up.
    sends: Semaphore,
    /// Places of those whose listening is not confirmed.
    listens: Semaphore,
    next: AtomicU64,
}

impl Link {
    fn start(place: RelayPlace, dialer: Dialer) -> Arc<Self> {
        let ((asks, asked), (notices, noticed)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let (state, seen) = watch::channel(LinkState::Connecting);
        tokio::spawn(Task::new(place.clone(), dialer, asked, noticed, state).run());
        Arc::new(Self {
            place,
            asks,
            notices,
            state: seen,
            sends: Semaphore::new(SENDS_MAX),
            listens: Semaphore::new(SENDS_MAX),
            next: AtomicU64::new(1),
        })
    }

    fn end(&self) {
        // A task that is gone has ended.
        let _ = self.asks.send(Ask::End);
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    fn ended(&self) -> RelayError {
        RelayError::Ended(self.place.to_string())
    }

    /// Sends what has been checked.
    async fn carry(&self, destination: &Destination, message: Message) -> Result<(), RelayError> {
        let _place = self.sends.acquire().await.expect("the semaphore is never closed");
        let sending = self.number();
        let mut patient = Patient { asks: &self.asks, sending: Some(sending) };
        let sent = self.ask(|done| Ask::Send { sending, destination: destination.clone(), message, done }).await;
        patient.sending = None;
        sent
    }

    /// Asks the task, and waits for its answer.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<Result<T, RelayError>>) -> Ask) -> Result<T, RelayError> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(ask(answer)).map_err(|_| self.ended())?;
        answered.await.unwrap_or_else(|_| Err(self.ended()))
    }
}

/// Somebody who waits until a message has gone. Dropped before, it does not go.
struct Patient<'l> {
    asks: &'l mpsc::UnboundedSender<Ask>,
    sending: Option<Sending>,
}

impl Drop for Patient<'_> {
    fn drop(&mut self) {
        if let Some(sending) = self.sending {
            let _ = self.asks.send(Ask::GiveUp(sending));
        }
    }
}

impl Relay for Link {
    fn place(&self) -> &RelayPlace {
        &self.place
    }

    fn state(&self) -> LinkState {
        self.state.borrow().clone()
    }

    fn send<'a>(&'a self, destination: &'a Destination, message: String) -> Asked<'a, ()> {
        Box::pin(async move {
            check_message(&message)?;
            self.carry(destination, Message::Text(message)).await
        })
    }

    fn send_bytes<'a>(&'a self, destination: &'a Destination, message: Vec<u8>) -> Asked<'a, ()> {
        Box::pin(async move {
            check_bytes(&message)?;
            self.carry(destination, Message::Bytes(message)).await
        })
    }

    fn listen<'a>(&'a self, destination: &'a Destination) -> Asked<'a, Messages> {
        Box::pin(async move {
            let _place = self.listens.acquire().await.expect("the semaphore is never closed");
            let (listener, (deliver, delivered)) = (self.number(), mpsc::unbounded_channel());
            // Dropped with this future it says that nobody listens.
            let messages = Messages::new(listener, delivered, self.notices.clone());
            self.ask(|done| Ask::Listen { listener, destination: destination.clone(), deliver, done }).await?;
            Ok(messages)
        })
    }

    fn remove<'a>(&'a self, destination: &'a Destination) -> Asked<'a, ()> {
        Box::pin(async move {
            let _place = self.sends.acquire().await.expect("the semaphore is never closed");
            self.ask(|done| Ask::Remove { destination: destination.clone(), done }).await
        })
    }
}
