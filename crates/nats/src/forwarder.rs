//! Lanes on a connection: what an edge forwards into one stream.
//!
//! ```text
//! connected ─> STREAM.INFO (and STREAM.CREATE, if it may) ─> every lane asks for its last message ─> batches
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{
    client::{Client, Event, Fault, NotTaken, Options, RequestId},
    jetstream::{AnswerError, Api, ErrorKind, Question, StreamConfig, StreamInfo, last_message, publish_ack, stream_info},
    lane::{self, Backlog, Lane, Refusal, Step, Terms},
    protocol::{Headers, Message, Subject, SubjectError},
};

/// Lanes that one edge may have.
pub const LANES_MAX: usize = 64;

/// A question changes nothing and is short: a stream without a leader does not hear it, so it is asked again.
pub(crate) const QUESTION_WAIT_MAX: Duration = Duration::from_secs(2);

/// What is forwarded where.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where JetStream is asked.
    pub api: Api,
    /// The stream's name.
    pub stream: String,
    /// What it is made as where it is not there; `None`: somebody else makes it.
    pub create: Option<StreamConfig>,
    /// How long the answer to a batch is waited for: a change of leaders takes 4 to 10 s, and so does a batch over a narrow link.
    pub answer_wait_max: Duration,
    /// How long is waited until a stream that is not there is looked for again.
    pub look_every: Duration,
}

/// What is not as it has to be with a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStream {
    /// It is not there, or cannot be made.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It acknowledges nothing, so nobody knows what it has.
    #[error("the stream is set up without acknowledgements (no_ack)")]
    NoAck,
    /// It takes nothing more.
    #[error("the stream is sealed")]
    Sealed,
}

/// What a forwarder tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The server of this name knows us.
    Open(String),
    /// The stream is there, and is like this.
    Stream(Box<StreamInfo>),
    /// It is not; it is looked for again.
    NoStream(NoStream),
    /// Of a lane, by its place.
    Lane(usize, lane::Told),
    /// The server has refused something, in its words.
    Refused(String),
    /// The server is about to go: connect to another one.
    Leaving,
}

/// Whose request it is.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Look,
    Make,
    Ask(usize),
    Publish(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Look for it once this time has come.
    Unknown(Duration),
    Asked,
    There,
}

/// Lanes of one edge, over one connection after the other.
#[derive(Debug)]
pub struct Forwarder {
    setup: Setup,
    look: Question,
    lanes: Vec<Lane>,
    /// What each lane asks with.
    questions: Vec<Question>,
    client: Option<Client>,
    standing: Standing,
    asked: BTreeMap<RequestId, Purpose>,
}

impl Forwarder {
    /// Without a connection.
    ///
    /// # Errors
    /// A name makes no subject.
    ///
    /// # Panics
    /// There are more than [`LANES_MAX`] lanes.
    pub fn new(setup: Setup, lanes: Vec<Terms>) -> Result<Self, SubjectError> {
        assert!(lanes.len() <= LANES_MAX, "{} lanes", lanes.len());
        let look = setup.api.stream_info(&setup.stream)?;
        let question = |terms: &Terms| setup.api.last_message(&setup.stream, &terms.subject);
        let questions = lanes.iter().map(question).collect::<Result<_, _>>()?;
        let lanes = lanes.into_iter().map(Lane::new).collect();
        Ok(Self { setup, look, lanes, questions, client: None, standing: Standing::Unknown(Duration::ZERO), asked: BTreeMap::new() })
    }

    /// A server is connected to.
    pub fn connected(&mut self, options: Options, now: Duration) {
        self.disconnected();
        self.client = Some(Client::new(options, now));
        self.standing = Standing::Unknown(now);
    }

    /// The connection is at its end.
    pub fn disconnected(&mut self) {
        (self.client, self.asked) = (None, BTreeMap::new());
        self.lanes.iter_mut().for_each(Lane::closed);
    }

    /// A lane's backlog has grown by so many bytes, which have come since this time. Times ascend.
    pub fn grown(&mut self, lane: usize, bytes: usize, since: Duration) {
        self.lanes[lane].grown(bytes, since);
    }

    /// Whether an answer of the server is waited for.
    pub fn awaits_answer(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Bytes have come from the server; `backlogs` are the lanes', in their order.
    ///
    /// # Errors
    /// The connection is at its end: close it, and tell by [`Self::disconnected`].
    pub fn receive<B: Backlog>(&mut self, bytes: &[u8], now: Duration, backlogs: &mut [B], told: &mut Vec<Told>) -> Result<(), Fault> {
        let Some(client) = &mut self.client else { return Ok(()) };
        let mut events = Vec::new();
        let received = client.receive(bytes, now, &mut events);
        self.take(events, now, backlogs, told);
        received
    }

    /// Does what is due. `Ok` has when to come again at the latest; sooner when something comes.
    ///
    /// # Errors
    /// The connection is at its end: close it, and tell by [`Self::disconnected`].
    pub fn step<B: Backlog>(&mut self, now: Duration, backlogs: &mut [B], told: &mut Vec<Told>) -> Result<Duration, Fault> {
        let Some(client) = &mut self.client else { return Ok(Duration::MAX) };
        let mut events = Vec::new();
        let beat = client.beat(now, &mut events);
        self.take(events, now, backlogs, told);
        let mut next = beat?;
        if !self.client.as_ref().is_some_and(Client::is_open) {
            return Ok(next);
        }
        match self.standing {
            Standing::Unknown(at) if at <= now => self.look(now, told),
            Standing::Unknown(at) => next = next.min(at),
            Standing::Asked => {}
            Standing::There => {
                for (lane, backlog) in backlogs.iter_mut().enumerate() {
                    next = next.min(self.step_lane(lane, now, backlog, told));
                }
            }
        }
        Ok(next)
    }

    /// Bytes for the server, behind what is in `out`.
    pub fn take_out(&mut self, out: &mut Vec<u8>) {
        if let Some(client) = &mut self.client {
            client.take_out(out);
        }
    }

    fn look(&mut self, now: Duration, told: &mut Vec<Told>) {
        let question = self.look.clone();
        self.ask(question, Purpose::Look, now, told);
    }

    /// Asks something of the stream.
    fn ask(&mut self, question: Question, purpose: Purpose, now: Duration, told: &mut Vec<Told>) {
        let wait_max = self.setup.answer_wait_max.min(QUESTION_WAIT_MAX);
        let client = self.client.as_mut().expect("there is a connection");
        match client.request(&question.0, &Headers::default(), &question.1, now, wait_max) {
            Ok(request) => {
                self.asked.insert(request, purpose);
                self.standing = Standing::Asked;
            }
            Err(not_taken) => self.no_stream(refusal(not_taken).into(), now, told),
        }
    }

    fn step_lane(&mut self, lane: usize, now: Duration, backlog: &mut impl Backlog, told: &mut Vec<Told>) -> Duration {
        let mut tells = Vec::new();
        let client = self.client.as_mut().expect("there is a connection");
        let machine = &mut self.lanes[lane];
        let (request, purpose) = match machine.step(now, backlog, &mut tells) {
            Step::Wait(until) => return until.unwrap_or(Duration::MAX),
            Step::Ask => {
                let (subject, body) = &self.questions[lane];
                (
                    client.request(subject, &Headers::default(), body, now, self.setup.answer_wait_max.min(QUESTION_WAIT_MAX)),
                    Purpose::Ask(lane),
                )
            }
            Step::Publish => {
                let (subject, headers, payload) = machine.publication();
                (client.request(subject, &headers, payload, now, self.setup.answer_wait_max), Purpose::Publish(lane))
            }
        };
        match request {
            Ok(request) => {
                self.asked.insert(request, purpose);
            }
            Err(NotTaken::TooLong { bytes_max, .. }) => machine.unanswered(Refusal::TooLong(bytes_max), now, &mut tells),
            Err(_) => machine.not_sent(now),
        }
        told.extend(tells.into_iter().map(|tell| Told::Lane(lane, tell)));
        // It has changed: whoever carries it writes, then asks again what is due.
        now
    }

    fn take<B: Backlog>(&mut self, events: Vec<Event>, now: Duration, backlogs: &mut [B], told: &mut Vec<Told>) {
        for event in events {
            match event {
                Event::Open => {
                    told.push(Told::Open(self.client.as_ref().and_then(Client::info).map_or_else(String::new, |info| info.server.clone())))
                }
                Event::Answer(request, message) => self.end(request, Ok(message), now, backlogs, told),
                Event::NobodyListens(request) => self.end(request, Err(Refusal::NobodyListens), now, backlogs, told),
                Event::NoAnswer(request) => self.end(request, Err(Refusal::NoAnswer), now, backlogs, told),
                Event::Refused(words) => told.push(Told::Refused(words)),
                Event::Leaving => told.push(Told::Leaving),
                // Its connection listens to nothing.
                Event::Heard(..) => {}
            }
        }
    }

    /// A request has its answer, or has none.
    fn end<B: Backlog>(
        &mut self,
        request: RequestId,
        answer: Result<Message, Refusal>,
        now: Duration,
        backlogs: &mut [B],
        told: &mut Vec<Told>,
    ) {
        let Some(purpose) = self.asked.remove(&request) else { return };
        match purpose {
            Purpose::Look | Purpose::Make => self.seen(purpose, answer, now, told),
            Purpose::Ask(lane) | Purpose::Publish(lane) => {
                let (machine, backlog, mut tells) = (&mut self.lanes[lane], &mut backlogs[lane], Vec::new());
                match (purpose, answer) {
                    (_, Err(refusal)) => machine.unanswered(refusal, now, &mut tells),
                    (Purpose::Ask(_), Ok(message)) => machine.found(last_message(&message.payload), now, backlog, &mut tells),
                    (_, Ok(message)) => machine.acknowledged(publish_ack(&message.payload), now, backlog, &mut tells),
                }
                let is_gone = tells.iter().any(says_there_is_none);
                told.extend(tells.into_iter().map(|tell| Told::Lane(lane, tell)));
                // Perhaps it was deleted: it is looked for, and made anew if it may be. Lanes with requests under way get their answers first.
                if is_gone && self.standing == Standing::There {
                    self.standing = Standing::Unknown(now);
                }
            }
        }
    }

    /// The stream, or that there is none.
    fn seen(&mut self, purpose: Purpose, answer: Result<Message, Refusal>, now: Duration, told: &mut Vec<Told>) {
        let info = match answer.map(|message| stream_info(&message.payload)) {
            Ok(Ok(info)) => info,
            Ok(Err(AnswerError::Refused(error))) if error.kind() == ErrorKind::NoStream && matches!(purpose, Purpose::Look) => {
                let made =
                    self.setup.create.as_ref().map(|config| self.setup.api.create_stream(config).expect("its name has made a subject"));
                return match made {
                    Some(question) => self.ask(question, Purpose::Make, now, told),
                    None => self.no_stream(Refusal::Answer(AnswerError::Refused(error)).into(), now, told),
                };
            }
            Ok(Err(error)) => return self.no_stream(Refusal::Answer(error).into(), now, told),
            Err(refusal) => return self.no_stream(refusal.into(), now, told),
        };
        if info.config.no_ack || info.config.sealed {
            let why = if info.config.no_ack { NoStream::NoAck } else { NoStream::Sealed };
            return self.no_stream(why, now, told);
        }
        told.push(Told::Stream(Box::new(info)));
        self.standing = Standing::There;
        let bytes_max = self.client.as_ref().and_then(Client::info).expect("it has answered").max_payload;
        self.lanes.iter_mut().for_each(|lane| lane.opened(bytes_max, now));
    }

    fn no_stream(&mut self, why: NoStream, now: Duration, told: &mut Vec<Told>) {
        self.standing = Standing::Unknown(now + self.setup.look_every);
        told.push(Told::NoStream(why));
    }
}

fn says_there_is_none(told: &lane::Told) -> bool {
    match told {
        lane::Told::Refused(Refusal::NobodyListens) => true,
        lane::Told::Refused(Refusal::Answer(AnswerError::Refused(error))) => error.kind() == ErrorKind::NoStream,
        _ => false,
    }
}

fn refusal(not_taken: NotTaken) -> Refusal {
    match not_taken {
        NotTaken::TooLong { bytes_max, .. } => Refusal::TooLong(bytes_max),
        NotTaken::Closed | NotTaken::Full => Refusal::NoAnswer,
    }
}

/// The subject of a lane: what edges share, the edge's name, the lane's.
///
/// # Errors
/// They make no subject of three tokens.
pub fn lane_subject(prefix: &str, edge: &str, lane: &str) -> Result<Subject, SubjectError> {
    for name in [edge, lane] {
        if !crate::protocol::is_token(name) {
            return Err(SubjectError::Token(name.to_owned()));
        }
    }
    Subject::new(&format!("{prefix}.{edge}.{lane}"))
}

#[cfg(test)]
mod tests;
