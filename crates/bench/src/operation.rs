//! The kinds of request under load.

use crate::expectation::{BodyRule, Expectation};

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Registration of a service.
    Register,
    /// Removal of a registered service.
    Unregister,
    /// Service Registry query.
    Query,
    /// Insert of an authorization rule.
    Authorize,
    /// Dynamic orchestration.
    Orchestrate,
    /// Orchestration from the store.
    OrchestrateStore,
    /// A page of registered services.
    List,
    /// Token for a service.
    Token,
    /// Subscription to an event type.
    Subscribe,
    /// Removal of a subscription.
    Unsubscribe,
}

/// What a cloud has to hold, besides services, before an operation can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing, not even services.
    Nothing,
    /// Services.
    Services,
    /// Services and a rule for each.
    Rules,
    /// Those, and an entry of the orchestration store for each.
    Store,
}

impl Operation {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Unregister => "unregister",
            Self::Query => "query",
            Self::Authorize => "authorize",
            Self::Orchestrate => "orchestrate",
            Self::OrchestrateStore => "orchestrate-store",
            Self::List => "list",
            Self::Token => "token",
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }

    /// Whether a request leaves something behind or takes something away.
    pub fn writes(self) -> bool {
        matches!(self, Self::Register | Self::Unregister | Self::Authorize | Self::Subscribe | Self::Unsubscribe)
    }

    /// What the cloud has to hold before.
    pub fn needs(self) -> Needs {
        match self {
            Self::Register | Self::Unregister => Needs::Nothing,
            Self::Query | Self::Authorize | Self::List | Self::Token | Self::Subscribe | Self::Unsubscribe => Needs::Services,
            Self::Orchestrate => Needs::Rules,
            Self::OrchestrateStore => Needs::Store,
        }
    }

    /// A path of its system's that does nothing.
    pub fn echo(self) -> &'static str {
        match self {
            Self::Register | Self::Unregister | Self::Query | Self::List => "/serviceregistry/echo",
            Self::Authorize | Self::Token => "/authorization/echo",
            Self::Orchestrate | Self::OrchestrateStore => "/orchestrator/echo",
            Self::Subscribe | Self::Unsubscribe => "/eventhandler/echo",
        }
    }

    /// What a good answer has.
    pub fn expectation(self) -> Expectation {
        let (status, body) = match self {
            Self::Register => (201, BodyRule::Any),
            // A rule that is there already is answered 201, too, with an empty list.
            Self::Authorize => (201, BodyRule::FilledList("data")),
            Self::Unregister | Self::Subscribe | Self::Unsubscribe => (200, BodyRule::Any),
            Self::Query => (200, BodyRule::FilledList("serviceQueryData")),
            Self::Orchestrate | Self::OrchestrateStore => (200, BodyRule::FilledList("response")),
            Self::List => (200, BodyRule::FilledList("data")),
            // Without keys there are no tokens: Arrowhead says so with this status, and with its own error form.
            Self::Token => (500, BodyRule::Member("exceptionType", "ARROWHEAD")),
        };
        Expectation { status, body }
    }
}
