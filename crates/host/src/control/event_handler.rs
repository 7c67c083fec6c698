//! Endpoints of the Event Handler, without events themselves (reference section 6).

use std::sync::Arc;

use bodkin_arrowhead::{
    access::{Admitted, Claim},
    auth_update,
    caller::Authorized,
    core_service::CoreSystem,
    error::ArrowheadError,
    event_handler::{SubscriptionPut, SubscriptionView},
    form::SubscriptionRequest,
    name::EventType,
    page,
    publication::PublishForm,
    record::{Subscription, SubscriptionBounds, SubscriptionId, SystemId},
    service_registry::parse_system_parameters,
    snapshot::Snapshot,
    system::SystemKey,
};
use bodkin_store::Draft;

use super::{Control, Result, check_id, found, now, page_answer, page_request, required, service_registry::system_parameters};
use crate::{answer::Answer, request::Request};

const SYSTEM: CoreSystem = CoreSystem::EventHandler;
const UNSUBSCRIBE: &str = "/eventhandler/unsubscribe";
const SUBSCRIPTION: &str = "/eventhandler/mgmt/subscriptions/{id}";

/// Who is subscribed by push, once at most to each event type.
#[derive(Clone, PartialEq)]
struct Whose {
    event_type: EventType,
    subscriber: SystemId,
}

impl Whose {
    /// `None`: the subscriber is not registered.
    fn of(snapshot: &Snapshot, event_type: &EventType, subscriber: &SystemKey) -> Option<Self> {
        let subscriber = snapshot.system_by_key(subscriber.as_str())?.id;
        Some(Self { event_type: event_type.clone(), subscriber })
    }

    fn of_row(snapshot: &Snapshot, id: SubscriptionId) -> Option<Self> {
        let row = snapshot.subscriptions().get(&id)?;
        let event_type = snapshot.event_type(row.event_type)?.event_type_name.clone();
        Some(Self { event_type, subscriber: row.subscriber })
    }
}

impl Control {
    pub(super) async fn subscribe(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let form: Authorized<SubscriptionRequest> = self.permitted_form(SYSTEM, request, admitted)?;
        let put = SubscriptionPut::parse(form, now())?;
        let (subscriptions_max, whose) = (self.subscriptions_max, Whose::of(&self.store.snapshot(), &put.event_type, &put.subscriber));
        self.ask_bounds(whose.as_ref(), put.bounds).await?;
        let quota = self.owner_quota.clone();
        let put = move |draft: &mut Draft<'_>| draft.put_subscription(put, subscriptions_max).and_then(|_| quota.check(draft));
        let made = self.change(SYSTEM, put).await;
        self.settle_bounds(whose).await;
        made
    }

    /// Has a topic be as strict as a subscription asks that is about to be made. One whose subscriber is not registered is refused by the database.
    async fn ask_bounds(&self, whose: Option<&Whose>, bounds: SubscriptionBounds) -> Result<()> {
        let Some(Whose { event_type, subscriber }) = whose.filter(|_| !bounds.is_none()).cloned() else { return Ok(()) };
        let wishes = self.wishes.clone();
        // Among many topics, to find what would have to change takes its time.
        let asked = tokio::task::spawn_blocking(move || wishes.ask(&event_type, subscriber, bounds)).await;
        let refused = |told: String| ArrowheadError::invalid_parameter(format!("The subscription was not made: {told}.")).into();
        asked.map_err(|error| refused(error.to_string()))?.map_err(|error| refused(error.to_string()))
    }

    /// Has a topic be as strict as a subscription asks that is there now, behind an operation that may have made it, changed it, removed it, or failed.
    async fn settle_bounds(&self, whose: Option<Whose>) {
        let Some(Whose { event_type, subscriber }) = whose else { return };
        let (wishes, store) = (self.wishes.clone(), self.store.clone());
        let asked = tokio::task::spawn_blocking(move || {
            if !wishes.is_topic(&event_type) {
                return Ok(());
            }
            let snapshot = store.snapshot();
            let is_it = |row: &&Arc<Subscription>| snapshot.event_type(row.event_type).is_some_and(|of| of.event_type_name == event_type);
            let bounds = snapshot.subscriptions_of(subscriber).find(is_it).map(|row| row.bounds).unwrap_or_default();
            wishes.ask(&event_type, subscriber, bounds)
        });
        match asked.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "a pushed subscription has not got what it asks of its topic: another one has taken the room")
            }
            Err(error) => tracing::error!(%error, "what a pushed subscription asks was not looked at"),
        }
    }

    pub(super) fn auth_update(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let form: Authorized<PublishForm<'_>> = self.permitted_form(SYSTEM, request, admitted)?;
        auth_update::check(&self.store.snapshot(), &form, now())?;
        Ok(Answer::empty(200))
    }

    pub(super) async fn unsubscribe(&self, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        admitted.permit(Claim::of_system(request.parameter("system_name"))).map_err(|denial| request.denied(&denial))?;
        let event_type = EventType::parse(required(request, "event_type")?);
        let event_type = event_type.map_err(|error| ArrowheadError::bad_payload(format!("Event type {error}"), UNSUBSCRIBE))?;
        let (name, address, port) = system_parameters(request)?;
        let subscriber = parse_system_parameters(name, address, port, UNSUBSCRIBE)?;
        let whose = Whose::of(&self.store.snapshot(), &event_type, &subscriber);
        let ended = self.change(SYSTEM, move |draft| draft.unsubscribe(&event_type, &subscriber)).await;
        self.settle_bounds(whose).await;
        ended
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
        let (former, whose) = {
            let snapshot = self.store.snapshot();
            (Whose::of_row(&snapshot, SubscriptionId(id)), Whose::of(&snapshot, &put.event_type, &put.subscriber))
        };
        self.ask_bounds(whose.as_ref(), put.bounds).await?;
        let made = self.write(SYSTEM, move |draft| draft.update_subscription(SubscriptionId(id), put), view).await;
        self.settle_bounds(former.filter(|former| Some(former) != whose.as_ref())).await;
        self.settle_bounds(whose).await;
        Ok(made?)
    }

    pub(super) async fn remove_subscription(&self, id: i64) -> Result<Answer> {
        check_id(id, SUBSCRIPTION)?;
        let whose = Whose::of_row(&self.store.snapshot(), SubscriptionId(id));
        let removed = self.change(SYSTEM, move |draft| draft.remove_subscription(SubscriptionId(id))).await;
        self.settle_bounds(whose).await;
        removed
    }
}
