//! Endpoints of Authorization (reference section 4).

use std::{sync::Arc, time::Instant};

use bodkin_arrowhead::{
    authorization::{self, RuleInsertion, RuleView},
    core_service::CoreSystem,
    error::ArrowheadError,
    form::{IntracloudCheckRequest, IntracloudRuleRequest, SubscriptionCheckRequest},
    page::{self, Page},
    record::{Rule, RuleId, SystemId},
};
use serde::de::IgnoredAny;

use super::{Control, Result, check_id, found, page_answer, page_request};
use crate::{answer::Answer, request::Request, stage::Stage};

const SYSTEM: CoreSystem = CoreSystem::Authorization;
const RULES: &str = "/authorization/mgmt/intracloud";
const RULE: &str = "/authorization/mgmt/intracloud/{id}";

/// There are no keys in insecure mode.
pub(super) fn public_key() -> Result<Answer> {
    Err(ArrowheadError::arrowhead("Authorization core service runs in insecure mode, it has no public key.").into())
}

impl Control {
    /// There are no tokens in insecure mode; a body that is no form is told first.
    pub(super) fn token(&self, request: &Request) -> Result<Answer> {
        let _: IgnoredAny = self.form(SYSTEM, request)?;
        Err(ArrowheadError::arrowhead("Authorization core service runs in insecure mode, it can not generate tokens.").into())
    }

    pub(super) fn list_rules(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, RULES)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, rule: &&Arc<Rule>| page::common_key(field, rule.id.0, &rule.timestamps);
        page_answer(page::page(&asked, snapshot.rules(), &[], key, |rule| RuleView::new(&snapshot, rule)))
    }

    pub(super) async fn add_rules(&self, request: &Request) -> Result<Answer> {
        let form: IntracloudRuleRequest = self.form(SYSTEM, request)?;
        let insertion = RuleInsertion::<SystemId>::parse(&form, RULES)?;
        let made = self.write(
            SYSTEM,
            move |draft| draft.insert_rules(&insertion),
            |snapshot, ids| {
                let views = ids.into_iter().map(|id| RuleView::new(snapshot, snapshot.rule(id).expect("what was just made is there")));
                views.collect::<Vec<_>>()
            },
        );
        let data = made.await?;
        Ok(Answer::json(201, &Page { count: data.len(), data }))
    }

    pub(super) fn show_rule(&self, id: i64) -> Result<Answer> {
        check_id(id, RULE)?;
        let snapshot = self.store.snapshot();
        let rule = found(snapshot.rule(RuleId(id)), "Intracloud authorization rule", id)?;
        Ok(Answer::json(200, &RuleView::new(&snapshot, rule)))
    }

    pub(super) async fn remove_rule(&self, id: i64) -> Result<Answer> {
        check_id(id, RULE)?;
        self.change(SYSTEM, move |draft| draft.remove_rule(RuleId(id))).await
    }

    pub(super) fn check_intracloud(&self, request: &Request) -> Result<Answer> {
        let form: IntracloudCheckRequest = self.form(SYSTEM, request)?;
        let started = Instant::now();
        let checked = authorization::check_intracloud(&self.store.snapshot(), &form, "/authorization/intracloud/check");
        self.record(SYSTEM, Stage::Execute, started);
        Ok(Answer::json(200, &checked?))
    }

    pub(super) fn check_subscription(&self, request: &Request) -> Result<Answer> {
        let form: SubscriptionCheckRequest = self.form(SYSTEM, request)?;
        let started = Instant::now();
        let checked = authorization::check_subscription(&self.store.snapshot(), &form, "/authorization/subscription/check");
        self.record(SYSTEM, Stage::Execute, started);
        Ok(Answer::json(200, &checked?))
    }
}
