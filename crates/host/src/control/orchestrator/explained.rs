//! What an operator's own orchestration for a consumer comes to, and why: in this cloud, and, where it leads there, in others.

use std::sync::Arc;

use bodkin_arrowhead::{
    caller::Authorized,
    error::ArrowheadError,
    explanation::{Criterion, Explanation, Step, Unwatched},
    form::{GsdPollResponse, OrchestrationForm},
    gatekeeper::collect,
    orchestrator::{self, Elsewhere, Orchestration, OrchestrationResponse, Sender, StoredProvider, When},
    record::Cloud,
    snapshot::Snapshot,
    utc::UtcTime,
};
use serde::Serialize;
use serde_json::Value;

use super::elsewhere::ORIGIN;
use crate::{
    answer::Refusal,
    control::{Control, now},
};

/// What a result has for its consumer alone.
const TOKENS: &str = "authorizationTokens";

/// What a consumer would be given.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Given {
    /// By this cloud.
    Here(OrchestrationResponse),
    /// By another one.
    Elsewhere {
        /// Its results, without their tokens; none where a tunnel is to be opened first.
        response: Vec<Value>,
    },
}

/// What another cloud would grant.
struct Grant {
    cloud: Arc<Cloud>,
    results: Vec<Value>,
}

impl Control {
    /// What an operator's own orchestration for a consumer comes to, and why. Nothing is kept or locked by it, here or elsewhere, and no tunnel is opened.
    ///
    /// # Errors
    /// The form's.
    pub async fn explain_orchestration(&self, form: Authorized<OrchestrationForm>) -> Result<(Given, Explanation), ArrowheadError> {
        let orchestration = self.parse_orchestration(form, Sender::Requester)?;
        let (now, snapshot) = (now(), Arc::clone(&self.store.snapshot()));
        let mut steps: Vec<Step> = Vec::new();
        let (usable, is_known) = match self.decide(&snapshot, &orchestration, now, &mut steps).await {
            Ok(usable) => (usable, true),
            // A consumer that is not registered, a service that is not known: what the consumer would be told is the reason.
            Err(error) => {
                steps.push(Step::new(Criterion::Consumer, false, "who asks, and for what", error.error_message));
                (Vec::new(), false)
            }
        };
        let grant = match &orchestration.elsewhere {
            Some(elsewhere) if elsewhere.when == When::AtOnce => self.look_at_others(elsewhere, &mut steps).await,
            Some(elsewhere) if elsewhere.when == When::NothingHere && is_known && usable.is_empty() => {
                self.look_at_others(elsewhere, &mut steps).await
            }
            Some(elsewhere) if elsewhere.when == When::ByStore && is_known => {
                self.look_by_store(&snapshot, (&orchestration, elsewhere), now, &mut steps).await
            }
            _ => None,
        };
        let Some(Grant { cloud, results }) = grant else {
            let explanation = orchestration.explain(&snapshot, steps, &usable);
            return Ok((Given::Here(OrchestrationResponse::new(usable, now)), explanation));
        };
        let cloud = format!("{}.{}", cloud.name, cloud.operator);
        let explanation = orchestration.explain(&snapshot, steps, &[]).granted_by(&cloud, results.len());
        Ok((Given::Elsewhere { response: results }, explanation))
    }

    /// The first other cloud that grants something, as a consumer's request would come to it; what each has said is told.
    async fn look_at_others(&self, elsewhere: &Elsewhere, steps: &mut Vec<Step>) -> Option<Grant> {
        let refused =
            |error: &ArrowheadError| Step::new(Criterion::OtherCloud, false, "which other cloud offers it?", &*error.error_message);
        let outcomes = match self.discover_each(elsewhere.discovery(), ORIGIN).await {
            Ok(outcomes) => outcomes,
            Err(refusal) => {
                steps.push(refused(&error_of(refusal)));
                return None;
            }
        };
        steps.extend(outcomes.iter().map(|(cloud, outcome)| offered(cloud, outcome.as_ref())));
        // That none has answered is told already.
        let found = collect(outcomes).ok()?;
        let wanted = elsewhere.keeping_nothing();
        for cloud in wanted.in_order(&found) {
            if found.is_behind_gateway(cloud.id) {
                let told = "by a tunnel, which is opened when the consumer itself asks";
                steps.push(granted(&cloud, true, told.to_owned()));
                return Some(Grant { cloud, results: Vec::new() });
            }
            match self.negotiate_with(&wanted, &cloud).await {
                Ok(results) if !results.is_empty() => {
                    steps.push(granted(&cloud, true, format!("{} results", results.len())));
                    return Some(Grant { results: results.into_iter().map(without_tokens).collect(), cloud });
                }
                Ok(_) => steps.push(granted(&cloud, false, "nothing".to_owned())),
                Err(refusal) => steps.push(granted(&cloud, false, error_of(refusal).error_message)),
            }
        }
        None
    }

    /// The same by the orchestration store, whose providers come by priority; `None`: this cloud's own come first, or nobody of another cloud grants anything.
    async fn look_by_store(
        &self,
        snapshot: &Snapshot,
        (orchestration, elsewhere): (&Orchestration, &Elsewhere),
        now: UtcTime,
        steps: &mut Vec<Step>,
    ) -> Option<Grant> {
        let providers = orchestrator::stored_providers(snapshot, orchestration, &mut Unwatched).ok()??;
        for provider in providers {
            match provider {
                StoredProvider::Here(offered) => {
                    // Why it is usable or not was told by the decision.
                    let usable = self.decide_among(snapshot, orchestration, offered, now, &mut Unwatched).await;
                    if usable.is_ok_and(|usable| !usable.is_empty()) {
                        return None;
                    }
                }
                StoredProvider::Elsewhere(cloud, system) => {
                    let grant = self.look_at_others(&elsewhere.of_stored(&cloud, &system), steps).await;
                    if grant.is_some() {
                        return grant;
                    }
                }
            }
        }
        None
    }
}

/// What a cloud has answered to who offers the service.
fn offered(cloud: &Cloud, outcome: Result<&GsdPollResponse, &ArrowheadError>) -> Step {
    let asked = format!("does {}.{} offer it to this cloud?", cloud.name, cloud.operator);
    match outcome {
        Ok(answer) if answer.provider_cloud.is_some() => {
            let interfaces: Vec<&str> = answer.available_interfaces.iter().flatten().flatten().map(String::as_str).collect();
            let found = format!("{} providers, over {}", answer.num_of_providers.unwrap_or_default(), interfaces.join(", "));
            Step::new(Criterion::OtherCloud, true, asked, found)
        }
        Ok(_) => {
            let found = format!("cloud {}.{} offers none, or no rule there grants it to this cloud", cloud.name, cloud.operator);
            Step::new(Criterion::OtherCloud, false, asked, found)
        }
        Err(error) => Step::new(Criterion::OtherCloud, false, asked, &*error.error_message),
    }
}

/// What a cloud has answered to what it grants the consumer.
fn granted(cloud: &Cloud, passed: bool, found: String) -> Step {
    Step::new(Criterion::OtherCloud, passed, format!("what does {}.{} grant the consumer?", cloud.name, cloud.operator), found)
}

fn without_tokens(mut result: Value) -> Value {
    result.as_object_mut().map(|members| members.remove(TOKENS));
    result
}

fn error_of(refusal: Refusal) -> ArrowheadError {
    match refusal {
        Refusal::Arrowhead(error) | Refusal::Denied { error, .. } => error,
        Refusal::Malformed | Refusal::NotJson => ArrowheadError::arrowhead("The question could not be made."),
    }
}
