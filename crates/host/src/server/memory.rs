//! Returns memory to the system after a flood of requests: the allocator alone keeps it.

use std::time::Duration;

use crate::{
    monitor::resident_memory_bytes,
    realtime::{free_memory_bytes, release_free_memory},
};

/// How often the process's memory is read.
const PERIOD: Duration = Duration::from_secs(10);
/// Free memory that the allocator keeps for the next requests, in bytes.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;

/// Reads the allocator's free memory until it is stopped, and returns it to the system when there was much at two readings.
///
/// Reading it blocks the allocator's arenas, so a process that has not grown is left alone: real-time threads allocate, too.
pub(super) async fn release() {
    let (mut base, mut before) = (resident_memory_bytes(), 0);
    loop {
        tokio::time::sleep(PERIOD).await;
        let has_grown = resident_memory_bytes() > base + KEPT_BYTES;
        let free = if has_grown { free_memory_bytes() as u64 } else { 0 };
        if !is_to_be_released(before, free) {
            before = free;
            continue;
        }
        match release_free_memory() {
            Ok(()) => tracing::debug!(bytes = free, "free memory returned to the system"),
            Err(error) => tracing::warn!(%error, "memory not locked again after free memory was returned to the system"),
        }
        (base, before) = (resident_memory_bytes(), 0);
    }
}

/// True if the free memory is more than is kept, and was so at the reading before: requests under way do not need it.
fn is_to_be_released(before: u64, now: u64) -> bool {
    before.min(now) > KEPT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_released_at_the_second_look() {
        assert!(!is_to_be_released(0, 2 * KEPT_BYTES));
        assert!(!is_to_be_released(2 * KEPT_BYTES, KEPT_BYTES));
        assert!(is_to_be_released(KEPT_BYTES + 1, KEPT_BYTES + 1));
    }
}
