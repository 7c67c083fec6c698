//! Which operation a method and path of a core system name.

use bodkin_arrowhead::core_service::CoreSystem;

use crate::request::Method;

/// The operations of the four core systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `Got it!`
    Echo,
    /// What the system logged.
    LogList,
    /// Service Registry: client operations.
    Register,
    /// Removes a service.
    Unregister,
    /// Finds services.
    Query,
    /// Answers several queries.
    QueryMulti,
    /// Core systems' questions: the system of an id.
    QuerySystemOfId,
    /// The system of a name, address and port.
    QuerySystem,
    /// All services.
    QueryAll,
    /// The services of a provider.
    QueryProvider,
    /// The services of several definitions.
    QueryDefinitions,
    /// All systems.
    PullSystems,
    /// The rules for names and addresses.
    PullConfig,
    /// Makes a system.
    RegisterSystem,
    /// Removes a system.
    UnregisterSystem,
    /// Management lists and rows of the registry.
    EntryList,
    /// Makes a service by management.
    EntryAdd,
    /// The services of a definition.
    EntryListOfDefinition,
    /// All services by system and by definition.
    EntryGroups,
    /// One service.
    EntryShow,
    /// Replaces a service.
    EntryReplace,
    /// Changes members of a service.
    EntryPatch,
    /// Removes a service by id.
    EntryRemove,
    /// All systems.
    SystemList,
    /// Makes a system by management.
    SystemAdd,
    /// One system.
    SystemShow,
    /// Replaces a system.
    SystemReplace,
    /// Changes members of a system.
    SystemPatch,
    /// Removes a system by id.
    SystemRemove,
    /// All service definitions.
    DefinitionList,
    /// Makes a service definition.
    DefinitionAdd,
    /// Renames a service definition.
    DefinitionRename,
    /// One service definition.
    DefinitionShow,
    /// Removes a service definition by id.
    DefinitionRemove,
    /// All interfaces.
    InterfaceList,
    /// Makes an interface.
    InterfaceAdd,
    /// Renames an interface.
    InterfaceRename,
    /// One interface.
    InterfaceShow,
    /// Removes an interface by id.
    InterfaceRemove,
    /// Authorization: the public key.
    PublicKey,
    /// All intracloud rules.
    RuleList,
    /// Makes intracloud rules.
    RuleAdd,
    /// One intracloud rule.
    RuleShow,
    /// Removes an intracloud rule by id.
    RuleRemove,
    /// All intercloud rules.
    InterCloudRuleList,
    /// Makes intercloud rules.
    InterCloudRuleAdd,
    /// One intercloud rule.
    InterCloudRuleShow,
    /// Removes an intercloud rule by id.
    InterCloudRuleRemove,
    /// May another cloud use providers?
    InterCloudCheck,
    /// May a consumer use providers?
    IntracloudCheck,
    /// Whom may a consumer hear?
    SubscriptionCheck,
    /// Makes tokens.
    Token,
    /// Makes tokens for several services.
    Tokens,
    /// Orchestrator: what should a consumer use?
    Orchestrate,
    /// The same, asked by a core system for the consumer.
    OrchestrateByProxy,
    /// What should a consumer use by the orchestration store?
    OrchestrateStored,
    /// All entries of the orchestration store.
    StoreEntryList,
    /// Makes entries of the orchestration store.
    StoreEntryAdd,
    /// One entry of the orchestration store.
    StoreEntryShow,
    /// Removes an entry of the orchestration store by id.
    StoreEntryRemove,
    /// All entries of the orchestration store with priority 1.
    StoreEntryTops,
    /// The entries of a consumer for a service.
    StoreEntrySearch,
    /// Gives the entries of a group new priorities.
    StoreEntryReorder,
    /// All rules of the flexible store.
    FlexibleRuleList,
    /// Makes rules of the flexible store by management.
    FlexibleRuleAdd,
    /// Removes a rule of the flexible store by id, by management.
    FlexibleRuleRemove,
    /// Makes rules of the flexible store.
    FlexibleRuleCreate,
    /// Removes a rule of the flexible store by id.
    FlexibleRuleDelete,
    /// Removes all rules of the flexible store.
    FlexibleStoreClear,
    /// All reservations.
    ReservationList,
    /// Keeps a provider for a consumer.
    ReservationConfirm,
    /// Holds providers while a consumer chooses.
    TemporaryLock,
    /// Whether quality of service is managed.
    QosEnabled,
    /// Event Handler: publishes an event.
    Publish,
    /// Says that a subscriber's rules have changed.
    AuthUpdate,
    /// Makes a subscription.
    Subscribe,
    /// Removes a subscription.
    Unsubscribe,
    /// All subscriptions.
    SubscriptionList,
    /// One subscription.
    SubscriptionShow,
    /// Makes a subscription another one.
    SubscriptionUpdate,
    /// Removes a subscription by id.
    SubscriptionRemove,
    /// An event stream; only the shard can serve it.
    EventStream,
}

impl Operation {
    /// Whether its path is below `/mgmt`.
    pub fn is_management(self) -> bool {
        ROUTES.iter().any(|row| row.3 == self && row.2.starts_with("mgmt"))
    }
}

/// An operation, and the parameter of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What is to be done.
    pub operation: Operation,
    /// The path's `{id}`; `None` where the path has none.
    pub id: Option<i64>,
    /// The path's parameter of another name; `None` where the path has none.
    pub text: Option<String>,
}

/// Why a method and path name no operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// Nothing is at this path.
    NotFound,
    /// Something is, but not for this method.
    MethodNotAllowed {
        /// The `Allow` header.
        allow: String,
    },
    /// The path's id is not a number.
    Malformed,
    /// `OPTIONS`: which methods are there?
    Asked {
        /// The `Allow` header.
        allow: String,
    },
}

type Row = (CoreSystem, Method, &'static str, Operation);

/// Every operation with its path below the system's base path.
const ROUTES: &[Row] = {
    use CoreSystem::{Authorization, EventHandler, Orchestrator, ServiceRegistry};
    use Method::{Delete, Get, Patch, Post, Put};
    &[
        (ServiceRegistry, Get, "echo", Operation::Echo),
        (ServiceRegistry, Get, "mgmt/logs", Operation::LogList),
        (ServiceRegistry, Post, "register", Operation::Register),
        (ServiceRegistry, Delete, "unregister", Operation::Unregister),
        (ServiceRegistry, Post, "query", Operation::Query),
        (ServiceRegistry, Post, "register-system", Operation::RegisterSystem),
        (ServiceRegistry, Delete, "unregister-system", Operation::UnregisterSystem),
        (ServiceRegistry, Post, "query/multi", Operation::QueryMulti),
        (ServiceRegistry, Get, "query/system/{id}", Operation::QuerySystemOfId),
        (ServiceRegistry, Post, "query/system", Operation::QuerySystem),
        (ServiceRegistry, Get, "query/all", Operation::QueryAll),
        (ServiceRegistry, Get, "query/provider/{id}", Operation::QueryProvider),
        (ServiceRegistry, Post, "query/definition", Operation::QueryDefinitions),
        (ServiceRegistry, Get, "pull-systems", Operation::PullSystems),
        (ServiceRegistry, Get, "pull-config", Operation::PullConfig),
        (ServiceRegistry, Get, "mgmt/systems", Operation::SystemList),
        (ServiceRegistry, Post, "mgmt/systems", Operation::SystemAdd),
        (ServiceRegistry, Get, "mgmt/systems/{id}", Operation::SystemShow),
        (ServiceRegistry, Put, "mgmt/systems/{id}", Operation::SystemReplace),
        (ServiceRegistry, Patch, "mgmt/systems/{id}", Operation::SystemPatch),
        (ServiceRegistry, Delete, "mgmt/systems/{id}", Operation::SystemRemove),
        (ServiceRegistry, Get, "mgmt/services", Operation::DefinitionList),
        (ServiceRegistry, Post, "mgmt/services", Operation::DefinitionAdd),
        (ServiceRegistry, Get, "mgmt/services/{id}", Operation::DefinitionShow),
        (ServiceRegistry, Put, "mgmt/services/{id}", Operation::DefinitionRename),
        (ServiceRegistry, Patch, "mgmt/services/{id}", Operation::DefinitionRename),
        (ServiceRegistry, Delete, "mgmt/services/{id}", Operation::DefinitionRemove),
        (ServiceRegistry, Get, "mgmt/interfaces", Operation::InterfaceList),
        (ServiceRegistry, Post, "mgmt/interfaces", Operation::InterfaceAdd),
        (ServiceRegistry, Get, "mgmt/interfaces/{id}", Operation::InterfaceShow),
        (ServiceRegistry, Put, "mgmt/interfaces/{id}", Operation::InterfaceRename),
        (ServiceRegistry, Patch, "mgmt/interfaces/{id}", Operation::InterfaceRename),
        (ServiceRegistry, Delete, "mgmt/interfaces/{id}", Operation::InterfaceRemove),
        (ServiceRegistry, Get, "mgmt", Operation::EntryList),
        (ServiceRegistry, Post, "mgmt", Operation::EntryAdd),
        (ServiceRegistry, Get, "mgmt/servicedef/{serviceDefinition}", Operation::EntryListOfDefinition),
        (ServiceRegistry, Get, "mgmt/grouped", Operation::EntryGroups),
        (ServiceRegistry, Get, "mgmt/{id}", Operation::EntryShow),
        (ServiceRegistry, Put, "mgmt/{id}", Operation::EntryReplace),
        (ServiceRegistry, Patch, "mgmt/{id}", Operation::EntryPatch),
        (ServiceRegistry, Delete, "mgmt/{id}", Operation::EntryRemove),
        (Authorization, Get, "echo", Operation::Echo),
        (Authorization, Get, "mgmt/logs", Operation::LogList),
        (Authorization, Get, "publickey", Operation::PublicKey),
        (Authorization, Get, "mgmt/intracloud", Operation::RuleList),
        (Authorization, Post, "mgmt/intracloud", Operation::RuleAdd),
        (Authorization, Get, "mgmt/intracloud/{id}", Operation::RuleShow),
        (Authorization, Delete, "mgmt/intracloud/{id}", Operation::RuleRemove),
        (Authorization, Get, "mgmt/intercloud", Operation::InterCloudRuleList),
        (Authorization, Post, "mgmt/intercloud", Operation::InterCloudRuleAdd),
        (Authorization, Get, "mgmt/intercloud/{id}", Operation::InterCloudRuleShow),
        (Authorization, Delete, "mgmt/intercloud/{id}", Operation::InterCloudRuleRemove),
        (Authorization, Post, "intercloud/check", Operation::InterCloudCheck),
        (Authorization, Post, "intracloud/check", Operation::IntracloudCheck),
        (Authorization, Post, "subscription/check", Operation::SubscriptionCheck),
        (Authorization, Post, "token", Operation::Token),
        (Authorization, Post, "token/multi", Operation::Tokens),
        (Orchestrator, Get, "echo", Operation::Echo),
        (Orchestrator, Get, "mgmt/logs", Operation::LogList),
        (Orchestrator, Post, "orchestration", Operation::Orchestrate),
        (Orchestrator, Get, "orchestration/{id}", Operation::OrchestrateStored),
        (Orchestrator, Post, "orchestration-by-proxy", Operation::OrchestrateByProxy),
        (Orchestrator, Get, "mgmt/store", Operation::StoreEntryList),
        (Orchestrator, Post, "mgmt/store", Operation::StoreEntryAdd),
        (Orchestrator, Get, "mgmt/store/{id}", Operation::StoreEntryShow),
        (Orchestrator, Delete, "mgmt/store/{id}", Operation::StoreEntryRemove),
        (Orchestrator, Get, "mgmt/store/all_top_priority", Operation::StoreEntryTops),
        (Orchestrator, Post, "mgmt/store/all_by_consumer", Operation::StoreEntrySearch),
        (Orchestrator, Post, "mgmt/store/modify_priorities", Operation::StoreEntryReorder),
        (Orchestrator, Get, "mgmt/store/flexible", Operation::FlexibleRuleList),
        (Orchestrator, Post, "mgmt/store/flexible", Operation::FlexibleRuleAdd),
        (Orchestrator, Delete, "mgmt/store/flexible/{id}", Operation::FlexibleRuleRemove),
        (Orchestrator, Post, "store/flexible", Operation::FlexibleRuleCreate),
        (Orchestrator, Delete, "store/flexible/{id}", Operation::FlexibleRuleDelete),
        (Orchestrator, Delete, "store/flexible/all", Operation::FlexibleStoreClear),
        (Orchestrator, Get, "qos_enabled", Operation::QosEnabled),
        (Orchestrator, Get, "qos_reservations", Operation::ReservationList),
        (Orchestrator, Post, "qos_reservations", Operation::ReservationConfirm),
        (Orchestrator, Post, "qos_temporary_lock", Operation::TemporaryLock),
        (EventHandler, Get, "echo", Operation::Echo),
        (EventHandler, Get, "mgmt/logs", Operation::LogList),
        (EventHandler, Post, "publish", Operation::Publish),
        (EventHandler, Post, "publish/authupdate", Operation::AuthUpdate),
        (EventHandler, Post, "subscribe", Operation::Subscribe),
        (EventHandler, Delete, "unsubscribe", Operation::Unsubscribe),
        (EventHandler, Get, "mgmt/subscriptions", Operation::SubscriptionList),
        (EventHandler, Get, "mgmt/subscriptions/{id}", Operation::SubscriptionShow),
        (EventHandler, Put, "mgmt/subscriptions/{id}", Operation::SubscriptionUpdate),
        (EventHandler, Delete, "mgmt/subscriptions/{id}", Operation::SubscriptionRemove),
        (EventHandler, Get, "subscription", Operation::EventStream),
        (EventHandler, Get, "events", Operation::EventStream),
    ]
};

/// Methods and paths of a system's operations.
pub fn of_system(system: CoreSystem) -> impl Iterator<Item = (Method, &'static str)> {
    ROUTES.iter().filter(move |row| row.0 == system).map(|row| (row.1, row.2))
}

/// Finds the operation. `path` is without query and trailing slash; `HEAD` is taken as `GET`.
pub fn route(system: CoreSystem, method: Method, path: &str) -> Result<Route, NoRoute> {
    let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(system.name())).and_then(|path| path.strip_prefix('/'));
    let Some(below) = below else { return Err(NoRoute::NotFound) };
    let method = if method == Method::Head { Method::Get } else { method };
    // A fixed path goes before one with an id, as `mgmt/systems` before `mgmt/{id}`.
    let of_system = || ROUTES.iter().filter(move |row| row.0 == system);
    let fixed = of_system().any(|row| row.2 == below);
    let matching = || of_system().filter(move |row| if fixed { row.2 == below } else { parameter(row.2, below).is_some() });
    match matching().find(|row| row.1 == method) {
        Some(row) => {
            let route = Route { operation: row.3, id: None, text: None };
            match parameter(row.2, below) {
                None => Ok(route),
                Some(("id", id)) => Ok(Route { id: Some(id.parse().map_err(|_| NoRoute::Malformed)?), ..route }),
                Some((_, text)) => Ok(Route { text: Some(text.to_owned()), ..route }),
            }
        }
        None => {
            let methods: Vec<Method> = matching().map(|row| row.1).collect();
            let takes_head = matching().any(|row| row.1 == Method::Get && row.3 != Operation::EventStream);
            match method {
                _ if methods.is_empty() => Err(NoRoute::NotFound),
                Method::Options => Err(NoRoute::Asked { allow: allow_for_options(&methods, takes_head) }),
                _ => Err(NoRoute::MethodNotAllowed { allow: allow(&methods) }),
            }
        }
    }
}

/// The name of the pattern's parameter, and what stands in its place.
fn parameter<'p>(pattern: &'static str, path: &'p str) -> Option<(&'static str, &'p str)> {
    let (prefix, name) = pattern.strip_suffix('}')?.split_once('{')?;
    let value = path.strip_prefix(prefix).filter(|value| !value.is_empty() && !value.contains('/'))?;
    Some((name, value))
}

/// The `Allow` header of a 405.
pub fn allow(methods: &[Method]) -> String {
    methods.iter().map(|method| method.word()).collect::<Vec<_>>().join(", ")
}

/// The `Allow` header of an answer to `OPTIONS`.
pub fn allow_for_options(methods: &[Method], takes_head: bool) -> String {
    allow(methods) + if takes_head { ", HEAD, OPTIONS" } else { ", OPTIONS" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, path: &str, expected: Result<(Operation, Option<i64>), NoRoute>) {
        let found = route(CoreSystem::ServiceRegistry, method, path).map(|route| (route.operation, route.id));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn fixed_paths_go_before_ids() {
        check(Method::Get, "/serviceregistry/mgmt/systems", Ok((Operation::SystemList, None)));
        check(Method::Get, "/serviceregistry/mgmt/7", Ok((Operation::EntryShow, Some(7))));
        check(Method::Head, "/serviceregistry/echo", Ok((Operation::Echo, None)));
        check(Method::Delete, "/serviceregistry/mgmt/systems/-7", Ok((Operation::SystemRemove, Some(-7))));
        check(Method::Get, "/serviceregistry/mgmt/x", Err(NoRoute::Malformed));
        check(Method::Get, "/serviceregistry/nothing", Err(NoRoute::NotFound));
        check(Method::Get, "/authorization/echo", Err(NoRoute::NotFound));
        check(Method::Get, "/", Err(NoRoute::NotFound));
        check(Method::Put, "/serviceregistry/register", Err(NoRoute::MethodNotAllowed { allow: "POST".into() }));
        check(Method::Options, "/serviceregistry/mgmt/7", Err(NoRoute::Asked { allow: "GET, PUT, PATCH, DELETE, HEAD, OPTIONS".into() }));
        check(Method::Options, "/serviceregistry/register", Err(NoRoute::Asked { allow: "POST, OPTIONS".into() }));
        check(Method::Options, "/serviceregistry/nothing", Err(NoRoute::NotFound));
        check(Method::Post, "/serviceregistry/mgmt/7", Err(NoRoute::MethodNotAllowed { allow: "GET, PUT, PATCH, DELETE".into() }));
        check(Method::Patch, "/serviceregistry/mgmt/services/7", Ok((Operation::DefinitionRename, Some(7))));
        check(Method::Get, "/serviceregistry/mgmt/grouped", Ok((Operation::EntryGroups, None)));
    }

    #[test]
    fn a_path_may_end_with_a_text() {
        let found = |path| route(CoreSystem::ServiceRegistry, Method::Get, path).map(|route| (route.operation, route.text));
        let operation = Operation::EntryListOfDefinition;
        assert_eq!(found("/serviceregistry/mgmt/servicedef/7"), Ok((operation, Some("7".into()))));
        assert_eq!(found("/serviceregistry/mgmt/servicedef/a b"), Ok((operation, Some("a b".into()))));
        assert_eq!(found("/serviceregistry/mgmt/servicedef/a/b"), Err(NoRoute::NotFound));
        assert_eq!(found("/serviceregistry/mgmt/servicedef"), Err(NoRoute::Malformed));
    }
}
