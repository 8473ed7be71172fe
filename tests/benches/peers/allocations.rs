//! Counts this process's allocations, if it is told to.
#![expect(
    unsafe_code,
    reason = "only an allocator sees every allocation, and its trait is unsafe"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTS: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator. In a process that does not count, it reads one constant flag more.
struct Counting;

/// From now on.
pub(crate) fn count() {
    COUNTS.store(true, Ordering::Relaxed);
}

/// How many so far. `None` if this process does not count.
pub(crate) fn so_far() -> Option<u64> {
    let counts = COUNTS.load(Ordering::Relaxed);
    counts.then(|| COUNT.load(Ordering::Relaxed))
}

fn one_more() {
    if COUNTS.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        one_more();
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        one_more();
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        one_more();
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }
}
