//! A relay without a network, for tests: topics, queues that wait for a listener, being away, being slow, and losing, holding back and refusing messages.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use bodkin_relay::session::Receipt;
use tokio::sync::mpsc;

use super::{
    Asked, Delivered, Destination, LinkState, Message, Messages, Notice, Protocol, Relay, RelayError, RelayPlace, Taken, check_bytes,
    check_message,
};

/// Clones of it are the same relay.
#[derive(Clone)]
pub(crate) struct MemoryRelay {
    place: RelayPlace,
    hub: Arc<Mutex<Hub>>,
    /// What it speaks: of brokers there are no messages of bytes.
    protocol: Protocol,
}

#[derive(Default)]
struct Hub {
    is_down: bool,
    /// Messages that pass before any is lost.
    to_pass: usize,
    /// Messages that have this fate behind them.
    to_suffer: usize,
    fate: Fate,
    /// Those that are held back.
    held: Vec<(Destination, Message)>,
    /// How long each message is on its way.
    delay: Duration,
    /// What is on its way, in its order.
    late: VecDeque<(Destination, Message)>,
    next: u64,
    listeners: BTreeMap<u64, (Destination, mpsc::UnboundedSender<Delivered>, mpsc::UnboundedReceiver<Notice>)>,
    waiting: BTreeMap<Destination, VecDeque<Message>>,
    /// Everything that was sent, in its order.
    sent: Vec<(Destination, Message)>,
}

/// What becomes of messages to queues of bytes that do not pass.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Fate {
    /// Nobody is told.
    #[default]
    Lost,
    /// They are late.
    Held,
    /// Their sender is told.
    Refused,
}

impl MemoryRelay {
    pub(crate) fn new(name: &str) -> Self {
        let place = RelayPlace { address: name.into(), port: 5571, secure: true, authentication_info: None };
        Self { place, hub: Arc::default(), protocol: Protocol::Native }
    }

    /// One that carries texts only, as a broker does.
    pub(crate) fn of_texts(name: &str) -> Self {
        Self { protocol: Protocol::Stomp, ..Self::new(name) }
    }

    /// Is away, or back: what was sent meanwhile was refused, and listeners are told.
    pub(crate) fn set_down(&self, is_down: bool) {
        let mut hub = self.hub.lock().unwrap();
        if hub.is_down && !is_down {
            hub.listeners.values().for_each(|listener| drop(listener.1.send(Delivered::Interrupted)));
        }
        hub.is_down = is_down;
    }

    /// Loses the next so many messages to queues of bytes, and tells nobody.
    pub(crate) fn lose(&self, count: usize) {
        self.lose_behind(0, count);
    }

    /// Lets so many messages to queues of bytes pass, and loses the next so many.
    pub(crate) fn lose_behind(&self, passed: usize, lost: usize) {
        self.treat((passed, lost), Fate::Lost);
    }

    /// Lets so many messages to queues of bytes pass, and holds the next one back until [`Self::release`].
    pub(crate) fn hold_behind(&self, passed: usize) {
        self.treat((passed, 1), Fate::Held);
    }

    /// Whether something is held back.
    pub(crate) fn holds(&self) -> bool {
        !self.hub.lock().unwrap().held.is_empty()
    }

    /// Carries what was held back.
    pub(crate) fn release(&self) {
        let mut hub = self.hub.lock().unwrap();
        hub.forget_those_who_left();
        for (destination, message) in std::mem::take(&mut hub.held) {
            hub.deliver(&destination, message);
        }
    }

    /// Lets so many messages to queues of bytes pass, and does not take the next one.
    pub(crate) fn refuse_behind(&self, passed: usize) {
        self.treat((passed, 1), Fate::Refused);
    }

    fn treat(&self, (passed, suffering): (usize, usize), fate: Fate) {
        let mut hub = self.hub.lock().unwrap();
        (hub.to_pass, hub.to_suffer, hub.fate) = (passed, suffering, fate);
    }

    /// Takes so long for each message from now on; their order stays.
    pub(crate) fn delay(&self, delay: Duration) {
        self.hub.lock().unwrap().delay = delay;
    }

    /// What was sent so far: for tests of what a relay sees, and of what it may send once more.
    pub(crate) fn sent(&self) -> Vec<(Destination, Message)> {
        self.hub.lock().unwrap().sent.clone()
    }

    /// How many listen to a destination.
    pub(crate) fn listeners(&self, destination: &Destination) -> usize {
        let mut hub = self.hub.lock().unwrap();
        hub.forget_those_who_left();
        hub.listeners.values().filter(|listener| listener.0 == *destination).count()
    }

    /// Queues that somebody listens to, or in which something waits.
    pub(crate) fn queues(&self) -> Vec<Destination> {
        let mut hub = self.hub.lock().unwrap();
        hub.forget_those_who_left();
        let listened = hub.listeners.values().map(|listener| listener.0.clone());
        listened.chain(hub.waiting.keys().cloned()).filter(|destination| matches!(destination, Destination::Queue(_))).collect()
    }

    /// Sends what was sent once more.
    pub(crate) fn repeat(&self, destination: &Destination, message: Message) {
        self.carry(destination, message).unwrap();
    }

    /// Puts a message on its way.
    fn carry(&self, destination: &Destination, message: Message) -> Result<(), RelayError> {
        self.with_hub(|hub| {
            hub.sent.push((destination.clone(), message.clone()));
            match hub.fate_of(destination) {
                Some(Fate::Lost) => return Ok(()),
                Some(Fate::Held) => {
                    hub.held.push((destination.clone(), message));
                    return Ok(());
                }
                Some(Fate::Refused) => {
                    let words = "it takes no message".into();
                    return Err(RelayError::Refused { place: self.place.to_string(), reason: None, words });
                }
                None => {}
            }
            if hub.delay.is_zero() && hub.late.is_empty() {
                hub.deliver(destination, message);
                return Ok(());
            }
            hub.late.push_back((destination.clone(), message));
            let (relay, delay) = (self.clone(), hub.delay);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let mut hub = relay.hub.lock().unwrap();
                hub.forget_those_who_left();
                // The first of those on their way, so that none overtakes another.
                let (destination, message) = hub.late.pop_front().expect("each has a task");
                hub.deliver(&destination, message);
            });
            Ok(())
        })
    }

    fn with_hub<T>(&self, act: impl FnOnce(&mut Hub) -> Result<T, RelayError>) -> Result<T, RelayError> {
        let mut hub = self.hub.lock().unwrap();
        if hub.is_down {
            return Err(RelayError::Down { place: self.place.to_string(), reason: "it is away".into() });
        }
        hub.forget_those_who_left();
        act(&mut hub)
    }
}

impl Hub {
    fn forget_those_who_left(&mut self) {
        self.listeners.retain(|_, (.., notices)| {
            loop {
                match notices.try_recv() {
                    Ok(Notice::Left(_)) => return false,
                    Ok(Notice::Taken(..)) => {}
                    Err(_) => return true,
                }
            }
        });
    }

    /// What becomes of the message to it that is just sent; `None`: it passes.
    fn fate_of(&mut self, destination: &Destination) -> Option<Fate> {
        if !matches!(destination, Destination::Queue(_)) || destination.name().ends_with("-CONTROL") || self.to_suffer == 0 {
            return None;
        }
        if self.to_pass > 0 {
            self.to_pass -= 1;
            return None;
        }
        self.to_suffer -= 1;
        Some(self.fate)
    }

    fn deliver(&mut self, destination: &Destination, message: Message) {
        let mut of_it = self.listeners.values().filter(|listener| listener.0 == *destination);
        let taken = Taken { connection: 0, receipt: Receipt::Credit(1) };
        let give = |to: &mpsc::UnboundedSender<Delivered>, message| drop(to.send(Delivered::Message(message, taken.clone())));
        match destination {
            Destination::Topic(_) => of_it.for_each(|listener| give(&listener.1, message.clone())),
            Destination::Queue(_) => match of_it.next() {
                Some(listener) => give(&listener.1, message),
                None => self.waiting.entry(destination.clone()).or_default().push_back(message),
            },
        }
    }
}

impl Message {
    /// Whether a reader of it finds these words.
    pub(crate) fn contains(&self, words: &str) -> bool {
        let bytes = match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        };
        bytes.windows(words.len()).any(|window| window == words.as_bytes())
    }
}

impl Relay for MemoryRelay {
    fn place(&self) -> &RelayPlace {
        &self.place
    }

    fn state(&self) -> LinkState {
        if self.hub.lock().unwrap().is_down { LinkState::Down("it is away".into()) } else { LinkState::Open(self.protocol) }
    }

    fn send<'a>(&'a self, destination: &'a Destination, message: String) -> Asked<'a, ()> {
        Box::pin(async move {
            check_message(&message)?;
            self.carry(destination, Message::Text(message))
        })
    }

    fn send_bytes<'a>(&'a self, destination: &'a Destination, message: Vec<u8>) -> Asked<'a, ()> {
        Box::pin(async move {
            check_bytes(&message)?;
            if self.protocol != Protocol::Native {
                let words = "a broker is sent texts only".into();
                return Err(RelayError::Refused { place: self.place.to_string(), reason: None, words });
            }
            self.carry(destination, Message::Bytes(message))
        })
    }

    fn listen<'a>(&'a self, destination: &'a Destination) -> Asked<'a, Messages> {
        Box::pin(async move {
            self.with_hub(|hub| {
                hub.next += 1;
                let (listener, (deliver, delivered), (notices, told)) = (hub.next, mpsc::unbounded_channel(), mpsc::unbounded_channel());
                hub.listeners.insert(listener, (destination.clone(), deliver, told));
                for message in hub.waiting.remove(destination).unwrap_or_default() {
                    hub.deliver(destination, message);
                }
                Ok(Messages::new(listener, delivered, notices))
            })
        })
    }

    fn remove<'a>(&'a self, destination: &'a Destination) -> Asked<'a, ()> {
        Box::pin(async move {
            self.with_hub(|hub| {
                hub.waiting.remove(destination);
                for (.., (_, deliver, _)) in hub.listeners.extract_if(.., |_, listener| listener.0 == *destination) {
                    let _ = deliver.send(Delivered::Over(RelayError::Removed(destination.clone())));
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Heard, *};

    #[tokio::test]
    async fn a_queue_waits_for_its_listener_and_a_topic_does_not() {
        let relay = MemoryRelay::new("relay.example");
        let (queue, topic) = (Destination::queue("q").unwrap(), Destination::topic("t").unwrap());
        relay.send(&queue, "1".into()).await.unwrap();
        relay.send(&topic, "1".into()).await.unwrap();
        let (mut of_queue, mut of_topic) = (relay.listen(&queue).await.unwrap(), relay.listen(&topic).await.unwrap());
        relay.send(&topic, "2".into()).await.unwrap();
        assert_eq!(of_queue.next().await, Ok(Heard::Message("1".into())));
        assert_eq!(of_topic.next().await, Ok(Heard::Message("2".into())));
        relay.remove(&queue).await.unwrap();
        assert_eq!(of_queue.next().await, Err(RelayError::Removed(queue.clone())));
        relay.set_down(true);
        assert!(matches!(relay.send(&topic, "3".into()).await, Err(RelayError::Down { .. })));
        relay.set_down(false);
        assert_eq!(of_topic.next().await, Ok(Heard::Interrupted));
        drop(of_queue);
        assert_eq!(relay.sent().len(), 3);
        assert_eq!(relay.send(&topic, "a\0".into()).await, Err(RelayError::ZeroByte));
    }

    #[tokio::test]
    async fn what_is_slow_keeps_its_order_and_what_is_lost_is_lost_at_its_place() {
        let relay = MemoryRelay::new("relay.example");
        let queue = Destination::queue("q").unwrap();
        let mut messages = relay.listen(&queue).await.unwrap();
        relay.delay(Duration::from_millis(50));
        relay.lose_behind(1, 1);
        for number in 1..=3 {
            relay.send(&queue, number.to_string()).await.unwrap();
        }
        relay.delay(Duration::ZERO);
        relay.send(&queue, "4".into()).await.unwrap();
        for number in [1, 3, 4] {
            assert_eq!(messages.next().await, Ok(Heard::Message(number.to_string())));
        }
    }
}
