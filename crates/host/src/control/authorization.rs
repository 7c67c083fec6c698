//! Endpoints of Authorization (reference section 4).

use std::{sync::Arc, time::Instant};

use bodkin_arrowhead::{
    authorization::{self, InterCloudRuleView, RuleInsertion, RuleView},
    core_service::CoreSystem,
    form::{InterCloudCheckRequest, InterCloudRuleRequest, IntracloudCheckRequest, IntracloudRuleRequest, SubscriptionCheckRequest},
    page::{self, Page},
    record::{CloudId, InterCloudRule, InterCloudRuleId, Rule, RuleId, SystemId},
};

use super::{Control, Result, check_id, found, page_answer, page_request};
use crate::{answer::Answer, request::Request, stage::Stage};

const SYSTEM: CoreSystem = CoreSystem::Authorization;
const RULES: &str = "/authorization/mgmt/intracloud";
const RULE: &str = "/authorization/mgmt/intracloud/{id}";
const INTER_CLOUD_RULES: &str = "/authorization/mgmt/intercloud";
const INTER_CLOUD_RULE: &str = "/authorization/mgmt/intercloud/{id}";

impl Control {
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
        Ok(Answer::json(201, &Page::whole(made.await?)))
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

    pub(super) fn list_inter_cloud_rules(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, INTER_CLOUD_RULES)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, rule: &&Arc<InterCloudRule>| page::common_key(field, rule.id.0, &rule.timestamps);
        page_answer(page::page(&asked, snapshot.inter_cloud_rules(), &[], key, |rule| InterCloudRuleView::new(&snapshot, rule)))
    }

    pub(super) async fn add_inter_cloud_rules(&self, request: &Request) -> Result<Answer> {
        let form: InterCloudRuleRequest = self.form(SYSTEM, request)?;
        let insertion = RuleInsertion::<CloudId>::parse(&form, INTER_CLOUD_RULES)?;
        let made = self.write(
            SYSTEM,
            move |draft| draft.insert_inter_cloud_rules(&insertion),
            |snapshot, ids| {
                let rules = ids.into_iter().map(|id| snapshot.inter_cloud_rule(id).expect("what was just made is there"));
                rules.map(|rule| InterCloudRuleView::new(snapshot, rule)).collect::<Vec<_>>()
            },
        );
        Ok(Answer::json(201, &Page::whole(made.await?)))
    }

    pub(super) fn show_inter_cloud_rule(&self, id: i64) -> Result<Answer> {
        check_id(id, INTER_CLOUD_RULE)?;
        let snapshot = self.store.snapshot();
        let rule = found(snapshot.inter_cloud_rule(InterCloudRuleId(id)), "Intercloud authorization rule", id)?;
        Ok(Answer::json(200, &InterCloudRuleView::new(&snapshot, rule)))
    }

    pub(super) async fn remove_inter_cloud_rule(&self, id: i64) -> Result<Answer> {
        check_id(id, INTER_CLOUD_RULE)?;
        self.change(SYSTEM, move |draft| draft.remove_inter_cloud_rule(InterCloudRuleId(id))).await
    }

    pub(super) fn check_intercloud(&self, request: &Request) -> Result<Answer> {
        let form: InterCloudCheckRequest = self.form(SYSTEM, request)?;
        let started = Instant::now();
        let checked = authorization::check_intercloud(&self.store.snapshot(), form, "/authorization/intercloud/check");
        self.record(SYSTEM, Stage::Execute, started);
        Ok(Answer::json(200, &checked?))
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
