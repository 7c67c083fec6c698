//! `bodkin witness`: the third node of a reliable pair, which only votes.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use bodkin_broker::{Node, member::Mode, topic::LeaseTimes};
use bodkin_host::pair::{Duty, PairNode};
use clap::Args;
use serde_json::json;

use crate::{
    DONE, FAILED,
    settings::pair::{PairTimes, config},
    up::end_by_signal,
};

/// Options of `bodkin witness`.
#[derive(Args, Clone, Debug)]
pub struct WitnessOptions {
    /// Directory of its record, which must outlive it
    #[arg(long, env = "BODKIN_DATA", value_name = "DIR", default_value = "./.bodkin-witness")]
    data: PathBuf,
    /// IP address and port where it listens for the two brokers; without TLS as yet, so in a network of its own
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:5572")]
    witness_listen: SocketAddr,
    /// Milliseconds for which the right to lead lasts, the same on all nodes of a pair
    #[arg(long, env = "BODKIN_LEASE_MS", value_name = "VALUE", default_value_t = LeaseTimes::SHIPPED.lease.micros().unsigned_abs() / 1000)]
    lease_ms: u64,
    /// Milliseconds between two renewals of it
    #[arg(long, env = "BODKIN_LEASE_HEARTBEAT_MS", value_name = "VALUE", default_value_t = LeaseTimes::SHIPPED.heartbeat.micros().unsigned_abs() / 1000)]
    lease_heartbeat_ms: u64,
    /// How wrong the nodes' clocks may run, in millionths
    #[arg(long, env = "BODKIN_CLOCK_DRIFT_PPM", value_name = "VALUE", default_value_t = LeaseTimes::SHIPPED.drift_ppm)]
    clock_drift_ppm: u32,
}

/// Runs until SIGTERM or SIGINT; gives the exit code.
pub fn run(options: WitnessOptions, json_output: bool) -> anyhow::Result<u8> {
    let times = PairTimes {
        lease: Duration::from_millis(options.lease_ms),
        heartbeat: Duration::from_millis(options.lease_heartbeat_ms),
        drift_ppm: options.clock_drift_ppm,
    };
    let config = config(Node::Witness, options.data, Some(options.witness_listen), Vec::new(), Mode::Majority, times);
    let mut node = match PairNode::start(config) {
        Ok(node) => node,
        Err(error) => {
            eprintln!("bodkin: {error}");
            return Ok(FAILED);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("cannot start a thread")?;
    end_by_signal(&runtime, node.handle().clone())?;
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
