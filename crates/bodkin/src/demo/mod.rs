//! `bodkin demo`: a local cloud and two real participants, each a process of its own, on this machine's sensors.
//!
//! The demo itself only starts the processes, plays the operator (certificates, the authorization rule) and tells what happens; the
//! [`provider`] and the [`consumer`] are ordinary Arrowhead systems built on `bodkin-client`.

mod certificates;
mod child;
mod consumer;
mod fail_over;
mod gate;
mod http_server;
mod live;
mod member;
mod narrator;
mod neighbors;
mod pair;
mod processing;
mod provider;
mod pulse;
mod report;
mod scene;
mod sensors;
mod tunnel;

use std::{os::unix::process::CommandExt, path::PathBuf, process};

use anyhow::Context;
use clap::{Args, Subcommand};

/// Options of `bodkin demo`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DemoOptions {
    /// End after the checks: exit code 0 if all of them hold, 1 if one fails
    #[arg(long)]
    once: bool,
    /// Data directory of the local cloud [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How many clouds: 2 are neighbors with authorities of their own, on ports of the kernel's choice; the demo ends behind its checks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2), conflicts_with_all = ["insecure", "port_offset"])]
    clouds: u8,
    /// Only a reliable pair with an event each millisecond, until Ctrl-C: its dashboard has a button that hands the lead over; insecure, on ports of the kernel's choice
    #[arg(long, conflicts_with_all = ["once", "data", "clouds", "insecure", "port_offset", "any_port"])]
    fail_over: bool,
    /// Show it without certificates and access control, over plain HTTP
    #[arg(long)]
    insecure: bool,
    /// Added to every standard port
    #[arg(long, value_name = "N", conflicts_with = "any_port")]
    port_offset: Option<u16>,
    /// Let the kernel choose every port
    #[arg(long)]
    any_port: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What the demo's own processes are. They end with the demo, however that ends.
#[derive(Subcommand, Clone, Debug)]
enum Role {
    /// The local cloud
    #[command(hide = true)]
    Cloud {
        /// Process id of the demo
        #[arg(long)]
        parent: u32,
        /// Arguments of the command `bodkin`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// The provider of this machine's sensors
    #[command(hide = true)]
    Provider(member::MemberOptions),
    /// The consumer
    #[command(hide = true)]
    Consumer(consumer::ConsumerOptions),
}

/// Runs the demo, or one of its participants; gives the exit code.
pub async fn run(options: DemoOptions) -> anyhow::Result<u8> {
    match options.role {
        None => scene::run(&options).await,
        Some(Role::Cloud { parent, arguments }) => {
            child::die_with(parent)?;
            let error = process::Command::new(std::env::current_exe()?).args(arguments).exec();
            Err(error).context("cannot start the local cloud")
        }
        Some(Role::Provider(options)) => provider::run(options).await,
        Some(Role::Consumer(options)) => consumer::run(options).await,
    }
}
