//! An allocator that counts what one thread takes.

#![allow(unsafe_code)] // A counting allocator has to be one; it only counts and passes on.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    backtrace::Backtrace,
    cell::Cell,
    sync::{
        Mutex,
        atomic::{AtomicI32, AtomicU64, Ordering::SeqCst},
    },
};

/// Counts the allocations of one thread.
struct Counting;

/// The thread whose allocations count; 0 is none.
static THREAD: AtomicI32 = AtomicI32::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread writes down where it allocates, which allocates.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    let counted = THREAD.load(SeqCst);
    if counted != 0 && counted == nix::unistd::gettid().as_raw() && !IS_TELLING.get() {
        // A number alone does not say what to mend, and where a rare one comes from is not to be had a second time.
        if ALLOCATIONS.fetch_add(1, SeqCst) == 0 {
            IS_TELLING.set(true);
            eprintln!("the first allocation comes from\n{}", Backtrace::force_capture());
            IS_TELLING.set(false);
        }
    }
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

/// Held by the one test that runs a shard.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How often `thread` allocates while `work` is done.
pub fn allocations(thread: i32, work: impl FnOnce()) -> u64 {
    ALLOCATIONS.store(0, SeqCst);
    THREAD.store(thread, SeqCst);
    work();
    THREAD.store(0, SeqCst);
    ALLOCATIONS.load(SeqCst)
}

/// This thread's id.
pub fn this_thread() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// The shard's thread id.
pub fn shard_thread() -> i32 {
    thread("shard-0")
}

/// A thread's id, by its name.
pub fn thread(name: &str) -> i32 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let has_name = |task: &std::path::PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|found| found.trim() == name);
    let found = tasks.into_iter().find(has_name);
    found.unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap()
}
