//! Service definitions, managed by operators.

use std::sync::Arc;

use bodkin_arrowhead::{
    form::ServiceDefinitionRequest,
    page::{self},
    record::{Definition, DefinitionId},
    service_registry::parse_new_definition,
};
use bodkin_store::{Draft, OperationError};

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, found, page_answer, page_request},
    request::Request,
};

const ALL: &str = "/serviceregistry/mgmt/services";
const ONE: &str = "/serviceregistry/mgmt/services/{id}";

impl Control {
    pub(in crate::control) async fn add_definition(&self, request: &Request) -> Result<Answer> {
        let form: ServiceDefinitionRequest = self.form(SYSTEM, request)?;
        let name = parse_new_definition(&form, &self.naming, ALL)?;
        self.write_definition(201, move |draft| draft.add_definition(&name)).await
    }

    /// PUT and PATCH alike: there is nothing but the name.
    pub(in crate::control) async fn rename_definition(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, ONE)?;
        let form: ServiceDefinitionRequest = self.form(SYSTEM, request)?;
        let name = parse_new_definition(&form, &self.naming, ONE)?;
        self.write_definition(200, move |draft| draft.rename_definition(DefinitionId(id), &name)).await
    }

    async fn write_definition<O>(&self, status: u16, operation: O) -> Result<Answer>
    where
        O: FnOnce(&mut Draft<'_>) -> std::result::Result<DefinitionId, OperationError> + Send + 'static,
    {
        let written =
            self.write(SYSTEM, operation, |snapshot, id| snapshot.definition(id).expect("what was just written is there").clone());
        Ok(Answer::json(status, &written.await?))
    }

    pub(in crate::control) fn list_definitions(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, ALL)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, row: &&Arc<Definition>| page::common_key(field, row.id.0, &row.timestamps);
        page_answer(page::page(&asked, snapshot.definitions(), &[], key, |row| row.clone()))
    }

    pub(in crate::control) fn show_definition(&self, id: i64) -> Result<Answer> {
        check_id(id, ONE)?;
        Ok(Answer::json(200, found(self.store.snapshot().definition(DefinitionId(id)), "Service definition", id)?))
    }

    pub(in crate::control) async fn remove_definition(&self, id: i64) -> Result<Answer> {
        check_id(id, ONE)?;
        self.change(SYSTEM, move |draft| draft.remove_definition(DefinitionId(id))).await
    }
}
