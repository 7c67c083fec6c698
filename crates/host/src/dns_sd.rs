//! Says by multicast DNS which services are registered, and answers who asks for them (RFC 6762, RFC 6763): `arrowhead::dns_sd` decides what is said, the daemon of
//! `mdns-sd` says it, on a thread of its own.
//!
//! Whoever leads says it. Of nodes that share a database each says the core systems, at its own place, and one of them all other services (decision 167). What is said
//! follows the registry by about a second, and is taken back when the cloud, or the node, ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    dns_sd::{Announced, Announcement, SERVICE_TYPE, announced},
    record::EntryId,
    snapshot::Snapshot,
};
use bodkin_store::Store;
use mdns_sd::{IfKind, ServiceDaemon, ServiceEvent, ServiceInfo};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{control::now, seldom::Seldom};

/// Services that are said at the same time: each is said by multicast when it comes and when it goes, and who asks for all of them is answered by some 250 bytes of each.
/// Further ones, those that were registered last, are not said, which is told and counted.
pub const SERVICES_MAX: usize = 10_000;
/// How often it is looked what is registered.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked what has run out, though nothing was registered.
const LOOK_AT_ALL: Duration = Duration::from_secs(10);
/// Services that are begun to be said, or taken back, between two looks.
const CHANGES_MAX: usize = 50;
/// For the address of a provider that has registered a name.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(1);
/// When a name is looked up again that was not found.
const LOOKUP_AGAIN: Duration = Duration::from_secs(60);

/// How many services are said, and how many should be and are not.
#[derive(Debug, Default)]
pub struct DnsSdCounts {
    /// They are found.
    pub said: AtomicU64,
    /// They are beyond [`SERVICES_MAX`], or cannot be said; the log tells why.
    pub unsaid: AtomicU64,
}

/// Says services, until the task is aborted; what was said is taken back then. `place` is what tells them from those of others
/// ([`bodkin_arrowhead::dns_sd::place`]); `listen` where the cloud listens: it
/// is said there and nowhere else.
pub async fn announce(store: Store, which: Announced, place: String, listen: IpAddr, counts: Arc<DnsSdCounts>) {
    let announcer = match Announcer::new(listen, counts) {
        Ok(announcer) => announcer,
        Err(error) => return tracing::error!(%error, "services are not announced by multicast DNS: {error}"),
    };
    tracing::info!(place, "services are announced by multicast DNS");
    announcer.run(store, which, place).await;
}

/// What is known of a service that is to be said.
enum Said {
    /// It is said, under this name.
    Under { announcement: Announcement, name: String },
    /// It cannot be, until then.
    Not { announcement: Announcement, until: Instant },
}

impl Said {
    fn is(&self, announcement: &Announcement) -> bool {
        match self {
            Self::Under { announcement: said, .. } => said == announcement,
            Self::Not { announcement: said, until } => said == announcement && Instant::now() < *until,
        }
    }
}

struct Announcer {
    daemon: ServiceDaemon,
    said: BTreeMap<EntryId, Said>,
    counts: Arc<DnsSdCounts>,
    too_many: Seldom,
    not_said: Seldom,
}

impl Announcer {
    fn new(listen: IpAddr, counts: Arc<DnsSdCounts>) -> Result<Self, mdns_sd::Error> {
        Ok(Self { daemon: daemon(listen)?, said: BTreeMap::new(), counts, too_many: Seldom::default(), not_said: Seldom::default() })
    }

    async fn run(mut self, store: Store, which: Announced, place: String) {
        let (mut seen, mut seen_at, mut is_done): (Option<(Arc<Snapshot>, Announced)>, _, _) = (None, Instant::now(), false);
        loop {
            let snapshot = Arc::clone(&store.snapshot());
            // What any node could say is said once in the cloud.
            let which = if store.is_keeper() { which } else { Announced::CoreSystems };
            let is_same = seen.as_ref().is_some_and(|(seen, said)| Arc::ptr_eq(seen, &snapshot) && *said == which);
            if !is_done || !is_same || seen_at.elapsed() >= LOOK_AT_ALL {
                let (mut wanted, mut unsaid) = (BTreeMap::new(), 0);
                for (entry, provider) in announced(&snapshot, which, now()) {
                    if wanted.len() >= SERVICES_MAX {
                        unsaid += 1;
                        self.tell_too_many();
                        continue;
                    }
                    match Announcement::of(&snapshot, entry, provider, &place) {
                        Ok(announcement) => _ = wanted.insert(entry.id, announcement),
                        Err(error) => {
                            unsaid += 1;
                            self.tell(&format!("service #{}", entry.id.0), &error);
                        }
                    }
                }
                is_done = self.follow(wanted).await;
                self.count(unsaid);
                (seen, seen_at) = (Some((snapshot, which)), Instant::now());
            }
            sleep(LOOK).await;
        }
    }

    /// Takes back what is not wanted any more, and says what is, in the order in which addresses are found; false: there is more to do.
    async fn follow(&mut self, wanted: BTreeMap<EntryId, Announcement>) -> bool {
        let mut left = CHANGES_MAX;
        let over: Vec<EntryId> = self.said.keys().filter(|id| !wanted.contains_key(id)).copied().take(left).collect();
        left -= over.len();
        over.into_iter().for_each(|id| self.take_back(id));
        let is_new = |(id, announcement): &(EntryId, Announcement)| !self.said.get(id).is_some_and(|said| said.is(announcement));
        let mut new = wanted.into_iter().filter(is_new);
        let now: Vec<_> = new.by_ref().take(left).collect();
        let is_all = now.len() < left;
        drop(new);
        // Together: fifty names that nobody knows would otherwise take fifty times as long as one.
        let mut lookups = JoinSet::new();
        for (id, announcement) in now {
            self.take_back(id);
            lookups.spawn(async move {
                let found = addresses(&announcement.address, announcement.port).await;
                (id, announcement, found)
            });
        }
        while let Some(lookup) = lookups.join_next().await {
            let (id, announcement, found) = lookup.expect("a lookup does not panic");
            match found.and_then(|addresses| self.say(&announcement, &addresses)) {
                Ok(name) => _ = self.said.insert(id, Said::Under { announcement, name }),
                // Its queue is full: the rest is said when it has caught up.
                Err(Trouble::Daemon(mdns_sd::Error::Again)) => return false,
                Err(trouble) => {
                    self.tell(&announcement.instance, &trouble);
                    self.said.insert(id, Said::Not { announcement, until: Instant::now() + LOOKUP_AGAIN });
                }
            }
        }
        is_all
    }

    /// Says a service; gives its full name.
    fn say(&self, announcement: &Announcement, addresses: &[IpAddr]) -> Result<String, Trouble> {
        let Announcement { service_type, instance, host, port, texts, .. } = announcement;
        let service = ServiceInfo::new(service_type, instance, host, addresses, *port, texts.as_slice())?;
        let name = service.get_fullname().to_owned();
        self.daemon.register(service)?;
        Ok(name)
    }

    fn take_back(&mut self, id: EntryId) {
        if let Some(Said::Under { name, .. }) = self.said.remove(&id) {
            // Without a daemon nothing is said any more.
            let _ = self.daemon.unregister(&name);
        }
    }

    /// `unsaid` are those that were not tried.
    fn count(&self, unsaid: u64) {
        let said = self.said.values().filter(|said| matches!(said, Said::Under { .. })).count();
        self.counts.said.store(said as u64, Relaxed);
        self.counts.unsaid.store(unsaid + (self.said.len() - said) as u64, Relaxed);
    }

    fn tell(&self, what: &str, why: &dyn std::fmt::Display) {
        if let Some(times) = self.not_said.due() {
            tracing::warn!(times, "{what} is not announced by multicast DNS: {why}");
        }
    }

    fn tell_too_many(&self) {
        if let Some(times) = self.too_many.due() {
            tracing::warn!(
                times,
                "more than {SERVICES_MAX} services are registered: those that came last are not announced by multicast DNS"
            );
        }
    }
}

impl Drop for Announcer {
    /// Its last words take back all that it has said.
    fn drop(&mut self) {
        self.counts.said.store(0, Relaxed);
        self.counts.unsaid.store(0, Relaxed);
        if let Ok(ended) = self.daemon.shutdown() {
            // The process may end behind this.
            let _ = ended.recv_timeout(LOOKUP_PATIENCE);
        }
    }
}

/// One that takes part on the network where the cloud listens, and nowhere else.
fn daemon(listen: IpAddr) -> Result<ServiceDaemon, mdns_sd::Error> {
    let daemon = ServiceDaemon::new()?;
    if listen.is_unspecified() {
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
    } else {
        daemon.disable_interface(IfKind::All)?;
        daemon.enable_interface(IfKind::Addr(listen))?;
    }
    Ok(daemon)
}

/// A service that somebody announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The instance's name, without the type.
    pub instance: String,
    /// The system that offers it; empty where that is not said.
    pub system: String,
    /// Where it is said to be.
    pub addresses: BTreeSet<IpAddr>,
}

/// Asks on the network where a cloud listens for all services of Arrowhead, as a device would, and gives what has answered within `patience`: [`SERVICES_MAX`] at the most.
///
/// # Errors
/// Nobody can be asked from here.
pub fn hear(listen: IpAddr, patience: Duration) -> Result<Vec<Heard>, mdns_sd::Error> {
    let end = Instant::now() + patience;
    let daemon = daemon(listen)?;
    let answers = daemon.browse(SERVICE_TYPE)?;
    let mut heard = BTreeMap::new();
    while let Ok(answer) = answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
        let ServiceEvent::ServiceResolved(service) = answer else { continue };
        let name = service.get_fullname();
        let instance = name.strip_suffix(SERVICE_TYPE).unwrap_or(name).trim_end_matches('.').to_owned();
        let system = service.get_property_val_str("system").unwrap_or_default().to_owned();
        let addresses = service.get_addresses().iter().map(|address| address.to_ip_addr()).collect();
        heard.insert(name.to_owned(), Heard { instance, system, addresses });
        if heard.len() >= SERVICES_MAX {
            break;
        }
    }
    // It has told nobody anything that would have to be taken back.
    let _ = daemon.shutdown();
    Ok(heard.into_values().collect())
}

/// Why a service is not said.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Daemon(#[from] mdns_sd::Error),
    #[error("the address of {0} is not found")]
    Unknown(String),
}

/// The addresses of a provider, whatever it has registered.
async fn addresses(address: &str, port: u16) -> Result<Vec<IpAddr>, Trouble> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let unknown = || Trouble::Unknown(address.to_owned());
    let found = timeout(LOOKUP_PATIENCE, tokio::net::lookup_host((address, port))).await;
    let found: Vec<IpAddr> = found.map_err(|_| unknown())?.map_err(|_| unknown())?.map(|place| place.ip()).collect();
    if found.is_empty() { Err(unknown()) } else { Ok(found) }
}
