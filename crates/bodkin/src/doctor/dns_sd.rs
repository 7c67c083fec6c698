//! Whether devices find the cloud by multicast DNS: asked as they would ask.

use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket},
    time::Duration,
};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    dns_sd::{self, place_in_names},
};
use bodkin_host::{
    HostConfig,
    dns_sd::{Heard, hear},
};

use super::{finding::Finding, node_events::node_of};
use crate::settings::Settings;

const CHECK: &str = "dns-sd";
/// The group of multicast DNS (RFC 6762).
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
/// How long answers are waited for; they come within half a second, from a busy machine later.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a packet to the group may take on this machine, and the Service Registry to accept.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Clouds that are told by name.
const TOLD_MAX: usize = 5;
/// Flags of an interface in Linux: it is up, it is the loopback interface, it has multicast.
const UP: u32 = 0x1;
const LOOPBACK: u32 = 0x8;
const MULTICAST: u32 = 0x1000;

/// Nothing where nothing is announced.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    // What is wrong with the options is told by who looks at them.
    let Ok(config) = settings.clone().config() else { return Vec::new() };
    if config.dns_sd.is_none() {
        return Vec::new();
    }
    if let Err(why) = has_multicast(config.listen) {
        let advice = "announce on an interface that has it (`ip -brief link` says MULTICAST, `ip link set dev NAME multicast on` switches \
                      it on), or say --dns-sd off";
        return vec![Finding::warning(CHECK, format!("there is no multicast where the cloud listens ({}): {why}", config.listen), advice)];
    }
    match hear(config.listen, PATIENCE) {
        Ok(heard) => judge(&heard, &Own::of(&config)),
        Err(error) => {
            let advice =
                "free UDP port 5353 for several listeners (another resolver may hold it for itself), and let it through the firewall";
            vec![Finding::warning(CHECK, format!("the group of multicast DNS cannot be asked: {error}"), advice)]
        }
    }
}

/// What is known of the cloud that these options are of.
struct Own {
    /// The end of its services' names; `None` where the system chooses the ports.
    place: Option<String>,
    /// Where it may be.
    addresses: BTreeSet<IpAddr>,
    runs: bool,
    /// The other node of a pair may announce it.
    is_of_pair: bool,
    /// Others announce their own core systems beside it.
    is_of_several: bool,
}

impl Own {
    fn of(config: &HostConfig) -> Self {
        let port = config.ports[0];
        // One that has no name yet was not started yet, and announces nothing.
        let node = config.database.as_ref().and_then(|_| node_of(&config.data));
        let named = (config.domain_name.as_str(), port).to_socket_addrs().into_iter().flatten().map(|place| place.ip());
        let reached = if config.listen.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { config.listen };
        Self {
            place: (port != 0).then(|| place_in_names(&dns_sd::place(&config.domain_name, port, node.as_deref()))),
            addresses: named.chain([config.listen]).collect(),
            runs: port != 0 && TcpStream::connect_timeout(&SocketAddr::new(reached, port), WAIT_MAX).is_ok(),
            is_of_pair: config.pair.is_some(),
            is_of_several: config.database.is_some(),
        }
    }

    fn is_at(&self, address: &IpAddr) -> bool {
        // Nobody can bind what is another machine's.
        self.addresses.contains(address) || UdpSocket::bind((*address, 0)).is_ok()
    }
}

/// Only core systems are looked at: a provider of the cloud's may be anywhere.
fn judge(heard: &[Heard], own: &Own) -> Vec<Finding> {
    let core = heard.iter().filter(|service| CoreSystem::ALL.iter().any(|core| core.name() == service.system));
    let (ours, others): (Vec<&Heard>, Vec<&Heard>) = core.partition(|service| own.place.as_deref() == Some(place(&service.instance)));
    let (here, elsewhere): (Vec<&Heard>, Vec<&Heard>) =
        ours.into_iter().partition(|service| service.addresses.iter().all(|at| own.is_at(at)));
    let mut found = vec![match (own.place.is_some(), own.runs, here.len()) {
        (false, ..) => {
            Finding::ok(CHECK, "the system chooses the ports (any_port), so what is announced as this cloud's is not known before")
        }
        (_, false, 0) => Finding::ok(CHECK, "no cloud runs here, and nobody announces one under its name"),
        (_, true, 0) if own.is_of_pair && !elsewhere.is_empty() => Finding::ok(CHECK, "the other node of this pair announces it"),
        (_, true, 0) => Finding::warning(
            CHECK,
            "the cloud that runs here is not heard: nobody answers for it who asks for _arrowhead._tcp.local",
            "see that it was started with --dns-sd, what its log says of multicast DNS, and that the firewall passes UDP port 5353 both ways; \
             in its first seconds, and where it does not lead its pair, it is silent",
        ),
        (_, _, count) => Finding::ok(CHECK, format!("who asks for _arrowhead._tcp.local is told {count} core services of this cloud")),
    }];
    if !own.is_of_pair && !elsewhere.is_empty() {
        let at: BTreeSet<String> = elsewhere.iter().flat_map(|service| &service.addresses).map(IpAddr::to_string).collect();
        found.push(Finding::warning(
            CHECK,
            format!("another cloud announces itself under this one's name, at {}: a device finds either", several(&at)),
            "give each cloud a --domain-name of its own, or another port",
        ));
    }
    let others: BTreeSet<String> = others.iter().map(|service| place(&service.instance).to_owned()).collect();
    if !others.is_empty() {
        let whose = if own.is_of_several { "other nodes of this cloud, or other clouds," } else { "other clouds" };
        found.push(Finding::ok(CHECK, format!("{whose} are announced there: {}", several(&others))));
    }
    found
}

/// Of an instance's name its cloud's place: `heat sensor #17 plant-example:8443`, of which the second of a name is `... (2)`.
fn place(instance: &str) -> &str {
    let of_cloud = instance.rsplit_once(" #").and_then(|(_, end)| end.split_once(' ')).map_or(instance, |(_, place)| place);
    of_cloud.split_once(" (").map_or(of_cloud, |(place, _)| place)
}

fn several(names: &BTreeSet<String>) -> String {
    let told = names.iter().take(TOLD_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(TOLD_MAX);
    if more == 0 { told } else { format!("{told} and {more} more") }
}

/// Whether what is sent to the group by this address arrives there; of all addresses, whether an interface has multicast.
fn has_multicast(listen: IpAddr) -> Result<(), String> {
    match listen {
        IpAddr::V4(address) if !address.is_unspecified() => arrives(address).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("what is sent to {GROUP} from there does not arrive"),
            _ => format!("{GROUP} cannot be spoken to from there: {error}"),
        }),
        address if address.is_unspecified() && !interfaces().is_some_and(|flags| flags.into_iter().any(is_able)) => {
            Err("no interface but the loopback is up and has it".to_owned())
        }
        _ => Ok(()),
    }
}

fn arrives(address: Ipv4Addr) -> io::Result<()> {
    let hearing = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    hearing.set_read_timeout(Some(WAIT_MAX))?;
    hearing.join_multicast_v4(&GROUP, &address)?;
    // By the interface that has the address it is bound to.
    let speaking = UdpSocket::bind((address, 0))?;
    speaking.send_to(b"?", (GROUP, hearing.local_addr()?.port()))?;
    hearing.recv(&mut [0; 8]).map(|_| ())
}

fn is_able(flags: u32) -> bool {
    flags & (UP | MULTICAST | LOOPBACK) == UP | MULTICAST
}

/// The flags of this machine's interfaces.
fn interfaces() -> Option<Vec<u32>> {
    let flags = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("flags")).ok()?;
        u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    Some(fs::read_dir("/sys/class/net").ok()?.flatten().filter_map(flags).collect())
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    /// The Service Registry of a cloud.
    fn heard(place: &str, address: &str) -> Heard {
        let instance = format!("service-register serviceregistry #1 {place}");
        Heard { instance, system: "serviceregistry".into(), addresses: [address.parse().unwrap()].into() }
    }

    fn own(runs: bool) -> Own {
        let addresses = ["192.0.2.1".parse().unwrap()].into();
        Own { place: Some("plant-example:8443".into()), addresses, runs, is_of_pair: false, is_of_several: false }
    }

    fn verdicts(heard: &[Heard], own: &Own) -> Vec<Verdict> {
        judge(heard, own).iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_cloud_that_runs_is_heard_or_something_is_to_be_done() {
        let ours = [heard("plant-example:8443", "192.0.2.1"), heard("plant-example:8443 (2)", "192.0.2.1")];
        let told = judge(&ours, &own(true));
        assert!(told.len() == 1 && told[0].found.contains("2 core services"), "{told:?}");
        assert_eq!(verdicts(&[], &own(true)), [Verdict::Warning]);
        assert_eq!(verdicts(&[], &own(false)), [Verdict::Ok]);
        // A provider of the cloud's is no core system.
        let provider = Heard { system: "sensor".into(), ..heard("plant-example:8443", "192.0.2.9") };
        assert_eq!(verdicts(&[provider], &own(false)), [Verdict::Ok]);
    }

    #[test]
    fn another_cloud_of_the_same_name_is_told_unless_it_is_a_node_of_this_one() {
        let other = [heard("plant-example:8443", "192.0.2.1"), heard("plant-example:8443 (2)", "192.0.2.7")];
        let told = judge(&other, &own(true));
        assert_eq!(verdicts(&other, &own(true)), [Verdict::Ok, Verdict::Warning]);
        assert!(told[1].found.contains("192.0.2.7") && !told[1].found.contains("192.0.2.1,"), "{told:?}");
        let of_pair = Own { is_of_pair: true, ..own(true) };
        assert_eq!(verdicts(&other[1..], &of_pair), [Verdict::Ok]);
        let further = judge(&[heard("mill-example:8443", "192.0.2.8")], &own(false));
        assert!(further.len() == 2 && further[1].found.contains("other clouds are announced there: mill-example:8443"), "{further:?}");
    }

    #[test]
    fn other_nodes_of_a_cloud_have_names_of_their_own() {
        let of_several = Own { place: Some("plant-example:8443 9f3c01ab".into()), is_of_several: true, ..own(true) };
        let all = [heard("plant-example:8443 9f3c01ab", "192.0.2.1"), heard("plant-example:8443 07d2aa14", "192.0.2.7")];
        let told = judge(&all, &of_several);
        assert_eq!(verdicts(&all, &of_several), [Verdict::Ok, Verdict::Ok]);
        assert!(told[0].found.contains("1 core services") && told[1].found.contains("other nodes of this cloud"), "{told:?}");
        assert_eq!(verdicts(&all[1..], &of_several)[0], Verdict::Warning, "this node is not heard");
    }

    #[test]
    fn an_interface_has_multicast_when_it_is_up_says_so_and_is_not_the_loopback() {
        assert_eq!([0x1003, 0x1002, 0x3, 0x1009].map(is_able), [true, false, false, false]);
    }
}
