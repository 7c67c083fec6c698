//! Ports: which are free, who has the others; certificates; and the Bodkin that runs.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use bodkin_arrowhead::{core_service::CoreSystem, name::SystemName};
use bodkin_client::{Limits, Monitor, Security, answer::PlatformState};
use bodkin_host::{
    Port,
    server::ipc::{self, IpcError, Place},
};
use bodkin_trust::TrustDirectory;

use super::{
    finding::Finding,
    processes::{Process, holder},
};
use crate::settings::{Settings, ports, zmtp::zmtp_port};

/// The state LISTEN of /proc/net/tcp.
const LISTEN: &str = "0A";
/// Characters of a process name that the kernel keeps of ours.
const OWN_NAME: &str = "bodkin";

/// As whom a cloud is managed.
const OPERATOR: &str = "sysop";

/// A socket that listens.
#[derive(Debug, PartialEq, Eq)]
struct Listening {
    address: SocketAddr,
    inode: u64,
}

/// Looks at the ports, the certificates and the running Bodkin.
pub async fn examine(settings: &Settings) -> Vec<Finding> {
    let all = "complete settings have every option";
    let listen = settings.listen.expect(all);
    let mut found = vec![address(listen), certificates(settings.insecure.expect(all), listen, &settings.trust_directory())];
    found.extend(zmtp_path(settings.zmtp_ipc_path()));
    if settings.any_port.expect(all) {
        found.push(Finding::ok("ports", "the system chooses them (any_port), so none can be taken"));
        return found;
    }
    let numbers = match ports(settings.port_offset) {
        Ok(numbers) => numbers,
        Err(error) => {
            found.push(Finding::problem("ports", error.to_string(), "give a smaller --port-offset"));
            return found;
        }
    };
    let listening = listening();
    let taken = |number: u16| listening.iter().find(|socket| socket.address.port() == number && meet(socket.address.ip(), listen));
    let mut own_runs = false;
    let is_zmtp = settings.zmtp.expect(all);
    let zmtp = is_zmtp.then(|| ("zmtp", zmtp_port(settings.port_offset)));
    // Whether key stores have certificates for a Gatekeeper and a Gateway is told when they are read.
    let served = Port::served(if settings.insecure == Some(true) { Port::MONITOR } else { CoreSystem::ALL.len() });
    for (name, number) in served.iter().map(|port| port.name()).zip(numbers).chain(zmtp) {
        let Some(socket) = taken(number) else {
            found.push(Finding::ok("port", format!("{number} ({name}) is free")));
            continue;
        };
        let holder = holder(&PathBuf::from(format!("socket:[{}]", socket.inode)));
        own_runs |= holder.as_ref().is_some_and(|holder| holder.name == OWN_NAME);
        found.push(taken_port(number, name, holder));
    }
    found.extend(running(settings, listen, numbers[Port::MONITOR], own_runs).await);
    found
}

/// Whether the address is one of this machine's: a listener of the system's choice is opened on it for an instant.
fn address(listen: IpAddr) -> Finding {
    match TcpListener::bind((listen, 0)) {
        Ok(_) => Finding::ok("address", format!("{listen} is an address of this machine")),
        Err(error) => {
            let advice = "give --listen an address that `ip address` shows, or 0.0.0.0 for all";
            Finding::problem("address", format!("nothing can listen on {listen}: {error}"), advice)
        }
    }
}

fn certificates(insecure: bool, listen: IpAddr, trust: &Path) -> Finding {
    match (insecure, listen.is_loopback()) {
        (true, true) => Finding::ok("certificates", "none needed: insecure mode, on loopback"),
        (true, false) => Finding::warning(
            "certificates",
            format!("none needed in insecure mode, and whoever reaches {listen} may change and read everything"),
            "listen on loopback, or see to it that the network is closed (SECURITY.md)",
        ),
        (false, _) if trust.exists() => Finding::ok("certificates", format!("secure mode, with those of {}", trust.display())),
        (false, _) => Finding::ok("certificates", format!("bodkin up will make them in {}", trust.display())),
    }
}

/// Whether ZMTP can be spoken, or is, on the path of this machine.
fn zmtp_path(path: anyhow::Result<Option<PathBuf>>) -> Option<Finding> {
    let path = match path {
        Ok(path) => path?,
        Err(error) => return Some(Finding::problem("socket", error.to_string(), "see bodkin.example.toml")),
    };
    let place = format!("ipc://{} (zmtp)", path.display());
    Some(match ipc::examine(&path) {
        Ok(Place::Free) => Finding::ok("socket", format!("{place} is free")),
        Ok(Place::Left) => Finding::ok("socket", format!("{place} is free: nobody listens on what a killed process has left")),
        Err(IpcError::InUse) => Finding::ok("socket", format!("{place} is listened on")),
        Err(error) => {
            Finding::warning("socket", format!("{place} cannot be listened on: {error}"), "ZMTP is spoken on its port all the same")
        }
    })
}

fn taken_port(number: u16, name: &str, holder: Option<Process>) -> Finding {
    match holder {
        Some(holder) if holder.name == OWN_NAME => Finding::ok("port", format!("{number} ({name}) is held by {holder}")),
        holder => {
            let who = holder.map_or_else(|| "another user's process".to_owned(), |holder| holder.to_string());
            let advice = "stop it, or move all ports with --port-offset";
            Finding::problem("port", format!("{number} ({name}) is held by {who}"), advice)
        }
    }
}

/// Events are stamped by one host's clock and due by the other's, behind a fail-over.
fn pair_clock(difference: Duration, stated: Duration) -> Finding {
    let told = format!(
        "the other node's host differs by {} us for certain, {} us are stated (platform.clock_error)",
        difference.as_micros(),
        stated.as_micros()
    );
    if !stated.is_zero() && difference > stated {
        Finding::warning("pair clock", told, "have both hosts' clocks kept by the same time service (chrony), or state more")
    } else {
        Finding::ok("pair clock", told)
    }
}

/// Asks `/readyz`, and as the operator what it counts on and shows.
async fn running(settings: &Settings, listen: IpAddr, port: u16, own_runs: bool) -> Vec<Finding> {
    if !own_runs {
        return vec![Finding::ok("running", "no Bodkin listens on these ports")];
    }
    let reached = if listen.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listen };
    let (monitor, may_ask) = match monitor(settings, SocketAddr::new(reached, port)) {
        Ok(monitor) => monitor,
        Err(error) => {
            let advice = "name its certificates by --trust or --data; if it runs in insecure mode, say --insecure";
            return vec![Finding::warning("running", format!("whether Bodkin is ready cannot be asked: {error:#}"), advice)];
        }
    };
    // It answers these to nobody but the operator.
    let platform = if may_ask { monitor.platform().await.ok() } else { None };
    let numbers = if may_ask { monitor.overview().await.ok().map(|overview| overview.numbers) } else { None };
    let stated = Duration::from_nanos(settings.platform().clock_error.get().unsigned_abs());
    let clock = numbers.as_ref().and_then(|numbers| numbers.get("bodkin_pair_clock_difference_seconds"));
    let clock = clock.map(|difference_s| pair_clock(Duration::from_secs_f64(difference_s.max(0.0)), stated));
    let ready = match monitor.is_ready().await {
        Ok(true) => Finding::ok("running", format!("Bodkin is ready ({}/readyz)", monitor.address())),
        Ok(false) => Finding::warning("running", "Bodkin runs and is not ready", "wait: it is starting or stopping"),
        Err(error) => Finding::problem("running", format!("Bodkin runs and does not answer: {error}"), "see its log, and start it again"),
    };
    [ready].into_iter().chain(platform.map(guarantee)).chain(clock).collect()
}

/// What the running Bodkin says of deadlines.
fn guarantee(platform: PlatformState) -> Finding {
    let PlatformState { guarantee, why, worst_us, blocking_us, scheduling, .. } = platform;
    let told = format!(
        "{guarantee}: the worst stall of the last minute is {worst_us} us, deadlines were admitted with {blocking_us} us; scheduling is {}, for {}",
        scheduling.policy, scheduling.why
    );
    match guarantee.as_str() {
        "suspended" => Finding::warning("guarantee", told, why.unwrap_or_else(|| "see its log for the cause".to_owned())),
        _ => Finding::ok("guarantee", told),
    }
}

/// Its port, and whether it may be asked more than its health. In secure mode that is for the operator, whose certificate may be kept here; its own has to be
/// believed in any case.
fn monitor(settings: &Settings, address: SocketAddr) -> anyhow::Result<(Monitor, bool)> {
    if settings.insecure == Some(true) {
        return Ok((Monitor::new(address, Limits::default()), true));
    }
    let directory = TrustDirectory::new(settings.trust_directory());
    let operator = directory.identity(&SystemName::from_stored(OPERATOR)).ok();
    let security = Security::new(operator.as_ref(), &[directory.anchor()?])?;
    Ok((Monitor::secure(address, Limits::default(), &security), operator.is_some()))
}

/// Whether a socket that listens at `theirs` takes a port away from one at `ours`.
fn meet(theirs: IpAddr, ours: IpAddr) -> bool {
    theirs == ours || theirs.is_unspecified() || ours.is_unspecified()
}

fn listening() -> Vec<Listening> {
    let lines = |file| fs::read_to_string(file).unwrap_or_default();
    let texts = [lines("/proc/net/tcp"), lines("/proc/net/tcp6")];
    texts.iter().flat_map(|text| text.lines()).filter_map(parse_listening).collect()
}

/// A line of /proc/net/tcp or tcp6: `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...`.
fn parse_listening(line: &str) -> Option<Listening> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (ip, port) = local.split_once(':')?;
    let address = SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?);
    (*state == LISTEN).then_some(Listening { address, inode: inode.parse().ok()? })
}

/// Words of 32 bits in the machine's byte order, as hexadecimal digits.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).expect("four words are sixteen bytes")).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn listening_sockets_are_read() {
        let line = "   0: 0100007F:20FB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0000 100 0 0 10 0";
        assert_eq!(parse_listening(line), Some(Listening { address: "127.0.0.1:8443".parse().unwrap(), inode: 4242 }));
        assert_eq!(parse_listening(&line.replace(" 0A ", " 01 ")), None);
        let six = line.replace("0100007F:", "00000000000000000000000001000000:");
        assert_eq!(parse_listening(&six).unwrap().address, "[::1]:8443".parse().unwrap());
        assert_eq!(parse_listening("  sl  local_address rem_address   st"), None);
    }

    #[test]
    fn any_address_takes_the_port_of_every_address() {
        let [one, other, any] = ["10.0.0.1", "10.0.0.2", "0.0.0.0"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert!(meet(one, one) && meet(any, one) && meet(one, any) && !meet(one, other));
    }

    #[test]
    fn a_clock_that_differs_by_more_than_was_stated_is_told() {
        let ms = Duration::from_millis;
        let verdicts = [(5, 10), (11, 10), (11, 0)].map(|(differs, stated)| pair_clock(ms(differs), ms(stated)).verdict);
        assert_eq!(verdicts, [super::super::Verdict::Ok, super::super::Verdict::Warning, super::super::Verdict::Ok]);
    }

    #[test]
    fn a_port_of_another_process_is_a_problem() {
        let process = |name: &str| Some(Process { pid: 7, name: name.into() });
        assert_eq!(taken_port(8443, "x", process("bodkin")).verdict, super::super::Verdict::Ok);
        let taken = taken_port(8443, "x", process("java"));
        assert!(taken.verdict == super::super::Verdict::Problem && taken.found.contains("java (pid 7)"), "{taken:?}");
        assert_eq!(taken_port(8443, "x", None).verdict, super::super::Verdict::Problem);
    }
}
