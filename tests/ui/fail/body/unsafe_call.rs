//! An `unsafe async fn` called as if it were safe.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async unsafe fn work(pointer: *const u8) -> Result<u8, LockError> {
    Ok(unsafe { *pointer })
}

fn main() {
    let _ = work(std::ptr::null());
}
