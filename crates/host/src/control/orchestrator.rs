//! Endpoints of the Orchestrator (reference section 5).

mod flexible_store;
mod reservation;
mod store;

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    error::ArrowheadError,
    form::OrchestrationForm,
    orchestrator::{self, Orchestration, OrchestrationResponse, Sender, StoreKind, reservation::ReservationTimes},
    record::SystemId,
};

pub use self::reservation::expire_reservations;
use super::{Control, Result, check_id, found, now};
use crate::{answer::Answer, request::Request, stage::Stage};

const SYSTEM: CoreSystem = CoreSystem::Orchestrator;

/// How the Orchestrator is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrchestratorConfig {
    /// Which of its stores is served.
    pub store: StoreKind,
    /// How long reservations last.
    pub reservations: ReservationTimes,
    /// Time between two removals of reservations that are over; not zero.
    pub reservation_check_interval: Duration,
}

impl Default for OrchestratorConfig {
    fn default() -> Self {
        Self {
            store: StoreKind::default(),
            reservations: ReservationTimes::default(),
            reservation_check_interval: Duration::from_secs(120),
        }
    }
}

impl Control {
    pub(super) async fn orchestrate(&self, request: &Request, sender: Sender) -> Result<Answer> {
        let form: OrchestrationForm = self.form(SYSTEM, request)?;
        self.decide(Orchestration::parse(form, sender, self.orchestrator.store)?).await
    }

    pub(super) async fn orchestrate_stored(&self, id: i64) -> Result<Answer> {
        const ORIGIN: &str = "/orchestrator/orchestration/{id}";
        self.needs_store(StoreKind::Plain, ORIGIN)?;
        check_id(id, ORIGIN)?;
        let consumer = found(self.store.snapshot().system(SystemId(id)).cloned(), "System", id)?;
        self.decide(Orchestration::stored_tops(&consumer)).await
    }

    /// Only one of the two stores is served.
    fn needs_store(&self, kind: StoreKind, origin: &str) -> Result<()> {
        if self.orchestrator.store == kind {
            return Ok(());
        }
        let told = match kind {
            StoreKind::Plain => "The Orchestrator uses the flexible store (option use_flexible_store).",
            StoreKind::Flexible => "The Orchestrator does not use the flexible store (option use_flexible_store).",
        };
        Err(ArrowheadError::bad_payload(told, origin).into())
    }

    async fn decide(&self, orchestration: Orchestration) -> Result<Answer> {
        let started = Instant::now();
        // Held while providers are pinged, so as a count of its own.
        let snapshot = Arc::clone(&self.store.snapshot());
        let mut candidates = orchestrator::candidates(&snapshot, &orchestration)?;
        self.record(SYSTEM, Stage::Execute, started);
        if orchestration.ping_providers {
            candidates = self.pings.reachable(candidates).await;
        }
        let asked = Instant::now();
        let response = orchestrator::orchestrate(&snapshot, &orchestration, candidates, now(), choose)?;
        self.record(SYSTEM, Stage::Authorise, asked);
        Ok(Answer::json(200, &self.with_tokens(&orchestration, response).await?))
    }

    /// Results of services that are secured by token come with tokens.
    async fn with_tokens(&self, orchestration: &Orchestration, response: OrchestrationResponse) -> Result<OrchestrationResponse> {
        let Some(issuer) = self.tokens.as_ref().filter(|_| response.needs_tokens()) else { return Ok(response) };
        let consumer = orchestration.consumer(&issuer.own_cloud())?;
        let orders = response.token_orders(&consumer, issuer.lifetimes().default);
        Ok(response.with_tokens(self.issue_tokens(issuer, &orders.iter().collect::<Vec<_>>()).await?)?)
    }
}

/// Any index below `count`. The system's randomness behind hash keys is spread well enough to share load by.
fn choose(count: usize) -> usize {
    let random = RandomState::new().hash_one(0);
    (random % count as u64) as usize
}
