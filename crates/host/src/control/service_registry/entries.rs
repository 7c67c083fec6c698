//! Services: registered by their providers, managed by operators.

use std::sync::Arc;

use bodkin_arrowhead::{
    access::Admitted,
    error::ArrowheadError,
    form::ServiceRegistryRequest,
    page::{self, PageRequest},
    record::{Entry, EntryId},
    service_registry::{EntryPatch, GroupedServices, Registration, Unregistration},
    snapshot::Snapshot,
    system::CoreSystemNames,
};
use bodkin_store::{Draft, OperationError};

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, found, page_answer, page_request, required},
    request::Request,
};

const REGISTER: &str = "/serviceregistry/register";
const UNREGISTER: &str = "/serviceregistry/unregister";
const ENTRIES: &str = "/serviceregistry/mgmt";
const ENTRY: &str = "/serviceregistry/mgmt/{id}";

impl Control {
    pub(in crate::control) async fn register(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let mut form = self.permitted_form::<ServiceRegistryRequest>(SYSTEM, request, admitted)?.into_inner();
        if let Some(provider) = &mut form.provider_system {
            provider.address = self.located(provider.address.as_deref(), request, REGISTER)?;
        }
        let registration = Registration::parse(form, CoreSystemNames::Allowed, &self.naming, REGISTER)?;
        let quota = self.owner_quota.clone();
        self.write_entry(201, move |draft| draft.register(registration).and_then(|id| quota.check(draft).map(|()| id))).await
    }

    pub(in crate::control) async fn unregister(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let provider = self.own_system(request, admitted, UNREGISTER)?;
        let definition = required(request, "service_definition")?;
        let unregistration = Unregistration::parse(definition, provider, request.parameter("service_uri"), UNREGISTER)?;
        self.change(SYSTEM, move |draft| draft.unregister(&unregistration)).await
    }

    pub(in crate::control) async fn add_entry(&self, request: &Request) -> Result<Answer> {
        let registration = self.managed_registration(request, ENTRIES)?;
        self.write_entry(201, |draft| draft.register(registration)).await
    }

    pub(in crate::control) async fn replace_entry(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, ENTRY)?;
        let registration = self.managed_registration(request, ENTRY)?;
        self.write_entry(200, move |draft| draft.replace_entry(EntryId(id), registration)).await
    }

    pub(in crate::control) async fn patch_entry(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, ENTRY)?;
        let form: ServiceRegistryRequest = self.form(SYSTEM, request)?;
        let patch = EntryPatch::parse(form, &self.naming, ENTRY)?;
        self.write_entry(200, move |draft| draft.patch_entry(EntryId(id), patch)).await
    }

    fn managed_registration(&self, request: &Request, origin: &str) -> Result<Registration> {
        let form: ServiceRegistryRequest = self.form(SYSTEM, request)?;
        Ok(Registration::parse(form, CoreSystemNames::Refused, &self.naming, origin)?)
    }

    async fn write_entry<O>(&self, status: u16, operation: O) -> Result<Answer>
    where
        O: FnOnce(&mut Draft<'_>) -> std::result::Result<EntryId, OperationError> + Send + 'static,
    {
        let written =
            self.write(SYSTEM, operation, |snapshot, id| snapshot.view(snapshot.entry(id).expect("what was just written is there")));
        Ok(Answer::json(status, &written.await?))
    }

    pub(in crate::control) fn list_entries(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, ENTRIES)?;
        let snapshot = self.store.snapshot();
        page_of_entries(&snapshot, &asked, snapshot.entries())
    }

    pub(in crate::control) fn list_entries_of_definition(&self, request: &Request, definition: &str) -> Result<Answer> {
        let asked = page_request(request, "/serviceregistry/mgmt/servicedef/{serviceDefinition}")?;
        let snapshot = self.store.snapshot();
        let unknown = || ArrowheadError::invalid_parameter(format!("Service definition '{definition}' does not exist."));
        let definition = snapshot.definition_by_name(definition).ok_or_else(unknown)?;
        page_of_entries(&snapshot, &asked, snapshot.entries_of_by_id(definition.id).into_iter())
    }

    pub(in crate::control) fn show_entry(&self, id: i64) -> Result<Answer> {
        check_id(id, ENTRY)?;
        let snapshot = self.store.snapshot();
        let entry = found(snapshot.entry(EntryId(id)), "Service Registry entry", id)?;
        Ok(Answer::json(200, &snapshot.view(entry)))
    }

    pub(in crate::control) fn group_entries(&self) -> Result<Answer> {
        Ok(Answer::list(&GroupedServices::new(&self.store.snapshot())))
    }

    pub(in crate::control) async fn remove_entry(&self, id: i64) -> Result<Answer> {
        check_id(id, ENTRY)?;
        self.change(SYSTEM, move |draft| draft.remove_entry(EntryId(id))).await
    }
}

fn page_of_entries<'e>(snapshot: &Snapshot, asked: &PageRequest, entries: impl ExactSizeIterator<Item = &'e Arc<Entry>>) -> Result<Answer> {
    let key = |field: &str, entry: &&Arc<Entry>| page::common_key(field, entry.id.0, &entry.timestamps);
    page_answer(page::page(asked, entries, &[], key, |entry| snapshot.view(entry)))
}
