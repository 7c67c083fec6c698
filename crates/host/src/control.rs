//! The control plane: every operation of the core systems but publish and event streams, as one function of a request.

mod authorization;
mod event_handler;
mod gatekeeper;
mod gateway;
mod logs;
mod orchestrator;
mod ping;
mod service_registry;
mod token;
mod traced;

use std::{
    fmt::Display,
    sync::Arc,
    time::{Instant, SystemTime},
};

use bodkin_arrowhead::{
    access::{Access, Admitted, Claims},
    caller::Authorized,
    core_service::CoreSystem,
    error::ArrowheadError,
    json,
    name::NamingRules,
    orchestrator::Sender,
    page::{Page, PageRequest},
    service_registry::AddressDetection,
    snapshot::Snapshot,
    utc::UtcTime,
};
use bodkin_store::{Draft, OperationError, Store, StoreError};
use serde::{Deserialize, Serialize};

pub use self::{
    gatekeeper::Answered,
    orchestrator::{Given, OrchestratorConfig, expire_reservations},
    ping::{Endpoint, Pings},
};
use crate::{
    answer::{Answer, Refusal},
    audit::{Act, Audit},
    document,
    gatekeeper::Gatekeeper,
    gateway::Gateway,
    inbox::Inbox,
    log_book::LogBook,
    malformed::MalformedLog,
    quality::Qualities,
    quotas::OwnerQuota,
    request::Request,
    route::{self, NoRoute, Operation, Route},
    server::Port,
    stage::{Stage, Stages},
    token::TokenIssuer,
    topics::pushed::PushedWishes,
    trace::{Traces, caused_by},
};

/// What the operations work with.
pub struct Control {
    /// Durable state.
    pub store: Store,
    /// Where time goes.
    pub stages: Arc<Stages>,
    /// The configured naming rules.
    pub naming: NamingRules,
    /// Finds the addresses of systems that do not know their own; `None`: what they give is taken.
    pub address_detection: Option<AddressDetection>,
    /// Connects to providers.
    pub pings: Pings,
    /// What is logged.
    pub log_book: Arc<LogBook>,
    /// Subscriptions by push; one more is refused.
    pub subscriptions_max: usize,
    /// Quota of the rows that one system registers itself.
    pub owner_quota: Arc<OwnerQuota>,
    /// What they ask of real-time topics.
    pub wishes: PushedWishes,
    /// What became of operations.
    pub audit: Audit,
    /// How the Orchestrator is configured.
    pub orchestrator: OrchestratorConfig,
    /// How good providers were measured to be.
    pub qualities: Arc<Qualities>,
    /// Where spans of traces go; `None`: nowhere.
    pub traces: Option<Arc<Traces>>,
    /// Issues Authorization's tokens; `None` in insecure mode, which has no keys.
    pub tokens: Option<Arc<TokenIssuer>>,
    /// The shard, which publishes events of other clouds.
    pub inbox: Arc<Inbox>,
    /// Speaks with the gatekeepers of other clouds; `None` of a cloud that has no Gatekeeper.
    pub gatekeeper: Option<Arc<Gatekeeper>>,
    /// Carries tunnels to and from other clouds; `None` of a cloud that has no Gateway.
    pub gateway: Option<Arc<Gateway>>,
    /// Whether consumers of other clouds reach providers of this one by tunnels only.
    pub gateway_is_mandatory: bool,
    /// Logs requests that are answered without a body.
    pub malformed: MalformedLog,
    /// True if every system may end the subscriptions of others, as upstream has it.
    pub unsubscribe_by_any: bool,
}

type Result<T> = std::result::Result<T, Refusal>;

impl Control {
    /// Carries a request to a core system out. Whatever it is, there is an answer.
    pub async fn answer(&self, system: CoreSystem, request: &Request) -> Answer {
        let routed = route::route(system, request.method, &request.path);
        let operation = routed.as_ref().ok().map(|route| route.operation);
        let (span, cause) = self.begin_answer(request);
        let answer = match cause {
            None => self.answer_routed(system, routed, request).await,
            cause => caused_by(cause, Box::pin(self.answer_routed(system, routed, request))).await,
        };
        self.malformed.note(system, request, &answer);
        self.end_answer(span, system, operation, request, &answer);
        answer
    }

    /// True if the sender may make the request, as far as method and path tell.
    pub fn admits(system: CoreSystem, request: &Request) -> bool {
        let routed = route::route(system, request.method, &request.path);
        route::access(&routed, &request.path).admit(&request.caller).is_ok()
    }

    async fn answer_routed(&self, system: CoreSystem, routed: std::result::Result<Route, NoRoute>, request: &Request) -> Answer {
        // Before anything else is told: nobody learns what is there by its refusals.
        let admitted = match self.access(&routed, &request.path).admit(&request.caller) {
            Ok(admitted) => admitted,
            Err(denial) => return self.audit.denied(request, request.denied(&denial).into()).await,
        };
        let act = routed.as_ref().map_or(Act::Other, |route| Act::of(route, request.method));
        let unavailable = |why: String| Refusal::from(ArrowheadError::unavailable(why)).into();
        self.audit.carry_out(act, request, unavailable, self.answer_admitted(system, routed, request, admitted)).await
    }

    /// Returns whom a request is for that was routed so, by the table and the options that change it.
    pub(crate) fn access(&self, routed: &std::result::Result<Route, NoRoute>, path: &str) -> Access {
        match route::access(routed, path) {
            Access::OwnOrOperator if self.unsubscribe_by_any => Access::Cloud,
            access => access,
        }
    }

    async fn answer_admitted(
        &self,
        system: CoreSystem,
        routed: std::result::Result<Route, NoRoute>,
        request: &Request,
        admitted: Admitted<'_>,
    ) -> Answer {
        let route = match routed {
            Ok(route) => route,
            Err(NoRoute::NotFound) => {
                return document::answer(Port::System(system), request).unwrap_or_else(|| Answer::not_found(&request.path, now()));
            }
            Err(NoRoute::Asked { allow }) => return Answer { header: Some(("Allow", allow)), ..Answer::empty(200) },
            Err(NoRoute::MethodNotAllowed { allow }) => return Answer { header: Some(("Allow", allow)), ..Answer::empty(405) },
            Err(NoRoute::Malformed { .. }) => return Refusal::malformed("the id in the path is not a number").into(),
        };
        if let Some(refusal) = check_body(request) {
            return refusal;
        }
        if let Err(fault) = document::query::check_repeated(system, request) {
            return Refusal::malformed(fault).into();
        }
        self.carry_out(system, route, request, admitted).await.unwrap_or_else(Answer::from)
    }

    /// Operations that a system does for itself ask what it says to be permitted, before anything else.
    async fn carry_out(&self, system: CoreSystem, route: Route, request: &Request, admitted: Admitted<'_>) -> Result<Answer> {
        let (id, text) = (route.id.unwrap_or_default(), route.text.unwrap_or_default());
        match route.operation {
            Operation::Echo => Ok(Answer::text(200, "Got it!")),
            Operation::LogList => self.list_logs(system, request).await,
            Operation::Register => self.register(request, admitted).await,
            Operation::Unregister => self.unregister(request, admitted).await,
            Operation::Query => self.query(request, admitted).await,
            Operation::QueryMulti => self.query_multi(request).await,
            Operation::QuerySystemOfId => self.show_system(id, "/serviceregistry/query/system/{id}"),
            Operation::QuerySystem => self.query_system(request),
            Operation::QueryAll => self.query_all(),
            Operation::QueryProvider => self.query_provider(id),
            Operation::QueryDefinitions => self.query_definitions(request),
            Operation::PullSystems => self.list_systems(request, "/serviceregistry/pull-systems"),
            Operation::PullConfig => self.pull_config(),
            Operation::RegisterSystem => self.register_system(request, admitted).await,
            Operation::UnregisterSystem => self.unregister_system(request, admitted).await,
            Operation::EntryList => self.list_entries(request),
            Operation::EntryListOfDefinition => self.list_entries_of_definition(request, &text),
            Operation::EntryGroups => self.group_entries(),
            Operation::EntryAdd => self.add_entry(request).await,
            Operation::EntryShow => self.show_entry(id),
            Operation::EntryReplace => self.replace_entry(request, id).await,
            Operation::EntryPatch => self.patch_entry(request, id).await,
            Operation::EntryRemove => self.remove_entry(id).await,
            Operation::SystemList => self.list_systems(request, "/serviceregistry/mgmt/systems"),
            Operation::SystemAdd => self.add_system(request).await,
            Operation::SystemShow => self.show_system(id, "/serviceregistry/mgmt/systems/{id}"),
            Operation::SystemReplace => self.replace_system(request, id).await,
            Operation::SystemPatch => self.patch_system(request, id).await,
            Operation::SystemRemove => self.remove_system(id).await,
            Operation::DefinitionList => self.list_definitions(request),
            Operation::DefinitionAdd => self.add_definition(request).await,
            Operation::DefinitionShow => self.show_definition(id),
            Operation::DefinitionRename => self.rename_definition(request, id).await,
            Operation::DefinitionRemove => self.remove_definition(id).await,
            Operation::InterfaceList => self.list_interfaces(request),
            Operation::InterfaceAdd => self.add_interface(request).await,
            Operation::InterfaceShow => self.show_interface(id),
            Operation::InterfaceRename => self.rename_interface(request, id).await,
            Operation::InterfaceRemove => self.remove_interface(id).await,
            Operation::PublicKey => self.public_key(),
            Operation::Token => self.token(request).await,
            Operation::Tokens => self.tokens(request).await,
            Operation::RuleList => self.list_rules(request),
            Operation::RuleAdd => self.add_rules(request).await,
            Operation::RuleShow => self.show_rule(id),
            Operation::RuleRemove => self.remove_rule(id).await,
            Operation::InterCloudRuleList => self.list_inter_cloud_rules(request),
            Operation::InterCloudRuleAdd => self.add_inter_cloud_rules(request).await,
            Operation::InterCloudRuleShow => self.show_inter_cloud_rule(id),
            Operation::InterCloudRuleRemove => self.remove_inter_cloud_rule(id).await,
            Operation::InterCloudCheck => self.check_intercloud(request),
            Operation::IntracloudCheck => self.check_intracloud(request),
            Operation::SubscriptionCheck => self.check_subscription(request),
            Operation::Orchestrate => self.orchestrate(request, admitted, Sender::Requester).await,
            Operation::OrchestrateByProxy => self.orchestrate(request, admitted, Sender::Proxy).await,
            Operation::OrchestrateStored => self.orchestrate_stored(id).await,
            Operation::StoreEntryList => self.list_store_entries(request),
            Operation::StoreEntryAdd => self.add_store_entries(request).await,
            Operation::StoreEntryShow => self.show_store_entry(id),
            Operation::StoreEntryRemove => self.remove_store_entry(id).await,
            Operation::StoreEntryTops => self.list_top_store_entries(request),
            Operation::StoreEntrySearch => self.search_store_entries(request),
            Operation::StoreEntryReorder => self.reorder_store_entries(request).await,
            Operation::FlexibleRuleList => self.list_flexible_rules(request),
            Operation::FlexibleRuleAdd => self.add_flexible_rules(request, "/orchestrator/mgmt/store/flexible").await,
            Operation::FlexibleRuleRemove => self.remove_flexible_rule(id, "/orchestrator/mgmt/store/flexible/{id}").await,
            Operation::FlexibleRuleCreate => self.add_flexible_rules(request, "/orchestrator/store/flexible").await,
            Operation::FlexibleRuleDelete => self.remove_flexible_rule(id, "/orchestrator/store/flexible/{id}").await,
            Operation::FlexibleStoreClear => self.clear_flexible_store().await,
            Operation::ReservationList => self.list_reservations(),
            Operation::ReservationConfirm => self.confirm_reservation(request).await,
            Operation::TemporaryLock => self.lock_temporarily(request).await,
            Operation::QosEnabled => Ok(Answer::text(200, self.orchestrator.quality_interval.is_some().to_string())),
            Operation::AuthUpdate => self.auth_update(request, admitted),
            Operation::Subscribe => self.subscribe(request, admitted).await,
            Operation::Unsubscribe => self.unsubscribe(request, admitted).await,
            Operation::SubscriptionList => self.list_subscriptions(request),
            Operation::SubscriptionShow => self.show_subscription(id),
            Operation::SubscriptionUpdate => self.update_subscription(request, admitted, id).await,
            Operation::SubscriptionRemove => self.remove_subscription(id).await,
            Operation::CloudList => self.list_clouds(request),
            Operation::CloudAdd => self.add_clouds(request).await,
            Operation::CloudShow => self.show_cloud(id),
            Operation::CloudReplace => self.replace_cloud(request, id).await,
            Operation::CloudRemove => self.remove_cloud(id).await,
            Operation::RelayAssign => self.assign_relays(request).await,
            Operation::RelayList => self.list_relays(request),
            Operation::RelayAdd => self.add_relays(request).await,
            Operation::RelayShow => self.show_relay(id),
            Operation::RelayShowAt => self.show_relay_at(&text),
            Operation::RelayReplace => self.replace_relay(request, id).await,
            Operation::RelayRemove => self.remove_relay(id).await,
            Operation::Discover => self.discover(request).await,
            Operation::DiscoverSeveral => self.discover_several(request).await,
            Operation::Negotiate => self.negotiate(request).await,
            Operation::CloudPull => Ok(self.pull_clouds()),
            Operation::SystemAddressCollect => self.collect_system_addresses(request).await,
            Operation::AccessTypeCollect => self.collect_access_types(request).await,
            Operation::RelayTest => self.test_relay(request).await,
            Operation::CloudShowNamed => self.show_cloud_named(&text),
            Operation::GatewayKey => self.gateway_key(),
            Operation::ProviderConnect => Box::pin(self.connect_provider(request)).await,
            Operation::ConsumerConnect => Box::pin(self.connect_consumer(request)).await,
            Operation::SessionsClose => self.close_sessions(request),
            Operation::SessionList => self.list_sessions(request),
            Operation::SessionClose => self.close_session(request),
            Operation::Publish | Operation::EventStream => unreachable!("the shard serves events itself"),
        }
    }

    fn record(&self, system: CoreSystem, stage: Stage, since: Instant) {
        self.stages.record(system, stage, since.elapsed());
    }

    /// Parses a JSON body that is an object.
    fn form<'r, T: Deserialize<'r>>(&self, system: CoreSystem, request: &'r Request) -> Result<T> {
        self.parsed(system, request, json::parse_object)
    }

    /// Parses a JSON body that is an object, and asks whether its sender may say it.
    fn permitted_form<'r, T: Deserialize<'r> + Claims>(
        &self,
        system: CoreSystem,
        request: &'r Request,
        admitted: Admitted<'_>,
    ) -> Result<Authorized<T>> {
        admitted.permit(self.form(system, request)?).map_err(|denial| request.denied(&denial))
    }

    /// Parses a JSON body that is a list of objects; a `null` element is `None`.
    fn forms<'r, T: Deserialize<'r>>(&self, system: CoreSystem, request: &'r Request) -> Result<Vec<Option<T>>> {
        self.parsed(system, request, json::parse_objects)
    }

    /// Parses a JSON body that need not be an object.
    fn parsed<'r, T, E: Display>(
        &self,
        system: CoreSystem,
        request: &'r Request,
        parse: impl FnOnce(&'r str) -> std::result::Result<T, E>,
    ) -> Result<T> {
        let started = Instant::now();
        let text = std::str::from_utf8(&request.body).map_err(Refusal::malformed)?;
        let parsed = parse(text).map_err(Refusal::malformed);
        self.record(system, Stage::Parse, started);
        parsed
    }

    /// Carries an operation out durably, and notes how long it waited and worked.
    async fn write<I, T, O, V>(&self, system: CoreSystem, operation: O, view: V) -> std::result::Result<T, StoreError>
    where
        I: Send + 'static,
        T: Send + 'static,
        O: FnOnce(&mut Draft<'_>) -> std::result::Result<I, OperationError> + Send + 'static,
        V: FnOnce(&Snapshot, I) -> T + Send + 'static,
    {
        let sent = Instant::now();
        let timed = move |draft: &mut Draft<'_>| {
            let begun = Instant::now();
            operation(draft).map(|id| (begun, id))
        };
        let (begun, result) = self.store.write(timed, |snapshot, (begun, id)| (begun, view(snapshot, id))).await?;
        self.stages.record(system, Stage::Queue, begun - sent);
        self.record(system, Stage::Database, begun);
        Ok(result)
    }

    /// Carries out an operation whose success is an empty 200.
    async fn change<O>(&self, system: CoreSystem, operation: O) -> Result<Answer>
    where
        O: FnOnce(&mut Draft<'_>) -> std::result::Result<(), OperationError> + Send + 'static,
    {
        self.write(system, operation, |_, ()| ()).await?;
        Ok(Answer::empty(200))
    }
}

/// The host's clock.
pub fn now() -> UtcTime {
    UtcTime::from_system_time(SystemTime::now()).expect("the clock shows a year from 1970 to 9999")
}

/// Upstream's filters in front of every operation (reference 1.2).
pub fn check_body(request: &Request) -> Option<Answer> {
    let refused = |why: &str| Answer::from(Refusal::Arrowhead(ArrowheadError::bad_payload(why, &request.url)));
    if !request.method.has_body() {
        return (!request.body.is_empty()).then(|| refused("This method takes no body."));
    }
    if request.says_empty {
        return Some(refused("This method needs a body.").and_close());
    }
    if request.body.is_empty() {
        return Some(Refusal::malformed("the body is missing").into());
    }
    (!is_json(&request.content_type)).then(|| Refusal::NotJson(request.content_type.clone()).into())
}

/// Whether a `Content-Type` says that a body is JSON.
pub fn is_json(content_type: &str) -> bool {
    const SUFFIX: &str = "+json";
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let suffix = media_type.len().checked_sub(SUFFIX.len()).and_then(|at| media_type.get(at..));
    media_type.eq_ignore_ascii_case("application/json") || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(SUFFIX))
}

/// The refusal of a request without a query parameter.
pub fn missing(parameter: &str) -> Refusal {
    Refusal::malformed(format_args!("the query parameter '{parameter}' is missing"))
}

/// The refusal of a request whose query parameter is not a number.
pub fn not_a_number(parameter: &str) -> Refusal {
    Refusal::malformed(format_args!("the query parameter '{parameter}' is not a number"))
}

/// A query parameter that must be there.
fn required<'r>(request: &'r Request, name: &str) -> Result<&'r str> {
    request.parameter(name).ok_or_else(|| missing(name))
}

/// A query parameter that must be a number if it is there; empty is absent.
fn number(request: &Request, name: &str) -> Result<Option<i64>> {
    let text = request.parameter(name).map(str::trim).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(|_| not_a_number(name))).transpose()
}

/// The paging parameters of a list.
fn page_request(request: &Request, origin: &str) -> Result<PageRequest> {
    let (page, items) = (number(request, "page")?, number(request, "item_per_page")?);
    Ok(PageRequest::parse(page, items, request.parameter("direction"), request.parameter("sort_field"), origin)?)
}

fn page_answer<T: Serialize>(page: std::result::Result<Page<T>, ArrowheadError>) -> Result<Answer> {
    Ok(Answer::list(&page?))
}

/// Refuses ids below 1, as upstream's controllers do.
fn check_id(id: i64, origin: &str) -> Result<()> {
    if id < 1 { Err(ArrowheadError::bad_payload("Id must be greater than 0.", origin).into()) } else { Ok(()) }
}

/// The row of an id, or upstream's refusal.
fn found<T>(row: Option<T>, what: &str, id: i64) -> Result<T> {
    row.ok_or_else(|| ArrowheadError::invalid_parameter(format!("{what} with id '{id}' does not exist.")).into())
}
