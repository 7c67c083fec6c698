//! How long a test waits for something that must happen, and how it waits.

use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for one answer, event or exit. Generous: it is reached only by a failing test.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Time between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until `happened` answers true; false when `PATIENCE` has passed without it.
pub fn eventually(mut happened: impl FnMut() -> bool) -> bool {
    eventually_some(|| happened().then_some(())).is_some()
}

/// Waits until `look` finds something; `None` when `PATIENCE` has passed without it.
pub fn eventually_some<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(LOOK_EVERY);
    }
}
