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

impl CoreSystems {
    /// What a core system logged.
    pub async fn logs(&self, system: CoreSystem, query: &LogQuery, page: &Page) -> Result<List<LogEntry>, CallError> {
        let optional = [
            ("level", query.level.map(LogLevel::as_str)),
            ("from", query.from.as_deref()),
            ("to", query.to.as_deref()),
            ("logger", query.logger.as_deref()),
        ];
        let parameters: Vec<(&str, &str)> = optional.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        self.connection(system).get(&page.of(&format!("/{}/mgmt/logs", system.name()), &parameters)).await
    }

    fn connection(&self, system: CoreSystem) -> &Connection {
        match system {
            CoreSystem::ServiceRegistry => &self.service_registry,
            CoreSystem::Authorization => &self.authorization,
            CoreSystem::Orchestrator => &self.orchestrator,
            CoreSystem::EventHandler => &self.event_handler,
        }
    }
}
