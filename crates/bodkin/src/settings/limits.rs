//! What the cloud takes on, and for how long it waits.

use std::time::Duration;

use anyhow::bail;
use bodkin_host::{DeliveryPolicy, Limits};

use super::Settings;

impl Settings {
    /// What complete settings say.
    pub(super) fn limits(&self) -> anyhow::Result<Limits> {
        let all = "complete settings have every option";
        let ms = |option: Option<u64>| Duration::from_millis(option.expect(all));
        Ok(Limits {
            connections_max: self.connections_max.expect(all),
            client_connections_max: self.client_connections_max.expect(all),
            owner_rows_max: self.owner_rows_max.expect(all),
            owner_bytes_max: self.owner_bytes_max.expect(all),
            handshake_timeout: ms(self.handshake_timeout_ms),
            header_timeout: ms(self.header_timeout_ms),
            body_timeout: ms(self.body_timeout_ms),
            idle_timeout: ms(self.idle_timeout_ms),
            send_timeout: ms(self.send_timeout_ms),
            stream_stall_timeout: ms(self.stream_stall_timeout_ms),
            heartbeat: ms(self.heartbeat_ms),
            body_bytes_max: self.body_bytes_max.expect(all),
            event_bytes_max: self.event_bytes_max.expect(all),
            subscriptions_max: self.subscriptions_max.expect(all),
            event_types_max: self.event_types_max.expect(all),
            subscriber_queue_bytes_max: self.subscriber_queue_bytes_max.expect(all),
            push_timeout: ms(self.push_timeout_ms),
            neighbor_timeout: ms(self.neighbor_timeout_ms),
            tunnel_idle_timeout: self.tunnels()?.idle_timeout,
            delivery: delivery(self)?,
            dead_letters_max: self.dead_letters_max.expect(all),
        })
    }
}

/// How patient push is; what would never try or never wait is refused.
fn delivery(settings: &Settings) -> anyhow::Result<DeliveryPolicy> {
    let all = "complete settings have every option";
    let ms = |option: Option<u64>| Duration::from_millis(option.expect(all));
    let policy = DeliveryPolicy {
        attempts_max: settings.push_attempts_max.expect(all),
        breaker_failures: settings.push_breaker_failures.expect(all),
        backoff_min: ms(settings.push_backoff_min_ms),
        backoff_max: ms(settings.push_backoff_max_ms),
        give_up: Duration::from_secs(settings.push_give_up_s.expect(all)),
    };
    if policy.attempts_max == 0 || policy.breaker_failures == 0 || policy.backoff_min.is_zero() {
        bail!("push_attempts_max, push_breaker_failures and push_backoff_min_ms must be at least 1");
    }
    if policy.backoff_max < policy.backoff_min {
        bail!("push_backoff_max_ms must not be less than push_backoff_min_ms");
    }
    Ok(policy)
}
