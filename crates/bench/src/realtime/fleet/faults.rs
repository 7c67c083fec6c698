//! What happens to the link and to the servers while a node forwards.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use bodkin_nats::jetstream::Api;
use bodkin_nats::protocol::Headers;
use serde::Deserialize;

use super::bare::Bare;
use crate::link::Link;
use crate::realtime::peer::PeerServer;

/// How long a link is cut, and is whole behind it.
const CUT: Duration = Duration::from_secs(1);
/// How long a server is gone.
const GONE: Duration = Duration::from_secs(1);

/// For a server to have again what it has missed, beside the load.
const BACK_MAX: Duration = Duration::from_secs(120);

/// Servers that were killed.
#[derive(Debug, Default, Clone, Copy)]
pub struct Kills {
    /// All of them.
    pub kills: u64,
    /// Those that led the stream.
    pub leaders: u64,
}

#[derive(Deserialize)]
struct Info {
    cluster: Option<Group>,
}

#[derive(Deserialize)]
struct Group {
    leader: Option<String>,
}

/// Cuts every way to the servers, so many times.
pub fn cut(links: &[Link], cuts: u32) {
    for _ in 0..cuts {
        links.iter().for_each(Link::cut);
        thread::sleep(CUT);
        links.iter().for_each(Link::mend);
        thread::sleep(CUT);
    }
}

/// Kills servers, one after the other, as long as the load lasts: by turns the one that leads the stream and the next one of all; each is begun again, and the next one killed when all are well.
///
/// # Errors
/// A server does not come back.
pub fn kill(servers: &mut PeerServer, stream: &str, kills: u32, load: &Receiver<()>) -> anyhow::Result<Kills> {
    let mut told = Kills::default();
    let servers_count = servers.addresses().len();
    for kill in 0..kills as usize {
        // Whoever has the other end lets go of it when the load is over.
        if load.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Disconnected) {
            break;
        }
        let leader = leader_of(servers, stream);
        let victim = leader.filter(|_| kill % 2 == 0).unwrap_or(kill / 2 % servers_count);
        servers.kill(victim)?;
        thread::sleep(GONE);
        servers.revive(victim)?;
        servers.is_well(victim, BACK_MAX)?;
        told.kills += 1;
        told.leaders += u64::from(leader == Some(victim));
    }
    Ok(told)
}

/// Which server leads a stream; `None`: none does, or nobody says so.
pub fn leader_of(servers: &PeerServer, stream: &str) -> Option<usize> {
    servers.addresses().into_iter().find_map(|address| {
        let mut bare = Bare::connect(address).ok()?;
        let (question, body) = Api::new(None).ok()?.stream_info(stream).ok()?;
        let answer = bare.ask(&question, &Headers::default(), &body).ok()?;
        let info: Info = serde_json::from_slice(&answer.payload).ok()?;
        // Servers are called n0, n1 and so on.
        info.cluster?.leader?.strip_prefix('n')?.parse().ok()
    })
}
