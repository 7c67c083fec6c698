//! `bodkin witness`: the third node of a reliable pair, which only votes.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use bodkin_broker::{Node, member::Mode};
use bodkin_host::{
    SecurityConfig,
    pair::{Duty, PairConfig, PairNode},
    realtime::Realtime,
};
use bodkin_trust::TrustDirectory;
use clap::Args;
use serde_json::json;

use crate::{
    DONE, FAILED, USAGE,
    settings::{Settings, pair},
    up::obey_signals,
};

/// Options of `bodkin witness`.
#[derive(Args, Clone, Debug)]
pub struct WitnessOptions {
    /// Directory of its record, which must outlive it
    #[arg(long, env = "BODKIN_DATA", value_name = "DIR", default_value = "./.bodkin-witness")]
    data: PathBuf,
    /// Take part without certificates: whoever reaches it may vote and lead
    #[arg(long, env = "BODKIN_INSECURE")]
    insecure: bool,
    /// Directory of its certificate and of those whom it believes: cloud.crt and revoked.crl of the Primary's trust directory, systems/bodkin-witness.crt and .key [default: trust in the data directory]
    #[arg(long, env = "BODKIN_TRUST", value_name = "DIR")]
    trust: Option<PathBuf>,
    /// IP address and port where it listens for the two brokers
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:5572")]
    witness_listen: SocketAddr,
    /// Configuration file (TOML) whose table [platform] has the lease's times, the same on all nodes of the pair; of the rest only scheduling, pin_cores and lock_memory count
    #[arg(long, env = "BODKIN_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs until SIGTERM or SIGINT; gives the exit code.
pub fn run(options: WitnessOptions, json_output: bool) -> anyhow::Result<u8> {
    let settings = Settings::default().complete(options.config.as_deref());
    let (lease, realtime) =
        match settings.and_then(|settings| Ok((pair::lease(&settings.platform())?, Realtime::start(settings.realtime())?))) {
            Ok(read) => read,
            Err(error) => {
                eprintln!("bodkin: {error:#}");
                return Ok(USAGE);
            }
        };
    let security = (!options.insecure).then(|| security(options.trust.unwrap_or_else(|| options.data.join("trust"))));
    let config = pair::config(Node::Witness, options.data, Some(options.witness_listen), Vec::new(), Mode::Majority, lease);
    let config = PairConfig { realtime, security, ..config };
    let mut node = match PairNode::start(config) {
        Ok(node) => node,
        Err(error) => {
            eprintln!("bodkin: {error}");
            return Ok(FAILED);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("cannot start a thread")?;
    obey_signals(&runtime, node.handle().clone())?;
    let address = node.address.expect("a witness listens");
    if json_output {
        println!("{}", json!({"node": "witness", "pair": address, "pid": std::process::id()}));
    } else {
        println!("witness of a reliable pair on {address}");
    }
    while runtime.block_on(node.next_duty()) != Duty::End {}
    node.stop();
    Ok(DONE)
}

/// Whom it believes, and what it shows: it has no services, and no names to be connected by.
fn security(trust: PathBuf) -> SecurityConfig {
    SecurityConfig {
        directory: TrustDirectory::new(trust),
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: true,
        host_names: Vec::new(),
    }
}
