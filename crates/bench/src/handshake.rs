//! `bench handshake`: what one full mutual TLS handshake costs when there is nothing else: client and server in this process, their
//! bytes handed over in memory. It is the floor of every load that makes a connection for each request.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::time::{ClockId, clock_gettime};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, HandshakeKind, ServerConfig, ServerConnection, SupportedCipherSuite};

use crate::certificates::{Certificates, HOST};
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::HandshakeOptions;
use crate::report::{Outcome, Report};
use crate::statistics::{Figure, Latencies, Unit};
use crate::wire::Caller;

/// The two ends.
const CLIENT: &str = "bench-client";
const SERVER: &str = "bench-server";
/// Handshakes before those that count.
const WARM_UP: u32 = 100;
/// Sessions that the server keeps, and tickets that it sends for each handshake, as Bodkin's does.
const SESSIONS_MAX: usize = 8_192;
const TICKETS: usize = 1;
/// What Bodkin's chooses.
const SUITE: SupportedCipherSuite = TLS13_AES_128_GCM_SHA256;
/// Turns that a handshake takes at the most: three flights, and the tickets.
const TURNS_MAX: usize = 8;

/// Processor time of full mutual handshakes.
#[derive(Debug, Default)]
pub struct Floor {
    /// Of both ends together.
    pub both: Latencies,
    client: Latencies,
    server: Latencies,
}

/// Measures and reports.
///
/// # Errors
/// There are no certificates, or the two ends do not agree.
pub fn run(options: &HandshakeOptions) -> anyhow::Result<Report> {
    let certificates = options.certificates.open(false)?;
    let mut report = Report::new(format!("{} full mutual TLS handshakes in memory", options.count));
    let warm_up = format!("{WARM_UP} handshakes before each run");
    let mut conditions = Conditions::begin("one thread, placed by the kernel".into(), "none".into(), warm_up, options.repeat);
    let mut outcome = Outcome::new("processor time of both ends".into());
    for _ in 0..options.repeat {
        let floor = Floor::measure(&certificates, options.count)?;
        outcome.push(floor.figures(), Measured { latencies: floor.both, ..Measured::default() });
    }
    report.note("no sockets, no HTTP, no look at the name; latencies are processor time, not time that has passed".into());
    report.outcomes.push(outcome);
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

impl Floor {
    /// Does so many handshakes, after those of a warm-up.
    ///
    /// # Errors
    /// As [`run`].
    pub fn measure(certificates: &Certificates, count: u32) -> anyhow::Result<Self> {
        certificates.issue([CLIENT, SERVER].into_iter())?;
        let Caller::Certified(client) = certificates.caller(CLIENT)? else { bail!("a caller with a certificate has one") };
        let server = server(certificates)?;
        let mut floor = Self::default();
        for n in 0..WARM_UP + count {
            let (client, server) = handshake(&client, &server)?;
            if n >= WARM_UP {
                floor.client.record(client);
                floor.server.record(server);
                floor.both.record(client + server);
            }
        }
        Ok(floor)
    }

    /// As [`Self::measure`], with the handshakes shared among threads, one a core, as in a load that takes all of them.
    ///
    /// # Errors
    /// As [`run`].
    pub fn on_all_cores(certificates: &Certificates, count: u32) -> anyhow::Result<Self> {
        certificates.issue([CLIENT, SERVER].into_iter())?;
        let threads = u32::try_from(std::thread::available_parallelism()?.get())?;
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| Self::measure(certificates, count.div_ceil(threads)))).collect();
            let mut all = Self::default();
            for thread in running {
                let floor = thread.join().expect("a measuring thread does not panic")?;
                all.client.add(&floor.client);
                all.server.add(&floor.server);
                all.both.add(&floor.both);
            }
            Ok(all)
        })
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = self.both.figures("cpu_", Unit::Us, &[50.0, 99.0]);
        figures.push(Figure::median("client_cpu_p50_us", self.client.percentile(50.0, Unit::Us)));
        figures.push(Figure::median("server_cpu_p50_us", self.server.percentile(50.0, Unit::Us)));
        figures
    }
}

fn server(certificates: &Certificates) -> anyhow::Result<Arc<ServerConfig>> {
    let mut provider = CryptoProvider::clone(&certificates.provider());
    provider.cipher_suites = vec![SUITE];
    let (provider, roots) = (Arc::new(provider), certificates.roots());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(certificates.server(SERVER)?));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
    config.send_tls13_tickets = TICKETS;
    Ok(Arc::new(config))
}

/// One handshake; gives the processor time of client and server.
fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> anyhow::Result<(Duration, Duration)> {
    let (mut client_time, mut server_time) = (Duration::ZERO, Duration::ZERO);
    let name = ServerName::try_from(HOST).context("the server has a host name")?;
    let mut client = timed(&mut client_time, || ClientConnection::new(Arc::clone(client), name))?;
    let mut server = timed(&mut server_time, || ServerConnection::new(Arc::clone(server)))?;
    let mut flight = Vec::new();
    for _ in 0..TURNS_MAX {
        timed(&mut client_time, || client.write_tls(&mut flight).map(drop))?;
        timed(&mut server_time, || take(&mut server, &mut flight))?;
        while server.wants_write() {
            timed(&mut server_time, || server.write_tls(&mut flight).map(drop))?;
        }
        timed(&mut client_time, || take(&mut client, &mut flight))?;
        if !client.is_handshaking() && !server.is_handshaking() && !client.wants_write() {
            if server.handshake_kind() != Some(HandshakeKind::Full) || server.peer_certificates().is_none() {
                bail!("this was no full mutual handshake");
            }
            return Ok((client_time, server_time));
        }
    }
    bail!("the handshake was not over after {TURNS_MAX} turns")
}

/// Reads all that has come.
fn take<D>(connection: &mut ConnectionCommon<D>, flight: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut rest = flight.as_slice();
    while !rest.is_empty() {
        connection.read_tls(&mut rest)?;
        connection.process_new_packets()?;
    }
    flight.clear();
    Ok(())
}

fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let clock = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).expect("every thread has this clock");
    let before = clock();
    let done = work();
    *sum += clock() - before;
    done
}
