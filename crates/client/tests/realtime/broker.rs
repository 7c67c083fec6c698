//! A broker for the tests: the real machine (`Shard`) behind the real protocol (`zmtp`), one thread, one topic, and orders from the test: lead,
//! stop dispatching, say anything, cut every connection, die.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    num::NonZeroU32,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use bodkin_broker::{
    Accepted, Attachment, Authority, Epoch, Incarnation, Input, Instant, Output, Overflow, Publication, PublisherId, Refusal, Shard,
    ShardLimits, SlotId, StreamId, StreamIdentity, SubscriptionKey, Terms, TopicId, Wanted, Work,
    topic::Level,
    wire::{ClientFrame, EventHeader, Flags, Guarantee, RefusalReason, Watermark},
};
use bodkin_zmtp::{Connection, Event, Limits, Random, ServerSecurity, ServerSettings, SocketType};
use mio::{Events, Interest, Poll, Token, Waker, net::TcpListener, net::TcpStream};

pub const TOPIC: &str = "TEMPERATURE";

const LISTENER: Token = Token(usize::MAX);
const ORDERS: Token = Token(usize::MAX - 1);

/// No event is excess, none is late, none needs a Backup that is not there.
const TERMS: Terms = Terms {
    level: Level::new(0).unwrap(),
    period_ns: 1,
    jitter_ns: 1 << 50,
    dispatch_within_ns: None,
    replicate_within_ns: Some(1 << 40),
    mark_every: NonZeroU32::MIN,
    dispatch_cost_ns: 0,
    replica_cost_ns: 0,
    broker_subscriber_max_ns: 1_000_000,
    created_before_ns: 1 << 40,
    created_behind_ns: 1 << 40,
    backlog_max: NonZeroU32::new(64).unwrap(),
    streams_max: 8,
    shed_max: None,
    emptied_covers: false,
};

/// What it guarantees to whoever asks.
pub const UNSTATED: ClientFrame<'static> = ClientFrame::Guaranteed {
    epoch: Epoch::NONE,
    deadlines: Guarantee::Unstated,
    losses: Guarantee::Unstated,
    worst_stall_ns: 0,
    blocking_ns: 0,
    clock_difference_ns: 0,
    clock_error_ns: 0,
    publisher_excess_ns: 0,
    broker_backup_ns: 0,
    broker_backup_stated_ns: 0,
};

pub enum Order {
    Lead(Epoch),
    /// Take events and dispatch none.
    Hold,
    /// Send every client a message of these frames.
    Say(Vec<Vec<u8>>),
    /// Stand still until the next order.
    Freeze,
    /// Close every connection.
    Cut,
    Die,
}

/// What a client has said that no other client is told.
pub enum Said {
    /// The three times of an answer to [`ClientFrame::ClockRequest`].
    Clock(u64, u64, u64),
    /// The last event that was published.
    Last(u64),
    /// How far the subscriber had the only stream, or 0.
    Subscribe(u64),
    /// How far the subscriber has acknowledged a stream.
    Delivered(u64),
}

pub struct TestBroker {
    pub address: SocketAddr,
    /// What clients have said.
    pub said: mpsc::Receiver<Said>,
    orders: mpsc::Sender<(Order, mpsc::Sender<()>)>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl TestBroker {
    /// One that follows until it is told to lead.
    pub fn start(security: ServerSecurity) -> Self {
        let poll = Poll::new().expect("a poll");
        let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("a port");
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).expect("a listener");
        let waker = Waker::new(poll.registry(), ORDERS).expect("a waker");
        let address = listener.local_addr().expect("an address");
        let (orders, taken) = mpsc::channel();
        let (told, said) = mpsc::channel();
        let thread = std::thread::spawn(move || Server::new(poll, listener, taken, told, security).run());
        Self { address, said, orders, waker, thread: Some(thread) }
    }

    pub fn leading(epoch: u64) -> Self {
        let broker = Self::start(ServerSecurity::Null);
        broker.order(Order::Lead(Epoch(epoch)));
        broker
    }

    /// Returns when it is carried out.
    pub fn order(&self, order: Order) {
        let (done, is_done) = mpsc::channel();
        self.orders.send((order, done)).expect("the broker lives");
        self.waker.wake().expect("a waker");
        is_done.recv().expect("the broker lives");
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        // It is gone already if one of its assertions failed, which the join tells.
        let _ = self.orders.send((Order::Die, mpsc::channel().0));
        let _ = self.waker.wake();
        let ended = self.thread.take().expect("it is joined once").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the test's broker has panicked");
    }
}

struct Client {
    stream: TcpStream,
    zmtp: Connection,
    out: Vec<u8>,
    is_open: bool,
    name: String,
    incarnation: Incarnation,
}

struct Server {
    poll: Poll,
    listener: TcpListener,
    orders: mpsc::Receiver<(Order, mpsc::Sender<()>)>,
    said: mpsc::Sender<Said>,
    settings: Arc<ServerSettings>,
    start: std::time::Instant,
    shard: Shard<usize>,
    topic: TopicId,
    epoch: Epoch,
    leads: bool,
    holds: bool,
    clients: HashMap<usize, Client>,
    next_client: usize,
    /// Publisher ids are given in the order of coming.
    publishers: Vec<String>,
    subscriptions: HashMap<String, SubscriptionKey>,
    sources: HashMap<StreamId, usize>,
    kept: HashMap<SlotId, (EventHeader, Vec<u8>)>,
    outputs: Vec<Output>,
}

impl Server {
    fn new(
        poll: Poll,
        listener: TcpListener,
        orders: mpsc::Receiver<(Order, mpsc::Sender<()>)>,
        said: mpsc::Sender<Said>,
        security: ServerSecurity,
    ) -> Self {
        let limits = ShardLimits { subscriptions_max: 8, topics_max: 8, queue_bytes_max: 1 << 20 };
        let mut shard = Shard::new(Incarnation(1), limits);
        let topic = shard.admit(TOPIC, TERMS).expect("a topic");
        let settings = Arc::new(ServerSettings { limits: Limits::default(), takes: vec![SocketType::Dealer], security });
        let mut server = Self {
            poll,
            listener,
            orders,
            said,
            settings,
            start: std::time::Instant::now(),
            shard,
            topic,
            epoch: Epoch::NONE,
            leads: false,
            holds: false,
            clients: HashMap::new(),
            next_client: 0,
            publishers: Vec::new(),
            subscriptions: HashMap::new(),
            sources: HashMap::new(),
            kept: HashMap::new(),
            outputs: Vec::new(),
        };
        server.step(Input::Authority(Authority { epoch: Epoch::NONE, until: Instant::default() }));
        server
    }

    fn now(&self) -> Instant {
        Instant::default().plus(self.start.elapsed())
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        loop {
            let wait = self.shard.next_timer().map_or(Duration::from_secs(1), |at| at.since(self.now()));
            self.poll.poll(&mut events, Some(wait.min(Duration::from_secs(1)))).expect("a poll");
            while let Ok((mut order, mut done)) = self.orders.try_recv() {
                if let Order::Freeze = order {
                    let _ = done.send(());
                    (order, done) = self.orders.recv().expect("a frozen broker is given an order");
                }
                match order {
                    Order::Freeze => panic!("it is frozen already"),
                    Order::Lead(epoch) => self.lead(epoch),
                    Order::Hold => self.holds = true,
                    Order::Say(frames) => self.say(&frames),
                    Order::Cut => self.clients.values_mut().for_each(|client| client.is_open = false),
                    Order::Die => return,
                }
                // Who gave the order may have failed meanwhile.
                let _ = done.send(());
            }
            self.accept();
            let ids: Vec<usize> = self.clients.keys().copied().collect();
            for id in ids {
                for message in self.clients.get_mut(&id).map(Client::read).unwrap_or_default() {
                    self.take(id, &message);
                }
            }
            self.work();
            self.clients.values_mut().for_each(Client::write);
            self.forget_closed();
        }
    }

    fn lead(&mut self, epoch: Epoch) {
        (self.epoch, self.leads) = (epoch, true);
        self.step(Input::Authority(Authority { epoch, until: Instant::NEVER }));
        let ids: Vec<usize> = self.clients.keys().copied().collect();
        ids.into_iter().for_each(|id| self.tell(id, &ClientFrame::Leader { epoch, is_leader: true }));
    }

    fn say(&mut self, frames: &[Vec<u8>]) {
        let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        let ids: Vec<usize> = self.clients.keys().copied().collect();
        ids.into_iter().for_each(|id| self.send(id, &frames));
    }

    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let id = self.next_client;
            self.next_client += 1;
            self.poll.registry().register(&mut stream, Token(id), Interest::READABLE | Interest::WRITABLE).expect("a stream");
            let mut out = Vec::new();
            // Octets that differ from connection to connection are chance enough for a test.
            let zmtp = Connection::server(self.settings.clone(), Random::new(&mut [id as u8 + 1; Random::OCTETS]), &mut out);
            let client = Client { stream, zmtp, out, is_open: true, name: String::new(), incarnation: Incarnation(0) };
            self.clients.insert(id, client);
        }
    }

    fn take(&mut self, id: usize, frames: &[Vec<u8>]) {
        match frames {
            [command] => self.command(id, &ClientFrame::decode(command).expect("a command")),
            [topic, payload, header] => {
                assert_eq!(topic, TOPIC.as_bytes());
                self.event(id, payload, &EventHeader::decode(header).expect("a header"));
            }
            _ => panic!("{} frames", frames.len()),
        }
    }

    fn stream(&mut self, id: usize, incarnation: Incarnation) -> StreamId {
        let name = &self.clients[&id].name;
        assert_eq!(incarnation, self.clients[&id].incarnation, "as its Hello said");
        let known = self.publishers.iter().position(|known| known == name);
        let publisher = known.unwrap_or_else(|| {
            self.publishers.push(name.clone());
            self.publishers.len() - 1
        });
        let identity = StreamIdentity { topic: self.topic, publisher: PublisherId(publisher as u64 + 1), incarnation };
        let stream = self.shard.open_stream(&self.shard.permit().expect("it leads"), identity).expect("a stream");
        self.sources.insert(stream, id);
        stream
    }

    fn event(&mut self, id: usize, payload: &[u8], header: &EventHeader) {
        let stream = self.stream(id, header.incarnation);
        let publisher = self.shard.identity(stream).expect("it is open").publisher;
        let (sequence, is_resent, now) = (header.sequence, header.flags.resend, self.now());
        let permit = self.shard.permit().expect("it leads");
        match self.shard.accept(
            now,
            permit,
            stream,
            Publication { epoch: header.epoch, sequence, created: now, is_resent, has_wrong_clock: false },
        ) {
            Ok(Accepted::Kept { slot, .. }) => {
                self.kept.insert(slot, (EventHeader { publisher, epoch: self.epoch, ..*header }, payload.to_vec()));
            }
            Ok(Accepted::Known) => {}
            Err(refusal) => {
                let (reason, retry_after_ns) = match refusal {
                    Refusal::Full { retry_after_ns, .. } => (RefusalReason::Full, retry_after_ns),
                    Refusal::NotLeading => (RefusalReason::NotLeading, 0),
                    Refusal::Epoch { .. } => (RefusalReason::Epoch, 0),
                    Refusal::Stream | Refusal::Sequence { .. } => (RefusalReason::Header, 0),
                };
                let (epoch, text) = (self.epoch, refusal.to_string());
                self.tell(id, &ClientFrame::Refused { epoch, sequence, reason, retry_after_ns, topic: TOPIC, text: &text });
            }
        }
    }

    fn command(&mut self, id: usize, command: &ClientFrame<'_>) {
        let epoch = self.epoch;
        match *command {
            ClientFrame::Hello { incarnation, name, .. } => {
                let is_leader = self.leads;
                let client = self.clients.get_mut(&id).expect("it has sent something");
                (client.name, client.incarnation) = (name.to_owned(), incarnation);
                self.tell(id, &ClientFrame::Leader { epoch, is_leader });
            }
            ClientFrame::Resume { incarnation, from, to, .. } => {
                let stream = self.stream(id, incarnation);
                self.step(Input::Resumed { stream, from, to });
            }
            ClientFrame::Subscribe { required, wait_ns, topic, watermarks, .. } if topic == TOPIC => {
                self.subscribe(id, required.then(|| Duration::from_nanos(wait_ns)), watermarks.iter().collect());
                self.say_to_test(Said::Subscribe(watermarks.iter().map(|watermark| watermark.through.0).sum()));
                self.tell(id, &ClientFrame::Subscribed { epoch, topic });
            }
            ClientFrame::Subscribe { topic, .. } => {
                let reason = RefusalReason::UnknownTopic;
                self.tell(id, &ClientFrame::SubscribeRefused { epoch, reason, topic, text: "there is one topic" });
            }
            ClientFrame::Delivered { publisher, incarnation, through, .. } => {
                self.say_to_test(Said::Delivered(through.0));
                let identity = StreamIdentity { topic: self.topic, publisher, incarnation };
                let stream = self.sources.keys().copied().find(|stream| self.shard.identity(*stream) == Some(identity));
                let subscription = self.subscriptions[&self.clients[&id].name];
                if let Some(stream) = stream {
                    self.step(Input::Delivered { subscription, stream, through });
                }
            }
            ClientFrame::ClockReply { sent_utc_ns, received_utc_ns, replied_utc_ns, .. } => {
                self.say_to_test(Said::Clock(sent_utc_ns, received_utc_ns, replied_utc_ns));
            }
            ClientFrame::Last { sequence, .. } => self.say_to_test(Said::Last(sequence.0)),
            ClientFrame::WatchGuarantee { .. } => self.tell(id, &UNSTATED),
            ref other => panic!("{other:?} is no command of a client's"),
        }
    }

    fn say_to_test(&self, said: Said) {
        // A test that is over listens no more.
        let _ = self.said.send(said);
    }

    fn subscribe(&mut self, id: usize, wait: Option<Duration>, watermarks: Vec<Watermark>) {
        let (now, name) = (self.now(), self.clients[&id].name.clone());
        if let Some(key) = self.subscriptions.get(&name) {
            return self.shard.attach(now, *key, id, watermarks, &mut self.outputs);
        }
        let key = self.shard.subscribe(TOPIC, id, Overflow::Loses).expect("a subscription");
        if let Some(wait) = wait {
            self.shard.require(now, key, wait, Attachment::New);
        }
        self.subscriptions.insert(name, key);
    }

    fn work(&mut self) {
        self.carry_out(None);
        while !self.holds {
            let (now, mut outputs) = (self.now(), std::mem::take(&mut self.outputs));
            let work = self.shard.next(now, &mut |_, _| Wanted::Bytes(64), &mut outputs);
            self.outputs = outputs;
            let slot = work.map(|work| match work {
                Work::Dispatch { slot, .. } => slot,
                other => panic!("{other:?} without a Backup"),
            });
            self.carry_out(slot);
            if work.is_none() {
                break;
            }
        }
        self.shard.end_turn(self.now(), &mut self.outputs);
        self.carry_out(None);
    }

    fn carry_out(&mut self, slot: Option<SlotId>) {
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Deliver { subscription, .. } => {
                    let (header, payload) = self.kept[&slot.expect("an event is dispatched")].clone();
                    let header = EventHeader { epoch: self.epoch, flags: Flags { acknowledge: false, ..header.flags }, ..header };
                    let mut bytes = Vec::new();
                    header.encode(&mut bytes);
                    let id = *self.shard.receiver(subscription).expect("it is there");
                    self.send(id, &[TOPIC.as_bytes(), &payload, &bytes]);
                    self.step(Input::Sent { subscription, bytes: 64 });
                }
                Output::Covered { stream, through } => {
                    let incarnation = self.shard.identity(stream).expect("it is open").incarnation;
                    self.tell(self.sources[&stream], &ClientFrame::Covered { epoch: self.epoch, incarnation, through, topic: TOPIC });
                }
                Output::Freed { slot } => {
                    self.kept.remove(&slot);
                }
                Output::NotRequired { .. } | Output::Closed { .. } => {}
                other => panic!("{other:?} in a test"),
            }
        }
    }

    fn step(&mut self, input: Input) {
        self.shard.step(self.now(), input, &mut self.outputs);
    }

    fn tell(&mut self, id: usize, command: &ClientFrame<'_>) {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        self.send(id, &[&bytes]);
    }

    fn send(&mut self, id: usize, frames: &[&[u8]]) {
        let Some(Client { zmtp, out, .. }) = self.clients.get_mut(&id) else { return };
        if let Some(mut sender) = zmtp.sender() {
            sender.message(frames, out);
        }
    }

    fn forget_closed(&mut self) {
        let closed: Vec<usize> = self.clients.iter().filter(|(_, client)| !client.is_open).map(|(id, _)| *id).collect();
        for id in closed {
            let name = self.clients.remove(&id).expect("it is there").name;
            let subscription = self.subscriptions.get(&name).copied();
            if let Some(subscription) = subscription.filter(|key| self.shard.receiver(*key) == Some(&id)) {
                self.step(Input::Detached { subscription });
            }
        }
    }
}

impl Client {
    /// All messages that have come, as their frames.
    fn read(&mut self) -> Vec<Vec<Vec<u8>>> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match self.stream.read(&mut buffer) {
                Ok(count) if count > 0 => self.receive(&mut buffer[..count], &mut all),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return all,
                _ => {
                    self.is_open = false;
                    return all;
                }
            }
        }
    }

    fn receive(&mut self, input: &mut [u8], all: &mut Vec<Vec<Vec<u8>>>) {
        let mut taken = 0;
        loop {
            let Ok(received) = self.zmtp.receive(&mut input[taken..], &mut self.out) else {
                self.is_open = false;
                return;
            };
            taken += received.taken;
            match received.event {
                None => return,
                Some(Event::Message(message)) => all.push(message.frames().map(<[u8]>::to_vec).collect()),
                Some(Event::Authenticate(_)) => self.zmtp.allow(&mut self.out),
                Some(_) => {}
            }
        }
    }

    fn write(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.is_open = false,
            }
        }
    }
}
