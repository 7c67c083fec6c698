//! Tunnels in use: how much goes through one, beside plain TLS through as many hops, and what many of them hold of memory.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig};
use serde_json::{Value, json};

use super::chain::Chain;
use super::neighbors::{AT_ONCE, Neighbors};
use super::provider::{Provider, Wish};
use super::secured::Secured;
use crate::client::{ANSWER_WAIT_MAX, Client};
use crate::endpoint::Endpoint;
use crate::expectation::{BodyRule, Expectation, Faults};
use crate::lanes::drive;
use crate::load::Measured;
use crate::report::Outcome;
use crate::request::{self, Registered};
use crate::statistics::{Figure, Latencies, Unit};
use crate::wire::Caller;

/// The provider's system.
const PROVIDER: &str = "tunnel-provider";
/// What its certificate counts for.
pub const HOSTS: &str = "localhost 127.0.0.1";
/// Parties between consumer and provider: the consumer's gateway, the relay, the provider's gateway.
const FORWARDERS: usize = 3;
/// What is sent before the clock counts, in parts of what is measured.
const WARM_UP_PART: u64 = 8;
/// Bytes of an answer in a round trip.
const ANSWER_BYTES: u64 = 100;
/// Tunnels that are asked for at the same time.
const OPENING_LANES: usize = 8;
/// Longest wait until both gateways have no session any more.
const CLOSED_WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// By which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Consumer and provider alone.
    Direct,
    /// By forwarders that do nothing else.
    Forwarded,
    /// By both gateways and the relay.
    Tunnel,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Forwarded, Self::Tunnel];

    /// What a report calls it.
    pub fn name(self) -> String {
        match self {
            Self::Direct => "plain TLS, direct".into(),
            Self::Forwarded => format!("plain TLS, {FORWARDERS} forwarders"),
            Self::Tunnel => "tunnel".into(),
        }
    }
}

/// A provider in the cloud that is asked, which the consumers of the other one reach by tunnels.
pub struct Tunnels<'a> {
    neighbors: &'a Neighbors,
    provider: Provider,
    /// As whom a consumer comes to its tunnel.
    consumer: Arc<ClientConfig>,
    /// How the provider, and those in front of it, serve and are called without a tunnel.
    plain: (Arc<ServerConfig>, Arc<ClientConfig>),
}

/// A service of the provider.
fn service(number: u32) -> String {
    format!("tunnelled-service-{number}")
}

impl<'a> Tunnels<'a> {
    /// Starts the provider, registers a service for each of `sessions` and at least one, and lets the other cloud use them. Requests for one service lead to
    /// one tunnel.
    ///
    /// # Errors
    /// Something is refused.
    pub fn prepare(neighbors: &'a Neighbors, sessions: u32) -> anyhow::Result<Self> {
        let asked = neighbors.asked.certificates.as_ref().context("the cloud has no certificates")?;
        asked.issue_at([PROVIDER].into_iter(), HOSTS)?;
        let plain = (asked.serving(PROVIDER)?, config(asked.caller(PROVIDER)?)?);
        let asking = neighbors.asking.certificates.as_ref().context("the cloud has no certificates")?;
        let provider = Provider::start(Arc::clone(&plain.0))?;
        let tunnels = Self { neighbors, provider, consumer: config(asking.operator()?)?, plain };
        let authentication_info = asked.authentication_info()?;
        let body = |number| {
            json!({
                "serviceDefinition": service(number), "serviceUri": "/", "secure": "TOKEN", "interfaces": ["HTTP-SECURE-JSON"],
                "providerSystem": {
                    "systemName": PROVIDER, "address": "127.0.0.1", "port": tunnels.provider.address.port(),
                    "authenticationInfo": authentication_info,
                },
            })
        };
        let registry = &neighbors.asked.service_registry;
        let mut client = Client::connect(registry)?;
        let requests = (0..sessions.max(1)).map(|number| request::post(registry, "/serviceregistry/mgmt", &body(number)));
        let registered = requests.map(|request| client.ask(&request, 201)).collect::<Result<Vec<Registered>, _>>()?;
        neighbors.grant(&registered)?;
        Ok(tunnels)
    }

    /// Opens so many tunnels; gives the consumer's ports.
    ///
    /// # Errors
    /// No connection. What is refused is counted.
    fn open(&self, count: u32, faults: &mut Faults) -> anyhow::Result<Vec<u16>> {
        let orchestrator = self.neighbors.asking.orchestrator()?;
        let expectation = Expectation { status: 200, body: BodyRule::FilledList("response") };
        let mut ports = Vec::new();
        let requests = (0..count).map(|number| self.neighbors.orchestration(&service(number), AT_ONCE)).collect::<Result<Vec<_>, _>>()?;
        drive(orchestrator, &requests, None, OPENING_LANES, &mut |exchange| match exchange.answer {
            Err(why) => faults.add(why),
            Ok(answer) => match expectation.fault(answer.status(), answer.body()) {
                Some(fault) => faults.add(fault),
                None => match port(answer.body()) {
                    Some(port) => ports.push(port),
                    None => faults.add(format!("the result is no gateway's: {}", String::from_utf8_lossy(answer.body()))),
                },
            },
        })?;
        Ok(ports)
    }

    fn open_one(&self) -> anyhow::Result<u16> {
        let mut faults = Faults::default();
        let opened = self.open(1, &mut faults)?;
        opened.first().copied().with_context(|| format!("no tunnel was opened: {}", faults.first.join("; ")))
    }

    fn enter(&self, port: u16) -> anyhow::Result<Secured<TcpStream>> {
        connect((Ipv4Addr::LOCALHOST, port).into(), &self.consumer).with_context(|| format!("no way into the tunnel at port {port}"))
    }

    /// Sends `bytes` to the provider and fetches as many, by each way in turn, and asks for something short so often.
    ///
    /// # Errors
    /// A way breaks.
    pub fn compare(&self, bytes: u64, round_trips: u32, turn: u32, outcomes: &mut [Outcome; 3]) -> anyhow::Result<()> {
        let mut ways: Vec<(usize, Way)> = Way::ALL.into_iter().enumerate().collect();
        // Whatever drifts favours none.
        ways.rotate_left(turn as usize % Way::ALL.len());
        for (index, way) in ways {
            let forwarders = if way == Way::Forwarded { FORWARDERS } else { 0 };
            let chain = Chain::start(forwarders, self.provider.address, &self.plain.0, &self.plain.1)?;
            let mut stream = match way {
                Way::Tunnel => self.enter(self.open_one()?)?,
                Way::Direct | Way::Forwarded => connect(chain.address(), &self.plain.1)?,
            };
            let measured = carried(&mut stream, bytes, round_trips).with_context(|| format!("{} broke", way.name()));
            drop(stream);
            let (figures, latencies) = measured?;
            chain.end()?;
            outcomes[index].push(figures, Measured { latencies, ..Measured::default() });
        }
        self.neighbors.close_tunnels()
    }

    /// What both clouds have of memory before there are many sessions, in MB. The first session has been, for what it needs besides is no session's.
    ///
    /// # Errors
    /// No connection to a cloud, or the session is left behind.
    pub fn idle(&self) -> anyhow::Result<Vec<f64>> {
        self.enter(self.open_one()?).and_then(|mut stream| Ok(Wish::Give(ANSWER_BYTES).ask(&mut stream)?))?;
        self.neighbors.close_tunnels()?;
        self.resident()
    }

    fn resident(&self) -> anyhow::Result<Vec<f64>> {
        let clouds = [&self.neighbors.asking, &self.neighbors.asked];
        clouds.iter().filter_map(|cloud| cloud.resident()).map(|one| one.now_mb()).collect()
    }

    /// So many sessions at once, each with a connection that has been used and is kept.
    ///
    /// # Errors
    /// No connection to a cloud, or sessions are left behind.
    pub fn hold(&self, sessions: u32, idle: &[f64], outcome: &mut Outcome) -> anyhow::Result<()> {
        let resident = || self.resident();
        let above = |now: Vec<f64>| now.iter().zip(idle).map(|(now, idle)| now - idle).collect::<Vec<f64>>();
        let (mut faults, mut used, mut entered) = (Faults::default(), Latencies::default(), Latencies::default());
        let began = Instant::now();
        let ports = self.open(sessions, &mut faults)?;
        let opened = began.elapsed();
        let unused = above(resident()?);
        let mut kept = Vec::with_capacity(ports.len());
        for port in ports {
            let asked = Instant::now();
            match self.enter(port) {
                Ok(stream) => {
                    entered.record(asked.elapsed());
                    kept.push(stream);
                }
                Err(error) => faults.add(format!("{error:#}")),
            }
        }
        // All are there before any is used for the second time.
        for _ in 0..2 {
            for stream in &mut kept {
                let asked = Instant::now();
                match Wish::Give(ANSWER_BYTES).ask(stream) {
                    Ok(()) => used.record(asked.elapsed()),
                    Err(error) => faults.add(format!("a request through a tunnel failed: {error}")),
                }
            }
        }
        let held = above(resident()?);
        let there = self.neighbors.tunnels()?;
        drop(kept);
        self.neighbors.close_tunnels()?;
        let left = above(resident()?);
        let mut figures = used.figures("request_", Unit::Ms, &[50.0, 99.0]);
        figures.extend(entered.figures("enter_", Unit::Ms, &[50.0, 99.0]));
        for (key, mb) in [("unused", &unused), ("held", &held), ("left", &left)] {
            for (cloud, mb) in ["asking", "asked"].iter().zip(mb) {
                figures.push(Figure::max(format!("{key}_{cloud}_rss_mb"), *mb));
            }
            figures.push(Figure::max(format!("{key}_rss_mb"), mb.iter().sum()));
        }
        figures.push(Figure::median("open_ms_each", opened.as_secs_f64() * 1e3 / f64::from(sessions.max(1))));
        figures.push(Figure::max("sessions_at_consumers", there[0] as f64));
        figures.push(Figure::max("sessions_at_providers", there[1] as f64));
        figures.push(Figure::sum("errors", faults.count));
        outcome.push(figures, Measured { latencies: used, faults, ..Measured::default() });
        Ok(())
    }
}

/// What goes over a connection: figures, and how long a short answer takes.
fn carried(stream: &mut Secured<TcpStream>, bytes: u64, round_trips: u32) -> anyhow::Result<(Vec<Figure>, Latencies)> {
    let mut figures = Vec::new();
    for (key, wish) in [("to_provider", Wish::Take as fn(u64) -> Wish), ("to_consumer", Wish::Give)] {
        wish((bytes / WARM_UP_PART).max(1)).ask(stream)?;
        let began = Instant::now();
        wish(bytes).ask(stream)?;
        figures.push(Figure::median(format!("{key}_mb_per_s"), bytes as f64 / 1e6 / began.elapsed().as_secs_f64()));
    }
    let mut latencies = Latencies::default();
    for _ in 0..round_trips {
        let asked = Instant::now();
        Wish::Give(ANSWER_BYTES).ask(stream)?;
        latencies.record(asked.elapsed());
    }
    figures.extend(latencies.figures("round_trip_", Unit::Us, &[50.0, 99.0]));
    Ok((figures, latencies))
}

fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> anyhow::Result<Secured<TcpStream>> {
    let socket = TcpStream::connect_timeout(&address, ANSWER_WAIT_MAX)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    socket.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
    let session = ClientConnection::new(Arc::clone(config), ServerName::IpAddress(address.ip().into()))?;
    let mut stream = Secured::new(socket, session);
    stream.handshake()?;
    Ok(stream)
}

/// What someone calls with.
///
/// # Errors
/// He has no certificate.
pub fn config(caller: Caller) -> anyhow::Result<Arc<ClientConfig>> {
    match caller {
        Caller::Certified(config) => Ok(config),
        Caller::Nobody => bail!("a caller with a certificate has one"),
    }
}

/// The port in the result of an orchestration that leads through a tunnel.
fn port(answer: &[u8]) -> Option<u16> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let provider = &answer["response"][0]["provider"];
    if provider["systemName"] != "gateway" {
        return None;
    }
    u16::try_from(provider["port"].as_u64()?).ok()
}

impl Neighbors {
    fn gateways(&self) -> anyhow::Result<[&Endpoint; 2]> {
        Ok([self.asking.gateway()?, self.asked.gateway()?])
    }

    /// How many sessions each of the two gateways has.
    ///
    /// # Errors
    /// One does not answer.
    fn tunnels(&self) -> anyhow::Result<[usize; 2]> {
        let [asking, asked] = self.gateways()?.map(|gateway| sessions(gateway).map(|rows| rows.len()));
        Ok([asking?, asked?])
    }

    /// Ends all tunnels as the operator of the consumers would, and waits until both gateways have none.
    ///
    /// # Errors
    /// A gateway does not answer, or keeps some.
    pub fn close_tunnels(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + CLOSED_WAIT_MAX;
        let [asking, _] = self.gateways()?;
        loop {
            let rows = sessions(asking)?;
            // One that has ended by itself meanwhile is not found, which is as well.
            let requests: Vec<_> = rows.iter().map(|row| request::post(asking, "/gateway/mgmt/sessions/close", row)).collect();
            drive(asking, &requests, None, OPENING_LANES, &mut |_| {})?;
            let left = self.tunnels()?;
            if left == [0, 0] {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the gateways keep {} and {} sessions that were closed", left[0], left[1]);
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn sessions(gateway: &Endpoint) -> anyhow::Result<Vec<Value>> {
    let page: Value = Client::connect(gateway)?.ask(&request::get(gateway, "/gateway/mgmt/sessions", "application/json"), 200)?;
    Ok(page["data"].as_array().cloned().unwrap_or_default())
}
