//! Orchestrations that lead to other clouds (reference 5.5).

use std::sync::Arc;

use bodkin_arrowhead::{
    explanation::Unwatched,
    gatekeeper::asked_clouds,
    orchestrator::{self, Elsewhere, Orchestration, StoredProvider, When},
    record::Cloud,
};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result, now},
};

/// What refusals name that a consumer's request leads to.
pub(super) const ORIGIN: &str = "/orchestrator/orchestration";

impl Control {
    /// The answer, where other clouds take part in it; `None`: this cloud answers alone.
    pub(super) async fn orchestrate_elsewhere(&self, orchestration: &Orchestration, elsewhere: &Elsewhere) -> Result<Option<Answer>> {
        match elsewhere.when {
            When::AtOnce => self.ask_others(orchestration, elsewhere).await.map(Some),
            When::NothingHere => {
                let (response, account) = self.orchestrate_here(orchestration).await?;
                let preferred = elsewhere.discovery().preferred_clouds.unwrap_or_default();
                // Where there is nobody to be asked the answer is that there is nothing.
                let is_alone = asked_clouds(&self.store.snapshot(), &preferred).is_err();
                if !response.response.is_empty() || is_alone {
                    return Ok(Some(Answer { account: Some(Box::new(account)), ..Answer::json(200, &response) }));
                }
                self.ask_others(orchestration, elsewhere).await.map(Some)
            }
            When::ByStore => self.try_stored(orchestration, elsewhere).await,
        }
    }

    /// Asks who offers the service, and negotiates with one after the other until one grants something.
    async fn ask_others(&self, orchestration: &Orchestration, elsewhere: &Elsewhere) -> Result<Answer> {
        let found = self.discover_service(elsewhere.discovery(), ORIGIN).await?;
        let mut refusal = None;
        for cloud in elsewhere.in_order(&found) {
            match self.negotiate_with(elsewhere, &cloud).await {
                Ok(results) if !results.is_empty() => return Ok(granted(orchestration, &cloud, &results)),
                Ok(_) => {}
                Err(refused) => _ = refusal.get_or_insert(refused),
            }
        }
        refusal.map_or_else(|| Ok(Answer::json(200, &json!({"response": []}))), Err)
    }

    /// The providers that the orchestration store names, by priority; `None` if none of them is of another cloud.
    async fn try_stored(&self, orchestration: &Orchestration, elsewhere: &Elsewhere) -> Result<Option<Answer>> {
        let (now, snapshot) = (now(), Arc::clone(&self.store.snapshot()));
        let providers = orchestrator::stored_providers(&snapshot, orchestration, &mut Unwatched)?.unwrap_or_default();
        if !providers.iter().any(|provider| matches!(provider, StoredProvider::Elsewhere(..))) {
            return Ok(None);
        }
        let mut refusal: Option<Refusal> = None;
        for provider in providers {
            match provider {
                StoredProvider::Here(offered) => {
                    let usable = self.decide_among(&snapshot, orchestration, offered, now, &mut Unwatched).await?;
                    if !usable.is_empty() && self.keeps(orchestration, &usable).await? {
                        let (response, account) = self.respond(&snapshot, orchestration, usable, now).await?;
                        return Ok(Some(Answer { account: Some(Box::new(account)), ..Answer::json(200, &response) }));
                    }
                }
                StoredProvider::Elsewhere(cloud, system) => {
                    match self.negotiate_with(&elsewhere.of_stored(&cloud, &system), &cloud).await {
                        Ok(results) if !results.is_empty() => return Ok(Some(granted(orchestration, &cloud, &results))),
                        Ok(_) => {}
                        Err(refused) => _ = refusal.get_or_insert(refused),
                    }
                }
            }
        }
        refusal.map_or_else(|| Ok(Some(Answer::json(200, &json!({"response": []})))), Err)
    }

    pub(super) async fn negotiate_with(&self, elsewhere: &Elsewhere, cloud: &Cloud) -> Result<Vec<Value>> {
        let answered = self.negotiate_service(elsewhere.negotiation(cloud), ORIGIN).await?;
        Ok(elsewhere.results(cloud, answered))
    }
}

/// What another cloud has granted.
fn granted(orchestration: &Orchestration, cloud: &Cloud, results: &[Value]) -> Answer {
    let account = orchestrator::foreign_account(orchestration, &format!("{}.{}", cloud.name, cloud.operator), results);
    Answer { account: Some(Box::new(account)), ..Answer::json(200, &json!({"response": results})) }
}
