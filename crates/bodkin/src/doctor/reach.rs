//! Who is to be reached: the other nodes of a reliable pair, and the relays that the database has.

use std::{
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    path::Path,
    thread,
    time::Duration,
};

use bodkin_broker::{Node, member::Mode};
use bodkin_host::pair::PairConfig;
use bodkin_store::inspection;

use super::finding::Finding;
use crate::settings::Settings;

/// How long each may take to accept; all are asked at the same time.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Relays that are asked.
const RELAYS_MAX: usize = 64;

/// Connects to each, and says nothing there.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    let mut found = match settings.pair() {
        Ok(Some(pair)) => pair_nodes(&pair),
        Ok(None) => Vec::new(),
        Err(error) => vec![Finding::problem("pair", error.to_string(), "see bodkin.example.toml: role, peer, witness, pair_listen")],
    };
    found.extend(relays(&settings.data.clone().expect("complete settings have every option")));
    found
}

fn pair_nodes(pair: &PairConfig) -> Vec<Finding> {
    let mut found = Vec::new();
    if pair.mode != Mode::Majority {
        found.push(Finding::warning(
            "pair",
            "there is no witness: if the two nodes cannot reach each other, both may lead, and nothing can be handed over",
            "start bodkin witness on a third machine, and name it to both (--witness)",
        ));
    }
    let reached = reach(pair.others.iter().map(|(_, address)| address.to_string()).collect());
    for ((node, address), reached) in pair.others.iter().zip(reached) {
        let name = if *node == Node::Witness { "the witness" } else { "the other node" };
        found.push(match reached {
            Ok(()) => Finding::ok("pair", format!("{name} at {address} accepts connections")),
            Err(why) => {
                let advice = "start it there, or see to the way to it: firewall, address, --pair-listen or --witness-listen of that node";
                Finding::warning("pair", format!("{name} at {address} cannot be reached: {why}"), advice)
            }
        });
    }
    found
}

fn relays(directory: &Path) -> Vec<Finding> {
    // A database that cannot be read is told by those who look at it.
    let mut addresses = inspection::relays(directory).unwrap_or_default();
    let more = addresses.len().saturating_sub(RELAYS_MAX);
    addresses.truncate(RELAYS_MAX);
    let reached = reach(addresses.clone());
    let judge = |(address, reached): (String, Result<(), String>)| match reached {
        Ok(()) => Finding::ok("relay", format!("{address} accepts connections")),
        Err(why) => Finding::warning(
            "relay",
            format!("{address} cannot be reached: {why}"),
            "have its operator look, or see to the way to it; until then other clouds are not reached by it (bodkin relay list)",
        ),
    };
    let mut found: Vec<Finding> = addresses.into_iter().zip(reached).map(judge).collect();
    if more > 0 {
        found.push(Finding::ok("relay", format!("{more} further relays were not asked")));
    }
    found
}

/// Connects to all at the same time.
fn reach(addresses: Vec<String>) -> Vec<Result<(), String>> {
    let asked: Vec<_> = addresses.into_iter().map(|address| thread::spawn(move || connect(&address))).collect();
    asked.into_iter().map(|asked| asked.join().unwrap_or_else(|_| Err("the attempt broke off".to_owned()))).collect()
}

fn connect(address: &str) -> Result<(), String> {
    let resolved: Vec<SocketAddr> = address.to_socket_addrs().map_err(|error| error.to_string())?.collect();
    let mut why = "its name stands for no address".to_owned();
    for address in resolved {
        match TcpStream::connect_timeout(&address, WAIT_MAX) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_accepts_is_told_from_who_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap().to_string();
        let gone = format!("127.0.0.1:{}", bodkin_bench::ports::held_port().unwrap());
        let reached = reach(vec![there, gone, "no such place".to_owned()]);
        assert!(matches!(&reached[..], [Ok(()), Err(refused), Err(_)] if refused.contains("refused")), "{reached:?}");
    }
}
