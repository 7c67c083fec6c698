//! Events that other clouds have shared with this one: each is published here once, as the Gatekeeper's, and what is missing is counted.

use std::sync::{Mutex, PoisonError};

use bodkin_arrowhead::{
    error::ArrowheadError,
    name::EventType,
    record::{Cloud, CloudId},
    shared_event::{ACCOUNTS_MAX, Account, Accounts, SharedEvent, Taken},
};
use tokio::sync::Mutex as Turn;

/// What has come.
#[derive(Debug, Default)]
pub struct HeardEvents {
    accounts: Mutex<Accounts>,
    /// Events are taken one after the other: the same one may come twice at the same time.
    turn: Turn<()>,
}

impl HeardEvents {
    /// Publishes an event of another cloud, unless it was before.
    ///
    /// # Errors
    /// There is no room for its publisher's account; or `publish` refuses, and then the event counts as not come.
    pub async fn take<P>(&self, cloud: &Cloud, event: &SharedEvent, publish: impl FnOnce() -> P) -> Result<(), ArrowheadError>
    where
        P: Future<Output = Result<(), ArrowheadError>>,
    {
        let _turn = self.turn.lock().await;
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
