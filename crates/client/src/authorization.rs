//! Calls to Authorization.

use bodkin_arrowhead::form::{IntracloudCheckRequest, IntracloudRuleRequest};
use http::Method;
use serde_json::json;

use crate::{
    answer::{AuthorizationCheck, AuthorizedProvider, IntercloudRule, List, Rule},
    core_systems::CoreSystems,
    error::CallError,
    page::Page,
    request::IntercloudRuleRequest,
};

const RULES: &str = "/authorization/mgmt/intracloud";
const INTERCLOUD_RULES: &str = "/authorization/mgmt/intercloud";

impl CoreSystems {
    /// The public key that tokens are verified with ([`crate::TokenVerifier::new`] takes it). An insecure cloud has none.
    pub async fn authorization_key(&self) -> Result<String, CallError> {
        self.authorization.get("/authorization/publickey").await
    }

    /// Intracloud rules.
    pub async fn rules(&self, page: &Page) -> Result<List<Rule>, CallError> {
        self.authorization.get(&page.of(RULES, &[])).await
    }

    /// An intracloud rule by its row id.
    pub async fn rule(&self, id: i64) -> Result<Rule, CallError> {
        self.authorization.get(&format!("{RULES}/{id}")).await
    }

    /// Makes intracloud rules; gives those that were not there before.
    pub async fn add_rules(&self, form: &IntracloudRuleRequest) -> Result<List<Rule>, CallError> {
        self.authorization.ask(Method::POST, RULES, Some(form)).await
    }

    /// Removes an intracloud rule by its row id.
    pub async fn remove_rule(&self, id: i64) -> Result<(), CallError> {
        self.authorization.delete(&format!("{RULES}/{id}")).await
    }

    /// Which of the providers a consumer may use.
    pub async fn check_intracloud(&self, form: &IntracloudCheckRequest) -> Result<AuthorizationCheck, CallError> {
        self.authorization.ask(Method::POST, "/authorization/intracloud/check", Some(form)).await
    }

    /// Intercloud rules.
    pub async fn intercloud_rules(&self, page: &Page) -> Result<List<IntercloudRule>, CallError> {
        self.authorization.get(&page.of(INTERCLOUD_RULES, &[])).await
    }

    /// An intercloud rule by its row id.
    pub async fn intercloud_rule(&self, id: i64) -> Result<IntercloudRule, CallError> {
        self.authorization.get(&format!("{INTERCLOUD_RULES}/{id}")).await
    }

    /// Makes intercloud rules; gives those that were not there before.
    pub async fn add_intercloud_rules(&self, form: &IntercloudRuleRequest) -> Result<List<IntercloudRule>, CallError> {
        self.authorization.ask(Method::POST, INTERCLOUD_RULES, Some(form)).await
    }

    /// Removes an intercloud rule by its row id.
    pub async fn remove_intercloud_rule(&self, id: i64) -> Result<(), CallError> {
        self.authorization.delete(&format!("{INTERCLOUD_RULES}/{id}")).await
    }

    /// Which of the providers (with the interfaces in question) the cloud of this operator and name may use.
    pub async fn check_intercloud(
        &self,
        (operator, name): (&str, &str),
        definition: &str,
        providers: &[AuthorizedProvider],
    ) -> Result<AuthorizationCheck, CallError> {
        let form = json!({"cloud": {"operator": operator, "name": name}, "serviceDefinition": definition,
            "providerIdsWithInterfaceIds": providers});
        self.authorization.ask(Method::POST, "/authorization/intercloud/check", Some(&form)).await
    }
}
