//! `bodkin relay serve`: a relay by itself, where clouds meet that share no authority.

use std::{collections::BTreeSet, future::pending, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use bodkin_arrowhead::name::SystemName;
use bodkin_host::{
    HubLimits, RelayConfig,
    relay::{Guests, ListedAdmission, server::RelayServer},
};
use bodkin_trust::{
    Identity, TrustDirectory, base64,
    directory::{LEAF_LIFETIME, default_cloud_name},
    file, tls,
};
use clap::Args;
use serde_json::json;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::interval,
};

use crate::{DONE, FAILED, USAGE};

/// The system whose certificate it shows.
const RELAY: &str = "relay";
/// How often it is looked whether its certificate is to be made anew, whose key stays.
const RENEWAL_PERIOD: Duration = Duration::from_secs(3600);
/// Threads that carry what passes.
const THREADS: usize = 2;

/// Options of `bodkin relay serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    /// Directory of its certificate and key, which are made where there are none: the key is what clouds know it by
    #[arg(long, env = "BODKIN_DATA", value_name = "DIR", default_value = "./.bodkin-relay")]
    data: PathBuf,
    /// IP address and port where it listens
    #[arg(long, value_name = "IP:PORT", default_value_t = SocketAddr::from(([127, 0, 0, 1], RelayConfig::DEFAULT_PORT)))]
    listen: SocketAddr,
    /// Host name or IP address that its certificate is made out for; may be given several times
    #[arg(long, value_name = "NAME")]
    host_name: Vec<String>,
    /// File with certificates (PEM): of an authority all its systems are let in, of a system who has its key; may be given several times, read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    admit: Vec<PathBuf>,
    /// Public key of a gatekeeper that is let in, as the authenticationInfo of its cloud; may be given several times
    #[arg(long, value_name = "BASE64")]
    admit_key: Vec<String>,
    /// Connections at the same time; each cloud has two, its Gatekeeper's and its Gateway's
    #[arg(long, value_name = "NUMBER", default_value_t = HubLimits::default().connections_max)]
    connections_max: usize,
    /// Connections of one client, which is known by the key of its certificate [default: a quarter of --connections-max]
    #[arg(long, value_name = "NUMBER")]
    client_connections_max: Option<usize>,
    /// Channels of one client on all its connections; a listener or a sender is one
    #[arg(long, value_name = "NUMBER", default_value_t = HubLimits::default().client_channels_max)]
    client_channels_max: usize,
    /// Topics and queues at the same time; a tunnel has four
    #[arg(long, value_name = "NUMBER", default_value_t = HubLimits::default().destinations_max)]
    destinations_max: usize,
    /// Topics and queues that one client uses [default: a quarter of --destinations-max]
    #[arg(long, value_name = "NUMBER")]
    client_destinations_max: Option<usize>,
    /// Bytes that wait in a queue before its senders wait
    #[arg(long, value_name = "BYTES", default_value_t = HubLimits::default().queue_bytes_max)]
    queue_bytes_max: u64,
    /// Bytes that wait in all queues before messages are refused
    #[arg(long, value_name = "BYTES", default_value_t = HubLimits::default().bytes_max)]
    bytes_max: u64,
    /// Bytes that one client has sent and nobody has received, before its messages are refused [default: a quarter of --bytes-max]
    #[arg(long, value_name = "BYTES")]
    client_bytes_max: Option<u64>,
    /// Seconds after which a queue is removed to which nobody listens or sends
    #[arg(long, value_name = "SECONDS", default_value_t = HubLimits::default().queue_idle.as_secs())]
    queue_idle_s: u64,
}

impl ServeOptions {
    fn limits(&self) -> HubLimits {
        HubLimits {
            connections_max: self.connections_max,
            client_connections_max: self.client_connections_max.unwrap_or(HubLimits::quota(self.connections_max)),
            client_channels_max: self.client_channels_max,
            destinations_max: self.destinations_max,
            client_destinations_max: self.client_destinations_max.unwrap_or(HubLimits::quota(self.destinations_max)),
            queue_bytes_max: self.queue_bytes_max,
            bytes_max: self.bytes_max,
            client_bytes_max: self.client_bytes_max.unwrap_or(self.bytes_max / 4),
            queue_idle: Duration::from_secs(self.queue_idle_s),
            ..HubLimits::default()
        }
    }

    /// What it shows. Made where there is nothing, and made anew with the same key when it is due.
    fn identity(&self) -> anyhow::Result<Identity> {
        let directory = TrustDirectory::new(self.data.join("trust"));
        if !directory.exists() {
            directory.init(&default_cloud_name(), tls::now())?;
        }
        Ok(directory.ensure_identity(&SystemName::from_stored(RELAY), &self.host_name, tls::now(), LEAF_LIFETIME)?)
    }

    /// Whom it lets in.
    fn guests(&self) -> anyhow::Result<Guests> {
        let mut guests = Guests::default();
        for path in &self.admit {
            for certificate in file::read_certificates(path)? {
                if certificate.is_authority() {
                    guests.authorities.push(certificate);
                } else {
                    guests.keys.insert(certificate.public_key_info().to_vec());
                }
            }
        }
        let keys = self.admit_key.iter().map(|key| {
            let key = base64::decode(key.trim()).filter(|key| !key.is_empty());
            key.context("an --admit-key is no Base64: expected is the authenticationInfo of a cloud")
        });
        guests.keys.extend(keys.collect::<anyhow::Result<BTreeSet<_>>>()?);
        if guests.authorities.is_empty() && guests.keys.is_empty() {
            bail!(
                "nobody would be let in: name the authorities of clouds with --admit (trust/cloud.crt of each), or their gatekeepers' keys with --admit-key"
            );
        }
        Ok(guests)
    }
}

/// Runs until SIGTERM or SIGINT; gives the exit code.
pub fn run(options: &ServeOptions, json_output: bool) -> anyhow::Result<u8> {
    let guests = match options.guests() {
        Ok(guests) => guests,
        Err(error) => {
            eprintln!("bodkin: {error:#}");
            return Ok(USAGE);
        }
    };
    let identity = options.identity()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build().context("cannot start a thread")?;
    let done = runtime.block_on(serve(options, identity, guests, json_output));
    runtime.shutdown_background();
    match done {
        Err(error) if error.is::<io::Error>() => {
            eprintln!("bodkin: cannot listen on {}: {error:#}", options.listen);
            Ok(FAILED)
        }
        done => done.map(|()| DONE),
    }
}

async fn serve(options: &ServeOptions, identity: Identity, guests: Guests, json_output: bool) -> anyhow::Result<()> {
    let admission = Arc::new(ListedAdmission::new(&identity, guests)?);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hang_up = signal(SignalKind::hangup())?;
    let server = RelayServer::start(options.listen, options.limits(), admission.clone())?;
    let key = base64::encode(identity.certificate().public_key_info());
    if json_output {
        println!("{}", json!({"relay": server.address, "authenticationInfo": key, "pid": std::process::id()}));
    } else {
        let certificate = options.data.join("trust/systems").join(format!("{RELAY}.crt"));
        println!(
            "relay on {} (bodkin-relay/1 over TLS)\n  a cloud comes to know it by bodkin relay add HOST:PORT --certificate {}, or by its key, its authenticationInfo:\n{key}",
            server.address,
            certificate.display()
        );
    }
    let mut renewal = interval(RENEWAL_PERIOD);
    renewal.reset();
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            received = hang_up.recv() => match received {
                Some(()) => reload(options, &admission, "SIGHUP"),
                None => pending().await,
            },
            _ = renewal.tick() => reload(options, &admission, "the hour"),
        }
    }
    let (counts, refusals) = (server.counts(), server.refusals());
    server.stop().await;
    tracing::info!(?counts, "what the relay has counted");
    for (client, limit, count) in refusals {
        tracing::info!(client = &*client, limit = limit.name(), count, "requests of a client of the relay refused");
    }
    Ok(())
}

/// Reads everything again. If something is wrong everything stays as it is.
fn reload(options: &ServeOptions, admission: &ListedAdmission, why: &str) {
    let reloaded = options.identity().and_then(|identity| Ok(admission.replace(&identity, options.guests()?)?));
    match reloaded {
        Ok(()) => tracing::info!(why, "certificates and guests were read again"),
        Err(error) => tracing::error!(why, error = format!("{error:#}"), "certificates and guests stay as they were"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: ServeOptions,
    }

    fn limits(arguments: &[&str]) -> HubLimits {
        Command::parse_from([&["relay"], arguments].concat()).options.limits()
    }

    #[test]
    fn quotas_follow_the_limits_of_all_clients() {
        assert_eq!(limits(&[]), HubLimits::default());
        let smaller = limits(&["--connections-max", "8", "--destinations-max", "3", "--bytes-max", "4000"]);
        assert_eq!((smaller.client_connections_max, smaller.client_destinations_max, smaller.client_bytes_max), (2, 1, 1000));
        let given = limits(&["--client-connections-max", "7", "--client-bytes-max", "9", "--client-channels-max", "5"]);
        assert_eq!((given.client_connections_max, given.client_bytes_max, given.client_channels_max), (7, 9, 5));
    }
}
