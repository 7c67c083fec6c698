//! Secure mode between the nodes: both ends of every connection show the certificate of the node that they say they are.
//!
//! A thread of its own looks for new certificates and revocations, so that who votes never waits for a file; what it has read counts at the next
//! heartbeat, for connections that are open too.

use std::{
    io,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
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
    tls::{self, LinkTls, PeerCheck, PeerError, Refusal},
};
use rustls::{ClientConnection, Connection, ServerConnection};

use super::{Leadership, Message, PairError, Trouble};
use crate::{
    inbox::Inbox,
    security::{
        NodeMaterial, SecurityConfig, SecurityError,
        reload::{LOOK, RENEWAL_PAUSE, Stamp, stamps},
    },
};

/// For how long a refused connection is reported. Nodes connect again every 50 ms.
const REPORTED: Duration = Duration::from_secs(10);

/// What counts, as of one look at the files.
#[derive(Debug)]
pub struct LinkTrust {
    node: Node,
    /// The serial number of this node's certificate, unless it is revoked.
    serial: Option<String>,
    cloud: CloudCommonName,
    anchors: Vec<Certificate>,
    check: PeerCheck,
    /// What sessions are made with; or why there are none: this node's own certificate is revoked.
    tls: Result<LinkTls, String>,
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
        let serial = identity.as_ref().ok().map(|identity| identity.certificate().serial_text());
        let (tls, renewal_due) = match identity {
            Ok(identity) => (Ok(LinkTls::new(&identity, &anchors, check.clone())?), identity.certificate().renewal_due()),
            Err(revoked) => (Err(revoked), tls::now().plus(RENEWAL_PAUSE)),
        };
        Ok(Self { node, serial, cloud, anchors, check, tls, withdrawals: 0, renewal_due, files })
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

    /// Why this node takes no part in the pair; `None`: it does.
    pub fn exclusion(&self) -> Option<&str> {
        self.tls.as_ref().err().map(String::as_str)
    }

    /// The session of a connection that this node makes; `None`: it takes no part.
    pub fn dial(&self, address: IpAddr) -> Option<Result<Connection, rustls::Error>> {
        let tls = self.tls.as_ref().ok()?;
        Some(ClientConnection::new(tls.client.clone(), address.into()).map(Connection::from))
    }

    /// The session of a connection that has come in; `None`: it takes no part.
    pub fn accept(&self) -> Option<Result<Connection, rustls::Error>> {
        let tls = self.tls.as_ref().ok()?;
        Some(ServerConnection::new(tls.server.clone()).map(Connection::from))
    }

    /// What the other end of a session has shown, which has to be the certificate of the node that it says it is. The reason, if it is not.
    fn prove(&self, node: Node, session: &Connection) -> Result<Proof, String> {
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

    /// Checks whether the connection of another node still counts.
    fn check_again(&self, proof: &Proof) -> Result<(), PeerError> {
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
    participation: Participation,
    orders: mpsc::Sender<()>,
}

/// Whether this node takes part in the pair: its thread is notified of each change.
#[derive(Clone)]
struct Participation {
    leadership: Arc<Leadership>,
    node: Arc<Inbox<Message>>,
    /// The certificates that the nodes have proven last.
    proven: Arc<Mutex<[Option<Certificate>; Node::ALL.len()]>>,
}

impl std::fmt::Debug for Participation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Participation(excluded: {})", self.leadership.is_excluded())
    }
}

impl Participation {
    fn exclude(&self, is_excluded: bool) {
        self.leadership.exclude(is_excluded);
        self.node.post(Message::TrustChanged);
    }

    fn proven(&self) -> MutexGuard<'_, [Option<Certificate>; Node::ALL.len()]> {
        // An assignment leaves it whole.
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that another node is refused, until it shows a certificate that counts.
    fn report_revoked(&self, node: Node) {
        let name = name_of(node);
        let text = format!("{name} is refused, because its certificate is revoked: if it is to return, issue another one for it");
        self.leadership.troubles().set(Trouble::RevokedOther(node), text, None);
    }
}

impl SharedTrust {
    /// Reads what counts for a node, and looks for what changes as long as this lives. The Primary makes a cloud where there is none; to be a node of
    /// another one's cloud its certificates are needed.
    pub fn open(node: Node, config: SecurityConfig, leadership: Arc<Leadership>, inbox: Arc<Inbox<Message>>) -> Result<Self, PairError> {
        if node == Node::First {
            config.found_cloud(tls::now())?;
        } else if !config.has_certificates() {
            return Err(PairError::NoCertificates { place: config.place().to_owned(), name: name_of(node) });
        }
        let trust = LinkTrust::read(node, &config)?;
        let current = Arc::new(ArcSwap::from_pointee(trust));
        let (orders, ordered) = mpsc::channel();
        let participation = Participation { leadership, node: inbox, proven: Arc::default() };
        let mut reader = Reader { node, config, current: current.clone(), participation: participation.clone(), is_excluded: false };
        reader.report();
        std::thread::Builder::new().name("pair-trust".into()).spawn(move || reader.run(&ordered))?;
        Ok(Self { current, participation, orders })
    }

    /// Returns true if this node takes no part in the pair, because its certificate is revoked.
    pub fn is_excluded(&self) -> bool {
        self.participation.leadership.is_excluded()
    }

    /// Checks whether the connection of another node still counts. The reason, if it does not.
    pub fn check_again(&self, trust: &LinkTrust, proof: &Proof) -> Result<(), String> {
        if self.is_excluded() {
            return Err("this node's own certificate is revoked".to_owned());
        }
        trust.check_again(proof).map_err(|error| error.to_string())
    }

    /// Excludes this node if its certificate is among those that were revoked. A leader has to stop before the standby closes its connection: it would otherwise
    /// have the witness record that the standby is out, and no node could lead.
    pub fn note_revoked<'s>(&self, mut serials: impl Iterator<Item = &'s str>) {
        let own = self.load().serial.clone();
        if own.is_some_and(|own| serials.any(|serial| serial == own)) {
            self.participation.exclude(true);
        }
    }

    /// Reports a connection that ended because the certificate of a node is revoked, at either end.
    pub fn report_refusal(&self, refusal: &Refusal, address: &str) {
        if refusal.is_of_revoked_peer() {
            let system = refusal.name().unwrap_or_default().split('.').next();
            Node::ALL.into_iter().filter(|node| system == Some(name_of(*node))).for_each(|node| self.participation.report_revoked(node));
        } else if refusal.is_of_own_revoked() {
            let name = name_of(self.load().node);
            let text = format!(
                "this node's certificate is revoked at the node at {address}, which refuses it: if this node is to return, issue another certificate \
                 (bodkin cert issue --system {name} --new-key)"
            );
            self.participation.leadership.troubles().set(Trouble::RevokedThere, text, Some(REPORTED));
        }
    }

    /// Returns what the other end of a session has shown, which has to be the certificate of the node that it says it is. The reason, if it is not.
    pub fn prove(&self, node: Node, session: &Connection) -> Result<Proof, String> {
        let proof = self.load().prove(node, session)?;
        self.participation.proven()[node as usize] = Some(proof.certificate.clone());
        self.participation.leadership.troubles().clear(Trouble::RevokedOther(node));
        Ok(proof)
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
    participation: Participation,
    /// Whether it was reported that this node takes no part.
    is_excluded: bool,
}

impl Reader {
    fn run(&mut self, ordered: &mpsc::Receiver<()>) {
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

    /// Reports whether this node takes part in the pair, and has it stop to lead if it does not.
    fn report(&mut self) {
        let trust = self.current.load();
        let was_excluded = std::mem::replace(&mut self.is_excluded, trust.exclusion().is_some());
        self.participation.exclude(self.is_excluded);
        let troubles = self.participation.leadership.troubles();
        // A revoked node may have closed its connection before this node did.
        let revoked = |certificate: &Certificate| trust.check.revocations.contains(certificate);
        for node in Node::ALL.into_iter().filter(|node| self.participation.proven()[*node as usize].as_ref().is_some_and(revoked)) {
            self.participation.report_revoked(node);
        }
        match trust.exclusion() {
            Some(why) => {
                troubles.set(Trouble::Revoked, why.to_owned(), None);
                if !was_excluded {
                    tracing::error!("{why}");
                }
            }
            None if was_excluded => {
                troubles.clear(Trouble::Revoked);
                tracing::info!("this node has another certificate, and takes part in the pair again");
            }
            None => {}
        }
    }

    /// What is wrong changes nothing.
    fn read(&mut self) {
        let read = LinkTrust::read(self.node, &self.config).and_then(|trust| trust.succeed(&self.current.load()));
        match read {
            Ok(trust) => {
                let revoked = trust.check.revocations.len();
                tracing::info!(revoked, "the certificates of the pair's nodes were read again");
                self.current.store(Arc::new(trust));
                self.report();
            }
            Err(error) => tracing::error!(%error, "the new certificates of the pair's nodes are not taken; the old ones count on"),
        }
    }

    fn stamps(&self) -> Vec<Stamp> {
        stamps(&self.current.load().files)
    }
}
