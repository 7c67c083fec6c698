//! Exchange of ledger lines between the nodes of a cloud: certificates that one node issues or revokes are known and revoked at all others, and so are bindings of
//! CURVE keys.
//!
//! The nodes share a PostgreSQL database, or they are the brokers of a pair, whose leader's database is replicated to the standby. Both use the same table and the
//! same code. Each node has its own ledger with the lines of all nodes. The line of a certificate is in the database before a client has the certificate. A
//! revocation is in force at its own node first, and is answered when the database has it, in a pair when the standby has it too.
//!
//! A standby takes lines in while it follows, and a new leader refuses requests until it has those that it repeated ([`Leadership::takes_requests`]).
//!
//! [`Leadership::takes_requests`]: crate::pair::Leadership::takes_requests

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{AcqRel, Release},
        },
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::ledger_line::{LedgerLine, LineKind};
use bodkin_store::{
    Store, StoreError,
    certificate_line::NotBrought,
    shared::{Exchange, SILENT_AFTER},
};
use bodkin_trust::{
    DirectoryError, TrustDirectory,
    shared_ledger::{self, OwnLines, SharedFile, Taken},
};
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
    task::spawn_blocking,
};

use crate::{
    audit::Audit,
    control::now,
    pair::{OFFERED_BYTES_MAX, PairHandle, Trouble},
    security::Security,
};

/// How often the own ledger is looked at: other programs (`bodkin cert`) write into it.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Lines of one operation.
const LINES_BROUGHT_MAX: usize = 100;
/// Time that the round trips of one operation may take: half of a turn's.
const LINES_TIME_MAX: Duration = Duration::from_millis(1_500);
/// Round trips to a shared database for each line.
const LINE_ROUND_TRIPS: u32 = 2;
/// A standby whose lines the leader has not taken for so long reports that.
const UNSHARED_MAX: Duration = Duration::from_secs(10);

/// Why lines do not go from node to node.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The own ledger or list.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The database.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// What must not be issued.
    #[error(transparent)]
    NotBrought(#[from] NotBrought),
}

/// Why a node does not start beside the others.
#[derive(Debug, thiserror::Error)]
pub enum OtherAuthority {
    /// Two nodes would refuse each other's systems.
    #[error(
        "this node's certificates are those of the authority {own}, and those of node {node} at {host}, which shares the database, of {other}: a cloud has one \
         authority. Copy that node's trust directory (cloud.key only if this node is to issue certificates too)"
    )]
    Differs {
        /// The own one's SHA-256.
        own: String,
        /// The other one's.
        other: String,
        /// Who believes it.
        node: String,
        /// Where that is.
        host: String,
    },
    /// A second authority would be made.
    #[error(
        "{directory} holds no certificates, and the other nodes of the cloud have some: a cloud has one authority. Copy the trust directory of one of them \
         (cloud.key only if this node is to issue certificates too)"
    )]
    Missing {
        /// Where they should be.
        directory: String,
    },
    /// The own certificates cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The others are not known.
    #[error(transparent)]
    Database(#[from] StoreError),
}

/// Refuses to start with another authority than that of the nodes that serve the cloud, or to make one beside theirs.
pub async fn refuse_other_authority(store: &Store, directory: Option<&TrustDirectory>) -> Result<(), OtherAuthority> {
    let (Some(directory), Some(_)) = (directory, store.shared_names()) else { return Ok(()) };
    let (nodes, has_lines) = store.read(|draft| Ok((draft.nodes()?, draft.has_certificate_lines()?))).await?;
    if !directory.try_exists().unwrap_or(true) {
        let is_begun = has_lines || nodes.iter().any(|row| !row.place.authority.is_empty());
        let missing = || OtherAuthority::Missing { directory: directory.path().display().to_string() };
        return if is_begun { Err(missing()) } else { Ok(()) };
    }
    let own = directory.anchor()?.fingerprint().to_string();
    let serves_another = |authority: &str, unheard: Duration| !authority.is_empty() && authority != own && unheard <= SILENT_AFTER;
    match nodes.into_iter().find(|row| serves_another(&row.place.authority, row.unheard)) {
        None => Ok(()),
        Some(row) => Err(OtherAuthority::Differs { own, other: row.place.authority, node: row.name, host: row.place.host }),
    }
}

/// How far files are brought, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Brought {
    ledger: u64,
    curve_keys: u64,
}

impl Brought {
    fn places(&mut self) -> [(SharedFile, &mut u64); 2] {
        [(SharedFile::Ledger, &mut self.ledger), (SharedFile::CurveKeys, &mut self.curve_keys)]
    }
}

/// The account of one authority at this node.
#[derive(Clone)]
pub struct Account {
    directory: TrustDirectory,
    store: Store,
    /// The pair that this node belongs to; `None`: it shares a database.
    pair: Option<PairHandle>,
    /// SHA-256 of the authority's certificate: lines of another one are not this account's.
    authority: Arc<str>,
    node: Arc<str>,
    /// How far the own files are brought, in bytes.
    brought: Arc<Mutex<Brought>>,
    /// The last line of the database that was taken in.
    taken: Arc<Mutex<i64>>,
    /// The last line of the database whose revocation is in force.
    in_force: Arc<Mutex<i64>>,
    /// Whether files are to be read again, because certificates were revoked or CURVE keys bound elsewhere.
    must_reload: Arc<AtomicBool>,
    /// Notified when this node has brought lines.
    own: Arc<watch::Sender<()>>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({} at {})", self.authority, self.node)
    }
}

impl Account {
    /// Returns the account of the authority of this directory; `None` for a cloud by itself, which has no other node.
    pub fn of(directory: &TrustDirectory, store: &Store, pair: Option<&PairHandle>) -> Result<Option<Self>, DirectoryError> {
        let node = match (store.shared_names(), pair) {
            (Some((node, _)), _) => node,
            (None, Some(pair)) => pair.name,
            (None, None) => return Ok(None),
        };
        let authority = directory.anchor()?.fingerprint().to_string();
        Ok(Some(Self {
            directory: directory.clone(),
            store: store.clone(),
            pair: pair.cloned(),
            authority: authority.into(),
            node: node.into(),
            brought: Arc::default(),
            taken: Arc::default(),
            in_force: Arc::default(),
            must_reload: Arc::default(),
            own: Arc::default(),
        }))
    }

    /// What this node is called.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Where the nodes are that issue certificates, as they were read last.
    pub fn issuers(&self) -> Vec<String> {
        let nodes = self.store.standing().and_then(|standing| standing.nodes);
        let issuing = nodes.iter().flat_map(|nodes| &nodes.rows).filter(|row| row.place.issues && row.name != *self.node);
        issuing.filter(|row| row.unheard <= SILENT_AFTER).map(|row| format!("{}:{}", row.place.host, row.place.monitor_port)).collect()
    }

    /// Has the other nodes know of a certificate that is about to be issued. Blocks.
    pub fn bring_issue(&self, line: LedgerLine, is_exclusive: bool) -> Result<(), AccountError> {
        let (authority, node, line) = (self.authority.clone(), self.node.clone(), line);
        let brought = self.store.write(move |draft| draft.bring_issue(&authority, &node, &line, is_exclusive), |_, brought| brought);
        Ok(Handle::current().block_on(brought)??)
    }

    /// Has the other nodes know of all that was issued, revoked and bound here.
    pub async fn bring_own(&self) -> Result<(), AccountError> {
        let mut brought = self.brought.lock().await;
        for (file, place) in brought.places() {
            while let Some(OwnLines { lines, end }) = self.own_behind(file, place).await? {
                self.bring(lines).await?;
                *place = end;
                self.own.send_replace(());
            }
        }
        Ok(())
    }

    /// Reads the next lines of an own file behind a place; `None` if there are none. The place is 0 for a file that is another one than before.
    async fn own_behind(&self, file: SharedFile, place: &mut u64) -> Result<Option<OwnLines>, AccountError> {
        loop {
            let (directory, behind) = (self.directory.clone(), *place);
            // A runtime that is gone needs nothing brought.
            let Ok(read) = spawn_blocking(move || directory.own_lines_behind(file, behind)).await else { return Ok(None) };
            match read? {
                None => *place = 0,
                Some(OwnLines { end, .. }) if end == behind => return Ok(None),
                Some(lines) => return Ok(Some(lines)),
            }
        }
    }

    async fn bring(&self, lines: Vec<LedgerLine>) -> Result<(), AccountError> {
        self.bring_of(&self.node, lines).await
    }

    async fn bring_of(&self, node: &Arc<str>, lines: Vec<LedgerLine>) -> Result<(), AccountError> {
        let round_trip = self.store.standing().and_then(|standing| standing.round_trip).unwrap_or_default();
        for some_lines in lines.chunks(lines_at_once(round_trip)) {
            let (authority, node, some) = (self.authority.clone(), node.clone(), some_lines.to_vec());
            let taken = self.store.write(move |draft| draft.bring_lines(&authority, &node, &some), |_, taken| taken).await?;
            let revoked = some_lines.iter().filter(|line| line.kind == LineKind::Revocation).map(|line| line.serial.as_str());
            self.pair.iter().for_each(|pair| pair.note_revoked(revoked.clone()));
            for serial in taken {
                tracing::error!(serial, "two certificates of the cloud have the same serial number: revoke it, and issue both anew");
            }
        }
        Ok(())
    }

    /// Writes lines that the standby has offered into the database.
    async fn bring_offered(&self, pair: &PairHandle) -> Result<(), AccountError> {
        let offered = pair.leadership().take_offered();
        let lines: Vec<LedgerLine> = String::from_utf8_lossy(&offered).lines().filter_map(shared_ledger::parse).collect();
        if lines.is_empty() {
            return Ok(());
        }
        self.bring_of(&pair.partner_name().into(), lines).await?;
        self.own.send_replace(());
        Ok(())
    }

    /// Offers the leader those lines of this standby's own files that the database lacks. Returns whether there are any.
    async fn offer_own(&self, pair: &PairHandle) -> Result<bool, AccountError> {
        let mut known = self.brought.lock().await;
        for (file, place) in known.places() {
            while let Some(OwnLines { lines, end }) = self.own_behind(file, place).await? {
                let authority = self.authority.clone();
                let missing = self.store.read(move |draft| draft.missing_lines(&authority, lines)).await?;
                if missing.is_empty() {
                    *place = end;
                    continue;
                }
                let mut offered = Vec::new();
                for line in missing {
                    if offered.len() + line.text.len() < OFFERED_BYTES_MAX {
                        offered.extend_from_slice(line.text.as_bytes());
                        offered.push(b'\n');
                    }
                }
                pair.offer_lines(offered);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes in what the other nodes have brought since.
    pub async fn take(&self) -> Result<(), AccountError> {
        let mut number = self.taken.lock().await;
        loop {
            let (authority, behind) = (self.authority.clone(), *number);
            let lines = self.store.read(move |draft| draft.lines_behind(&authority, behind)).await?;
            let Some(last) = lines.last() else { return Ok(()) };
            let reached = last.number;
            let directory = self.directory.clone();
            let take = move || directory.take_lines(lines.iter().map(|line| (line.node.as_str(), line.text.as_str())), now());
            let Ok(taken) = spawn_blocking(take).await else { return Ok(()) };
            let taken = taken?;
            self.must_reload.fetch_or(taken.revoked + taken.curve_keys > 0, AcqRel);
            tell(taken);
            *number = reached;
        }
    }

    /// Has revocations in the database count at this node, without its files: a disk that is full delays none.
    async fn put_in_force(&self, security: &Arc<Security>) -> Result<(), StoreError> {
        let mut number = self.in_force.lock().await;
        loop {
            let (authority, behind) = (self.authority.clone(), *number);
            let lines = self.store.read(move |draft| draft.lines_behind(&authority, behind)).await?;
            let Some(last) = lines.last() else { return Ok(()) };
            let reached = last.number;
            let serials: BTreeSet<String> = lines.into_iter().filter(|line| line.is_revocation).map(|line| line.serial).collect();
            if !serials.is_empty() {
                self.pair.iter().for_each(|pair| pair.note_revoked(serials.iter().map(String::as_str)));
                let security = security.clone();
                let Ok(is_new) = spawn_blocking(move || security.revoke(serials)).await else { return Ok(()) };
                self.must_reload.fetch_or(is_new, AcqRel);
            }
            *number = reached;
        }
    }

    /// Returns how often the database was replaced by an earlier or another state, and how often lines were repeated from the leader of the pair.
    fn seen(&self) -> (u64, u64) {
        match &self.pair {
            None => (self.store.standing().map_or(0, |standing| standing.setbacks), 0),
            Some(pair) => {
                let (repeated, copies) = pair.leadership().lines();
                (copies, repeated)
            }
        }
    }

    fn news(&self) -> Option<watch::Receiver<()>> {
        self.pair.as_ref().map(|pair| pair.leadership().line_news()).or_else(|| self.store.certificate_news())
    }

    /// True if this node writes into the database: a standby does not.
    fn may_bring(&self) -> bool {
        self.pair.as_ref().is_none_or(|pair| pair.leadership().leads())
    }

    /// Brings and takes, until it is aborted.
    pub async fn follow(self, security: Arc<Security>, audit: Audit) {
        let (Some(mut news), mut own) = (self.news(), self.own.subscribe()) else { return };
        let (mut is_told, mut is_behind, mut replaced) = (false, true, 0);
        let mut unshared = Unshared::default();
        self.store.exchanged(Exchange::Certificates);
        loop {
            let (seen, repeated) = self.seen();
            if std::mem::replace(&mut replaced, seen) != seen {
                // The database may lack lines that it had, and give their numbers to others. Bringing a line that is there changes nothing.
                (*self.brought.lock().await, *self.taken.lock().await, *self.in_force.lock().await) = (Brought::default(), 0, 0);
                is_behind = true;
            }
            let exchanged = self.exchange(&security, &mut is_behind, repeated, &mut unshared).await;
            let is_exchanged = exchanged.is_ok();
            match exchanged {
                Ok(()) => is_told = false,
                Err(error) if !std::mem::replace(&mut is_told, true) => {
                    tracing::error!(%error, "certificates that were issued and revoked do not go from node to node");
                }
                Err(_) => {}
            }
            if self.must_reload.swap(false, AcqRel) && !self.enforce(&security, &audit).await {
                self.must_reload.store(true, Release);
            } else if is_exchanged {
                self.store.exchanged(Exchange::Certificates);
            }
            tokio::select! {
                changed = news.changed() => match changed {
                    Ok(()) => is_behind = true,
                    Err(_) => return,
                },
                _ = own.changed() => is_behind = true,
                () = tokio::time::sleep(LOOK_PERIOD) => {}
            }
        }
    }

    /// Exchanges lines once. What was repeated up to `repeated` is in force before a file is written.
    async fn exchange(
        &self,
        security: &Arc<Security>,
        is_behind: &mut bool,
        repeated: u64,
        unshared: &mut Unshared,
    ) -> Result<(), AccountError> {
        if *is_behind {
            self.put_in_force(security).await?;
            self.pair.iter().for_each(|pair| pair.leadership().lines_in_force(repeated));
        }
        match self.pair.as_ref().filter(|_| !self.may_bring()) {
            Some(pair) => unshared.report(pair, self.offer_own(pair).await?),
            None => {
                if let Some(pair) = &self.pair {
                    unshared.report(pair, false);
                    self.bring_offered(pair).await?;
                }
                self.bring_own().await?;
            }
        }
        if *is_behind {
            self.take().await?;
            *is_behind = false;
        }
        Ok(())
    }

    /// Has what is revoked count for new connections and for open ones, those of the pair's nodes too; gives whether that needs no other try. Files that are wrong
    /// are told, and are read again when they have changed.
    async fn enforce(&self, security: &Arc<Security>, audit: &Audit) -> bool {
        let directory = self.directory.clone();
        let is_readable = matches!(spawn_blocking(move || directory.revocations(now())).await, Ok(Ok(_)));
        if is_readable {
            security.reload_and_tell("another node has revoked certificates or bound CURVE keys", audit).await;
            self.pair.iter().for_each(PairHandle::reload);
        }
        is_readable
    }
}

/// Returns how many lines one operation has, so that it ends within a turn.
fn lines_at_once(round_trip: Duration) -> usize {
    let of_line_us = (round_trip * LINE_ROUND_TRIPS).as_micros().max(1);
    usize::try_from(LINES_TIME_MAX.as_micros() / of_line_us).unwrap_or(LINES_BROUGHT_MAX).clamp(1, LINES_BROUGHT_MAX)
}

/// Since when the leader lacks lines of this standby's own ledger.
#[derive(Default)]
struct Unshared {
    since: Option<Instant>,
    is_reported: bool,
}

impl Unshared {
    fn report(&mut self, pair: &PairHandle, has_unshared: bool) {
        let troubles = pair.leadership().troubles();
        if !has_unshared {
            *self = Self::default();
            troubles.clear(Trouble::Certificates);
            return;
        }
        let is_late = self.since.get_or_insert_with(Instant::now).elapsed() >= UNSHARED_MAX;
        if is_late && !std::mem::replace(&mut self.is_reported, true) {
            let text = "certificates that were issued or revoked in this standby's trust directory are not known at the leader, and revocations are in force \
                        here only: start the leader, or bring it to this release";
            tracing::warn!("{text}");
            troubles.set(Trouble::Certificates, text.to_owned(), None);
        }
    }
}

fn tell(taken: Taken) {
    let Taken { issued, revoked, curve_keys, refused, is_signed } = taken;
    if curve_keys > 0 {
        tracing::info!(curve_keys, "other nodes have bound CURVE keys, or taken them away");
    }
    if issued + revoked > 0 {
        tracing::info!(issued, revoked, is_signed, "other nodes have issued or revoked certificates");
    }
    if refused > 0 {
        tracing::error!(
            refused,
            "lines of the account of certificates are none, and were passed over: somebody else writes into the database"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_link_brings_fewer_lines_at_once() {
        let at_once = [0, 1, 10, 100, 600, 5_000].map(|ms| lines_at_once(Duration::from_millis(ms)));
        assert_eq!(at_once, [100, 100, 75, 7, 1, 1]);
    }
}
