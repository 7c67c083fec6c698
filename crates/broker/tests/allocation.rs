//! From an event's acceptance to its discard the machine allocates nothing, once its tables have grown; nor does a graph that it is processed by.

#![allow(unsafe_code)] // A counting allocator has to be one; it only counts and passes on.

#[path = "../examples/work_per_hop/workload.rs"]
mod graph;
#[path = "../examples/work_per_message/workload.rs"]
mod workload;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use workload::Workload;

const TOPICS: usize = 300;
/// Turns of few and of many events.
const BURSTS: [usize; 3] = [1, 17, TOPICS];

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Counts what the threads take that ask for it.
struct Counting;

fn count() {
    if IS_COUNTED.get() {
        ALLOCATIONS.fetch_add(1, Relaxed);
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

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(Relaxed);
    IS_COUNTED.set(true);
    work();
    IS_COUNTED.set(false);
    ALLOCATIONS.load(Relaxed) - before
}

#[test]
fn accepting_dispatching_replicating_and_covering_allocate_nothing() {
    assert_ne!(allocations(|| drop(std::hint::black_box(vec![1]))), 0, "allocations are counted");
    for is_eager in [false, true] {
        let mut workload = Workload::new(TOPICS, is_eager);
        let mut rounds = |times| (0..times).for_each(|_| BURSTS.iter().for_each(|burst| workload.round(*burst)));
        rounds(1);
        assert_eq!(allocations(|| rounds(20)), 0, "{} events, eager: {is_eager}", 20 * BURSTS.len() * TOPICS);
        workload.check(is_eager);
    }
}

#[test]
fn processing_in_a_graph_allocates_nothing() {
    let mut graph = graph::Workload::new(5);
    let mut rounds = |times| (0..times).for_each(|_| graph.round());
    rounds(1);
    assert_eq!(allocations(|| rounds(100)), 0, "{} hops", 100 * 5 * 7);
    graph.check();
}
