//! What the core systems logged (reference section 1.6).

use bodkin_arrowhead::{core_service::CoreSystem, log::LogLevel};

use crate::{
    answer::{List, LogEntry},
    connection::Connection,
    core_systems::CoreSystems,
    error::CallError,
    page::Page,
};

/// Which entries are asked for. The default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only entries as grave as this, or graver.
    pub level: Option<LogLevel>,
    /// None before this instant (UTC).
    pub from: Option<String>,
    /// None after this instant (UTC).
    pub to: Option<String>,
    /// Only of loggers whose names contain this.
    pub logger: Option<String>,
}

impl LogQuery {
    /// Its query parameters.
    pub(crate) fn parameters(&self) -> Vec<(&str, &str)> {
        let optional = [
            ("level", self.level.map(LogLevel::as_str)),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("logger", self.logger.as_deref()),
        ];
        optional.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

impl CoreSystems {
    /// What a core system logged. Gatekeeper and Gateway are not found through the Service Registry by operators: [`crate::Monitor::system_logs`] has their logs.
    pub async fn logs(&self, system: CoreSystem, query: &LogQuery, page: &Page) -> Result<List<LogEntry>, CallError> {
        self.connection(system)?.get(&page.of(&format!("/{}/mgmt/logs", system.name()), &query.parameters())).await
    }

    fn connection(&self, system: CoreSystem) -> Result<&Connection, CallError> {
        match system {
            CoreSystem::ServiceRegistry => Ok(&self.service_registry),
            CoreSystem::Authorization => Ok(&self.authorization),
            CoreSystem::Orchestrator => Ok(&self.orchestrator),
            CoreSystem::EventHandler => Ok(&self.event_handler),
            CoreSystem::Gatekeeper | CoreSystem::Gateway => Err(CallError::Unreachable {
                address: system.name().to_owned(),
                why: "the Service Registry tells only core systems where it is; its management is on Bodkin's own port as well".to_owned(),
            }),
        }
    }
}
