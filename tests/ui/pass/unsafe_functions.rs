//! `unsafe async fn`: its body is as unsafe as without the attribute. Not part of the crate, which forbids it.
#![allow(clippy::unwrap_used, reason = "a failing example panics")]
#![deny(warnings, missing_docs, rust_2018_idioms)]

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "unsafe:<a>")]
async unsafe fn unsafe_function(a: u8, pointer: Pointer) -> Result<u8, LockError> {
    // SAFETY: the caller says that it points to something.
    Ok(a + unsafe { *pointer.0 })
}

struct Pointer(*const u8);

fn main() {
    support::run(async {
        let value = 4;
        // SAFETY: `value` is there.
        let sum = unsafe { unsafe_function(3, Pointer(&value)) }.await;
        assert_eq!(sum.unwrap(), 7);
    });
}
