//! Which operation a method and path of a core system name.

mod operation;

use bodkin_arrowhead::{
    access::{Access, PRIVILEGED},
    core_service::CoreSystem,
};

pub use self::operation::Operation;
use crate::request::Method;

/// An operation, and the parameter of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What is to be done.
    pub operation: Operation,
    /// Whom it is for.
    pub access: Access,
    /// The path's `{id}`; `None` where the path has none.
    pub id: Option<i64>,
    /// The path's parameter of another name, or two with a slash between them; `None` where the path has none.
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
    Malformed {
        /// Whom the operation is for.
        access: Access,
    },
    /// `OPTIONS`: which methods are there?
    Asked {
        /// The `Allow` header.
        allow: String,
    },
}

type Row = (CoreSystem, Method, &'static str, Operation, Access);

/// Whom publishing is for; the shard finds it without the table.
pub const PUBLISH: Access = Access::Own;

/// Every operation with its path below the system's base path, and whom it is for in secure mode (reference section 11).
const ROUTES: &[Row] = {
    use Access::{Cloud, CoreSystems, Only, Operator, OperatorAnd, Own, OwnNeeds, OwnOrOperator, OwnServices, OwnSystem, Query};
    use CoreSystem::{Authorization, EventHandler, Gatekeeper, Gateway, Orchestrator, ServiceRegistry};
    use Method::{Delete, Get, Patch, Post, Put};
    &[
        (ServiceRegistry, Get, "echo", Operation::Echo, Cloud),
        (ServiceRegistry, Get, "mgmt/logs", Operation::LogList, Operator),
        (ServiceRegistry, Post, "register", Operation::Register, OwnServices),
        (ServiceRegistry, Delete, "unregister", Operation::Unregister, Own),
        (ServiceRegistry, Post, "query", Operation::Query, Query),
        (ServiceRegistry, Post, "register-system", Operation::RegisterSystem, OwnSystem),
        (ServiceRegistry, Delete, "unregister-system", Operation::UnregisterSystem, OwnSystem),
        (ServiceRegistry, Post, "query/multi", Operation::QueryMulti, Only(PRIVILEGED)),
        (ServiceRegistry, Get, "query/system/{id}", Operation::QuerySystemOfId, Only(&["orchestrator"])),
        (ServiceRegistry, Post, "query/system", Operation::QuerySystem, Only(&["orchestrator", "choreographer"])),
        (ServiceRegistry, Get, "query/all", Operation::QueryAll, Only(&["qosmonitor", "gatekeeper"])),
        (ServiceRegistry, Get, "query/provider/{id}", Operation::QueryProvider, Only(&["choreographer"])),
        (ServiceRegistry, Post, "query/definition", Operation::QueryDefinitions, Only(&["choreographer"])),
        (ServiceRegistry, Get, "pull-systems", Operation::PullSystems, Only(&["plantdescriptionengine"])),
        (ServiceRegistry, Get, "pull-config", Operation::PullConfig, CoreSystems),
        (ServiceRegistry, Get, "mgmt/systems", Operation::SystemList, Operator),
        (ServiceRegistry, Post, "mgmt/systems", Operation::SystemAdd, Operator),
        (ServiceRegistry, Get, "mgmt/systems/{id}", Operation::SystemShow, Operator),
        (ServiceRegistry, Put, "mgmt/systems/{id}", Operation::SystemReplace, Operator),
        (ServiceRegistry, Patch, "mgmt/systems/{id}", Operation::SystemPatch, Operator),
        (ServiceRegistry, Delete, "mgmt/systems/{id}", Operation::SystemRemove, Operator),
        (ServiceRegistry, Get, "mgmt/services", Operation::DefinitionList, Operator),
        (ServiceRegistry, Post, "mgmt/services", Operation::DefinitionAdd, Operator),
        (ServiceRegistry, Get, "mgmt/services/{id}", Operation::DefinitionShow, Operator),
        (ServiceRegistry, Put, "mgmt/services/{id}", Operation::DefinitionRename, Operator),
        (ServiceRegistry, Patch, "mgmt/services/{id}", Operation::DefinitionRename, Operator),
        (ServiceRegistry, Delete, "mgmt/services/{id}", Operation::DefinitionRemove, Operator),
        (ServiceRegistry, Get, "mgmt/interfaces", Operation::InterfaceList, Operator),
        (ServiceRegistry, Post, "mgmt/interfaces", Operation::InterfaceAdd, Operator),
        (ServiceRegistry, Get, "mgmt/interfaces/{id}", Operation::InterfaceShow, Operator),
        (ServiceRegistry, Put, "mgmt/interfaces/{id}", Operation::InterfaceRename, Operator),
        (ServiceRegistry, Patch, "mgmt/interfaces/{id}", Operation::InterfaceRename, Operator),
        (ServiceRegistry, Delete, "mgmt/interfaces/{id}", Operation::InterfaceRemove, Operator),
        (ServiceRegistry, Get, "mgmt", Operation::EntryList, Operator),
        (ServiceRegistry, Post, "mgmt", Operation::EntryAdd, Operator),
        (ServiceRegistry, Get, "mgmt/servicedef/{serviceDefinition}", Operation::EntryListOfDefinition, Operator),
        (ServiceRegistry, Get, "mgmt/grouped", Operation::EntryGroups, Operator),
        (ServiceRegistry, Get, "mgmt/{id}", Operation::EntryShow, Operator),
        (ServiceRegistry, Put, "mgmt/{id}", Operation::EntryReplace, Operator),
        (ServiceRegistry, Patch, "mgmt/{id}", Operation::EntryPatch, Operator),
        (ServiceRegistry, Delete, "mgmt/{id}", Operation::EntryRemove, Operator),
        (Authorization, Get, "echo", Operation::Echo, Cloud),
        (Authorization, Get, "mgmt/logs", Operation::LogList, Operator),
        (Authorization, Get, "publickey", Operation::PublicKey, Cloud),
        (Authorization, Get, "mgmt/intracloud", Operation::RuleList, OperatorAnd(&["onboardingcontroller", "mscv"])),
        (Authorization, Post, "mgmt/intracloud", Operation::RuleAdd, OperatorAnd(&["onboardingcontroller", "mscv"])),
        (Authorization, Get, "mgmt/intracloud/{id}", Operation::RuleShow, Operator),
        (Authorization, Delete, "mgmt/intracloud/{id}", Operation::RuleRemove, Operator),
        (Authorization, Get, "mgmt/intercloud", Operation::InterCloudRuleList, Operator),
        (Authorization, Post, "mgmt/intercloud", Operation::InterCloudRuleAdd, Operator),
        (Authorization, Get, "mgmt/intercloud/{id}", Operation::InterCloudRuleShow, Operator),
        (Authorization, Delete, "mgmt/intercloud/{id}", Operation::InterCloudRuleRemove, Operator),
        (Authorization, Post, "intercloud/check", Operation::InterCloudCheck, Only(&["orchestrator", "gatekeeper"])),
        (Authorization, Post, "intracloud/check", Operation::IntracloudCheck, Only(&["orchestrator", "gatekeeper"])),
        (Authorization, Post, "subscription/check", Operation::SubscriptionCheck, Only(&["eventhandler"])),
        (Authorization, Post, "token", Operation::Token, Only(&["orchestrator", "choreographer"])),
        (Authorization, Post, "token/multi", Operation::Tokens, Only(&["orchestrator", "choreographer"])),
        (Orchestrator, Get, "echo", Operation::Echo, Cloud),
        (Orchestrator, Get, "mgmt/logs", Operation::LogList, Operator),
        (Orchestrator, Post, "orchestration", Operation::Orchestrate, OwnNeeds),
        (Orchestrator, Get, "orchestration/{id}", Operation::OrchestrateStored, Cloud),
        (Orchestrator, Post, "orchestration-by-proxy", Operation::OrchestrateByProxy, Only(&["choreographer"])),
        (Orchestrator, Get, "mgmt/store", Operation::StoreEntryList, Operator),
        (Orchestrator, Post, "mgmt/store", Operation::StoreEntryAdd, Operator),
        (Orchestrator, Get, "mgmt/store/{id}", Operation::StoreEntryShow, Operator),
        (Orchestrator, Delete, "mgmt/store/{id}", Operation::StoreEntryRemove, Operator),
        (Orchestrator, Get, "mgmt/store/all_top_priority", Operation::StoreEntryTops, Operator),
        (Orchestrator, Post, "mgmt/store/all_by_consumer", Operation::StoreEntrySearch, Operator),
        (Orchestrator, Post, "mgmt/store/modify_priorities", Operation::StoreEntryReorder, Operator),
        (Orchestrator, Get, "mgmt/store/flexible", Operation::FlexibleRuleList, Operator),
        (Orchestrator, Post, "mgmt/store/flexible", Operation::FlexibleRuleAdd, Operator),
        (Orchestrator, Delete, "mgmt/store/flexible/{id}", Operation::FlexibleRuleRemove, Operator),
        (Orchestrator, Post, "store/flexible", Operation::FlexibleRuleCreate, Only(&["plantdescriptionengine"])),
        (Orchestrator, Delete, "store/flexible/{id}", Operation::FlexibleRuleDelete, Only(&["plantdescriptionengine"])),
        (Orchestrator, Delete, "store/flexible/all", Operation::FlexibleStoreClear, Only(&["plantdescriptionengine"])),
        (Orchestrator, Get, "qos_enabled", Operation::QosEnabled, Only(&["gatekeeper"])),
        (Orchestrator, Get, "qos_reservations", Operation::ReservationList, Only(&["gatekeeper"])),
        (Orchestrator, Post, "qos_reservations", Operation::ReservationConfirm, Only(&["gatekeeper"])),
        (Orchestrator, Post, "qos_temporary_lock", Operation::TemporaryLock, Only(&["gatekeeper"])),
        (EventHandler, Get, "echo", Operation::Echo, Cloud),
        (EventHandler, Get, "mgmt/logs", Operation::LogList, Operator),
        (EventHandler, Post, "publish", Operation::Publish, PUBLISH),
        (EventHandler, Post, "publish/authupdate", Operation::AuthUpdate, Only(&["authorization"])),
        (EventHandler, Post, "subscribe", Operation::Subscribe, Own),
        (EventHandler, Delete, "unsubscribe", Operation::Unsubscribe, OwnOrOperator),
        (EventHandler, Get, "mgmt/subscriptions", Operation::SubscriptionList, Operator),
        (EventHandler, Get, "mgmt/subscriptions/{id}", Operation::SubscriptionShow, Operator),
        (EventHandler, Put, "mgmt/subscriptions/{id}", Operation::SubscriptionUpdate, Operator),
        (EventHandler, Delete, "mgmt/subscriptions/{id}", Operation::SubscriptionRemove, Operator),
        (EventHandler, Get, "subscription", Operation::EventStream, Own),
        (EventHandler, Get, "events", Operation::EventStream, Own),
        (Gatekeeper, Get, "echo", Operation::Echo, Cloud),
        (Gatekeeper, Get, "mgmt/logs", Operation::LogList, Operator),
        (Gatekeeper, Get, "mgmt/clouds", Operation::CloudList, Operator),
        (Gatekeeper, Post, "mgmt/clouds", Operation::CloudAdd, Operator),
        (Gatekeeper, Get, "mgmt/clouds/{id}", Operation::CloudShow, Operator),
        (Gatekeeper, Put, "mgmt/clouds/{id}", Operation::CloudReplace, Operator),
        (Gatekeeper, Delete, "mgmt/clouds/{id}", Operation::CloudRemove, Operator),
        (Gatekeeper, Post, "mgmt/clouds/assign", Operation::RelayAssign, Operator),
        (Gatekeeper, Get, "mgmt/relays", Operation::RelayList, Operator),
        (Gatekeeper, Post, "mgmt/relays", Operation::RelayAdd, Operator),
        (Gatekeeper, Get, "mgmt/relays/{id}", Operation::RelayShow, Operator),
        (Gatekeeper, Put, "mgmt/relays/{id}", Operation::RelayReplace, Operator),
        (Gatekeeper, Delete, "mgmt/relays/{id}", Operation::RelayRemove, Operator),
        (Gatekeeper, Get, "mgmt/relays/{address}/{port}", Operation::RelayShowAt, Operator),
        (Gatekeeper, Post, "init_gsd", Operation::Discover, Only(&["orchestrator"])),
        (Gatekeeper, Post, "init_multi_gsd", Operation::DiscoverSeveral, Only(&["choreographer"])),
        (Gatekeeper, Post, "init_icn", Operation::Negotiate, Only(&["orchestrator"])),
        (Gatekeeper, Get, "pull_clouds", Operation::CloudPull, Only(&["qosmonitor"])),
        (Gatekeeper, Post, "collect_system_addresses", Operation::SystemAddressCollect, Only(&["qosmonitor"])),
        (Gatekeeper, Post, "collect_access_types", Operation::AccessTypeCollect, Only(&["qosmonitor"])),
        (Gatekeeper, Post, "init_relay_test", Operation::RelayTest, Only(&["qosmonitor"])),
        (Gatekeeper, Get, "cloud/{operator}/{name}", Operation::CloudShowNamed, Only(&["orchestrator", "qosmonitor"])),
        (Gateway, Get, "echo", Operation::Echo, Cloud),
        (Gateway, Get, "mgmt/logs", Operation::LogList, Operator),
        (Gateway, Get, "publickey", Operation::GatewayKey, Only(&["gatekeeper"])),
        (Gateway, Post, "connect_provider", Operation::ProviderConnect, Only(&["gatekeeper"])),
        (Gateway, Post, "connect_consumer", Operation::ConsumerConnect, Only(&["gatekeeper"])),
        (Gateway, Post, "close_sessions", Operation::SessionsClose, Only(&["choreographer"])),
        (Gateway, Get, "mgmt/sessions", Operation::SessionList, Operator),
        (Gateway, Post, "mgmt/sessions/close", Operation::SessionClose, Operator),
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
            let route = Route { operation: row.3, access: row.4, id: None, text: None };
            match parameter(row.2, below) {
                None => Ok(route),
                Some(("id", id)) => Ok(Route { id: Some(id.parse().map_err(|_| NoRoute::Malformed { access: row.4 })?), ..route }),
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

/// Whom a request is for that was routed so. What is below `/mgmt`, be it there or not, is told to the operator only.
pub fn access(routed: &Result<Route, NoRoute>, path: &str) -> Access {
    match routed {
        Ok(Route { access, .. }) | Err(NoRoute::Malformed { access }) => *access,
        Err(_) if path.split('/').any(|part| part == "mgmt") => Access::Operator,
        Err(_) => Access::Cloud,
    }
}

/// The names of the pattern's parameters (which end it), and what stands in their place.
fn parameter<'p>(pattern: &'static str, path: &'p str) -> Option<(&'static str, &'p str)> {
    let (prefix, names) = pattern.strip_suffix('}')?.split_once('{')?;
    let value = path.strip_prefix(prefix)?;
    let fits = value.split('/').count() == names.split('/').count() && value.split('/').all(|part| !part.is_empty());
    fits.then_some((names, value))
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
        check(Method::Get, "/serviceregistry/mgmt/x", Err(NoRoute::Malformed { access: Access::Operator }));
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
    fn a_path_may_end_with_two_texts() {
        let found = |path| route(CoreSystem::Gatekeeper, Method::Get, path).map(|route| (route.operation, route.id, route.text));
        assert_eq!(
            found("/gatekeeper/mgmt/relays/relay.example/61617"),
            Ok((Operation::RelayShowAt, None, Some("relay.example/61617".into())))
        );
        assert_eq!(found("/gatekeeper/mgmt/relays/7"), Ok((Operation::RelayShow, Some(7), None)));
        assert_eq!(found("/gatekeeper/cloud/aitia/two"), Ok((Operation::CloudShowNamed, None, Some("aitia/two".into()))));
        for path in ["/gatekeeper/cloud/aitia", "/gatekeeper/cloud/aitia/", "/gatekeeper/cloud//two", "/gatekeeper/cloud/a/b/c"] {
            assert_eq!(found(path), Err(NoRoute::NotFound), "{path}");
        }
    }

    #[test]
    fn a_path_may_end_with_a_text() {
        let found = |path| route(CoreSystem::ServiceRegistry, Method::Get, path).map(|route| (route.operation, route.text));
        let operation = Operation::EntryListOfDefinition;
        assert_eq!(found("/serviceregistry/mgmt/servicedef/7"), Ok((operation, Some("7".into()))));
        assert_eq!(found("/serviceregistry/mgmt/servicedef/a b"), Ok((operation, Some("a b".into()))));
        assert_eq!(found("/serviceregistry/mgmt/servicedef/a/b"), Err(NoRoute::NotFound));
        assert_eq!(found("/serviceregistry/mgmt/servicedef"), Err(NoRoute::Malformed { access: Access::Operator }));
    }
}
