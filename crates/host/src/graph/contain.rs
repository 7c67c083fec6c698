//! Panics of operators, which end a step and nothing else. Every other panic is a broken invariant of ours and stops the process.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread ends no more than an operator's step: the process's panic hook asks.
pub fn is_contained() -> bool {
    IS_CONTAINED.get()
}

/// Runs a step of an operator; gives what it said if it panicked. What the step has changed is not to be used any more then.
pub fn contain<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    IS_CONTAINED.set(true);
    let done = catch_unwind(AssertUnwindSafe(step));
    IS_CONTAINED.set(false);
    done.map_err(|panic| told(&*panic).to_owned())
}

fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_step_and_is_told() {
        assert_eq!(contain(|| (is_contained(), 7)), Ok((true, 7)));
        let number = 3;
        assert_eq!(contain(|| panic!("at {number}")), Err::<(), _>("at 3".to_owned()));
        assert_eq!(contain(|| panic!("no number")), Err::<(), _>("no number".to_owned()));
        assert!(!is_contained());
    }
}
