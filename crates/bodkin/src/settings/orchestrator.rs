//! How the Orchestrator is configured.

use std::time::Duration;

use anyhow::bail;
use bodkin_arrowhead::orchestrator::{StoreKind, reservation::ReservationTimes};
use bodkin_host::OrchestratorConfig;

use super::Settings;

impl Settings {
    /// What complete settings say.
    pub(super) fn orchestrator(&self) -> anyhow::Result<OrchestratorConfig> {
        let all = "complete settings have every option";
        let seconds = |option: Option<u64>| Duration::from_secs(option.expect(all));
        let reservation_check_interval = seconds(self.qos_reservation_check_interval_s);
        if reservation_check_interval.is_zero() {
            bail!("--qos-reservation-check-interval-s must be at least 1");
        }
        let measurement_interval = seconds(self.qos_measurement_interval_s);
        if measurement_interval.is_zero() {
            bail!("--qos-measurement-interval-s must be at least 1");
        }
        Ok(OrchestratorConfig {
            store: if self.use_flexible_store.expect(all) { StoreKind::Flexible } else { StoreKind::Plain },
            reservations: ReservationTimes {
                lock: seconds(self.qos_reservation_temp_lock_duration_s),
                maximum: seconds(self.qos_maximum_reservation_duration_s),
            },
            reservation_check_interval,
            quality_interval: self.enable_qos.expect(all).then_some(measurement_interval),
        })
    }
}
