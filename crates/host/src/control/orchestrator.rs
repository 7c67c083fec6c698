//! Endpoints of the Orchestrator (reference section 5).

mod elsewhere;
mod explained;
mod flexible_store;
mod reservation;
mod store;

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    access::Admitted,
    caller::Authorized,
    core_service::CoreSystem,
    error::ArrowheadError,
    explanation::{Unwatched, Witness},
    form::OrchestrationForm,
    orchestrator::{self, MeasuredBy, Orchestration, OrchestrationResponse, Sender, StoreKind, reservation::ReservationTimes},
    record::{EntryId, EntryView, SystemId},
    snapshot::Snapshot,
    utc::UtcTime,
};

use serde_json::{Map, Value};

pub use self::{explained::Given, reservation::expire_reservations};
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
    /// Time between two measurements of a provider, where quality of service is managed; not zero.
    pub quality_interval: Option<Duration>,
}

impl Default for OrchestratorConfig {
    fn default() -> Self {
        Self {
            store: StoreKind::default(),
            reservations: ReservationTimes::default(),
            reservation_check_interval: Duration::from_secs(120),
            quality_interval: None,
        }
    }
}

impl Control {
    pub(super) async fn orchestrate(&self, request: &Request, admitted: Admitted<'_>, sender: Sender) -> Result<Answer> {
        let form: Authorized<OrchestrationForm> = self.permitted_form(SYSTEM, request, admitted)?;
        self.answer_orchestration(&self.parse_orchestration(form, sender)?).await
    }

    pub(super) async fn orchestrate_stored(&self, id: i64) -> Result<Answer> {
        const ORIGIN: &str = "/orchestrator/orchestration/{id}";
        self.needs_store(StoreKind::Plain, ORIGIN)?;
        check_id(id, ORIGIN)?;
        let consumer = found(self.store.snapshot().system(SystemId(id)).cloned(), "System", id)?;
        self.answer_orchestration(&Orchestration::stored_tops(&consumer)).await
    }

    pub(super) fn parse_orchestration(
        &self,
        form: Authorized<OrchestrationForm>,
        sender: Sender,
    ) -> std::result::Result<Orchestration, ArrowheadError> {
        let OrchestratorConfig { store, reservations, quality_interval, .. } = self.orchestrator;
        Orchestration::parse(form, sender, store, quality_interval.map(|_| reservations.maximum), self.gatekeeper.is_some())
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

    async fn answer_orchestration(&self, orchestration: &Orchestration) -> Result<Answer> {
        if let Some(elsewhere) = &orchestration.elsewhere
            && let Some(answer) = self.orchestrate_elsewhere(orchestration, elsewhere).await?
        {
            return Ok(answer);
        }
        let (response, account) = self.orchestrate_here(orchestration).await?;
        Ok(Answer { account: Some(Box::new(account)), ..Answer::json(200, &response) })
    }

    /// What the consumer may use in this cloud, with its tokens, and what the audit log keeps of it.
    pub(super) async fn orchestrate_here(&self, orchestration: &Orchestration) -> Result<(OrchestrationResponse, Map<String, Value>)> {
        let now = now();
        // Held while providers are pinged, so as a count of its own.
        let mut snapshot = Arc::clone(&self.store.snapshot());
        let mut usable = self.decide(&snapshot, orchestration, now, &mut Unwatched).await?;
        // Each attempt that fails has lost one of them to somebody faster.
        let mut attempts = usable.len();
        while !self.keeps(orchestration, &usable).await? {
            // The next snapshot has the other's reservation, and another provider is chosen, or nobody when all were lost.
            snapshot = Arc::clone(&self.store.snapshot());
            attempts -= 1;
            usable = if attempts == 0 { Vec::new() } else { self.decide(&snapshot, orchestration, now, &mut Unwatched).await? };
        }
        self.respond(&snapshot, orchestration, usable, now).await
    }

    /// Whether there is somebody whom the consumer may use; nobody is kept.
    pub(super) async fn would_grant(&self, orchestration: &Orchestration) -> Result<bool> {
        let snapshot = Arc::clone(&self.store.snapshot());
        Ok(!self.decide(&snapshot, orchestration, now(), &mut Unwatched).await?.is_empty())
    }

    /// Keeps the chosen provider for the consumer, where that is asked for; gives whether nobody was faster.
    async fn keeps(&self, orchestration: &Orchestration, usable: &[EntryView]) -> Result<bool> {
        let (Some(duration), Some(chosen)) = (orchestration.exclusivity(), usable.first()) else { return Ok(true) };
        let confirmation = orchestration.reservation_of(chosen, duration);
        Ok(self.write(SYSTEM, move |draft| draft.reserve_exclusively(&confirmation), |_, is_kept| is_kept).await?)
    }

    async fn respond(
        &self,
        snapshot: &Snapshot,
        orchestration: &Orchestration,
        usable: Vec<EntryView>,
        now: UtcTime,
    ) -> Result<(OrchestrationResponse, Map<String, Value>)> {
        let measured: Vec<Option<MeasuredBy>> = match orchestration.limits_quality() {
            true => usable.iter().map(|view| self.qualities.of(snapshot, view).decisive().map(|(by, _)| by)).collect(),
            false => Vec::new(),
        };
        let response = OrchestrationResponse::new(usable, now).measured_by(&measured);
        let response = match orchestration.exclusivity() {
            Some(duration) => response.kept_for(duration),
            None => response,
        };
        let response = self.with_tokens(orchestration, response).await?;
        let account = orchestrator::account(snapshot, orchestration, &response);
        Ok((response, account))
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        orchestration: &Orchestration,
        now: UtcTime,
        witness: &mut (impl Witness + Send),
    ) -> std::result::Result<Vec<EntryView>, ArrowheadError> {
        let started = Instant::now();
        let candidates = orchestrator::candidates(snapshot, orchestration, witness)?;
        self.record(SYSTEM, Stage::Execute, started);
        self.decide_among(snapshot, orchestration, candidates, now, witness).await
    }

    async fn decide_among(
        &self,
        snapshot: &Snapshot,
        orchestration: &Orchestration,
        mut candidates: Vec<EntryView>,
        now: UtcTime,
        witness: &mut (impl Witness + Send),
    ) -> std::result::Result<Vec<EntryView>, ArrowheadError> {
        if orchestration.ping_providers {
            let pinged: Vec<EntryId> = candidates.iter().map(|view| view.entry.id).collect();
            candidates = self.pings.reachable(candidates).await;
            orchestrator::tell_pings(&pinged, &candidates, witness);
        }
        candidates = orchestrator::with_quality(orchestration, candidates, |view| self.qualities.of(snapshot, view), witness);
        let asked = Instant::now();
        let usable = orchestrator::orchestrate(snapshot, orchestration, candidates, now, choose, witness)?;
        self.record(SYSTEM, Stage::Authorise, asked);
        Ok(usable)
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
