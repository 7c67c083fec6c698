//! Reservations: listed, locked, confirmed, and removed when their time is over.

use std::time::Duration;

use bodkin_arrowhead::{
    form::ReservationRequest,
    orchestrator::reservation::{Confirmation, ReservationView, TemporaryLock, TemporaryLockResponse},
    page::Page,
};
use bodkin_store::Store;
use tokio::time::MissedTickBehavior;

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, now},
    request::Request,
};

impl Control {
    pub(in crate::control) fn list_reservations(&self) -> Result<Answer> {
        let snapshot = self.store.snapshot();
        let data: Vec<ReservationView> = snapshot.reservations(now()).map(|reservation| ReservationView::from(&**reservation)).collect();
        Ok(Answer::json(200, &Page::whole(data)))
    }

    pub(in crate::control) async fn lock_temporarily(&self, request: &Request) -> Result<Answer> {
        let form: ReservationRequest = self.form(SYSTEM, request)?;
        let lock = TemporaryLock::parse(form, self.orchestrator.reservations, "/orchestrator/qos_temporary_lock")?;
        let response = self.write(SYSTEM, move |draft| draft.lock_temporarily(lock), |_, held| held).await?;
        Ok(Answer::json(200, &TemporaryLockResponse { response }))
    }

    pub(in crate::control) async fn confirm_reservation(&self, request: &Request) -> Result<Answer> {
        let form: ReservationRequest = self.form(SYSTEM, request)?;
        let confirmation = Confirmation::parse(form, self.orchestrator.reservations, "/orchestrator/qos_reservations")?;
        self.change(SYSTEM, move |draft| draft.confirm_reservation(&confirmation)).await
    }
}

/// Removes reservations that are over, for ever. Nobody waits for it: what is over counts for nothing before.
pub async fn expire_reservations(store: Store, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if store.is_keeper()
            && store.snapshot().has_expired_reservations(now())
            && let Err(error) = store.write(|draft| draft.remove_expired_reservations(), |_, ()| ()).await
        {
            tracing::warn!(%error, "reservations that are over could not be removed; the next check will try again");
        }
    }
}
