//! Why a request was or would be denied, or why it comes back empty: asked by operators, answered by the decisions themselves.

use bodkin_arrowhead::{
    access::{self, Access, Claim, Claims},
    authorization,
    caller::{Authorized, Caller},
    common_name::CloudCommonName,
    core_service::CoreSystem,
    error::ArrowheadError,
    explanation::{Explanation, Step, Verdict},
    form::{OrchestrationForm, ServiceQueryForm},
    json,
    service_registry::Query,
};
use serde::{Serialize, de::DeserializeOwned};

use super::Api;
use crate::{
    answer::Answer,
    control::Given,
    monitor,
    request::{Method, Request, split_target},
    route,
};

/// Who would consume.
enum Consumer<'r> {
    /// The system of a name or id.
    System(&'r str),
    /// The cloud of an operator and a name.
    Cloud((&'r str, &'r str)),
}

impl<'r> Consumer<'r> {
    /// One of both parameters says it.
    fn parse(system: Option<&'r str>, cloud: Option<&'r str>) -> Option<Self> {
        match (system, cloud) {
            (Some(system), None) => Some(Self::System(system)),
            (None, Some(cloud)) => cloud.split_once('/').map(Self::Cloud),
            _ => None,
        }
    }
}

/// What an orchestration comes to, and why.
#[derive(Serialize)]
struct ExplainedOrchestration {
    #[serde(flatten)]
    answer: Given,
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
    /// May a consumer, a system or another cloud, use a service?
    pub(super) fn explain_authorization(&self, request: &Request) -> Answer {
        let (consumer, cloud) = (request.parameter("consumer"), request.parameter("cloud"));
        let (Some(consumer), Some(service)) = (Consumer::parse(consumer, cloud), request.parameter("service")) else {
            let expected = "Expected the parameters consumer and service, or cloud (OPERATOR/NAME) and service.";
            return Answer::problem(400, expected);
        };
        let interfaces = request.query.iter().filter(|(name, _)| name == "interface").map(|(_, value)| Some(value.clone()));
        let form = ServiceQueryForm {
            service_definition_requirement: Some(service.to_owned()),
            interface_requirements: Some(interfaces.collect()),
            ..ServiceQueryForm::default()
        };
        match Query::parse(&form, &request.path) {
            Ok(query) => {
                let (snapshot, provider) = (self.store.snapshot(), request.parameter("provider"));
                let explanation = match consumer {
                    Consumer::System(name) => authorization::explain(&snapshot, name, &query, provider),
                    Consumer::Cloud(name) => authorization::explain_intercloud(&snapshot, name, &query, provider),
                };
                Answer::json(200, &explanation)
            }
            Err(error) => not_understood(&error),
        }
    }

    /// What would a consumer be given? `explain=true` also tells why.
    pub(super) async fn orchestrate(&self, request: &Request) -> Answer {
        let form = match permitted_form::<OrchestrationForm>(request, "an OrchestrationForm") {
            Ok(form) => form,
            Err(refusal) => return refusal,
        };
        match self.control.explain_orchestration(form).await {
            Ok((answer, explanation)) => {
                let explanation = (request.parameter("explain") == Some("true")).then_some(explanation);
                Answer::json(200, &ExplainedOrchestration { answer, explanation })
            }
            Err(error) => not_understood(&error),
        }
    }

    /// Which services fit? What the Service Registry answers to who may ask it for any.
    pub(super) async fn query_services(&self, request: &Request) -> Answer {
        let form = match permitted_form::<ServiceQueryForm>(request, "a ServiceQueryForm") {
            Ok(form) => form,
            Err(refusal) => return refusal,
        };
        match self.control.find_services(&form, &request.path).await {
            Ok(result) => Answer::json(200, &result),
            Err(error) => not_understood(&error),
        }
    }

    /// May a caller make a request?
    pub(super) fn explain_access(&self, request: &Request) -> Answer {
        let (Some(caller), Some(target)) = (request.parameter("caller"), request.parameter("path")) else {
            return Answer::problem(400, "Expected the parameters caller and path.");
        };
        let method = request.parameter("method").map_or(Method::Get, |word| Method::parse(&word.to_ascii_uppercase()));
        let (path, _) = split_target(target);
        let (own_cloud, enforced) = match self.own_cloud() {
            Ok(own) => own,
            Err(answer) => return answer,
        };
        let name = if caller.contains('.') { caller.to_owned() } else { format!("{caller}.{own_cloud}") };
        let claim = Claim {
            system: request.parameter("system").map(Into::into),
            service: request.parameter("service").map(Into::into),
            is_external: request.parameter("external") == Some("true"),
            ..Claim::default()
        };
        let steps = access::explain(self.access_of(method, &path), &Caller::certified(&name, &own_cloud), &claim);
        let allowed = steps.iter().all(|step| step.verdict == Verdict::Passed);
        let (method, path) = (method.word(), path.into_owned());
        Answer::json(200, &AccessExplanation { caller: name, method, path, allowed, enforced, steps })
    }

    /// Whom a request is for, on whichever port it is served.
    fn access_of(&self, method: Method, path: &str) -> Access {
        let base = path.split('/').nth(1).unwrap_or_default();
        match CoreSystem::ALL.into_iter().find(|system| system.name() == base) {
            Some(system) => self.control.access(&route::route(system, method, path), path),
            None => monitor::access(path),
        }
    }

    /// Returns the name of this cloud, and whether it works with certificates.
    ///
    /// # Errors
    /// The answer of a node that leads for the first time, before it has noted its cloud.
    pub(crate) fn own_cloud(&self) -> Result<(CloudCommonName, bool), Answer> {
        let snapshot = self.store.snapshot();
        let own = snapshot.clouds().find(|cloud| cloud.own_cloud).ok_or_else(|| Answer {
            header: Some(("Retry-After", "1".to_owned())),
            ..Answer::problem(503, "This node does not serve yet. Ask again in a moment.")
        })?;
        Ok((CloudCommonName { cloud: own.name.clone(), operator: own.operator.clone() }, own.secure))
    }
}

/// The form in a request of the operator's.
fn permitted_form<F: DeserializeOwned + Claims>(request: &Request, expected: &str) -> Result<Authorized<F>, Answer> {
    let form = std::str::from_utf8(&request.body).ok().and_then(|text| json::parse_object::<F>(text).ok());
    let form = form.ok_or_else(|| Answer::problem(400, &format!("Expected {expected} as JSON.")))?;
    let permitted = Access::Operator.admit(&request.caller).and_then(|admitted| admitted.permit(form));
    permitted.map_err(|denial| monitor::denied(&denial, request))
}

fn not_understood(error: &ArrowheadError) -> Answer {
    Answer::problem(400, &error.error_message)
}
