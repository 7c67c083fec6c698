//! The account of the cloud's certificates where several nodes share a database: what one node issues or revokes is brought to all others, and what they bring
//! counts here as if it had been done here.
//!
//! Each node has a ledger of its own, with all lines. A certificate's line is in the database before anybody has the certificate; a revocation counts at its own
//! node first, and is answered when the database has it.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{AcqRel, Release},
        },
    },
    time::Duration,
};

use bodkin_store::{
    Store, StoreError,
    shared::{Exchange, NewLine, NotBrought, SILENT_AFTER},
};
use bodkin_trust::{
    DirectoryError, TrustDirectory,
    shared_ledger::{LedgerLine, OwnLines, Taken},
};
use tokio::{runtime::Handle, sync::Mutex, task::spawn_blocking};

use crate::{audit::Audit, control::now, security::Security};

/// How often the own ledger is looked at: other programs (`bodkin cert`) write into it.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Lines of one operation.
const LINES_BROUGHT_MAX: usize = 100;

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

/// The account.
#[derive(Clone)]
pub struct Account {
    directory: TrustDirectory,
    store: Store,
    /// SHA-256 of the authority's certificate: lines of another one are not this account's.
    authority: Arc<str>,
    node: Arc<str>,
    /// How far the own ledger is brought, in bytes.
    brought: Arc<Mutex<u64>>,
    /// The last line of the database that was taken in.
    taken: Arc<Mutex<i64>>,
    /// Whether anything that was taken in is a revocation that may not count yet.
    has_revoked: Arc<AtomicBool>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({} at {})", self.authority, self.node)
    }
}

impl Account {
    /// The account of the authority of this directory; `None` where the database is this node's own.
    pub fn of(directory: &TrustDirectory, store: &Store) -> Result<Option<Self>, DirectoryError> {
        let Some((node, _)) = store.shared_names() else { return Ok(None) };
        let authority = directory.anchor()?.fingerprint().to_string();
        Ok(Some(Self {
            directory: directory.clone(),
            store: store.clone(),
            authority: authority.into(),
            node: node.into(),
            brought: Arc::default(),
            taken: Arc::default(),
            has_revoked: Arc::default(),
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
        let (authority, node, line) = (self.authority.clone(), self.node.clone(), new_line(line));
        let brought = self.store.write(move |draft| draft.bring_issue(&authority, &node, &line, is_exclusive), |_, brought| brought);
        Ok(Handle::current().block_on(brought)??)
    }

    /// Has the other nodes know of all that was issued and revoked here.
    pub async fn bring_own(&self) -> Result<(), AccountError> {
        let mut brought = self.brought.lock().await;
        loop {
            let (directory, place) = (self.directory.clone(), *brought);
            let read = spawn_blocking(move || directory.own_lines_behind(place)).await;
            // A runtime that is gone needs nothing brought.
            let Ok(read) = read else { return Ok(()) };
            match read? {
                // It is another ledger than before.
                None => *brought = 0,
                Some(OwnLines { end, .. }) if end == place => return Ok(()),
                Some(OwnLines { lines, end }) => {
                    self.bring(lines).await?;
                    *brought = end;
                }
            }
        }
    }

    async fn bring(&self, lines: Vec<LedgerLine>) -> Result<(), AccountError> {
        let lines: Vec<NewLine> = lines.into_iter().map(new_line).collect();
        for some in lines.chunks(LINES_BROUGHT_MAX) {
            let (authority, node, some) = (self.authority.clone(), self.node.clone(), some.to_vec());
            let taken = self.store.write(move |draft| draft.bring_lines(&authority, &node, &some), |_, taken| taken).await?;
            for serial in taken {
                tracing::error!(serial, "two certificates of the cloud have the same serial number: revoke it, and issue both anew");
            }
        }
        Ok(())
    }

    /// Takes in what the other nodes have brought since.
    pub async fn take(&self) -> Result<(), AccountError> {
        let mut number = self.taken.lock().await;
        loop {
            let (authority, behind) = (self.authority.clone(), *number);
            let lines = self.store.read(move |draft| draft.lines_behind(&authority, behind)).await?;
            let Some(last) = lines.last() else { return Ok(()) };
            let reached = last.number;
            let has_revoked = lines.iter().any(|line| line.is_revocation);
            let directory = self.directory.clone();
            let take = move || directory.take_lines(lines.iter().map(|line| (line.node.as_str(), line.text.as_str())), now());
            let Ok(taken) = spawn_blocking(take).await else { return Ok(()) };
            tell(taken?);
            self.has_revoked.fetch_or(has_revoked, AcqRel);
            *number = reached;
        }
    }

    /// Brings and takes, until it is aborted.
    pub async fn follow(self, security: Arc<Security>, audit: Audit) {
        let Some(mut news) = self.store.certificate_news() else { return };
        let (mut is_told, mut is_behind, mut setbacks) = (false, true, 0);
        self.store.exchanged(Exchange::Certificates);
        loop {
            let seen = self.store.standing().map_or(0, |standing| standing.setbacks);
            if std::mem::replace(&mut setbacks, seen) != seen {
                // The database may lack lines that it had, and give their numbers to others. Bringing a line that is there changes nothing.
                (*self.brought.lock().await, *self.taken.lock().await) = (0, 0);
                is_behind = true;
            }
            let mut exchanged = self.bring_own().await;
            if exchanged.is_ok() && is_behind {
                exchanged = self.take().await;
                is_behind = exchanged.is_err();
            }
            let is_exchanged = exchanged.is_ok();
            match exchanged {
                Ok(()) => is_told = false,
                Err(error) if !std::mem::replace(&mut is_told, true) => {
                    tracing::error!(%error, "certificates that were issued and revoked do not go from node to node");
                }
                Err(_) => {}
            }
            if self.has_revoked.swap(false, AcqRel) && !self.enforce(&security, &audit).await {
                self.has_revoked.store(true, Release);
            } else if is_exchanged {
                self.store.exchanged(Exchange::Certificates);
            }
            tokio::select! {
                changed = news.changed() => match changed {
                    Ok(()) => is_behind = true,
                    Err(_) => return,
                },
                () = tokio::time::sleep(LOOK_PERIOD) => {}
            }
        }
    }

    /// Has what is revoked count for new connections and for open ones; gives whether that needs no other try. Files that are wrong are told, and are read
    /// again when they have changed.
    async fn enforce(&self, security: &Arc<Security>, audit: &Audit) -> bool {
        let directory = self.directory.clone();
        match spawn_blocking(move || directory.revocations(now())).await {
            Ok(Ok(revocations)) => {
                if *security.trust().check.revocations != revocations {
                    security.reload_and_tell("certificates were revoked", audit).await;
                }
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

fn new_line(line: LedgerLine) -> NewLine {
    let LedgerLine { serial, issued, text } = line;
    NewLine { serial, issued, text }
}

fn tell(taken: Taken) {
    let Taken { issued, revoked, refused, is_signed } = taken;
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
