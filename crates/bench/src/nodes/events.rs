//! Events that are published at one node and heard at another, beside the same at one node, by core NATS or by a stream.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;

use super::ADDRESS;
use crate::client::Client;
use crate::cloud::{Cloud, Directory};
use crate::load::Measured;
use crate::options::{NodesOptions, ServerOptions};
use crate::report::{Outcome, Report};
use crate::request::{self, Identified, Registered};
use crate::statistics::Unit;

/// The publisher's port, on which nobody listens.
const PUBLISHER_PORT: u16 = 7001;
const PUBLISHER: &str = "nodesbench";
const EVENT_TYPE: &str = "NODES_BENCH";
/// Longest wait for an event; one that has not come by then ends the bench.
const HEARD_WITHIN_MAX: Duration = Duration::from_secs(30);
/// Between two events of which the first that is heard shows that the way is there.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Measures with two nodes.
///
/// # Errors
/// A node does not start, takes no event, or an event is not heard.
pub fn run(options: &NodesOptions, nats: &str, report: &mut Report) -> anyhow::Result<()> {
    let (way, stream) = match &options.node_events_stream {
        None => ("core NATS", String::new()),
        Some(name) => ("a stream", format!("node_events_stream = {name:?}\nnode_events_replicas = 1\n")),
    };
    let settings = format!("database = {:?}\nnode_events = {nats:?}\n{stream}", options.database);
    let start = || {
        let directory = Directory::new(options.data.as_deref())?;
        let file = directory.file("bodkin.toml", &settings)?;
        Cloud::start(directory, &ServerOptions { arguments: vec!["--config".into(), file], ..ServerOptions::default() })
    };
    let nodes = [start()?, start()?];
    prepare(&nodes[0])?;
    let mut outcomes = ["heard at the same node", "heard at another node"].map(|heard| Outcome::new(format!("by {way}: {heard}")));
    for turn in 0..options.repeat as usize {
        for place in [turn % 2, 1 - turn % 2] {
            let (mut measured, mut events) = (Measured::default(), Events::between(&nodes[0], &nodes[place])?);
            events.begin().with_context(|| outcomes[place].label.clone())?;
            for _ in 0..options.events {
                measured.latencies.record(events.next(HEARD_WITHIN_MAX)?.context("an event was not heard")?);
            }
            outcomes[place].push(measured.latencies.figures("heard_", Unit::Ms, &[50.0, 99.0]), measured);
        }
    }
    for key in ["heard_p50_ms", "heard_p99_ms"] {
        let [own, other] = outcomes.each_ref().map(|outcome| outcome.series.summary(key));
        if let (Some(own), Some(other)) = (own.filter(|own| *own > 0.0), other) {
            report.ratio(format!("by {way}: {key} at another node to the same node"), other / own);
        }
    }
    report.outcomes.extend(outcomes);
    nodes.into_iter().try_for_each(|node| node.close().map(drop))?;
    report.note(
        "events: one at a time, from the sending of the publish request to the arrival on an event stream (SSE) of that node or another"
            .into(),
    );
    Ok(())
}

/// Has the publisher's events be for somebody, without which nobody hears them. The database is an empty one.
fn prepare(node: &Cloud) -> anyhow::Result<()> {
    let (registry, authorization) = (&node.service_registry, node.authorization()?);
    let mut client = Client::connect(registry)?;
    let offered = json!({
        "serviceDefinition": "nodesbench-service", "providerSystem": request::system(PUBLISHER, ADDRESS, PUBLISHER_PORT),
        "serviceUri": "/", "interfaces": ["HTTP-INSECURE-JSON"],
    });
    let service: Registered = client.ask(&request::post(registry, "/serviceregistry/register", &offered), 201)?;
    let listener = request::system("nodeslistener", ADDRESS, PUBLISHER_PORT + 1);
    let listener: Identified = client.ask(&request::post(registry, "/serviceregistry/register-system", &listener), 201)?;
    let rule = request::post(authorization, "/authorization/mgmt/intracloud", &request::rule(listener.id, &service));
    let made = Client::connect(authorization)?.exchange(&rule)?.status();
    anyhow::ensure!(made == 201, "the rule for the listener was answered {made}");
    Ok(())
}

/// A publisher at one node, and a listener at one.
struct Events {
    publisher: Client,
    at: crate::endpoint::Endpoint,
    heard: Receiver<(u64, Instant)>,
    number: u64,
}

impl Events {
    fn between(publishes: &Cloud, hears: &Cloud) -> anyhow::Result<Self> {
        let (handler, at) = (hears.event_handler()?, publishes.event_handler()?.clone());
        let mut stream = TcpStream::connect(handler.address)?;
        stream.write_all(&request::get(handler, &format!("/eventhandler/subscription?eventtype={EVENT_TYPE}"), "text/event-stream"))?;
        let (told, heard) = mpsc::channel();
        // It ends when nobody listens to it, or the node has ended.
        thread::Builder::new().name("listener".into()).spawn(move || {
            let (mut text, mut piece) = (Vec::new(), [0; 16 * 1024]);
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                let at = Instant::now();
                text.extend_from_slice(&piece[..length]);
                for number in numbers(&mut text) {
                    if told.send((number, at)).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { publisher: Client::connect(&at)?, at, heard, number: 0 })
    }

    /// Publishes until an event is heard: the streams, and the way between the nodes, are there.
    fn begin(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while self.next(TRY_EVERY)?.is_none() {
            anyhow::ensure!(begun.elapsed() < HEARD_WITHIN_MAX, "no event is heard after {} s", HEARD_WITHIN_MAX.as_secs());
        }
        Ok(())
    }

    /// Publishes one, and gives how long it took to be heard; `None` if it was not within `patience`.
    fn next(&mut self, patience: Duration) -> anyhow::Result<Option<Duration>> {
        self.number += 1;
        let source = request::system(PUBLISHER, ADDRESS, PUBLISHER_PORT);
        let event = json!({"eventType": EVENT_TYPE, "source": source, "payload": format!("number {};", self.number)});
        let publication = request::post(&self.at, "/eventhandler/publish", &event);
        let sent = Instant::now();
        let answer = self.publisher.exchange(&publication)?;
        if answer.status() != 200 {
            bail!("an event was refused: {} {}", answer.status(), String::from_utf8_lossy(answer.body()));
        }
        loop {
            match self.heard.recv_timeout(patience.saturating_sub(sent.elapsed())) {
                Ok((number, at)) if number == self.number => return Ok(Some(at - sent)),
                // An earlier one, which was not waited for.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => bail!("the event stream has ended"),
            }
        }
    }
}

/// The numbers of the whole payloads (`number N;`) in what was read, which are taken out of it.
fn numbers(text: &mut Vec<u8>) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(end) = text.iter().position(|byte| *byte == b';') {
        let told = String::from_utf8_lossy(&text[..end]).into_owned();
        numbers.extend(told.rsplit_once("number ").and_then(|(_, number)| number.parse::<u64>().ok()));
        text.drain(..=end);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_whichever_way_they_come() {
        let mut text = b"HTTP/1.1 200 OK\r\n a; b\r\n\r\nid: 1\ndata: number 7;\n\ndata: numb".to_vec();
        assert_eq!(numbers(&mut text), [7]);
        text.extend_from_slice(b"er 18;\n\n");
        assert_eq!(numbers(&mut text), [18]);
    }
}
