//! Events that other clouds have shared with this one: each is published here once, as the Gatekeeper's, and what is missing is counted.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bodkin_arrowhead::{
    error::ArrowheadError,
    name::EventType,
    record::{Cloud, CloudId, SystemId},
    shared_event::{ACCOUNTS_MAX, Account, Accounts, SharedEvent, Taken, recalled},
    snapshot::Snapshot,
};
use bodkin_store::event_log::EventLogReader;
use tokio::sync::Mutex as Turn;

use crate::replay::source;

/// Files of the event log that are read for what was taken before the start, from the newest on: 64 MiB at the most.
const RECALLED_FILES: usize = 4;

/// What has come.
#[derive(Debug, Default)]
pub struct HeardEvents {
    accounts: Mutex<Accounts>,
    /// Events are taken one after the other: the same one may come twice at the same time. Whether what was taken before the start is known.
    turn: Turn<bool>,
    /// Where that is; unset: nowhere.
    log: OnceLock<EventLogReader>,
}

impl HeardEvents {
    /// Has events known again that are in this log when the first one comes.
    pub fn recall_from(&self, log: EventLogReader) {
        // A second log would be a second start.
        let _ = self.log.set(log);
    }

    /// Reads what was taken before the start. It came as events of `source`, this cloud's own Gatekeeper.
    async fn recall(self: &Arc<Self>, source: SystemId, snapshot: &Arc<Snapshot>) {
        let Some(log) = self.log.get().cloned() else { return };
        let (heard, snapshot) = (self.clone(), snapshot.clone());
        let read = tokio::task::spawn_blocking(move || heard.read(&log, source, &snapshot)).await;
        if let Ok(Err(error)) = read {
            tracing::warn!(system = "gatekeeper", %error, "the event log cannot be read: an event of another cloud that was taken before the start may be taken twice");
        }
    }

    fn read(&self, log: &EventLogReader, gatekeeper: SystemId, snapshot: &Snapshot) -> std::io::Result<()> {
        let mut cursor = log.cursor(log.newest_files(RECALLED_FILES));
        while let Some(record) = cursor.read()? {
            if source(record.id) != Some(gatekeeper) {
                continue;
            }
            let Some((cloud, identity)) = recalled(record.event) else { continue };
            let known = cloud.split_once('.').and_then(|(name, operator)| snapshot.cloud_by_name(operator, name));
            if let Some(cloud) = known {
                self.accounts().recall(cloud.id, &EventType::from_stored(record.topic), identity);
            }
        }
        Ok(())
    }

    /// Publishes an event of another cloud as one of `source`, unless it was before.
    ///
    /// # Errors
    /// There is no room for its publisher's account; or `publish` refuses, and then the event counts as not come.
    pub async fn take<P>(
        self: &Arc<Self>,
        (cloud, event): (&Cloud, &SharedEvent),
        source: SystemId,
        snapshot: &Arc<Snapshot>,
        publish: impl FnOnce() -> P,
    ) -> Result<(), ArrowheadError>
    where
        P: Future<Output = Result<(), ArrowheadError>>,
    {
        let mut is_recalled = self.turn.lock().await;
        if !*is_recalled {
            self.recall(source, snapshot).await;
            *is_recalled = true;
        }
        let looked = self.accounts().look(cloud.id, &event.event_type, event.identity);
        match looked {
            None => {
                let told = format!("Events of {ACCOUNTS_MAX} publishers of other clouds are kept account of, and this is one more.");
                return Err(ArrowheadError::unavailable(told));
            }
            Some(Taken::Known) => {}
            Some(Taken::New { .. } | Taken::Late | Taken::Early) => publish().await?,
        }
        if let Taken::New { missing: missing @ 1.. } = self.accounts().note(cloud.id, &event.event_type, event.identity) {
            let (name, operator) = (&cloud.name, &cloud.operator);
            tracing::warn!(system = "gatekeeper", cloud = %format_args!("{name}.{operator}"), event_type = event.event_type.as_str(),
                publisher = event.publisher, missing, "events that another cloud shares are missing");
        }
        Ok(())
    }

    /// Notes that an event was refused, because its type is not accepted of its cloud; that is told in the log the first time.
    pub fn refuse(&self, cloud: &Cloud, event_type: &EventType) {
        if self.accounts().refuse(cloud.id, event_type) {
            let (name, operator) = (&cloud.name, &cloud.operator);
            tracing::warn!(system = "gatekeeper", cloud = %format_args!("{name}.{operator}"), event_type = event_type.as_str(),
                "another cloud shares events of a type that is not accepted; bodkin cloud accept-event accepts it");
        }
    }

    /// Of each cloud and event type.
    pub fn all(&self) -> Vec<(CloudId, String, Account)> {
        self.accounts().all().map(|(cloud, event_type, account)| (cloud, event_type.as_str().to_owned(), account)).collect()
    }

    /// Of all together.
    pub fn sum(&self) -> Account {
        self.accounts().sum()
    }

    fn accounts(&self) -> std::sync::MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
