//! Hosts that can lose their cables: network namespaces, and a wire (a veth pair) between any two that speak to each other.
//!
//! To kill a process is not to lose its host: what is in its sockets is sent all the same. Here a host's wires are taken down first. Each
//! pair of hosts has a wire of its own, so that any one can be cut and the others not.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::sched::{CloneFlags, setns};

/// Where the system's `ip` keeps the namespaces that it has made.
const NAMESPACES: &str = "/run/netns";

/// What the names of namespaces begin with, in front of the process id of who has made them.
const PREFIX: &str = "bodkin-";

/// A host of the plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Where the publishers are.
    Machine,
    /// Where the subscribers are.
    Viewer,
    /// The configured Primary.
    First,
    /// The configured Backup.
    Second,
    /// The third vote.
    Witness,
    /// Where a second process of the configured Primary is started.
    Clone,
}

impl Site {
    const ALL: [Self; 6] = [Self::Machine, Self::Viewer, Self::First, Self::Second, Self::Witness, Self::Clone];

    /// What it is called in names of namespaces and directories.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Viewer => "viewer",
            Self::First => "first",
            Self::Second => "second",
            Self::Witness => "witness",
            Self::Clone => "clone",
        }
    }
}

/// Who has a wire to whom.
const WIRES: [(Site, Site); 11] = [
    (Site::First, Site::Second),
    (Site::First, Site::Witness),
    (Site::Second, Site::Witness),
    (Site::Machine, Site::First),
    (Site::Machine, Site::Second),
    (Site::Viewer, Site::First),
    (Site::Viewer, Site::Second),
    (Site::Clone, Site::Second),
    (Site::Clone, Site::Witness),
    (Site::Machine, Site::Clone),
    (Site::Viewer, Site::Clone),
];

/// Address of the subscribers' host on every wire: a system registers one address, at which each broker reaches it.
pub const VIEWER: Ipv4Addr = Ipv4Addr::new(10, 201, 0, 1);

/// The namespaces; gone when dropped.
#[derive(Debug)]
pub struct Plant {
    prefix: String,
}

impl Plant {
    /// Makes them.
    ///
    /// # Errors
    /// The system has no `ip` (iproute2), or does not let this process make namespaces.
    pub fn lay() -> anyhow::Result<Self> {
        // The owner of this directory is the process's effective user.
        if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() != 0) {
            bail!("the campaign makes network namespaces with `ip netns`, which only root may do; run it as root");
        }
        remove_leftovers();
        let plant = Self { prefix: format!("{PREFIX}{}", std::process::id()) };
        for site in Site::ALL {
            plant.ip(&["netns", "add", &plant.namespace(site)])?;
            plant.inside(site, &["link", "set", "lo", "up"])?;
        }
        for (number, (a, b)) in WIRES.into_iter().enumerate() {
            let (near, far) = (interface(number, a), interface(number, b));
            let (from, to) = (plant.namespace(a), plant.namespace(b));
            plant.ip(&["link", "add", &near, "netns", &from, "type", "veth", "peer", "name", &far, "netns", &to])?;
            for (site, towards, interface) in [(a, b, near), (b, a, far)] {
                plant.inside(site, &["address", "add", &format!("{}/30", address(site, towards)), "dev", &interface])?;
                plant.inside(site, &["link", "set", &interface, "up"])?;
            }
        }
        plant.inside(Site::Viewer, &["address", "add", &format!("{VIEWER}/32"), "dev", "lo"])?;
        for site in [Site::First, Site::Second, Site::Clone] {
            plant.batch(site, &route(site, Site::Viewer))?;
        }
        Ok(plant)
    }

    fn namespace(&self, site: Site) -> String {
        format!("{}-{}", self.prefix, site.name())
    }

    fn ip(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
        let output = output.context("cannot run `ip`: network namespaces need it; install the package iproute2")?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!(
                "network namespaces cannot be used: `ip {}` failed: {}; run as root (CAP_SYS_ADMIN, CAP_NET_ADMIN) on a kernel with network namespaces",
                arguments.join(" "),
                why.trim()
            );
        }
        Ok(())
    }

    fn inside(&self, site: Site, arguments: &[&str]) -> anyhow::Result<()> {
        let namespace = self.namespace(site);
        self.ip(&[&["-n", namespace.as_str()], arguments].concat())
    }

    /// A program on a host. It becomes the child itself, so that signals reach it.
    pub fn command(&self, site: Site, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(site)]).arg(program);
        command
    }

    /// Moves the calling thread to a host: sockets that it makes from now on are that host's.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn enter(&self, site: Site) -> anyhow::Result<()> {
        let path = PathBuf::from(NAMESPACES).join(self.namespace(site));
        let enter = || -> io::Result<()> { Ok(setns(File::open(&path)?, CloneFlags::CLONE_NEWNET)?) };
        enter().with_context(|| format!("cannot enter the network namespace {}", path.display()))
    }

    /// Takes the wire between two hosts down, or up again.
    ///
    /// # Errors
    /// There is no such wire, or the system refuses it.
    pub fn set_wire(&self, a: Site, b: Site, is_up: bool) -> anyhow::Result<()> {
        let number = wire(a, b).with_context(|| format!("there is no wire between {} and {}", a.name(), b.name()))?;
        self.inside(a, &["link", "set", &interface(number, a), if is_up { "up" } else { "down" }])?;
        if is_up { self.restore_routes(a) } else { Ok(()) }
    }

    /// Takes all wires of a host down, or up again.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn set_wires(&self, site: Site, is_up: bool) -> anyhow::Result<()> {
        let others = WIRES.into_iter().filter_map(|(a, b)| if a == site { Some(b) } else { (b == site).then_some(a) });
        // One call of the program for all of them: a host dies at one instant.
        let state = if is_up { "up" } else { "down" };
        let lines = others.map(|other| {
            let number = wire(site, other).expect("it has this wire");
            format!("link set {} {state}\n", interface(number, site))
        });
        self.batch(site, &lines.collect::<String>())?;
        if is_up { self.restore_routes(site) } else { Ok(()) }
    }

    /// Adds the route to the viewer again: the kernel removes routes with their wire.
    fn restore_routes(&self, site: Site) -> anyhow::Result<()> {
        if matches!(site, Site::First | Site::Second | Site::Clone) { self.batch(site, &route(site, Site::Viewer)) } else { Ok(()) }
    }

    fn batch(&self, site: Site, lines: &str) -> anyhow::Result<()> {
        use std::io::Write;
        let mut child = Command::new("ip")
            .args(["-n", &self.namespace(site), "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run `ip`")?;
        child.stdin.take().expect("it is piped").write_all(lines.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("`ip -batch` failed on {}: {}", site.name(), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        for site in Site::ALL {
            // One that was not made is not there.
            let _ = self.ip(&["netns", "delete", &self.namespace(site)]);
        }
    }
}

/// Removes what a bench has left that was killed.
fn remove_leftovers() {
    // Where there are none, nothing has been left.
    let Ok(entries) = std::fs::read_dir(NAMESPACES) else { return };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).and_then(|(id, _)| id.parse::<u32>().ok());
        if maker.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            // Another bench may have removed it.
            let _ = Command::new("ip").args(["netns", "delete", &name]).stderr(Stdio::null()).status();
        }
    }
}

/// The line of `ip -batch` by which a broker's host reaches the viewer's address.
fn route(site: Site, viewer: Site) -> String {
    let number = wire(site, viewer).expect("they have a wire");
    format!("route replace {VIEWER}/32 via {} dev {}\n", address(viewer, site), interface(number, site))
}

fn wire(a: Site, b: Site) -> Option<usize> {
    WIRES.iter().position(|&(x, y)| (x, y) == (a, b) || (x, y) == (b, a))
}

/// Names are for one namespace: the number and the end say which.
fn interface(wire: usize, end: Site) -> String {
    format!("w{wire}{}", if WIRES[wire].0 == end { "a" } else { "b" })
}

/// The address of a host on the wire to another one.
///
/// # Panics
/// If there is no wire between them.
pub fn address(of: Site, towards: Site) -> Ipv4Addr {
    let number = wire(of, towards).expect("they have a wire");
    Ipv4Addr::new(10, 200, number as u8, if WIRES[number].0 == of { 1 } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wire_has_two_addresses_of_a_network_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for (a, b) in WIRES {
            let (near, far) = (address(a, b), address(b, a));
            assert_eq!(near.octets()[..3], far.octets()[..3]);
            assert!(seen.insert(near) && seen.insert(far));
        }
        assert_eq!(wire(Site::Machine, Site::Viewer), None);
    }
}
