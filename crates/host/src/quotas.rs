//! Quotas of clients: open connections, and memory for requests that are not whole.
//!
//! Each group of ports has one [`ConnectionQuota`]. The listeners and the shard call [`ConnectionQuota::admit`] for each connection
//! and keep the [`ConnectionPermit`] as long as the connection. [`RequestReader`](crate::http::RequestReader) reserves memory from
//! its [`BufferQuota`] before its buffer grows. A client is a certificate, or an address where no certificate is shown. One client
//! can use a fraction of each limit only, so the other clients always find free capacity.

mod owners;
mod rejections;

use std::{
    collections::BTreeMap,
    fmt, mem,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::Semaphore;

pub use self::{owners::OwnerQuota, rejections::Rejections};
use crate::{handshakes::Handshakes, limits::Limits, security::Peer};

/// Memory for incomplete requests of one group of ports, in bytes.
pub const BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Part of a group's memory that one client can use.
const BUFFER_CLIENT_FRACTION: usize = 8;
/// Bytes of a body at the operator's port in secure mode from clients other than operators: enough for the enrollment of a system.
pub const ENROLLMENT_BODY_BYTES_MAX: usize = 16 * 1024;
/// Connections of the operator's port, in secure mode of clients with a certificate.
pub const MONITOR_CONNECTIONS_MAX: usize = 64;
/// Connections of the operator's port of clients without a certificate in secure mode.
pub const ANONYMOUS_CONNECTIONS_MAX: usize = 256;
/// TLS handshakes in progress at the ports of the core systems, if the process can open enough files.
pub const HANDSHAKES_MAX: usize = 4096;
/// TLS handshakes in progress at the operator's port.
const MONITOR_HANDSHAKES_MAX: usize = 256;
/// TLS handshakes that the cores work on at the same time; more wait. Each uses about 40 KiB, and a millisecond of a core.
const COMPUTED_HANDSHAKES_MAX: usize = 256;
/// TLS handshakes that wait for the client in the middle of the handshake. Each uses about 40 KiB.
const SLOW_HANDSHAKES_MAX: usize = 512;
/// Groups whose connections have [`Limits::connections_max`] as their limit.
const GROUPS: usize = 3;
/// Open files besides the connections of clients: database, logs, listeners, connections to other systems.
const OTHER_FILES: usize = 1024;
/// Connections that are accepted however few files the process can open.
const CONNECTIONS_MIN: usize = 16;

/// Identifies a client for its quotas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientKey {
    /// Common name of the certificate that the client has shown.
    Certificate(Arc<str>),
    /// Address of a client without a certificate; of IPv6 the network of 64 bits, because one host can have all of its addresses.
    Address(IpAddr),
    /// Clients on this machine that connect by a path, and clients that were gone before their address was read.
    Local,
}

impl ClientKey {
    /// Returns the key of a peer: its certificate's name if it has shown one, else its address.
    pub fn of(peer: &Peer, address: Option<IpAddr>) -> Self {
        if peer.has_certificate() { Self::Certificate(peer.name().into()) } else { address.map_or(Self::Local, Self::address) }
    }

    /// Returns the key of an address.
    pub fn address(address: IpAddr) -> Self {
        Self::Address(network(address))
    }
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(name) => write!(f, "certificate {name}"),
            Self::Address(address) => write!(f, "address {address}"),
            Self::Local => f.write_str("a local client"),
        }
    }
}

/// Returns the address by which clients are distinguished: of IPv6 the network of 64 bits.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

/// Limits of one group of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Open connections.
    pub connections_max: usize,
    /// Open connections of one client.
    pub client_connections_max: usize,
    /// Bytes of incomplete requests.
    pub buffer_bytes_max: usize,
    /// Bytes of incomplete requests of one client.
    pub client_buffer_bytes_max: usize,
}

impl QuotaLimits {
    fn of_connections(connections_max: usize, client_connections_max: usize) -> Self {
        Self {
            connections_max,
            client_connections_max,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            client_buffer_bytes_max: BUFFER_BYTES_MAX / BUFFER_CLIENT_FRACTION,
        }
    }
}

/// The limits of connections, fitted to the number of files that the process can open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FittedLimits {
    /// Open connections of the control plane, of the Event Handler, and of the ZMTP port together.
    pub connections_max: usize,
    /// Each of these groups.
    pub group: QuotaLimits,
    /// TLS handshakes in progress at the ports of these groups; 0 in insecure mode.
    pub handshakes_max: usize,
}

impl FittedLimits {
    /// Fits the limits of connections to `files_max` open files. Files of the process and connections of the operator's port are
    /// reserved first, so the operator's port accepts connections when clients use all others.
    pub fn new(limits: &Limits, is_secure: bool, files_max: usize) -> Self {
        let [handshakes_max, operators] = if is_secure {
            [HANDSHAKES_MAX.min(files_max / 8), MONITOR_CONNECTIONS_MAX + ANONYMOUS_CONNECTIONS_MAX + MONITOR_HANDSHAKES_MAX]
        } else {
            [0, MONITOR_CONNECTIONS_MAX]
        };
        let reserved = OTHER_FILES.min(files_max / 4) + operators + handshakes_max;
        let connections_max = files_max.saturating_sub(reserved).max(CONNECTIONS_MIN);
        let group_max = limits.connections_max.min(connections_max);
        let client_max = match limits.client_connections_max {
            // The three groups together leave a quarter of all connections to other clients.
            0 => group_max.div_ceil(2).min(connections_max.div_ceil(4)),
            max => max.min(group_max),
        };
        Self { connections_max, group: QuotaLimits::of_connections(group_max, client_max), handshakes_max }
    }

    /// Fits the limits to the files that this process can open now.
    pub fn of_this_process(limits: &Limits, is_secure: bool) -> Self {
        // Without the limit the system rejects what is too many.
        let files_max = getrlimit(Resource::RLIMIT_NOFILE).map_or(usize::MAX, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX));
        let fitted = Self::new(limits, is_secure, files_max);
        if fitted.group.connections_max < limits.connections_max || fitted.connections_max < GROUPS * limits.connections_max {
            tracing::info!(
                files_max,
                connections_max = limits.connections_max,
                fitted = fitted.connections_max,
                needed = Self::files_needed(limits, is_secure),
                "limit of connections lowered: raise the limit on open files, or give a smaller connections_max"
            );
        }
        fitted
    }

    /// Returns the number of open files with which `limits` hold as they are.
    pub fn files_needed(limits: &Limits, is_secure: bool) -> usize {
        let [handshakes, operators] = if is_secure {
            [HANDSHAKES_MAX, MONITOR_CONNECTIONS_MAX + ANONYMOUS_CONNECTIONS_MAX + MONITOR_HANDSHAKES_MAX]
        } else {
            [0, MONITOR_CONNECTIONS_MAX]
        };
        GROUPS * limits.connections_max + OTHER_FILES + handshakes + operators
    }
}

/// The quotas of all groups of ports.
#[derive(Clone, Debug)]
pub struct Quotas {
    /// Ports of the control plane.
    pub control: Arc<ConnectionQuota>,
    /// The Event Handler's port.
    pub events: Arc<ConnectionQuota>,
    /// The ZMTP port and path.
    pub zmtp: Arc<ConnectionQuota>,
    /// The operator's port: clients with a certificate, or all clients in insecure mode.
    pub monitor: Arc<ConnectionQuota>,
    /// The operator's port in secure mode: clients without a certificate.
    pub anonymous: Arc<ConnectionQuota>,
    /// TLS handshakes in progress at the ports of the core systems.
    pub handshakes: Arc<Handshakes>,
    /// TLS handshakes in progress at the operator's port.
    pub monitor_handshakes: Arc<Handshakes>,
    /// TLS handshakes at all ports that wait for the client in the middle of the handshake.
    pub slow_handshakes: Arc<Handshakes>,
    /// Permits of TLS handshakes at all ports that the cores work on.
    pub computed_handshakes: Arc<Semaphore>,
    /// Quota of the rows that one system registers itself.
    pub owners: Arc<OwnerQuota>,
}

impl Quotas {
    /// Quotas with these limits, which nothing uses yet.
    pub fn new(fitted: &FittedLimits, limits: &Limits) -> Self {
        let all = Arc::new(SharedLimit { max: fitted.connections_max, used: AtomicUsize::new(0) });
        let group = |name| Arc::new(ConnectionQuota::new(name, fitted.group, Some(all.clone())));
        let own = |name, max: usize| Arc::new(ConnectionQuota::new(name, QuotaLimits::of_connections(max, max / 4 * 3), None));
        Self {
            control: group("control"),
            events: group("events"),
            zmtp: group("zmtp"),
            monitor: own("monitor", MONITOR_CONNECTIONS_MAX),
            anonymous: own("monitor_anonymous", ANONYMOUS_CONNECTIONS_MAX),
            handshakes: Handshakes::new(fitted.handshakes_max),
            monitor_handshakes: Handshakes::new(MONITOR_HANDSHAKES_MAX),
            slow_handshakes: Handshakes::new(SLOW_HANDSHAKES_MAX),
            owners: Arc::new(OwnerQuota::new(limits)),
            computed_handshakes: Arc::new(Semaphore::new(COMPUTED_HANDSHAKES_MAX)),
        }
    }

    /// The handshakes of each group, in the order in which they are reported.
    pub fn handshake_groups(&self) -> [(&'static str, &Handshakes); 3] {
        [("core_systems", &self.handshakes), ("monitor", &self.monitor_handshakes), ("slow", &self.slow_handshakes)]
    }

    /// The quotas of connections and memory, in the order in which they are reported.
    pub fn groups(&self) -> [&ConnectionQuota; 5] {
        [&self.control, &self.events, &self.zmtp, &self.monitor, &self.anonymous]
    }
}

/// The quota that has no capacity left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum QuotaExceeded {
    /// All connections of the group are open.
    #[error("{0} connections are open, which is the limit of this port")]
    Connections(usize),
    /// The client has all connections that one client can have.
    #[error("{0} connections of this client are open, which is the limit of one client")]
    ClientConnections(usize),
    /// All connections of all ports are open.
    #[error("{0} connections are open at all ports, for which the limit on open files is enough")]
    AllConnections(usize),
    /// Incomplete requests use all memory of the group.
    #[error("incomplete requests use {0} bytes, which is the limit of this port")]
    Buffer(usize),
    /// Incomplete requests of the client use all memory that one client can have.
    #[error("incomplete requests of this client use {0} bytes, which is the limit of one client")]
    ClientBuffer(usize),
}

impl QuotaExceeded {
    /// Names of the quotas in metrics, in the order of [`Self::index`].
    pub const NAMES: [&'static str; 5] = ["connections", "client_connections", "all_connections", "request_bytes", "client_request_bytes"];

    fn index(self) -> usize {
        match self {
            Self::Connections(_) => 0,
            Self::ClientConnections(_) => 1,
            Self::AllConnections(_) => 2,
            Self::Buffer(_) => 3,
            Self::ClientBuffer(_) => 4,
        }
    }
}

/// Connections and buffer bytes of one client, or of all clients.
#[derive(Debug, Default)]
struct Usage {
    connections: AtomicUsize,
    buffer_bytes: AtomicUsize,
}

/// A limit that several groups share.
#[derive(Debug)]
struct SharedLimit {
    max: usize,
    used: AtomicUsize,
}

/// The quotas of one group of ports.
#[derive(Debug)]
pub struct ConnectionQuota {
    /// Name of the group in metrics and in the log.
    pub name: &'static str,
    /// The limits.
    pub limits: QuotaLimits,
    /// Connections of several groups together.
    shared: Option<Arc<SharedLimit>>,
    /// Connections and buffer bytes of all clients.
    all: Usage,
    clients: Mutex<BTreeMap<ClientKey, Arc<Usage>>>,
    /// In the order of [`QuotaExceeded::NAMES`].
    rejections: [Rejections; QuotaExceeded::NAMES.len()],
}

impl ConnectionQuota {
    fn new(name: &'static str, limits: QuotaLimits, shared: Option<Arc<SharedLimit>>) -> Self {
        let (all, clients, rejections) = Default::default();
        Self { name, limits, shared, all, clients, rejections }
    }

    /// Counts a connection of `client` until the permit is dropped.
    ///
    /// # Errors
    /// Returns the quota that is used up. The rejection is counted and logged.
    pub fn admit(self: &Arc<Self>, client: ClientKey) -> Result<ConnectionPermit, QuotaExceeded> {
        let usage = {
            // Each change leaves the map whole wherever it is interrupted.
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            let usage = clients.entry(client.clone()).or_default().clone();
            usage.connections.fetch_add(1, Relaxed);
            usage
        };
        let QuotaLimits { connections_max, client_connections_max, .. } = self.limits;
        let connections = self.all.connections.fetch_add(1, Relaxed) + 1;
        let shared = self.shared.as_ref().map(|shared| (shared.max, shared.used.fetch_add(1, Relaxed) + 1));
        // Its drop takes the connection back where it is one too many.
        let permit = ConnectionPermit { quota: self.clone(), client, usage };
        let exceeded = if permit.usage.connections.load(Relaxed) > client_connections_max {
            QuotaExceeded::ClientConnections(client_connections_max)
        } else if connections > connections_max {
            QuotaExceeded::Connections(connections_max)
        } else if let Some((max, _)) = shared.filter(|(max, used)| used > max) {
            QuotaExceeded::AllConnections(max)
        } else {
            return Ok(permit);
        };
        self.reject(exceeded, &permit.client);
        Err(exceeded)
    }

    /// Open connections of all clients.
    pub fn connections(&self) -> usize {
        self.all.connections.load(Relaxed)
    }

    /// Bytes of incomplete requests of all clients.
    pub fn buffer_bytes(&self) -> usize {
        self.all.buffer_bytes.load(Relaxed)
    }

    /// Name of each quota, and what it has rejected.
    pub fn rejections(&self) -> impl Iterator<Item = (&'static str, &Rejections)> {
        QuotaExceeded::NAMES.into_iter().zip(&self.rejections)
    }

    fn reject(&self, exceeded: QuotaExceeded, client: &ClientKey) {
        if let Some(times) = self.rejections[exceeded.index()].count() {
            tracing::warn!(group = self.name, %client, reason = %exceeded, times, "connection rejected: quota used up");
        }
    }
}

/// One connection of a client, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    quota: Arc<ConnectionQuota>,
    client: ClientKey,
    usage: Arc<Usage>,
}

impl ConnectionPermit {
    /// Returns the memory quota of the connection's client.
    pub fn buffer_quota(&self) -> BufferQuota {
        BufferQuota { quota: self.quota.clone(), client: self.client.clone(), usage: self.usage.clone(), bytes: 0 }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.quota.all.connections.fetch_sub(1, Relaxed);
        if let Some(shared) = &self.quota.shared {
            shared.used.fetch_sub(1, Relaxed);
        }
        let mut clients = self.quota.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if self.usage.connections.fetch_sub(1, Relaxed) == 1 {
            clients.remove(&self.client);
        }
    }
}

/// Memory that one connection's incomplete request uses. Dropping it releases the memory.
#[derive(Debug)]
pub struct BufferQuota {
    quota: Arc<ConnectionQuota>,
    client: ClientKey,
    usage: Arc<Usage>,
    bytes: usize,
}

impl BufferQuota {
    /// Changes what the connection uses to `bytes`. A decrease always succeeds.
    ///
    /// # Errors
    /// Returns the quota that is used up; the connection then uses what it used before. The rejection is counted and logged.
    pub fn resize(&mut self, bytes: usize) -> Result<(), QuotaExceeded> {
        let QuotaLimits { buffer_bytes_max, client_buffer_bytes_max, .. } = self.quota.limits;
        let before = mem::replace(&mut self.bytes, bytes);
        let used_by_client = adjust(&self.usage.buffer_bytes, before, bytes);
        let used = adjust(&self.quota.all.buffer_bytes, before, bytes);
        let exceeded = if bytes <= before {
            return Ok(());
        } else if used_by_client > client_buffer_bytes_max {
            QuotaExceeded::ClientBuffer(client_buffer_bytes_max)
        } else if used > buffer_bytes_max {
            QuotaExceeded::Buffer(buffer_bytes_max)
        } else {
            return Ok(());
        };
        adjust(&self.usage.buffer_bytes, bytes, before);
        adjust(&self.quota.all.buffer_bytes, bytes, before);
        self.bytes = before;
        self.quota.reject(exceeded, &self.client);
        Err(exceeded)
    }
}

impl BufferQuota {
    /// Releases what the connection uses.
    pub fn release(&mut self) {
        self.resize(0).expect("a decrease always succeeds");
    }
}

impl Drop for BufferQuota {
    fn drop(&mut self) {
        self.release();
    }
}

/// Replaces one part of a sum by another, and returns the sum.
fn adjust(sum: &AtomicUsize, before: usize, after: usize) -> usize {
    if after >= before {
        sum.fetch_add(after - before, Relaxed) + (after - before)
    } else {
        sum.fetch_sub(before - after, Relaxed) - (before - after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> ClientKey {
        ClientKey::address(text.parse().unwrap())
    }

    fn quota(connections_max: usize) -> Arc<ConnectionQuota> {
        let limits = QuotaLimits::of_connections(connections_max, connections_max / 2);
        Arc::new(ConnectionQuota::new("test", QuotaLimits { buffer_bytes_max: 1000, client_buffer_bytes_max: 400, ..limits }, None))
    }

    #[test]
    fn one_client_leaves_half_of_the_connections() {
        let quota = quota(4);
        let (greedy, modest) = (client("10.0.0.1"), client("10.0.0.2"));
        let held: Vec<_> = (0..2).map(|_| quota.admit(greedy.clone()).unwrap()).collect();
        assert_eq!(quota.admit(greedy.clone()).unwrap_err(), QuotaExceeded::ClientConnections(2));
        let others: Vec<_> = (0..2).map(|_| quota.admit(modest.clone()).unwrap()).collect();
        assert_eq!(quota.admit(client("10.0.0.3")).unwrap_err(), QuotaExceeded::Connections(4));
        assert_eq!(quota.connections(), 4, "rejected connections are not counted");
        assert_eq!(quota.rejections().map(|(_, rejections)| rejections.total()).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
        assert!(quota.rejections[0].is_recent() && !quota.rejections[2].is_recent());
        drop(held);
        assert!(quota.admit(greedy).is_ok());
        drop(others);
        assert_eq!((quota.connections(), quota.clients.lock().unwrap().len()), (0, 0), "clients that are gone use no memory");
    }

    #[test]
    fn one_client_leaves_memory_for_the_others() {
        let quota = quota(100);
        let greedy: Vec<_> = (0..3).map(|_| quota.admit(client("10.0.0.1")).unwrap()).collect();
        let mut buffers: Vec<_> = greedy.iter().map(ConnectionPermit::buffer_quota).collect();
        assert_eq!(buffers[0].resize(300), Ok(()));
        assert_eq!(buffers[1].resize(101), Err(QuotaExceeded::ClientBuffer(400)));
        assert_eq!(buffers[1].resize(100), Ok(()));
        let others: Vec<_> = ["10.0.0.2", "10.0.0.3"].map(|each| quota.admit(client(each)).unwrap()).into();
        let mut further: Vec<_> = others.iter().map(ConnectionPermit::buffer_quota).collect();
        assert_eq!(further[0].resize(400), Ok(()));
        assert_eq!(further[1].resize(201), Err(QuotaExceeded::Buffer(1000)));
        assert_eq!((further[1].resize(200), quota.buffer_bytes()), (Ok(()), 1000));
        assert_eq!((buffers[0].resize(10), quota.buffer_bytes()), (Ok(()), 710));
        drop((buffers, further));
        assert_eq!(quota.buffer_bytes(), 0);
    }

    #[test]
    fn memory_of_a_closed_connection_counts_until_it_is_dropped() {
        let quota = quota(2);
        let permit = quota.admit(ClientKey::Local).unwrap();
        let mut buffer = permit.buffer_quota();
        buffer.resize(7).unwrap();
        drop(permit);
        assert_eq!(quota.buffer_bytes(), 7);
        drop(buffer);
        assert_eq!(quota.buffer_bytes(), 0);
    }

    #[test]
    fn groups_together_use_no_more_than_their_shared_limit() {
        let fitted = FittedLimits { connections_max: 3, group: QuotaLimits::of_connections(2, 2), handshakes_max: 0 };
        let quotas = Quotas::new(&fitted, &Limits::default());
        let held: Vec<_> = (0..2).map(|_| quotas.control.admit(ClientKey::Local).unwrap()).collect();
        let event = quotas.events.admit(ClientKey::Local).unwrap();
        assert_eq!(quotas.zmtp.admit(ClientKey::Local).unwrap_err(), QuotaExceeded::AllConnections(3));
        assert!(quotas.monitor.admit(ClientKey::Local).is_ok(), "the operator's port has its own limit");
        drop((held, event));
        assert!(quotas.zmtp.admit(ClientKey::Local).is_ok());
    }

    #[test]
    fn limits_fit_into_the_open_files() {
        for is_secure in [false, true] {
            for files_max in [64, 256, 1024, 2000, 20_000, 60_000, 1 << 20] {
                let fitted = FittedLimits::new(&Limits::default(), is_secure, files_max);
                let QuotaLimits { connections_max, client_connections_max, .. } = fitted.group;
                assert!(connections_max <= fitted.connections_max && client_connections_max <= connections_max, "{fitted:?}");
                assert!(GROUPS * client_connections_max <= fitted.connections_max.max(GROUPS * 4), "one client leaves some: {fitted:?}");
                assert!(files_max < 1024 || fitted.connections_max + fitted.handshakes_max < files_max, "{fitted:?}");
            }
            let needed = FittedLimits::files_needed(&Limits::default(), is_secure);
            assert_eq!(FittedLimits::new(&Limits::default(), is_secure, needed).connections_max, GROUPS * 16_000);
        }
        let limits = Limits { client_connections_max: 9, ..Limits::default() };
        assert_eq!(FittedLimits::new(&limits, false, 20_000).group.client_connections_max, 9);
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
