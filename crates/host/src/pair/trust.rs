//! Secure mode between the nodes: both ends of every connection show the certificate of the node that they say they are.
//!
//! A thread of its own looks for new certificates and revocations, so that who votes never waits for a file; what it has read counts at the next
//! heartbeat, for connections that are open too.

use std::{
    io,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, mpsc},
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    name::SystemName,
    pinned::{PAIR_NODES, PinnedNames},
    utc::UtcTime,
};
use bodkin_broker::Node;
use bodkin_trust::{
    Certificate,
    tls::{self, LinkTls, PeerCheck, PeerError},
};
use rustls::{ClientConnection, Connection, ServerConnection};

use super::PairError;
use crate::security::{
    NodeMaterial, SecurityConfig, SecurityError,
    reload::{LOOK, RENEWAL_PAUSE, Stamp, stamps},
};

/// What counts, as of one look at the files.
#[derive(Debug)]
pub struct LinkTrust {
    cloud: CloudCommonName,
    anchors: Vec<Certificate>,
    check: PeerCheck,
    tls: LinkTls,
    /// How often since the start an authority was taken from those that are believed.
    withdrawals: u64,
    renewal_due: UtcTime,
    files: Vec<PathBuf>,
}

/// What the other end of a connection has shown.
#[derive(Debug)]
pub struct Proof {
    certificate: Certificate,
    withdrawals: u64,
}

/// The system that a node is.
fn name_of(node: Node) -> &'static str {
    PAIR_NODES[node as usize]
}

fn common_name_of(node: Node, cloud: &CloudCommonName) -> SystemCommonName {
    SystemCommonName { system: SystemName::from_stored(name_of(node)), cloud: cloud.clone() }
}

impl LinkTrust {
    fn read(node: Node, config: &SecurityConfig) -> Result<Self, SecurityError> {
        let NodeMaterial { cloud, anchors, revocations, identity, files } = NodeMaterial::read(config, name_of(node), tls::now())?;
        let others = Node::ALL.into_iter().filter(|other| *other != node);
        let pinned = PinnedNames::of(others.map(|other| common_name_of(other, &cloud)));
        let check = PeerCheck { revocations, pinned: Some(pinned) };
        let tls = LinkTls::new(&identity, &anchors, check.clone())?;
        let renewal_due = identity.certificate().renewal_due();
        Ok(Self { cloud, anchors, check, tls, withdrawals: 0, renewal_due, files })
    }

    /// Takes the place of what counted before.
    fn succeed(self, before: &Self) -> Result<Self, SecurityError> {
        if self.cloud != before.cloud {
            return Err(SecurityError::OtherCloud { found: self.cloud, running: before.cloud.clone() });
        }
        let is_left = |anchor: &Certificate| self.anchors.iter().any(|other| other.is_same_authority(anchor));
        let has_lost = !before.anchors.iter().all(is_left);
        Ok(Self { withdrawals: before.withdrawals + u64::from(has_lost), ..self })
    }

    /// The session of a connection that this node makes.
    pub fn dial(&self, address: IpAddr) -> Result<Connection, rustls::Error> {
        Ok(ClientConnection::new(self.tls.client.clone(), address.into())?.into())
    }

    /// The session of a connection that has come in.
    pub fn accept(&self) -> Result<Connection, rustls::Error> {
        Ok(ServerConnection::new(self.tls.server.clone())?.into())
    }

    /// What the other end of a session has shown, which has to be the certificate of the node that it says it is. The reason, if it is not.
    pub fn prove(&self, node: Node, session: &Connection) -> Result<Proof, String> {
        let shown = session.peer_certificates().and_then(<[_]>::first).ok_or("it has shown no certificate")?;
        let certificate = self.check.check(shown, tls::now()).map_err(|error| error.to_string())?;
        let expected = common_name_of(node, &self.cloud);
        if certificate.system().as_ref() != Ok(&expected) {
            return Err(format!(
                "it says that it is {node:?} and shows the certificate of {}; {expected} was expected",
                certificate.told_name()
            ));
        }
        Ok(Proof { certificate, withdrawals: self.withdrawals })
    }

    /// Whether what was shown still counts.
    pub fn check_again(&self, proof: &Proof) -> Result<(), PeerError> {
        if proof.withdrawals != self.withdrawals {
            return Err(PeerError::Withdrawn);
        }
        self.check.check_again(&proof.certificate, tls::now())
    }
}

/// What counts, and whoever has it read again.
#[derive(Clone, Debug)]
pub struct SharedTrust {
    current: Arc<ArcSwap<LinkTrust>>,
    orders: mpsc::Sender<()>,
}

impl SharedTrust {
    /// Reads what counts for a node, and looks for what changes as long as this lives. The Primary makes a cloud where there is none; to be a node of
    /// another one's cloud its certificates are needed.
    pub fn open(node: Node, config: SecurityConfig) -> Result<Self, PairError> {
        if node == Node::First {
            config.found_cloud(tls::now())?;
        } else if !config.has_certificates() {
            return Err(PairError::NoCertificates { place: config.place().to_owned(), name: name_of(node) });
        }
        let trust = LinkTrust::read(node, &config)?;
        let current = Arc::new(ArcSwap::from_pointee(trust));
        let (orders, ordered) = mpsc::channel();
        let reader = Reader { node, config, current: current.clone() };
        std::thread::Builder::new().name("pair-trust".into()).spawn(move || reader.run(&ordered))?;
        Ok(Self { current, orders })
    }

    /// What counts now.
    pub fn load(&self) -> Arc<LinkTrust> {
        self.current.load_full()
    }

    /// Has the files read again.
    pub fn reload(&self) -> io::Result<()> {
        self.orders.send(()).map_err(io::Error::other)
    }
}

/// The thread that looks at the files.
struct Reader {
    node: Node,
    config: SecurityConfig,
    current: Arc<ArcSwap<LinkTrust>>,
}

impl Reader {
    fn run(&self, ordered: &mpsc::Receiver<()>) {
        let mut taken = self.stamps();
        let (mut seen, mut renewal) = (taken.clone(), self.current.load().renewal_due);
        loop {
            let is_ordered = match ordered.recv_timeout(LOOK) {
                Ok(()) => true,
                Err(mpsc::RecvTimeoutError::Timeout) => false,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            };
            let found = self.stamps();
            // A key is written in front of its certificate: what has just changed may not be whole.
            let is_settled = found == seen;
            seen = found;
            let is_due = tls::now() >= renewal;
            if is_ordered || is_settled && (seen != taken || is_due) {
                taken.clone_from(&seen);
                self.read();
                renewal = self.current.load().renewal_due.max(tls::now().plus(RENEWAL_PAUSE));
            }
        }
    }

    /// What is wrong changes nothing.
    fn read(&self) {
        let read = LinkTrust::read(self.node, &self.config).and_then(|trust| trust.succeed(&self.current.load()));
        match read {
            Ok(trust) => {
                let revoked = trust.check.revocations.len();
                tracing::info!(revoked, "the certificates of the pair's nodes were read again");
                self.current.store(Arc::new(trust));
            }
            Err(error) => tracing::error!(%error, "the new certificates of the pair's nodes are not taken; the old ones count on"),
        }
    }

    fn stamps(&self) -> Vec<Stamp> {
        stamps(&self.current.load().files)
    }
}
