//! A candidate of the reliable pair: follows while another node leads, and serves the local cloud while this one does.

use std::time::{Duration, Instant};

use anyhow::Context;
use bodkin_broker::Node;
use bodkin_host::{
    HostConfig, RelayConfig, Server, StartError, ZmtpConfig,
    pair::{Duty, Leadership, PairConfig, PairHandle, PairNode},
};
use serde_json::json;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
};

use super::{SERVES, SHUTDOWN_MAX, fail, listeners, tell_ready};
use crate::{DONE, FAILED, service_manager::ServiceManager};

/// What a service manager shows while another node leads.
const FOLLOWS: &str = "follows: another node of the pair leads";

/// Pause in front of another attempt to serve.
const LEAD_AGAIN: Duration = Duration::from_millis(100);
/// Pause between two log lines that the database takes no change.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Runs until SIGTERM or SIGINT; gives the exit code.
pub fn run(config: HostConfig, pair: PairConfig, manager: &ServiceManager, json_output: bool) -> anyhow::Result<u8> {
    let node = pair.node;
    // Lives as long as the process; each local cloud has a runtime of its own, whose end closes what holds the database.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().context("cannot start the pair's thread")?;
    let mut pair = match PairNode::start(pair) {
        Ok(pair) => pair,
        Err(error) => return Ok(fail(FAILED, &error.into())),
    };
    obey_signals(&runtime, pair.handle().clone())?;
    let mut config = HostConfig { pair: Some(pair.handle().clone()), ..config };
    let mut bound = None;
    let code = loop {
        let tell = |server: &Server, pair: &PairNode| {
            if bound.is_none() {
                bound = Some(on_ports_of(server, &config));
                tell_begun(server, pair, node, json_output);
            }
        };
        if let Some(code) = serve(&config, &mut pair, manager, tell, json_output)? {
            break code;
        }
        // Clients, and who has its dashboard open, look for it where they have found it.
        config = bound.clone().unwrap_or(config);
    };
    pair.stop();
    Ok(code)
}

/// The same on the ports that a server has got, where the system has chosen them.
fn on_ports_of(server: &Server, config: &HostConfig) -> HostConfig {
    let mut ports = config.ports;
    ports.iter_mut().zip(&server.addresses).for_each(|(port, address)| *port = address.port());
    let zmtp = config.zmtp.clone().map(|zmtp| ZmtpConfig { port: server.zmtp.map_or(zmtp.port, |address| address.port()), ..zmtp });
    let relay = config.relay.map(|relay| RelayConfig { listen: server.relay.unwrap_or(relay.listen), ..relay });
    HostConfig { ports, zmtp, relay, ..config.clone() }
}

fn tell_begun(server: &Server, pair: &PairNode, node: Node, json_output: bool) {
    if json_output {
        let node = format!("{node:?}").to_lowercase();
        let begun = json!({"node": node, "pair": pair.address, "pid": std::process::id(), "listeners": listeners(server)});
        println!("{begun}");
    } else {
        println!("a node of a reliable pair ({node:?}): it serves when it leads");
    }
}

/// Runs a local cloud, which follows, and leads if it is to. Gives the exit code, or nothing if another node leads: then one that follows is to begin anew.
fn serve(
    config: &HostConfig,
    pair: &mut PairNode,
    manager: &ServiceManager,
    tell: impl FnOnce(&Server, &PairNode),
    json_output: bool,
) -> anyhow::Result<Option<u8>> {
    let runtime = Builder::new_multi_thread().enable_all().build().context("cannot start the control plane's threads")?;
    let served = runtime.block_on(async {
        let mut server = Server::start(config).await?;
        tell(&server, pair);
        manager.ready(FOLLOWS);
        let pulse = server.pulse();
        let code = tokio::select! {
            code = duties(&mut server, config, pair, manager, json_output) => code?,
            () = manager.watch(&pulse) => unreachable!("who watches does so until it is dropped"),
        };
        if code.is_some() {
            manager.stopping();
        }
        if !json_output {
            println!("this node leads no more: what is under way is answered");
        }
        Ok::<_, StartError>((server.stop().await, code))
    });
    // The keeper holds on to the database as long as it follows.
    pair.handle().detach();
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    match served {
        Ok((opened, code)) => {
            opened.close();
            Ok(code)
        }
        Err(error) => Ok(Some(fail(FAILED, &error.into()))),
    }
}

/// Does what this node's part in the pair asks for, until the local cloud has to end; gives the exit code, if the process ends with it.
async fn duties(
    server: &mut Server,
    config: &HostConfig,
    pair: &mut PairNode,
    manager: &ServiceManager,
    json_output: bool,
) -> Result<Option<u8>, StartError> {
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            duty = pair.next_duty() => match duty {
                Duty::Lead => {}
                Duty::Follow => return Ok(None),
                Duty::End => return Ok(Some(DONE)),
            },
            _ = hang_up.recv() => {
                manager.reloading();
                server.reload("SIGHUP").await;
                manager.ready(if pair.handle().leadership().leads() { SERVES } else { FOLLOWS });
                continue;
            }
        }
        // It may have followed for days.
        let promoted = Instant::now();
        let leadership = pair.handle().leadership().clone();
        tokio::select! {
            led = lead(server, &leadership) => match led {
                Ok(()) => {
                    manager.status(SERVES);
                    tell_ready(server, config, promoted, json_output);
                }
                Err(error) => return Ok(Some(fail(FAILED, &error.into()))),
            },
            // Before it has come to serve everything.
            duty = pair.next_duty() => return Ok((duty == Duty::End).then_some(DONE)),
        }
    }
}

/// Has the local cloud serve everything. A node that is fenced meanwhile cannot, and tries again: it may lead in another epoch. So does one whose database takes no
/// change: it serves real-time events meanwhile, and may be the only one that has them.
async fn lead(server: &mut Server, leadership: &Leadership) -> Result<(), StartError> {
    let mut told: Option<Instant> = None;
    loop {
        let epoch = leadership.epoch();
        match server.lead().await {
            Err(error) if !leadership.leads() || leadership.epoch() != epoch => {
                tracing::warn!(%error, "this node began to serve and was fenced");
            }
            Err(error) if error.may_pass() => {
                leadership.note_refusing(true);
                if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
                    told = Some(Instant::now());
                    tracing::error!(%error, "this node leads, and serves real-time events only: its database takes no change. Make room if its disk is full");
                }
            }
            led => return led,
        }
        tokio::time::sleep(LEAD_AGAIN).await;
    }
}

/// Has SIGTERM and SIGINT end the process in order, and SIGHUP the certificates of the pair's nodes read again, if they have some.
pub fn obey_signals(runtime: &Runtime, pair: PairHandle) -> anyhow::Result<()> {
    let _context = runtime.enter();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hang_up = signal(SignalKind::hangup())?;
    runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hang_up.recv() => pair.reload(),
            }
        }
        pair.end();
    });
    Ok(())
}
