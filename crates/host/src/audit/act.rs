//! What an operation is to the audit log, by its route.

use bodkin_arrowhead::{access::Access, audit::Kind};

use crate::{
    request::Method,
    route::{Operation, Route},
};

/// What an operation is to the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Changes what management rules over.
    Change,
    /// Tells a consumer whom it may use.
    Orchestration,
    /// Gives tokens out.
    Token,
    /// Gives a certificate out.
    Certificate,
    /// Only its denial is of interest.
    Other,
}

impl Act {
    /// What an operation of a core system is.
    pub fn of(route: &Route, method: Method) -> Self {
        match route.operation {
            Operation::Orchestrate | Operation::OrchestrateByProxy | Operation::OrchestrateStored => Self::Orchestration,
            Operation::Token | Operation::Tokens => Self::Token,
            // Asks by POST.
            Operation::StoreEntrySearch => Self::Other,
            // A core system's, and rules all the same.
            Operation::FlexibleRuleCreate | Operation::FlexibleRuleDelete | Operation::FlexibleStoreClear => Self::Change,
            _ if changes(method) && matches!(route.access, Access::Operator | Access::OperatorAnd(_)) => Self::Change,
            _ => Self::Other,
        }
    }

    /// What an operation of Bodkin's own interface is; `path` is below its base.
    pub fn of_own(path: &str, method: Method) -> Self {
        match path {
            "onboarding" => Self::Certificate,
            // Ask by POST.
            "orchestration" | "services/query" => Self::Other,
            _ if path.starts_with("clouds/") && (path.ends_with("/ping") || path.ends_with("/relay-test")) => Self::Other,
            _ if changes(method) => Self::Change,
            _ => Self::Other,
        }
    }

    /// The kind of the entry that an answer makes; `None` if it makes none.
    pub(super) fn kind(self, status: u16) -> Option<Kind> {
        match self {
            _ if is_denial(status) => Some(Kind::Denial),
            Self::Change => Some(Kind::Change),
            _ if !is_success(status) => None,
            Self::Orchestration => Some(Kind::Orchestration),
            Self::Token => Some(Kind::Token),
            Self::Certificate => Some(Kind::Certificate),
            Self::Other => None,
        }
    }

    /// Whether its success is told only when the log has it on disk.
    pub(super) fn is_awaited(self) -> bool {
        matches!(self, Self::Change | Self::Certificate)
    }
}

/// Whether an answer refuses what the caller has no right to.
pub fn is_denial(status: u16) -> bool {
    matches!(status, 401 | 403 | 429)
}

pub(super) fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

fn changes(method: Method) -> bool {
    matches!(method, Method::Post | Method::Put | Method::Patch | Method::Delete)
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::core_service::CoreSystem;

    use super::*;
    use crate::route;

    #[test]
    fn every_route_that_management_changes_something_by_is_a_change() {
        let mut found = Vec::new();
        for system in CoreSystem::ALL {
            for (method, pattern) in route::of_system(system) {
                let path = format!("/{}/{}", system.name(), pattern.replace("{id}", "7").replace("{serviceDefinition}", "x"));
                let act = Act::of(&route::route(system, method, &path).unwrap(), method);
                let below_mgmt = pattern.split('/').next() == Some("mgmt");
                let expected = match (method, pattern) {
                    (Method::Post, "orchestration" | "orchestration-by-proxy") | (Method::Get, "orchestration/{id}") => Act::Orchestration,
                    (Method::Post, "token" | "token/multi") => Act::Token,
                    (Method::Post, "mgmt/store/all_by_consumer") => Act::Other,
                    (Method::Post | Method::Delete, _) if pattern.starts_with("store/flexible") => Act::Change,
                    (Method::Get, _) => Act::Other,
                    _ if below_mgmt => Act::Change,
                    _ => Act::Other,
                };
                assert_eq!(act, expected, "{method:?} {path}");
                found.push(act);
            }
        }
        assert_eq!(found.iter().filter(|act| **act == Act::Orchestration).count(), 3);
        assert!(found.iter().filter(|act| **act == Act::Change).count() > 25);
    }

    #[test]
    fn of_the_own_interface_everything_that_does_not_read_is_a_change() {
        for (path, method, expected) in [
            ("dead-letters", Method::Get, Act::Other),
            ("dead-letters", Method::Delete, Act::Change),
            ("subscriptions/7/pause", Method::Post, Act::Change),
            ("onboarding", Method::Post, Act::Certificate),
            ("orchestration", Method::Post, Act::Other),
            ("services/query", Method::Post, Act::Other),
            ("onboarding/grants", Method::Post, Act::Change),
        ] {
            assert_eq!(Act::of_own(path, method), expected, "{path}");
        }
    }
}
