//! Why a request was or would be denied, or why it comes back empty: asked by operators, answered by the decisions themselves.

use bodkin_arrowhead::{
    access::{self, Access, Claim},
    authorization,
    caller::Caller,
    common_name::CloudCommonName,
    core_service::CoreSystem,
    error::ArrowheadError,
    explanation::{Explanation, Step, Verdict},
    form::{OrchestrationForm, ServiceQueryForm},
    json,
    orchestrator::OrchestrationResponse,
    service_registry::Query,
};
use serde::Serialize;

use super::Api;
use crate::{
    answer::Answer,
    monitor,
    request::{Method, Request, split_target},
    route,
};

/// What an orchestration comes to, and why.
#[derive(Serialize)]
struct ExplainedOrchestration {
    #[serde(flatten)]
    answer: OrchestrationResponse,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

/// Whether a caller may make a request, rule by rule.
#[derive(Serialize)]
struct AccessExplanation {
    caller: String,
    method: &'static str,
    path: String,
    allowed: bool,
    /// Whether the rules are asked at all: not in insecure mode.
    enforced: bool,
    steps: Vec<Step>,
}

impl Api {
    /// May a consumer use a service?
    pub(super) fn explain_authorization(&self, request: &Request) -> Answer {
        let (Some(consumer), Some(service)) = (request.parameter("consumer"), request.parameter("service")) else {
            return Answer::problem(400, "Incomplete", "Expected the parameters consumer and service.");
        };
        let interfaces = request.query.iter().filter(|(name, _)| name == "interface").map(|(_, value)| Some(value.clone()));
        let form = ServiceQueryForm {
            service_definition_requirement: Some(service.to_owned()),
            interface_requirements: Some(interfaces.collect()),
            ..ServiceQueryForm::default()
        };
        match Query::parse(&form, &request.path) {
            Ok(query) => {
                let provider = request.parameter("provider");
                Answer::json(200, &authorization::explain(&self.store.snapshot(), consumer, &query, provider))
            }
            Err(error) => not_understood(&error),
        }
    }

    /// What would a consumer be given? `explain=true` also tells why.
    pub(super) async fn orchestrate(&self, request: &Request) -> Answer {
        let form = std::str::from_utf8(&request.body).ok().and_then(|text| json::parse_object::<OrchestrationForm>(text).ok());
        let Some(form) = form else { return Answer::problem(400, "No form", "Expected an OrchestrationForm as JSON.") };
        let form = match Access::Operator.admit(&request.caller).and_then(|admitted| admitted.permit(form)) {
            Ok(form) => form,
            Err(denial) => return monitor::denied(&denial, request),
        };
        match self.control.explain_orchestration(form).await {
            Ok((answer, explanation)) => {
                let explanation = (request.parameter("explain") == Some("true")).then_some(explanation);
                Answer::json(200, &ExplainedOrchestration { answer, explanation })
            }
            Err(error) => not_understood(&error),
        }
    }

    /// May a caller make a request?
    pub(super) fn explain_access(&self, request: &Request) -> Answer {
        let (Some(caller), Some(target)) = (request.parameter("caller"), request.parameter("path")) else {
            return Answer::problem(400, "Incomplete", "Expected the parameters caller and path.");
        };
        let method = request.parameter("method").map_or(Method::Get, |word| Method::parse(&word.to_ascii_uppercase()));
        let (path, _) = split_target(target);
        let (own_cloud, enforced) = self.own_cloud();
        let name = if caller.contains('.') { caller.to_owned() } else { format!("{caller}.{own_cloud}") };
        let claim = Claim {
            system: request.parameter("system").map(Into::into),
            service: request.parameter("service").map(Into::into),
            is_external: request.parameter("external") == Some("true"),
        };
        let steps = access::explain(access_of(method, &path), &Caller::certified(&name, &own_cloud), &claim);
        let allowed = steps.iter().all(|step| step.verdict == Verdict::Passed);
        let (method, path) = (method.word(), path.into_owned());
        Answer::json(200, &AccessExplanation { caller: name, method, path, allowed, enforced, steps })
    }

    /// The name of this cloud, and whether it works with certificates.
    fn own_cloud(&self) -> (CloudCommonName, bool) {
        let snapshot = self.store.snapshot();
        let own = snapshot.clouds().find(|cloud| cloud.own_cloud).expect("this cloud is made at the start");
        (CloudCommonName { cloud: own.name.clone(), operator: own.operator.clone() }, own.secure)
    }
}

/// Whom a request is for, on whichever port it is served.
fn access_of(method: Method, path: &str) -> Access {
    let base = path.split('/').nth(1).unwrap_or_default();
    match CoreSystem::ALL.into_iter().find(|system| system.name() == base) {
        Some(system) => route::access(&route::route(system, method, path), path),
        None => monitor::access(path),
    }
}

fn not_understood(error: &ArrowheadError) -> Answer {
    Answer::problem(400, "Not understood", &error.error_message)
}
