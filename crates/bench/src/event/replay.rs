//! `bench replay`: how fast a subscriber that was away gets what it missed from the event log, and whether all of it comes
//! in order.
//!
//! Two ways back in: `since` the beginning, and `Last-Event-ID` after the first events of a stream that was cut.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::callers::Callers;
use super::order::Order;
use super::payload::Payload;
use super::publisher::{PublisherOrder, PublisherReport, publish};
use super::rig::publish_request;
use super::sse::SseReader;
use super::subscriber::read_head;
use super::subscription::Publishers;
use crate::answer::Body;
use crate::client::{ANSWER_WAIT_MAX, READ_BYTES};
use crate::cloud::{Cloud, Directory};
use crate::endpoint::Endpoint;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::ReplayOptions;
use crate::report::{Outcome, Report};
use crate::request::RunTag;
use crate::statistics::Figure;

/// Publishers that fill the log side by side.
pub const PUBLISHERS: u16 = 8;
/// Longest wait for the next bytes of a replay; what is missing then counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The event type under test is the first of the run.
const EVENT_TYPE: u16 = 0;

/// Publishes, replays and reports.
///
/// # Errors
/// The server does not start, or refuses an event or a stream.
pub fn run(options: &ReplayOptions) -> anyhow::Result<Report> {
    let cloud = Cloud::start(Directory::new(options.server.data.as_deref())?, &options.server)?;
    let tag = RunTag::now();
    let mut report = Report::new(format!("replay of {} events over an event stream", options.events));
    let warm_up = "the first replay of each kind".to_string();
    let mut conditions = Conditions::begin("placed by the kernel".into(), cloud.description(), warm_up, options.repeat);
    if let Some(directory) = cloud.directory() {
        conditions.data_on(&directory.data());
    }
    conditions.start_from("an event log with just these events, in the page cache".into());
    let publishers = Publishers::register(&cloud, &tag, PUBLISHERS, "127.0.0.1")?;
    let published = fill(&cloud, &publishers, &tag.event_type(EVENT_TYPE), options.events)?;
    let (handler, event_type) = (cloud.event_handler()?, tag.event_type(EVENT_TYPE));
    let mut since = Outcome::new("since the beginning".into());
    let mut after = Outcome::new("after Last-Event-ID".into());
    for repeat in 0..=options.repeat {
        let mut replay = Replay::new(handler, &event_type, &published.sent);
        let from_start = replay.read("&since=1970-01-01T00:00:00Z", "", None)?;
        let mut replay = Replay::new(handler, &event_type, &published.sent);
        replay.read("&since=1970-01-01T00:00:00Z", "", Some(1))?;
        let id = String::from_utf8(replay.id.clone()).context("the stream's ids are no text")?;
        let from_id = replay.read("", &format!("Last-Event-ID: {id}\r\n"), None)?;
        // The first of each is the warm-up.
        if repeat > 0 {
            since.push(from_start, Measured::default());
            after.push(from_id, Measured::default());
        }
    }
    report.note(filled(&published));
    report.outcomes = vec![since, after];
    cloud.close()?;
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// Publishes so many events, or the next multiple of the publishers.
///
/// # Errors
/// They are refused.
pub fn fill(cloud: &Cloud, publishers: &Publishers, event_type: &str, events: u32) -> anyhow::Result<PublisherReport> {
    let handler = cloud.event_handler()?;
    let requests = publishers.systems().iter().map(|source| publish_request(handler, event_type, source)).collect::<Result<Vec<_>, _>>()?;
    let events_per_round = u64::from(events).div_ceil(requests.len() as u64);
    let callers = Callers::default();
    let order =
        PublisherOrder { address: handler.address, requests, callers, connections: 1, events_per_round, seconds: 0, rate_per_s: None };
    publish(&order).context("publishing what shall be in the log")
}

/// What a note says about a log that was filled.
pub fn filled(published: &PublisherReport) -> String {
    let events: u64 = published.sent.iter().sum();
    let seconds = published.last_ns.saturating_sub(published.first_ns).max(1) as f64 / 1e9;
    let publishers = published.sent.len();
    format!(
        "{events} events were published before by {publishers} publishers, {:.0} a second, {} refused",
        events as f64 / seconds,
        published.refused
    )
}

/// One listener that comes back, possibly more than once.
struct Replay<'a> {
    handler: &'a Endpoint,
    event_type: &'a str,
    sent: &'a [u64],
    orders: Vec<Order>,
    foreign: u64,
    id: Vec<u8>,
}

impl<'a> Replay<'a> {
    fn new(handler: &'a Endpoint, event_type: &'a str, sent: &'a [u64]) -> Self {
        let orders = sent.iter().map(|_| Order::default()).collect();
        Self { handler, event_type, sent, orders, foreign: 0, id: Vec::new() }
    }

    fn seen(&self) -> u64 {
        self.orders.iter().map(Order::seen).sum()
    }

    /// Opens the stream and reads until everything that was sent has been seen, or so many events, or nothing more comes.
    fn read(&mut self, query: &str, headers: &str, enough: Option<u64>) -> anyhow::Result<Vec<Figure>> {
        let (before, expected) = (self.seen(), enough.unwrap_or_else(|| self.sent.iter().sum()));
        let path = format!("/eventhandler/subscription?eventtype={}{query}", self.event_type);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{headers}\r\n", self.handler.authority);
        let mut socket = TcpStream::connect_timeout(&self.handler.address, ANSWER_WAIT_MAX).context("the listener gets no connection")?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let started = Instant::now();
        socket.write_all(request.as_bytes())?;
        let (head, rest) = read_head(&mut socket)?;
        let (mut body, mut reader) = (Body::new(head.framing), SseReader::default());
        self.take(&mut body, &mut reader, &rest)?;
        let first = started.elapsed();
        let mut last = first;
        let mut piece = vec![0; READ_BYTES];
        while self.seen() < expected {
            let length = match socket.read(&mut piece) {
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => 0,
                other => other.context("the listener's connection broke")?,
            };
            if length == 0 {
                break;
            }
            self.take(&mut body, &mut reader, &piece[..length])?;
            last = started.elapsed();
        }
        if reader.last_id().is_empty() && enough.is_some() {
            bail!("the stream gives no ids");
        }
        self.id = reader.last_id().to_vec();
        Ok(self.figures(self.seen() - before, first, last))
    }

    fn take(&mut self, body: &mut Body, reader: &mut SseReader, mut piece: &[u8]) -> anyhow::Result<()> {
        while !piece.is_empty() && !body.is_done() {
            let found = body.decode(piece)?;
            reader.take(&piece[found.data], |data| {
                let payload = Payload::read(data).filter(|payload| usize::from(payload.publisher) < self.orders.len());
                match payload {
                    Some(payload) => self.orders[usize::from(payload.publisher)].take(payload.sequence),
                    None => self.foreign += 1,
                }
            })?;
            piece = &piece[found.used..];
        }
        Ok(())
    }

    fn figures(&self, replayed: u64, first: Duration, last: Duration) -> Vec<Figure> {
        let sum = |of: fn(&Order) -> u64| self.orders.iter().map(of).sum::<u64>();
        let lost = self.orders.iter().zip(self.sent).map(|(order, sent)| order.lost(*sent)).sum::<u64>();
        vec![
            Figure::median("events_per_s", replayed as f64 / last.as_secs_f64().max(1e-9)),
            Figure::median("duration_s", last.as_secs_f64()),
            Figure::median("head_ms", first.as_secs_f64() * 1e3),
            Figure::sum("replayed", replayed),
            Figure::sum("lost", lost),
            Figure::sum("out_of_order", sum(Order::out_of_order)),
            Figure::sum("duplicates", sum(Order::duplicates)),
            Figure::sum("foreign", self.foreign),
        ]
    }
}
