//! Who is believed, and what the cloud's authority has issued and revoked, told to the audit log: the latter by whatever process, for the
//! ledger names all of it.

use std::time::Duration;

use bodkin_arrowhead::audit::{self, Event, Kind};
use bodkin_store::{Store, StoreError, audit::NotWritten};
use bodkin_trust::{
    DirectoryError, TrustDirectory,
    ledger::{Action, Actions},
};

use super::Audit;
use crate::{
    control::now,
    security::{SecurityError, Trust},
};

/// How often the ledger is looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(5);

/// Why certificates are not told yet; the next look tries again.
#[derive(Debug, thiserror::Error)]
enum NotTold {
    #[error(transparent)]
    Ledger(#[from] DirectoryError),
    #[error(transparent)]
    Log(#[from] NotWritten),
    #[error(transparent)]
    Database(#[from] StoreError),
}

impl Audit {
    /// Tells who is believed from now on, or why the files that should say so are not taken.
    pub async fn tell_believed(&self, why: &str, read: Result<&Trust, &SecurityError>) {
        let event = match read {
            Ok(trust) => Event::own(Kind::Certificate, "authorities and revocations were read")
                .with("authorities", trust.authorities())
                .with("revoked", trust.check.revocations.len()),
            Err(error) => {
                Event::own(Kind::Certificate, "authorities and revocations were not taken").with("error", audit::cut(&error.to_string()))
            }
        };
        self.log.note(now(), event.with("why", why)).await;
    }

    /// Tells what comes into the ledger, and what has come while nobody looked, until the task is aborted.
    pub async fn follow_certificates(self, directory: TrustDirectory, store: Store) {
        let mut is_told = false;
        loop {
            match self.tell_certificates(&directory, &store).await {
                Ok(()) => is_told = false,
                Err(error) if !std::mem::replace(&mut is_told, true) => {
                    tracing::error!(%error, "the audit log is not told which certificates were issued");
                }
                Err(_) => {}
            }
            tokio::time::sleep(LOOK_PERIOD).await;
        }
    }

    /// Tells what is new. What was told is noted behind it: a kill in between tells it twice, and never not at all.
    async fn tell_certificates(&self, directory: &TrustDirectory, store: &Store) -> Result<(), NotTold> {
        self.log.check()?;
        let mut place = store.write(|draft| draft.audited_ledger(), |_, bytes| bytes).await?;
        loop {
            let ledger = directory.clone();
            let read = tokio::task::spawn_blocking(move || ledger.actions_behind(place)).await;
            // A runtime that is gone needs nothing told.
            let Ok(read) = read else { return Ok(()) };
            let Some(Actions { actions, end }) = read? else {
                let event = Event::own(Kind::Certificate, "the ledger is shorter than it was, and is told from its beginning");
                self.log.record(now(), event.with("bytes", place)).await?;
                store.write(|draft| draft.note_audited_ledger(0), |_, ()| ()).await?;
                place = 0;
                continue;
            };
            if end == place {
                return Ok(());
            }
            for action in actions {
                self.log.note(now(), event(action)).await;
            }
            self.log.record(now(), Event::own(Kind::Certificate, "the ledger is told to here").with("bytes", end)).await?;
            store.write(move |draft| draft.note_audited_ledger(end), |_, ()| ()).await?;
            place = end;
        }
    }
}

fn event(action: Action) -> Event {
    match action {
        Action::Issued { serial, name, not_after, at } => Event::own(Kind::Certificate, "issued")
            .with("serial", serial)
            .with("name", name)
            .with("notAfter", not_after.to_string())
            .with("ledgerAt", at.to_string()),
        Action::Revoked { serial, at } => Event::own(Kind::Certificate, "revoked").with("serial", serial).with("ledgerAt", at.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::{audit::AuditQuery, common_name::CloudCommonName, name::SystemName};
    use bodkin_store::audit::{AuditLog, AuditReader};
    use bodkin_trust::directory::LEAF_LIFETIME;

    use super::*;
    use crate::audit::{AUDIT_LIMITS, start_event};

    #[tokio::test]
    async fn what_any_process_has_issued_or_revoked_is_told_once() {
        let data = tempfile::tempdir().unwrap();
        let trust = TrustDirectory::new(data.path().join("trust"));
        trust.init(&CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap(), now()).unwrap();
        let opened = Store::open(data.path()).unwrap();
        let (log, thread) = AuditLog::open(&data.path().join("audit"), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
        let audit = Audit::new(log);
        let tell = || audit.tell_certificates(&trust, &opened.store);
        tell().await.unwrap();
        let issued = trust.ensure_identity(&SystemName::from_stored("sensor"), &[], now(), LEAF_LIFETIME).unwrap();
        tell().await.unwrap();
        tell().await.unwrap();
        let serial = issued.certificate().serial_text();
        trust.revoke(std::slice::from_ref(&serial), now()).unwrap();
        tell().await.unwrap();
        std::fs::write(trust.path().join("issued.jsonl"), "").unwrap();
        tell().await.unwrap();
        drop(thread);
        let read = AuditReader::new(&data.path().join("audit"))
            .first(&AuditQuery { kind: Some(Kind::Certificate), ..AuditQuery::default() }, 100)
            .unwrap();
        let told: Vec<(String, bool)> = read
            .into_iter()
            .map(|read| (read.entry.event.what.clone(), read.entry.event.detail.get("serial") == Some(&serial.clone().into())))
            .collect();
        let here = ("the ledger is told to here".to_owned(), false);
        let shorter = ("the ledger is shorter than it was, and is told from its beginning".to_owned(), false);
        assert_eq!(told, [("issued".to_owned(), true), here.clone(), ("revoked".to_owned(), true), here, shorter]);
    }
}
