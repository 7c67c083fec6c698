//! Calls to the Orchestrator.

use bodkin_arrowhead::form::OrchestrationForm;
use http::Method;
use serde::Deserialize;

use crate::{answer::Offer, core_systems::CoreSystems, error::CallError};

#[derive(Deserialize)]
struct Response {
    response: Vec<Offer>,
}

impl CoreSystems {
    /// Asks what the requester should use. Empty: nobody offers it, or no rule lets the requester use it.
    pub async fn orchestrate(&self, form: &OrchestrationForm) -> Result<Vec<Offer>, CallError> {
        let answer: Response = self.orchestrator.ask(Method::POST, "/orchestrator/orchestration", Some(form)).await?;
        Ok(answer.response)
    }
}
