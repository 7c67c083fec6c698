//! Why a consumer may use what it may, and whether a system may make a request.

use serde::{Deserialize, Serialize};

use super::{Interface, Offer, Service};

answer! {
    /// One rule that was asked.
    ExplanationStep {
        /// Which, such as `authorization-rule`.
        criterion: String,
        /// Id of the row that decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        row: Option<i64>,
        /// What was asked for.
        asked: String,
        /// What was found.
        found: String,
        /// `passed` or `refused`.
        verdict: String,
    }
}

impl ExplanationStep {
    /// Whether the decision ended here.
    pub fn is_refused(&self) -> bool {
        self.verdict == "refused"
    }
}

answer! {
    /// A registered service that was looked at.
    ExplainedService {
        /// The service.
        service: Service,
        /// `passed` or `refused`.
        verdict: String,
        /// The interfaces it may be used over.
        interfaces: Vec<Interface>,
        /// What was asked of it, in order.
        steps: Vec<ExplanationStep>,
    }
}

impl ExplainedService {
    /// What leaves it out; `None` if it may be used.
    pub fn refusal(&self) -> Option<&ExplanationStep> {
        self.steps.iter().rev().find(|step| step.is_refused()).filter(|_| self.verdict == "refused")
    }

    /// The last thing that was asked of it for this reason.
    pub fn step(&self, criterion: &str) -> Option<&ExplanationStep> {
        self.steps.iter().rev().find(|step| step.criterion == criterion)
    }
}

answer! {
    /// Why a consumer is given what it is given.
    Explanation {
        /// `granted`, `denied` or `nothing`.
        outcome: String,
        /// The reason in a sentence.
        why: String,
        /// What was asked of the request as a whole.
        steps: Vec<ExplanationStep>,
        /// What was asked of each service; of very many the first.
        services: Vec<ExplainedService>,
        /// How many services were looked at.
        service_count: u64,
    }
}

answer! {
    /// What a consumer would be given, and why.
    ExplainedOrchestration {
        /// What it would be given.
        response: Vec<Offer>,
        /// Why.
        explanation: Explanation,
    }
}

answer! {
    /// Whether a caller may make a request, rule by rule.
    AccessExplanation {
        /// The name in the caller's certificate.
        caller: String,
        /// The request's method.
        method: String,
        /// Its path.
        path: String,
        /// Whether every rule lets it through.
        allowed: bool,
        /// Whether the rules are asked: not in insecure mode.
        enforced: bool,
        /// What was asked.
        steps: Vec<ExplanationStep>,
    }
}
