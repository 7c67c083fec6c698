//! New certificates, keys and revocations are taken without a restart: when their files change, when the operator says so, and when the
//! core systems' own certificates are to be renewed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bodkin_trust::tls;

use super::Security;
use crate::audit::Audit;

/// Between two looks at the files.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// Between two attempts to renew.
pub(crate) const RENEWAL_PAUSE: Duration = Duration::from_secs(3600);

/// What tells that a file is another one: its time, length and place on the disk; `None` where there is none.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

/// The stamps of files as they are now.
pub(crate) fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
    };
    files.iter().map(stamp).collect()
}

impl Security {
    /// Looks for what changes from now on, until it is aborted.
    pub fn watch(self: Arc<Self>, audit: Audit) -> impl Future<Output = ()> {
        // Now and not at the first poll: who sees that the cloud is ready may change a file at once.
        let taken = self.stamps();
        self.watch_since(taken, audit)
    }

    async fn watch_since(self: Arc<Self>, mut taken: Vec<Stamp>, audit: Audit) {
        audit.tell_believed("start", Ok(&self.trust())).await;
        let mut seen = taken.clone();
        let mut renewal = self.trust().renewal_due;
        loop {
            tokio::time::sleep(LOOK).await;
            let found = self.stamps();
            // What has changed since the last look may not be whole yet: a key is written in front of its certificate.
            let is_settled = found == seen;
            seen = found;
            let (is_changed, is_due) = (seen != taken, tls::now() >= renewal);
            if is_settled && (is_changed || is_due) {
                taken = std::mem::take(&mut seen);
                let why = if is_changed { "files have changed" } else { "own certificates are to be renewed" };
                self.reload_and_tell(why, &audit).await;
                if is_due {
                    // What was renewed here is no news.
                    taken = self.stamps();
                }
                seen = taken.clone();
                renewal = self.trust().renewal_due.max(tls::now().plus(RENEWAL_PAUSE));
            }
        }
    }

    /// Reads the files again and says in the log and in the audit log what has become of it. What is wrong changes nothing.
    pub async fn reload_and_tell(self: &Arc<Self>, why: &str, audit: &Audit) {
        let security = self.clone();
        // Keys are made and files are read: not on a thread that serves others. It fails where the runtime is shutting down.
        let Ok(reloaded) = tokio::task::spawn_blocking(move || security.reload()).await else { return };
        let trust = self.trust();
        match &reloaded {
            Ok(()) => {
                let revoked = trust.check.revocations.len();
                tracing::info!(why, revoked, "certificates, keys and revocations were read again");
            }
            Err(error) => tracing::error!(why, %error, "the new certificates, keys or revocations are not taken; the old ones count on"),
        }
        audit.tell_believed(why, reloaded.as_ref().map(|()| &*trust)).await;
    }

    fn stamps(&self) -> Vec<Stamp> {
        stamps(&self.trust().files)
    }
}
