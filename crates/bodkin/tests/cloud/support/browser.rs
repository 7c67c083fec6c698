//! Another resolver that looks for services by multicast DNS, on the loopback interface.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use mdns_sd::{IfKind, Receiver, ResolvedService, ServiceDaemon, ServiceEvent};

use super::cloud::{Cloud, System};

/// Looks for services on the loopback interface.
pub struct Browser {
    daemon: ServiceDaemon,
    events: Receiver<ServiceEvent>,
    pub found: BTreeMap<String, ResolvedService>,
}

impl Browser {
    /// Looks for a type or subtype.
    pub fn browse(service_type: &str) -> Self {
        let daemon = ServiceDaemon::new().expect("a daemon");
        daemon.disable_interface(IfKind::All).expect("it takes it");
        daemon.enable_interface(IfKind::LoopbackV4).expect("it takes it");
        let events = daemon.browse(service_type).expect("it browses");
        Self { daemon, events, found: BTreeMap::new() }
    }

    /// What is there of a cloud, by the instances' first labels.
    pub fn look(&mut self, cloud: &Cloud) -> BTreeMap<String, ResolvedService> {
        let place = place(cloud);
        let of_cloud =
            self.all().iter().filter_map(|(name, service)| Some((name.split_once(&place)?.0.trim().to_owned(), service.clone())));
        of_cloud.collect()
    }

    /// What is there of all, by the instances' full names.
    pub fn all(&mut self) -> &BTreeMap<String, ResolvedService> {
        for event in self.events.try_iter() {
            match event {
                ServiceEvent::ServiceResolved(service) => _ = self.found.insert(service.get_fullname().to_owned(), *service),
                ServiceEvent::ServiceRemoved(_, name) => _ = self.found.remove(&name),
                _ => {}
            }
        }
        &self.found
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.daemon.shutdown();
    }
}

/// Where the Service Registry is, as names have it.
pub fn place(cloud: &Cloud) -> String {
    cloud.address(System::ServiceRegistry).to_string().replace('.', "-")
}

/// Whether what is sent to a group on the loopback interface arrives there.
pub fn has_multicast() -> bool {
    let group = Ipv4Addr::new(224, 0, 0, 251);
    let hearing = UdpSocket::bind("0.0.0.0:0").expect("a port");
    hearing.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    let port = hearing.local_addr().expect("an address").port();
    let speaking = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let arrives = || Ok(speaking.send_to(b"?", (group, port))? == 1 && hearing.recv(&mut [0; 8])? == 1);
    hearing.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).and_then(|()| arrives()).unwrap_or(false)
}
