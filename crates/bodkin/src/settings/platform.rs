//! What the options say of the machine: what deadlines and leases count on, and how threads run.

use bodkin_broker::topic::{Platform, form::read_platform};
use bodkin_host::realtime::RealtimeConfig;

use super::Settings;

impl Settings {
    /// What topics and the pair count on: a configuration without the table `[platform]` says what an empty one does.
    pub fn platform(&self) -> Platform {
        let unstated = || read_platform([]).expect("nothing stated is nothing wrong");
        self.declared.as_ref().map_or_else(unstated, |declared| declared.platform)
    }

    /// What complete settings say of threads and memory.
    pub fn realtime(&self) -> RealtimeConfig {
        let all = "complete settings have every option";
        RealtimeConfig {
            scheduling: self.scheduling.expect(all),
            pin_cores: self.pin_cores.clone().expect(all),
            lock_memory: self.lock_memory.expect(all),
            load_max_percent: self.platform().load_max_percent,
        }
    }
}
