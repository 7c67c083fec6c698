//! The ports of a local cloud.

use bodkin_arrowhead::core_service::CoreSystem;

/// A port of Bodkin's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// A core system's.
    System(CoreSystem),
    /// Bodkin's own.
    Monitor,
}

impl Port {
    /// All ports, in the order they are told. Behind the others is what is not in every cloud.
    pub const ALL: [Self; 7] = [
        Self::System(CoreSystem::ServiceRegistry),
        Self::System(CoreSystem::Authorization),
        Self::System(CoreSystem::Orchestrator),
        Self::System(CoreSystem::EventHandler),
        Self::Monitor,
        Self::System(CoreSystem::Gatekeeper),
        Self::System(CoreSystem::Gateway),
    ];
    /// Where the monitor's is among them.
    pub const MONITOR: usize = 4;

    /// Those of a cloud with so many core systems: the Gatekeeper and the Gateway are not in every cloud.
    pub fn served(core_systems: usize) -> &'static [Self] {
        let all: &'static [Self] = &Self::ALL;
        // The monitor's is one more.
        &all[..=core_systems.max(Self::MONITOR)]
    }

    /// The name it is told by.
    pub fn name(self) -> &'static str {
        match self {
            Self::System(system) => system.name(),
            Self::Monitor => "monitor",
        }
    }

    /// The standard port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::System(system) => system.default_port(),
            Self::Monitor => 8440,
        }
    }
}
