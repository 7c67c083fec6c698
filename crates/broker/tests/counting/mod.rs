//! An allocator that counts, for tests that nothing is taken from it.

#![allow(unsafe_code)] // A counting allocator has to be one; it only counts and passes on.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// What this thread has taken while it was counted; none: it is not. Tests run beside each other.
    static ALLOCATIONS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Counts what the threads take that ask for it.
struct Counting;

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get().map(|allocations| allocations + 1));
}

// SAFETY: every call is passed on to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What this thread takes from the allocator while it works.
pub fn allocations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.set(Some(0));
    work();
    ALLOCATIONS.take().expect("it was counted")
}
