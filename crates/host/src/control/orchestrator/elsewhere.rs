//! Orchestrations that lead to other clouds (reference 5.5).

use std::sync::Arc;

use bodkin_arrowhead::{
    error::ArrowheadError,
    explanation::Unwatched,
    gatekeeper::asked_clouds,
    orchestrator::{self, Elsewhere, Orchestration, StoredProvider, Tried, When},
    record::Cloud,
};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result, now},
    gatekeeper::AskingTime,
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
        let time = self.asking_time()?;
        let found = self.discover_service(elsewhere.discovery(), ORIGIN, time.half()).await?;
        elsewhere.check_found(&found)?;
        let (clouds, mut tried) = (elsewhere.in_order(&found), Tried::default());
        for (before, cloud) in clouds.iter().enumerate() {
            let to_ask = clouds.len() - before;
            let Some(share) = time.share(to_ask) else {
                tried.not_asked(to_ask);
                break;
            };
            let negotiated = match elsewhere.check_offer(&found, cloud) {
                Ok(()) => self.negotiate_with(elsewhere, cloud, share).await,
                Err(untold) => Err(untold.into()),
            };
            match negotiated {
                Ok(results) if !results.is_empty() => return Ok(granted(orchestration, cloud, &results)),
                Ok(_) => {}
                Err(refusal) => tried.refused(cloud, error_of(refusal)),
            }
        }
        in_vain(tried, time)
    }

    /// The providers that the orchestration store names, by priority; `None` if none of them is of another cloud.
    async fn try_stored(&self, orchestration: &Orchestration, elsewhere: &Elsewhere) -> Result<Option<Answer>> {
        let (now, snapshot) = (now(), Arc::clone(&self.store.snapshot()));
        let providers = orchestrator::stored_providers(&snapshot, orchestration, &mut Unwatched)?.unwrap_or_default();
        let mut to_ask = providers.iter().filter(|provider| matches!(provider, StoredProvider::Elsewhere(..))).count();
        if to_ask == 0 {
            return Ok(None);
        }
        let (time, mut tried) = (self.asking_time()?, Tried::default());
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
                    let share = time.share(to_ask);
                    to_ask -= 1;
                    let Some(share) = share else {
                        tried.not_asked(1);
                        continue;
                    };
                    match self.negotiate_with(&elsewhere.of_stored(&cloud, &system), &cloud, share).await {
                        Ok(results) if !results.is_empty() => return Ok(Some(granted(orchestration, &cloud, &results))),
                        Ok(_) => {}
                        Err(refusal) => tried.refused(&cloud, error_of(refusal)),
                    }
                }
            }
        }
        in_vain(tried, time).map(Some)
    }

    pub(super) async fn negotiate_with(&self, elsewhere: &Elsewhere, cloud: &Cloud, time: AskingTime) -> Result<Vec<Value>> {
        let answered = self.negotiate_service(elsewhere.negotiation(cloud), ORIGIN, time).await?;
        Ok(elsewhere.results(cloud, answered))
    }
}

/// The answer of a consumer whom no other cloud has granted anything.
fn in_vain(tried: Tried, time: AskingTime) -> Result<Answer> {
    tried.refusal(time.whole()).map_or_else(|| Ok(Answer::json(200, &json!({"response": []}))), |refusal| Err(refusal.into()))
}

pub(super) fn error_of(refusal: Refusal) -> ArrowheadError {
    match refusal {
        Refusal::Arrowhead(error) | Refusal::Denied { error, .. } => error,
        Refusal::Malformed(_) | Refusal::NotJson(_) => ArrowheadError::arrowhead("The question could not be made."),
    }
}

/// What another cloud has granted.
fn granted(orchestration: &Orchestration, cloud: &Cloud, results: &[Value]) -> Answer {
    let account = orchestrator::foreign_account(orchestration, &format!("{}.{}", cloud.name, cloud.operator), results);
    Answer { account: Some(Box::new(account)), ..Answer::json(200, &json!({"response": results})) }
}
