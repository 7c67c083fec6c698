//! Management of the flexible store, by operators and by core systems (reference 5.4).

use std::sync::Arc;

use bodkin_arrowhead::{
    form::FlexibleRuleRequest,
    orchestrator::{StoreKind, flexible_store::FlexibleRuleInsertion},
    page::{self, Page, SortKey},
    record::{FlexibleRule, FlexibleRuleId},
};

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, page_answer, page_request},
    request::Request,
};

const RULES: &str = "/orchestrator/mgmt/store/flexible";
const ALL: &str = "/orchestrator/store/flexible/all";

impl Control {
    pub(in crate::control) fn list_flexible_rules(&self, request: &Request) -> Result<Answer> {
        self.needs_store(StoreKind::Flexible, RULES)?;
        let asked = page_request(request, RULES)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, rule: &&Arc<FlexibleRule>| match field {
            "priority" => Some(SortKey::Number(rule.priority.unsigned_abs().into())),
            _ => page::common_key(field, rule.id.0, &rule.timestamps),
        };
        page_answer(page::page(&asked, snapshot.flexible_rules(), &["priority"], key, Arc::clone))
    }

    /// Served at two paths, which errors name as their `origin`.
    pub(in crate::control) async fn add_flexible_rules(&self, request: &Request, origin: &str) -> Result<Answer> {
        let forms: Vec<Option<FlexibleRuleRequest>> = self.forms(SYSTEM, request)?;
        self.needs_store(StoreKind::Flexible, origin)?;
        let insertions = FlexibleRuleInsertion::parse_list(forms, &self.naming, origin)?;
        let made = self.write(
            SYSTEM,
            move |draft| draft.insert_flexible_rules(insertions),
            |snapshot, ids| {
                let rule = |id| snapshot.flexible_rule(id).expect("what was just made is there").clone();
                ids.into_iter().map(rule).collect::<Vec<_>>()
            },
        );
        Ok(Answer::json(201, &Page::whole(made.await?)))
    }

    pub(in crate::control) async fn remove_flexible_rule(&self, id: i64, origin: &str) -> Result<Answer> {
        self.needs_store(StoreKind::Flexible, origin)?;
        check_id(id, origin)?;
        self.change(SYSTEM, move |draft| draft.remove_flexible_rule(FlexibleRuleId(id))).await
    }

    pub(in crate::control) async fn clear_flexible_store(&self) -> Result<Answer> {
        self.needs_store(StoreKind::Flexible, ALL)?;
        self.change(SYSTEM, |draft| draft.clear_flexible_store()).await
    }
}
