//! Endpoints of the Event Handler, without events themselves (reference section 6).

use std::sync::Arc;

use bodkin_arrowhead::{
    access::Admitted,
    auth_update,
    caller::Authorized,
    core_service::CoreSystem,
    error::ArrowheadError,
    event_handler::{SubscriptionPut, SubscriptionView},
    form::SubscriptionRequest,
    name::EventType,
    page,
    publication::PublishForm,
    record::{Subscription, SubscriptionId},
    service_registry::parse_system_parameters,
    snapshot::Snapshot,
};

use super::{Control, Result, check_id, found, now, page_answer, page_request, required, service_registry::system_parameters};
use crate::{answer::Answer, request::Request};

const SYSTEM: CoreSystem = CoreSystem::EventHandler;
const UNSUBSCRIBE: &str = "/eventhandler/unsubscribe";
const SUBSCRIPTION: &str = "/eventhandler/mgmt/subscriptions/{id}";

impl Control {
    pub(super) async fn subscribe(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let form: Authorized<SubscriptionRequest> = self.permitted_form(SYSTEM, request, admitted)?;
        let put = SubscriptionPut::parse(form, now())?;
        let subscriptions_max = self.subscriptions_max;
        self.change(SYSTEM, move |draft| draft.put_subscription(put, subscriptions_max).map(drop)).await
    }

    pub(super) fn auth_update(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let form: Authorized<PublishForm<'_>> = self.permitted_form(SYSTEM, request, admitted)?;
        auth_update::check(&self.store.snapshot(), &form, now())?;
        Ok(Answer::empty(200))
    }

    pub(super) async fn unsubscribe(&self, request: &Request) -> Result<Answer> {
        let event_type = EventType::parse(required(request, "event_type")?);
        let event_type = event_type.map_err(|error| ArrowheadError::bad_payload(format!("Event type {error}"), UNSUBSCRIBE))?;
        let (name, address, port) = system_parameters(request)?;
        let subscriber = parse_system_parameters(name, address, port, UNSUBSCRIBE)?;
        self.change(SYSTEM, move |draft| draft.unsubscribe(&event_type, &subscriber)).await
    }

    pub(super) fn list_subscriptions(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, "/eventhandler/mgmt/subscriptions")?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, row: &&Arc<Subscription>| page::common_key(field, row.id.0, &row.timestamps);
        page_answer(page::page(&asked, snapshot.subscriptions().values(), &[], key, |row| SubscriptionView::new(&snapshot, row)))
    }

    pub(super) fn show_subscription(&self, id: i64) -> Result<Answer> {
        check_id(id, SUBSCRIPTION)?;
        let snapshot = self.store.snapshot();
        let subscription = found(snapshot.subscriptions().get(&SubscriptionId(id)), "Subscription", id)?;
        Ok(Answer::json(200, &SubscriptionView::new(&snapshot, subscription)))
    }

    pub(super) async fn update_subscription(&self, request: &Request, admitted: Admitted<'_>, id: i64) -> Result<Answer> {
        check_id(id, SUBSCRIPTION)?;
        let form: Authorized<SubscriptionRequest> = self.permitted_form(SYSTEM, request, admitted)?;
        let put = SubscriptionPut::parse(form, now()).map_err(|error| error.at(SUBSCRIPTION))?;
        let view = |snapshot: &Snapshot, id| {
            let subscription = snapshot.subscriptions().get(&id).expect("what was just written is there");
            Answer::json(200, &SubscriptionView::new(snapshot, subscription))
        };
        Ok(self.write(SYSTEM, move |draft| draft.update_subscription(SubscriptionId(id), put), view).await?)
    }

    pub(super) async fn remove_subscription(&self, id: i64) -> Result<Answer> {
        check_id(id, SUBSCRIPTION)?;
        self.change(SYSTEM, move |draft| draft.remove_subscription(SubscriptionId(id))).await
    }
}
