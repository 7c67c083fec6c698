//! What is done now and then without being asked (reference section 14). Nothing is removed unless the operator chose that.

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use bodkin_arrowhead::{core_service::CoreSystem, service_registry::Deregistration};
use bodkin_store::{REMOVAL_ROWS_MAX, Store, StoreError};
use tokio::{
    task::JoinHandle as Task,
    time::{MissedTickBehavior, interval},
};

use crate::destination::Destinations;
use crate::probe::{Prober, Probes};

/// Which jobs run, and how often. By default none does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSchedule {
    /// After how long services go that are expired or unreachable.
    pub deregistration: Deregistration,
    /// Between two looks for expired services.
    pub expiry_interval: Duration,
    /// Between two connections to the same provider; `None`: nobody is connected to.
    pub probe_interval: Option<Duration>,
    /// Between two looks for subscriptions past their end date; `None`: they stay.
    pub subscription_interval: Option<Duration>,
}

/// Starts the jobs. Of nodes that share a database one does them. They run until they are aborted.
pub fn start(
    schedule: &JobSchedule,
    store: &Store,
    probes: &Arc<Probes>,
    ping_timeout: Duration,
    destinations: &Destinations,
) -> Vec<Task<()>> {
    let mut tasks = Vec::new();
    if let Some(expired_for) = schedule.deregistration.expired_for {
        let store = store.clone();
        let remove = move || {
            let store = store.clone();
            async move {
                if !store.is_keeper() {
                    return Ok(Vec::new());
                }
                store.write(move |draft| draft.remove_expired_entries(expired_for), |_, ids| ids).await
            }
        };
        let told = "services past their end of validity were removed";
        tasks.push(tokio::spawn(remove_now_and_then(schedule.expiry_interval, CoreSystem::ServiceRegistry, told, remove)));
    }
    if let Some(interval) = schedule.subscription_interval {
        let store = store.clone();
        let remove = move || {
            let store = store.clone();
            async move {
                if !store.is_keeper() {
                    return Ok(Vec::new());
                }
                store.write(|draft| draft.remove_ended_subscriptions(), |_, ids| ids).await
            }
        };
        let told = "subscriptions past their end date were removed";
        tasks.push(tokio::spawn(remove_now_and_then(interval, CoreSystem::EventHandler, told, remove)));
    }
    if let Some(interval) = schedule.probe_interval {
        let (store, probes, destinations) = (store.clone(), probes.clone(), destinations.clone());
        let prober = Prober { store, probes, interval, deregistration: schedule.deregistration, ping_timeout, destinations };
        tasks.push(tokio::spawn(prober.run()));
    }
    tasks
}

/// Removes rows, the first time at once. `remove` removes some and gives their ids.
async fn remove_now_and_then<I, F, R>(every: Duration, system: CoreSystem, told: &'static str, remove: F)
where
    I: Debug,
    F: Fn() -> R,
    R: Future<Output = Result<Vec<I>, StoreError>>,
{
    let mut looks = interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        loop {
            match remove().await {
                Ok(ids) => {
                    if !ids.is_empty() {
                        tracing::info!(system = system.name(), ?ids, "{told}");
                    }
                    if ids.len() < REMOVAL_ROWS_MAX as usize {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(system = system.name(), %error, "what is over could not be removed; it is tried again next time");
                    break;
                }
            }
        }
    }
}
