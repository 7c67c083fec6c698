//! Calls to Authorization.

use bodkin_arrowhead::form::IntracloudRuleRequest;
use http::Method;

use crate::{
    answer::{List, Rule},
    core_systems::CoreSystems,
    error::CallError,
};

const RULES: &str = "/authorization/mgmt/intracloud";

impl CoreSystems {
    /// All intracloud rules.
    pub async fn rules(&self) -> Result<List<Rule>, CallError> {
        self.authorization.get(RULES).await
    }

    /// Makes intracloud rules; gives those that were not there before.
    pub async fn add_rules(&self, form: &IntracloudRuleRequest) -> Result<List<Rule>, CallError> {
        self.authorization.ask(Method::POST, RULES, Some(form)).await
    }

    /// Removes an intracloud rule by its row id.
    pub async fn remove_rule(&self, id: i64) -> Result<(), CallError> {
        self.authorization.delete(&format!("{RULES}/{id}")).await
    }
}
