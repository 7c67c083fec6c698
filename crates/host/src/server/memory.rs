//! Returns memory to the system after a flood of requests: the allocator alone keeps it.

use std::time::Duration;

use crate::realtime::{free_memory_bytes, release_free_memory};

/// How often the allocator's free memory is read.
const PERIOD: Duration = Duration::from_secs(10);
/// Free memory that the allocator keeps for the next requests, in bytes.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// Looks at the allocator's free memory until it is stopped, and returns it to the system when there has been much at two looks.
pub(super) async fn release() {
    let mut before = 0;
    loop {
        tokio::time::sleep(PERIOD).await;
        let free = free_memory_bytes();
        if is_to_be_released(before, free) {
            match release_free_memory() {
                Ok(()) => tracing::debug!(bytes = free, "free memory returned to the system"),
                Err(error) => tracing::warn!(%error, "memory not locked again after free memory was returned to the system"),
            }
            before = 0;
        } else {
            before = free;
        }
    }
}

/// True if the free memory is more than is kept, and was so at the look before: requests under way do not need it.
fn is_to_be_released(before: usize, now: usize) -> bool {
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
