//! Endpoints of the Service Registry (reference section 3).

use std::time::Instant;

use bodkin_arrowhead::{
    core_service::CoreSystem,
    form::{ServiceQueryForm, ServiceRegistryRequest, SystemRequest},
    page::{self, SortKey},
    record::{DefinitionId, EntryId, InterfaceId, SystemId},
    service_registry::{self, Query, Registration, Unregistration},
    system::{CoreSystemNames, SystemRegistration},
};

use super::{Control, Result, check_id, found, page_answer, page_request, required};
use crate::{
    answer::{Answer, Refusal},
    request::Request,
    stage::Stage,
};

const SYSTEM: CoreSystem = CoreSystem::ServiceRegistry;
const UNREGISTER: &str = "/serviceregistry/unregister";
const UNREGISTER_SYSTEM: &str = "/serviceregistry/unregister-system";
const ENTRY: &str = "/serviceregistry/mgmt/{id}";
const SYSTEMS: &str = "/serviceregistry/mgmt/systems/{id}";
const DEFINITIONS: &str = "/serviceregistry/mgmt/services/{id}";
const INTERFACES: &str = "/serviceregistry/mgmt/interfaces/{id}";

impl Control {
    pub(super) async fn register(&self, request: &Request, origin: &str) -> Result<Answer> {
        let form: ServiceRegistryRequest = self.form(SYSTEM, request)?;
        let core_systems = if origin.ends_with("/register") { CoreSystemNames::Allowed } else { CoreSystemNames::Refused };
        let registration = Registration::parse(form, core_systems, &self.naming, origin)?;
        request.caller.may_act_as(registration.provider.name.as_str())?;
        let registered = self.write(
            SYSTEM,
            |draft| draft.register(registration),
            |snapshot, id| snapshot.view(snapshot.entry(id).expect("what was just registered is there")),
        );
        Ok(Answer::json(201, &registered.await?))
    }

    pub(super) async fn unregister(&self, request: &Request) -> Result<Answer> {
        let definition = required(request, "service_definition")?;
        let (name, address, port) = system_parameters(request)?;
        request.caller.may_act_as(name)?;
        let service_uri = required(request, "service_uri")?;
        let unregistration = Unregistration::parse(definition, name, address, port, service_uri, UNREGISTER)?;
        self.change(SYSTEM, move |draft| draft.unregister(&unregistration)).await
    }

    pub(super) async fn query(&self, request: &Request) -> Result<Answer> {
        let form: ServiceQueryForm = self.form(SYSTEM, request)?;
        let query = Query::parse(&form, "/serviceregistry/query")?;
        let started = Instant::now();
        let mut result = service_registry::query(&self.store.snapshot(), &query);
        self.record(SYSTEM, Stage::Execute, started);
        if query.ping_providers {
            result.service_query_data = self.pings.reachable(result.service_query_data).await;
        }
        Ok(Answer::json(200, &result))
    }

    pub(super) async fn register_system(&self, request: &Request, origin: &str) -> Result<Answer> {
        let form: SystemRequest = self.form(SYSTEM, request)?;
        let system = SystemRegistration::parse(form, CoreSystemNames::Refused, &self.naming, origin)?;
        request.caller.may_act_as(system.name.as_str())?;
        let registered = self.write(
            SYSTEM,
            move |draft| draft.register_system(&system),
            |snapshot, id| snapshot.system(id).expect("what was just registered is there").clone(),
        );
        Ok(Answer::json(201, &registered.await?))
    }

    pub(super) async fn unregister_system(&self, request: &Request) -> Result<Answer> {
        let (name, address, port) = system_parameters(request)?;
        request.caller.may_act_as(name)?;
        let key = service_registry::parse_system_parameters(name, address, port, UNREGISTER_SYSTEM)?;
        self.change(SYSTEM, move |draft| draft.unregister_system(&key)).await
    }

    pub(super) fn list_entries(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, "/serviceregistry/mgmt")?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, entry: &&std::sync::Arc<_>| {
            let entry: &bodkin_arrowhead::record::Entry = entry;
            page::common_key(field, entry.id.0, &entry.timestamps)
        };
        page_answer(page::page(&asked, snapshot.entries(), &[], key, |entry| snapshot.view(entry)))
    }

    pub(super) fn list_systems(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, "/serviceregistry/mgmt/systems")?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, system: &&std::sync::Arc<bodkin_arrowhead::record::System>| match field {
            "systemName" => Some(SortKey::Text(system.system_name.to_string())),
            "address" => Some(SortKey::Text(system.address.as_str().to_owned())),
            "port" => Some(SortKey::Number(system.port.into())),
            _ => page::common_key(field, system.id.0, &system.timestamps),
        };
        page_answer(page::page(&asked, snapshot.systems(), &["systemName", "address", "port"], key, |system| system.clone()))
    }

    pub(super) fn list_definitions(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, "/serviceregistry/mgmt/services")?;
        let snapshot = self.store.snapshot();
        let key =
            |field: &str, row: &&std::sync::Arc<bodkin_arrowhead::record::Definition>| page::common_key(field, row.id.0, &row.timestamps);
        page_answer(page::page(&asked, snapshot.definitions(), &[], key, |definition| definition.clone()))
    }

    pub(super) fn list_interfaces(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, "/serviceregistry/mgmt/interfaces")?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, row: &&std::sync::Arc<bodkin_arrowhead::record::Interface>| match field {
            "interfaceName" => Some(SortKey::Text(row.interface_name.to_string())),
            _ => page::common_key(field, row.id.0, &row.timestamps),
        };
        page_answer(page::page(&asked, snapshot.interfaces(), &["interfaceName"], key, |interface| interface.clone()))
    }

    pub(super) fn show_entry(&self, id: i64) -> Result<Answer> {
        check_id(id, ENTRY)?;
        let snapshot = self.store.snapshot();
        let entry = found(snapshot.entry(EntryId(id)), "Service Registry entry", id)?;
        Ok(Answer::json(200, &snapshot.view(entry)))
    }

    pub(super) fn show_system(&self, id: i64) -> Result<Answer> {
        check_id(id, SYSTEMS)?;
        Ok(Answer::json(200, found(self.store.snapshot().system(SystemId(id)), "System", id)?))
    }

    pub(super) fn show_definition(&self, id: i64) -> Result<Answer> {
        check_id(id, DEFINITIONS)?;
        Ok(Answer::json(200, found(self.store.snapshot().definition(DefinitionId(id)), "Service definition", id)?))
    }

    pub(super) fn show_interface(&self, id: i64) -> Result<Answer> {
        check_id(id, INTERFACES)?;
        Ok(Answer::json(200, found(self.store.snapshot().interface(InterfaceId(id)), "Service interface", id)?))
    }

    pub(super) async fn remove_entry(&self, id: i64) -> Result<Answer> {
        check_id(id, ENTRY)?;
        self.change(SYSTEM, move |draft| draft.remove_entry(EntryId(id))).await
    }

    pub(super) async fn remove_system(&self, id: i64) -> Result<Answer> {
        check_id(id, SYSTEMS)?;
        self.change(SYSTEM, move |draft| draft.remove_system(SystemId(id))).await
    }

    pub(super) async fn remove_definition(&self, id: i64) -> Result<Answer> {
        check_id(id, DEFINITIONS)?;
        self.change(SYSTEM, move |draft| draft.remove_definition(DefinitionId(id))).await
    }

    pub(super) async fn remove_interface(&self, id: i64) -> Result<Answer> {
        check_id(id, INTERFACES)?;
        self.change(SYSTEM, move |draft| draft.remove_interface(InterfaceId(id))).await
    }
}

/// The parameters that name a system; all of them must be there, and the port must be a number.
pub(super) fn system_parameters(request: &Request) -> Result<(&str, &str, i64)> {
    let (name, address) = (required(request, "system_name")?, required(request, "address")?);
    let port = required(request, "port")?.trim().parse().map_err(|_| Refusal::Malformed)?;
    Ok((name, address, port))
}
