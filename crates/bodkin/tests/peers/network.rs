//! Two clouds' hosts and a relay's between them, which is the only way from one to the other: network namespaces with wires that can be bad or cut.

use std::fs::File;
use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use nix::sched::{CloneFlags, setns};

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Of the first cloud.
    One,
    /// Of the second.
    Two,
    /// Between them.
    Relay,
}

impl Host {
    fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Relay => "relay",
        }
    }

    /// Its address on the wire to the relay's host.
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 201, self as u8, 2)
    }

    /// The address of the relay's host on that wire.
    pub fn relay(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 201, self as u8, 1)
    }

    /// The relay's end of its wire.
    fn wire(self) -> String {
        format!("to-{}", self.name())
    }
}

/// The hosts; gone when dropped.
pub struct Network {
    prefix: String,
}

impl Network {
    /// Makes them, or says why not.
    pub fn lay() -> Result<Self, String> {
        static LAID: AtomicU32 = AtomicU32::new(0);
        let network = Self { prefix: format!("bodkin-clouds-{}-{}", std::process::id(), LAID.fetch_add(1, Relaxed)) };
        for host in [Host::One, Host::Two, Host::Relay] {
            ip(&["netns", "add", &network.namespace(host)])?;
            network.run(host, "ip link set lo up")?;
        }
        for host in [Host::One, Host::Two] {
            let (near, far) = (network.namespace(host), network.namespace(Host::Relay));
            ip(&["link", "add", "out", "netns", &near, "type", "veth", "peer", "name", &host.wire(), "netns", &far])?;
            network.run(host, &format!("ip address add {}/24 dev out", host.address()))?;
            network.run(host, "ip link set out up")?;
            network.run(Host::Relay, &format!("ip address add {}/24 dev {}", host.relay(), host.wire()))?;
            network.run(Host::Relay, &format!("ip link set {} up", host.wire()))?;
            network.run(host, &format!("ip route add default via {}", host.relay()))?;
        }
        network.forward(false)?;
        // Whether wires can be made bad here is better known now.
        network.spoil(Host::One)?;
        network.mend(Host::One)?;
        Ok(network)
    }

    fn namespace(&self, host: Host) -> String {
        format!("{}-{}", self.prefix, host.name())
    }

    /// Runs a program on a host to its end.
    fn run(&self, host: Host, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        ip(&[&["netns", "exec", &self.namespace(host)], &words[..]].concat())
    }

    /// Whether the relay's host passes on what is for the other cloud's host.
    pub fn forward(&self, is_on: bool) -> Result<(), String> {
        self.run(Host::Relay, &format!("sysctl -q -w net.ipv4.ip_forward={}", u8::from(is_on)))
    }

    /// Takes a cloud's wire away, or gives it back.
    pub fn cut(&self, host: Host, is_cut: bool) -> Result<(), String> {
        self.run(Host::Relay, &format!("ip link set {} {}", host.wire(), if is_cut { "down" } else { "up" }))
    }

    /// Lets a cloud's wire carry a megabit a second towards the cloud, so that what comes at once is late, and lose one packet in twenty of what the cloud says.
    pub fn spoil(&self, host: Host) -> Result<(), String> {
        self.run(Host::Relay, &format!("tc qdisc add dev {} root tbf rate 1mbit burst 4kb latency 200ms", host.wire()))?;
        self.run(Host::Relay, &format!("iptables -A INPUT -i {} -m statistic --mode random --probability 0.05 -j DROP", host.wire()))
    }

    /// Makes it a good one again.
    pub fn mend(&self, host: Host) -> Result<(), String> {
        self.run(Host::Relay, &format!("tc qdisc delete dev {} root", host.wire()))?;
        self.run(Host::Relay, "iptables -F INPUT")
    }

    /// Does something on a host: its sockets, and those of programs that it starts, are that host's.
    pub fn within<T: Send>(&self, host: Host, work: impl FnOnce() -> T + Send) -> T {
        let place = format!("/run/netns/{}", self.namespace(host));
        let enter = || {
            let namespace = File::open(&place).expect("the namespace is there");
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("it can be entered");
            work()
        };
        thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in [Host::One, Host::Two, Host::Relay] {
            // One that was not made is not there.
            let _ = ip(&["netns", "delete", &self.namespace(host)]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let ran = Command::new("ip").args(words).stdin(Stdio::null()).output().map_err(|error| format!("ip: {error}"))?;
    if ran.status.success() { Ok(()) } else { Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&ran.stderr).trim())) }
}
