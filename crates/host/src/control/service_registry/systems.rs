//! Systems: registered by themselves, managed by operators.

use std::sync::Arc;

use bodkin_arrowhead::{
    access::Admitted,
    form::SystemRequest,
    page::{self, SortKey},
    record::{System, SystemId},
    system::{CoreSystemNames, SystemPatch, SystemRegistration},
};
use bodkin_store::{Draft, OperationError};

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, found, page_answer, page_request},
    request::Request,
};

const REGISTER_SYSTEM: &str = "/serviceregistry/register-system";
const UNREGISTER_SYSTEM: &str = "/serviceregistry/unregister-system";
const SYSTEM_OF_ID: &str = "/serviceregistry/mgmt/systems/{id}";

impl Control {
    pub(in crate::control) async fn register_system(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let mut form = self.permitted_form::<SystemRequest>(SYSTEM, request, admitted)?.into_inner();
        form.address = self.located(form.address.as_deref(), request, REGISTER_SYSTEM)?;
        let system = SystemRegistration::parse(form, CoreSystemNames::Refused, &self.naming, REGISTER_SYSTEM)?;
        let quota = self.owner_quota.clone();
        let register = move |draft: &mut Draft<'_>| draft.register_system(&system).and_then(|id| quota.check(draft).map(|()| id));
        self.write_system(201, register).await
    }

    pub(in crate::control) async fn unregister_system(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let key = self.own_system(request, admitted, UNREGISTER_SYSTEM)?;
        self.change(SYSTEM, move |draft| draft.unregister_system(&key)).await
    }

    pub(in crate::control) async fn add_system(&self, request: &Request) -> Result<Answer> {
        let system = self.managed_system(request, "/serviceregistry/mgmt/systems")?;
        self.write_system(201, move |draft| draft.register_system(&system)).await
    }

    pub(in crate::control) async fn replace_system(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, SYSTEM_OF_ID)?;
        let system = self.managed_system(request, SYSTEM_OF_ID)?;
        self.write_system(200, move |draft| draft.replace_system(SystemId(id), &system)).await
    }

    pub(in crate::control) async fn patch_system(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, SYSTEM_OF_ID)?;
        let form: SystemRequest = self.form(SYSTEM, request)?;
        let patch = SystemPatch::parse(form, &self.naming, SYSTEM_OF_ID)?;
        self.write_system(200, move |draft| draft.patch_system(SystemId(id), patch)).await
    }

    fn managed_system(&self, request: &Request, origin: &str) -> Result<SystemRegistration> {
        let form: SystemRequest = self.form(SYSTEM, request)?;
        Ok(SystemRegistration::parse(form, CoreSystemNames::Refused, &self.naming, origin)?)
    }

    async fn write_system<O>(&self, status: u16, operation: O) -> Result<Answer>
    where
        O: FnOnce(&mut Draft<'_>) -> std::result::Result<SystemId, OperationError> + Send + 'static,
    {
        let written = self.write(SYSTEM, operation, |snapshot, id| snapshot.system(id).expect("what was just written is there").clone());
        Ok(Answer::json(status, &written.await?))
    }

    /// All systems, for operators and for core systems alike.
    pub(in crate::control) fn list_systems(&self, request: &Request, origin: &str) -> Result<Answer> {
        let asked = page_request(request, origin)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, system: &&Arc<System>| match field {
            "systemName" => Some(SortKey::Text(system.system_name.to_string())),
            "address" => Some(SortKey::Text(system.address.as_str().to_owned())),
            "port" => Some(SortKey::Number(system.port.into())),
            _ => page::common_key(field, system.id.0, &system.timestamps),
        };
        page_answer(page::page(&asked, snapshot.systems(), &["systemName", "address", "port"], key, |system| system.clone()))
    }

    /// A system by id, for operators and for core systems alike.
    pub(in crate::control) fn show_system(&self, id: i64, origin: &str) -> Result<Answer> {
        check_id(id, origin)?;
        Ok(Answer::json(200, found(self.store.snapshot().system(SystemId(id)), "System", id)?))
    }

    pub(in crate::control) async fn remove_system(&self, id: i64) -> Result<Answer> {
        check_id(id, SYSTEM_OF_ID)?;
        self.change(SYSTEM, move |draft| draft.remove_system(SystemId(id))).await
    }
}
