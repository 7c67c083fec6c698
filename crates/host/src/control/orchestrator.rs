//! Endpoints of the Orchestrator (reference section 5).

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Instant,
};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    form::OrchestrationForm,
    orchestrator::{self, Orchestration, Sender, StoreKind},
};

use super::{Control, Result, now};
use crate::{answer::Answer, request::Request, stage::Stage};

const SYSTEM: CoreSystem = CoreSystem::Orchestrator;

impl Control {
    pub(super) async fn orchestrate(&self, request: &Request, sender: Sender) -> Result<Answer> {
        let form: OrchestrationForm = self.form(SYSTEM, request)?;
        self.decide(Orchestration::parse(form, sender, StoreKind::Plain)?).await
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
        Ok(Answer::json(200, &response))
    }
}

/// Any index below `count`. The system's randomness behind hash keys is spread well enough to share load by.
fn choose(count: usize) -> usize {
    let random = RandomState::new().hash_one(0);
    (random % count as u64) as usize
}
