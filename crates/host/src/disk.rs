//! The disk of the data directory: how much room there is, and whether the database takes changes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bodkin_store::{Store, event_log::EventLogReader};
use nix::sys::statvfs::statvfs;
use tokio::time::{MissedTickBehavior, interval};

use crate::{audit::Audit, config::HostConfig, pair::Leadership};

/// Between two looks at a database that has refused a change.
const LOOK: Duration = Duration::from_secs(1);
/// Room from which on it is tried again: a change has a few pages, and a page alone may fit where no change does.
const ROOM_BYTES_MIN: u64 = 1 << 20;

/// The disk of the data directory.
pub struct DataDisk {
    directory: PathBuf,
    event_log_bytes_max: u64,
    store: Store,
}

impl DataDisk {
    /// That of a cloud with this configuration.
    pub fn of(config: &HostConfig, store: &Store) -> Self {
        let event_log_bytes_max = config.event_log.map_or(0, |limits| limits.bytes_max);
        Self { directory: config.data.clone(), event_log_bytes_max, store: store.clone() }
    }

    /// Bytes that this process may still write there; `None` where the system does not tell.
    pub fn free_bytes(&self) -> Option<u64> {
        let system = statvfs(&self.directory).ok()?;
        // On processors of 32 bits both are shorter.
        let free = u128::from(system.blocks_available()) * u128::from(system.fragment_size());
        Some(u64::try_from(free).unwrap_or(u64::MAX))
    }

    /// What the event log's files may have together at the most; 0 where there is none.
    pub fn event_log_bytes_max(&self) -> u64 {
        self.event_log_bytes_max
    }

    /// Whether the database did not take the last change.
    pub fn refuses(&self) -> bool {
        self.store.refusal().is_some()
    }

    /// Commits that the database has refused since the start.
    pub fn refused_commits(&self) -> u64 {
        self.store.refused_commits()
    }

    /// Retries a database that has refused a change, so that the trouble ends in a quiet cloud too: its own when there is room on this disk, a shared one at
    /// each look. A leader of a pair learns whether it refuses changes or events. Runs until it is aborted.
    pub async fn watch(self, log: Option<EventLogReader>, audit: Audit, leadership: Option<Arc<Leadership>>) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let has_room = || self.store.standing().is_some() || self.free_bytes().is_none_or(|free| free >= ROOM_BYTES_MIN);
            if self.refuses() && has_room() {
                self.store.try_again();
            }
            if let Some(leadership) = &leadership {
                let is_log_suspended = log.as_ref().is_some_and(|log| log.state().suspended.is_some());
                leadership.note_refusing(self.refuses() || is_log_suspended || audit.log().check().is_err());
            }
        }
    }
}
