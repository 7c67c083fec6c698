//! A look at a fleet's servers, for the operator: who is reached, what the stream is like, and what this edge may do there. Nothing is changed.

use std::{
    io,
    time::{Duration, Instant},
};

use bodkin_nats::{
    client::{Client, Event, Options, RequestId},
    intake::IntakeSetup,
    jetstream::{
        AnswerError, EXPECTED_LAST_SUBJECT_SEQUENCE, EXPECTED_STREAM, ErrorKind, Storage, StreamInfo, consumer_info, last_message,
        publish_ack, stream_info,
    },
    protocol::{Headers, Message, Subject, takes},
};

use super::config::FleetConfig;
use crate::nats::{Connection, NatsPlace, NatsServer, inbox};

/// For the whole of it.
const PATIENCE: Duration = Duration::from_secs(10);
/// For each answer: a change of leaders takes some seconds.
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// No stream comes to this sequence: what is published on its condition is refused, by a server that lets it be published.
const NO_SEQUENCE: u64 = i64::MAX as u64;

/// What a server has told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLook {
    /// Its name and version.
    pub greeted: Greeted,
    /// The stream; or why it is not known.
    pub stream: Result<FleetStream, String>,
    /// Lanes that could not be published to or read, and why.
    pub refused: Vec<(String, String)>,
    /// How far this edge is in the stream that events come by, if any do; or why nothing can come.
    pub from: Option<Result<FleetConsumer, String>>,
}

/// A server that has accepted a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeted {
    /// Its name.
    pub server: String,
    /// Its version.
    pub version: String,
}

/// A consumer, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetConsumer {
    /// Whether it is there; one that is not is made.
    pub is_there: bool,
    /// Messages that wait for this edge.
    pub waiting: u64,
}

/// A stream, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetStream {
    /// Servers that have it.
    pub replicas: u8,
    /// Is it on disk?
    pub on_disk: bool,
    /// Do old messages go where there is no room, or behind an age?
    pub forgets: bool,
    /// Why it takes nothing that could be relied on.
    pub unusable: Option<&'static str>,
    /// Its subjects.
    pub subjects: Vec<String>,
    /// Its messages.
    pub messages: u64,
}

impl FleetStream {
    /// Whether one of its subjects takes what is published to this one.
    pub fn takes(&self, subject: &str) -> bool {
        self.subjects.iter().any(|pattern| takes(pattern, subject))
    }
}

impl From<StreamInfo> for FleetStream {
    fn from(StreamInfo { config, state, .. }: StreamInfo) -> Self {
        let unusable = if config.no_ack { Some("it acknowledges nothing (no_ack)") } else { config.sealed.then_some("it is sealed") };
        Self {
            replicas: config.num_replicas,
            on_disk: config.storage == Storage::File,
            forgets: config.may_let_go(None),
            unusable,
            subjects: config.subjects,
            messages: state.messages,
        }
    }
}

struct Looking {
    client: Client,
    connection: Connection,
    /// Its socket raises events there.
    poll: mio::Poll,
    begun: Instant,
    /// What was refused outside of an answer.
    words: Option<String>,
}

impl Looking {
    /// Connects to a server as `name`, and waits until it has accepted the connection. Subscribes below `subject`, if any.
    ///
    /// # Errors
    /// Why the server is not reached, or refuses the connection or the subscription.
    fn open(place: &NatsPlace, server: &NatsServer, name: String, subject: Option<Subject>) -> Result<(Self, Greeted), String> {
        let poll = mio::Poll::new().map_err(|error| error.to_string())?;
        let connection = Connection::open(server, place.tls.as_deref(), poll.registry()).map_err(|error| error.to_string())?;
        let options = Options {
            name,
            credentials: place.credentials.clone(),
            inbox: inbox(),
            is_encrypted: server.is_tls,
            greeting_wait_max: PATIENCE / 2,
            silence_max: PATIENCE,
        };
        let client = Client::new(options, Duration::ZERO);
        let client = match subject {
            Some(subject) => client.listening_below(subject),
            None => client,
        };
        let mut looking = Self { client, connection, poll, begun: Instant::now(), words: None };
        let greeted = looking.until(|client, _| {
            let info = client.info().filter(|_| client.is_open())?;
            Some(Greeted { server: info.server.clone(), version: info.version.clone() })
        })?;
        Ok((looking, greeted))
    }

    /// Exchanges the bytes that are there.
    fn exchange(&mut self, now: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        self.client.beat(now, events).map_err(io::Error::other)?;
        self.client.take_out(self.connection.out());
        self.connection.write()?;
        while let Some(bytes) = self.connection.read()? {
            self.client.receive(bytes, now, events).map_err(io::Error::other)?;
            // A server that says something without end is looked at no longer than one that says nothing.
            if self.begun.elapsed() > PATIENCE {
                break;
            }
        }
        Ok(())
    }

    /// Exchanges bytes until something is there.
    fn until<T>(&mut self, mut found: impl FnMut(&Client, &mut Vec<Event>) -> Option<T>) -> Result<T, String> {
        let mut events = Vec::new();
        loop {
            let now = self.begun.elapsed();
            if now > PATIENCE {
                return Err("no answer has come in time".to_owned());
            }
            self.exchange(now, &mut events).map_err(|error| self.connection.explain(error).to_string())?;
            for event in &events {
                if let Event::Refused(words) = event {
                    self.words = Some(words.clone());
                }
            }
            // It comes in front of the answer, and with it if there is no time between them.
            if let Some(words) = self.words.take() {
                return Err(words);
            }
            if let Some(found) = found(&self.client, &mut events) {
                return Ok(found);
            }
            self.client.take_out(self.connection.out());
            self.connection.write().map_err(|error| error.to_string())?;
            // Whatever ends the wait, it is looked again.
            let _ = self.poll.poll(&mut mio::Events::with_capacity(4), Some(Duration::from_millis(20)));
        }
    }

    fn ask(&mut self, subject: &Subject, headers: &Headers, body: &[u8]) -> Result<Message, String> {
        let asked = self.client.request(subject, headers, body, self.begun.elapsed(), ANSWER_MAX).map_err(|error| error.to_string())?;
        self.until(|_, events| answer_to(asked, events))?
    }
}

fn answer_to(asked: RequestId, events: &mut Vec<Event>) -> Option<Result<Message, String>> {
    events.drain(..).find_map(|event| match event {
        Event::Answer(request, message) if request == asked => Some(Ok(message)),
        Event::NobodyListens(request) if request == asked => {
            Some(Err("nobody listens there: there is no such stream, or no JetStream".to_owned()))
        }
        Event::NoAnswer(request) if request == asked => Some(Err("no answer has come in time".to_owned())),
        _ => None,
    })
}

/// Looks whether a server accepts this node and its subscription below `subject`; waits for some seconds at the most.
///
/// # Errors
/// Why the server is not reached, or refuses the connection or the subscription.
pub(crate) fn greet(place: &NatsPlace, server: &NatsServer, name: String, subject: Subject) -> Result<Greeted, String> {
    Looking::open(place, server, name, Some(subject)).map(|(_, greeted)| greeted)
}

impl FleetConfig {
    /// Looks at one of the servers; waits for some seconds at the most.
    ///
    /// # Errors
    /// It is not reached, or does not take who we are.
    pub fn look(&self, server: &NatsServer) -> Result<FleetLook, String> {
        self.look_for(server, self.intake().as_ref())
    }

    /// The same for who takes what `intake` says.
    pub(crate) fn look_for(&self, server: &NatsServer, intake: Option<&IntakeSetup>) -> Result<FleetLook, String> {
        let (mut looking, greeted) = Looking::open(&self.place, server, format!("bodkin doctor for {}", self.edge), None)?;
        let (subject, body) = self.api().stream_info(&self.stream).expect("it was checked");
        let told = looking.ask(&subject, &Headers::default(), &body);
        let stream = told.and_then(|message| stream_info(&message.payload).map_err(|error| error.to_string())).map(FleetStream::from);
        let mut refused = Vec::new();
        for at in (0..self.lanes.len()).filter(|_| stream.is_ok()) {
            if let Err(why) = self.try_lane(&mut looking, at) {
                refused.push((self.lanes[at].name.clone(), why));
            }
        }
        let from = intake.map(|setup| try_intake(&mut looking, setup));
        Ok(FleetLook { greeted, stream, refused, from })
    }

    /// Publishes what the stream has to refuse, and reads the lane's last message.
    fn try_lane(&self, looking: &mut Looking, at: usize) -> Result<(), String> {
        let subject = self.terms(at).subject;
        let headers = Headers::default().with(EXPECTED_STREAM, &self.stream).with(EXPECTED_LAST_SUBJECT_SEQUENCE, NO_SEQUENCE);
        let answer = looking.ask(&subject, &headers, b"")?;
        match publish_ack(&answer.payload) {
            Err(AnswerError::Refused(error)) if error.kind() == ErrorKind::WrongLastSequence => {}
            Err(error) => return Err(error.to_string()),
            Ok(ack) => return Err(format!("the stream {:?} takes what it has to refuse", ack.stream)),
        }
        let (question, body) = self.api().last_message(&self.stream, &subject).expect("it was checked");
        let answer = looking.ask(&question, &Headers::default(), &body)?;
        last_message(&answer.payload).map(drop).map_err(|error| error.to_string())
    }
}

/// Looks whether events can come: at the stream, at the consumer, and whether it may be pulled from and acknowledged to. Nothing is pulled: what is asked for is refused for its form.
fn try_intake(looking: &mut Looking, setup: &IntakeSetup) -> Result<FleetConsumer, String> {
    let consumer = &setup.consumer.durable_name;
    let (subject, body) = setup.api.stream_info(&setup.stream).expect("it was checked");
    let told = looking.ask(&subject, &Headers::default(), &body)?;
    stream_info(&told.payload).map_err(|error| format!("stream {}: {error}", setup.stream))?;
    let (subject, body) = setup.api.consumer_info(&setup.stream, consumer).expect("it was checked");
    let told = looking.ask(&subject, &Headers::default(), &body)?;
    let info = match consumer_info(&told.payload) {
        Ok(info) => info,
        Err(AnswerError::Refused(error)) if error.kind() == ErrorKind::NoConsumer => {
            return Ok(FleetConsumer { is_there: false, waiting: 0 });
        }
        Err(error) => return Err(format!("consumer {consumer}: {error}")),
    };
    if let Some(why) = setup.unusable(&info) {
        return Err(why.to_string());
    }
    let next = Subject::new(&format!("{}.{}.{consumer}", setup.api.next_prefix(), setup.stream)).expect("it was checked");
    // What begins like JSON and is none is refused; anything else that is not understood pulls one message.
    looking.ask(&next, &Headers::default(), b"{").map_err(|why| format!("messages of consumer {consumer} cannot be asked for: {why}"))?;
    let acknowledged = Subject::new(&format!("$JS.ACK.{}.{consumer}.1.0.0.0.0", setup.stream)).expect("it was checked");
    // No message has this place, so it says nothing; who may not say it is told in front of the next answer.
    looking.client.publish(&acknowledged, &Headers::default(), b"+WPI").map_err(|error| error.to_string())?;
    looking
        .ask(&subject, &Headers::default(), &body)
        .map_err(|why| format!("messages of consumer {consumer} cannot be acknowledged: {why}"))?;
    Ok(FleetConsumer { is_there: true, waiting: info.num_pending + info.num_ack_pending })
}
