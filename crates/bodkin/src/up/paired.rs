//! A candidate of the reliable pair: follows while another node leads, and serves the local cloud while this one does.

use std::time::Instant;

use anyhow::Context;
use bodkin_host::{
    HostConfig, Server,
    pair::{Duty, PairConfig, PairHandle, PairNode},
};
use serde_json::json;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
};

use super::{SHUTDOWN_MAX, fail, tell_ready};
use crate::{DONE, FAILED};

/// Runs until SIGTERM or SIGINT; gives the exit code.
pub fn run(config: HostConfig, pair: PairConfig, started: Instant, json_output: bool) -> anyhow::Result<u8> {
    let node = pair.node;
    // Lives as long as the process; each time that this node leads has a runtime of its own, whose end closes what holds the database.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().context("cannot start the pair's thread")?;
    let mut pair = match PairNode::start(pair, Some(&config)) {
        Ok(pair) => pair,
        Err(error) => return Ok(fail(FAILED, &error.into())),
    };
    end_by_signal(&runtime, pair.handle().clone())?;
    if json_output {
        println!("{}", json!({"node": format!("{node:?}").to_lowercase(), "pair": pair.address, "pid": std::process::id()}));
    } else {
        println!("a node of a reliable pair ({node:?}): it serves when it leads");
    }
    let config = HostConfig { pair: Some(pair.handle().clone()), ..config };
    let code = loop {
        match runtime.block_on(pair.next_duty()) {
            Duty::Lead => {
                if let Led::Ends(code) = lead(&config, &mut pair, started, json_output)? {
                    break code;
                }
            }
            // Nothing is served here.
            Duty::Follow => {}
            Duty::End => break DONE,
        }
    };
    pair.stop();
    Ok(code)
}

/// How a time of leading was over.
enum Led {
    /// Another node leads.
    Follows,
    /// The process ends, with this code.
    Ends(u8),
}

fn lead(config: &HostConfig, pair: &mut PairNode, started: Instant, json_output: bool) -> anyhow::Result<Led> {
    let runtime = Builder::new_multi_thread().enable_all().build().context("cannot start the control plane's threads")?;
    let leadership = pair.handle().leadership().clone();
    let epoch = leadership.epoch();
    let led = runtime.block_on(async {
        let server = match Server::start(config).await {
            Ok(server) => server,
            Err(error) => return Err(error),
        };
        tell_ready(&server, None, started, json_output);
        let duty = pair.next_duty().await;
        if !json_output {
            println!("this node leads no more: what is under way is answered");
        }
        Ok((server.stop().await, duty))
    });
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    // The last handle has to be gone for the database to be closed.
    pair.handle().detach();
    let led = match led {
        Ok((opened, duty)) => {
            opened.close();
            if duty == Duty::Follow { Led::Follows } else { Led::Ends(DONE) }
        }
        // It was fenced while it began, so its first changes were not acknowledged; it may lead again already.
        Err(error) if !leadership.leads() || leadership.epoch() != epoch => {
            tracing::warn!(%error, "this node began to serve and was fenced");
            Led::Follows
        }
        Err(error) => Led::Ends(fail(FAILED, &error.into())),
    };
    pair.handle().release();
    Ok(led)
}

/// Has SIGTERM and SIGINT end the process in order.
pub fn end_by_signal(runtime: &Runtime, pair: PairHandle) -> anyhow::Result<()> {
    let _context = runtime.enter();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    runtime.spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        pair.end();
    });
    Ok(())
}
