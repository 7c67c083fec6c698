//! Interfaces, managed by operators.

use std::sync::Arc;

use bodkin_arrowhead::{
    form::ServiceInterfaceRequest,
    page::{self, SortKey},
    record::{Interface, InterfaceId},
    service_registry::parse_new_interface,
};
use bodkin_store::{Draft, OperationError};

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, found, page_answer, page_request},
    request::Request,
};

const ALL: &str = "/serviceregistry/mgmt/interfaces";
const ONE: &str = "/serviceregistry/mgmt/interfaces/{id}";

impl Control {
    pub(in crate::control) async fn add_interface(&self, request: &Request) -> Result<Answer> {
        let form: ServiceInterfaceRequest = self.form(SYSTEM, request)?;
        let name = parse_new_interface(&form, &self.naming, ALL)?;
        self.write_interface(201, move |draft| draft.add_interface(&name)).await
    }

    /// PUT and PATCH alike: there is nothing but the name.
    pub(in crate::control) async fn rename_interface(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, ONE)?;
        let form: ServiceInterfaceRequest = self.form(SYSTEM, request)?;
        let name = parse_new_interface(&form, &self.naming, ONE)?;
        self.write_interface(200, move |draft| draft.rename_interface(InterfaceId(id), &name)).await
    }

    async fn write_interface<O>(&self, status: u16, operation: O) -> Result<Answer>
    where
        O: FnOnce(&mut Draft<'_>) -> std::result::Result<InterfaceId, OperationError> + Send + 'static,
    {
        let written = self.write(SYSTEM, operation, |snapshot, id| snapshot.interface(id).expect("what was just written is there").clone());
        Ok(Answer::json(status, &written.await?))
    }

    pub(in crate::control) fn list_interfaces(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, ALL)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, row: &&Arc<Interface>| match field {
            "interfaceName" => Some(SortKey::Text(row.interface_name.to_string())),
            _ => page::common_key(field, row.id.0, &row.timestamps),
        };
        page_answer(page::page(&asked, snapshot.interfaces(), &["interfaceName"], key, |row| row.clone()))
    }

    pub(in crate::control) fn show_interface(&self, id: i64) -> Result<Answer> {
        check_id(id, ONE)?;
        Ok(Answer::json(200, found(self.store.snapshot().interface(InterfaceId(id)), "Service interface", id)?))
    }

    pub(in crate::control) async fn remove_interface(&self, id: i64) -> Result<Answer> {
        check_id(id, ONE)?;
        self.change(SYSTEM, move |draft| draft.remove_interface(InterfaceId(id))).await
    }
}
