//! What an operator's own orchestration for a consumer comes to, and why: in this cloud, and, where it leads there, in others.

use std::sync::Arc;

use bodkin_arrowhead::{
    caller::Authorized,
    error::ArrowheadError,
    explanation::{Criterion, Explanation, Step, Unwatched},
    form::{GsdPollResponse, OrchestrationForm},
    gatekeeper::collect,
    orchestrator::{self, Elsewhere, Orchestration, OrchestrationResponse, Sender, StoredProvider, Tried, When},
    record::Cloud,
    snapshot::Snapshot,
    utc::UtcTime,
};
use serde::Serialize;
use serde_json::Value;

use super::elsewhere::{ORIGIN, error_of};
use crate::{
    control::{Control, now},
    gatekeeper::AskingTime,
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
            Some(elsewhere) if elsewhere.when == When::AtOnce => self.look_at_others(elsewhere, self.looking_time()?, &mut steps).await,
            Some(elsewhere) if elsewhere.when == When::NothingHere && is_known && usable.is_empty() => {
                self.look_at_others(elsewhere, self.looking_time()?, &mut steps).await
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

    /// As a consumer's request has it.
    fn looking_time(&self) -> Result<AskingTime, ArrowheadError> {
        self.asking_time().map_err(error_of)
    }

    /// The first other cloud that grants something, as a consumer's request would come to it; what each has said is told.
    async fn look_at_others(&self, elsewhere: &Elsewhere, time: AskingTime, steps: &mut Vec<Step>) -> Option<Grant> {
        let refused =
            |error: &ArrowheadError| Step::new(Criterion::OtherCloud, false, "which other cloud offers it?", &*error.error_message);
        let outcomes = match self.discover_each(elsewhere.discovery(), ORIGIN, time.half()).await {
            Ok(outcomes) => outcomes,
            Err(refusal) => {
                steps.push(refused(&error_of(refusal)));
                return None;
            }
        };
        steps.extend(outcomes.iter().map(|(cloud, outcome)| offered(cloud, outcome.as_ref(), elsewhere.requires_quality())));
        // That none has answered is told already.
        let found = collect(outcomes).ok()?;
        let wanted = elsewhere.keeping_nothing();
        let (clouds, mut tried) = (wanted.in_order(&found), Tried::default());
        for (before, cloud) in clouds.iter().enumerate() {
            if let Err(untold) = wanted.check_offer(&found, cloud) {
                steps.push(granted(cloud, false, untold.error_message));
                continue;
            }
            if found.is_behind_gateway(cloud.id) {
                match self.room_for_tunnel(cloud) {
                    Ok(told) => {
                        steps.push(granted(cloud, true, told));
                        return Some(Grant { cloud: cloud.clone(), results: Vec::new() });
                    }
                    Err(error) => steps.push(granted(cloud, false, error.error_message)),
                }
                continue;
            }
            let to_ask = clouds.len() - before;
            let Some(share) = time.share(to_ask) else {
                tried.not_asked(to_ask);
                break;
            };
            match self.negotiate_with(&wanted, cloud, share).await {
                Ok(results) if !results.is_empty() => {
                    steps.push(granted(cloud, true, format!("{} results", results.len())));
                    return Some(Grant { results: results.into_iter().map(without_tokens).collect(), cloud: cloud.clone() });
                }
                Ok(_) => steps.push(granted(cloud, false, "nothing")),
                Err(refusal) => {
                    let error = error_of(refusal);
                    steps.push(granted(cloud, false, &*error.error_message));
                    tried.refused(cloud, error);
                }
            }
        }
        steps.extend(not_asked(&tried, time));
        None
    }

    /// Whether a tunnel to a cloud could be entered now, and what only its opening would tell.
    fn room_for_tunnel(&self, cloud: &Cloud) -> Result<&'static str, ArrowheadError> {
        let gateway = self.tunnels().map_err(error_of)?;
        gateway.check_room(&format!("{}.{}", cloud.name, cloud.operator))?;
        Ok(
            "it offers it by a tunnel, which is opened when the consumer itself asks; only then does it say to which provider, if to any, and whether its own gateway has room",
        )
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
        let mut to_ask = providers.iter().filter(|provider| matches!(provider, StoredProvider::Elsewhere(..))).count();
        let (time, mut tried) = (self.looking_time().ok()?, Tried::default());
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
                    let share = time.share(to_ask);
                    to_ask -= 1;
                    let Some(share) = share else {
                        tried.not_asked(1);
                        continue;
                    };
                    let grant = self.look_at_others(&elsewhere.of_stored(&cloud, &system), share, steps).await;
                    if grant.is_some() {
                        return grant;
                    }
                }
            }
        }
        steps.extend(not_asked(&tried, time));
        None
    }
}

/// What a cloud has answered to who offers the service.
fn offered(cloud: &Cloud, outcome: Result<&GsdPollResponse, &ArrowheadError>, requires_quality: bool) -> Step {
    let asked = format!("does {}.{} offer it to this cloud?", cloud.name, cloud.operator);
    match outcome {
        Ok(answer) if answer.provider_cloud.is_some() => {
            let interfaces: Vec<&str> = answer.available_interfaces.iter().flatten().flatten().map(String::as_str).collect();
            let found = format!("{} providers, over {}", answer.num_of_providers.unwrap_or_default(), interfaces.join(", "));
            Step::new(Criterion::OtherCloud, true, asked, found)
        }
        Ok(_) => {
            let unmeasured = if requires_quality { ", or it measures no quality of service" } else { "" };
            let found =
                format!("cloud {}.{} offers none, or no rule there grants it to this cloud{unmeasured}", cloud.name, cloud.operator);
            Step::new(Criterion::OtherCloud, false, asked, found)
        }
        Err(error) => Step::new(Criterion::OtherCloud, false, asked, &*error.error_message),
    }
}

/// What a cloud has answered to what it grants the consumer.
fn granted(cloud: &Cloud, passed: bool, found: impl Into<String>) -> Step {
    Step::new(Criterion::OtherCloud, passed, format!("what does {}.{} grant the consumer?", cloud.name, cloud.operator), found)
}

/// That there was no time to ask all.
fn not_asked(tried: &Tried, time: AskingTime) -> Option<Step> {
    let found = tried.told(time.whole())?;
    Some(Step::new(Criterion::OtherCloud, false, "was every other cloud asked?", found))
}

fn without_tokens(mut result: Value) -> Value {
    result.as_object_mut().map(|members| members.remove(TOKENS));
    result
}
