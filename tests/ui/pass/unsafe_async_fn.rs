//! `unsafe async fn`: its body is as unsafe as without the attribute.
#![deny(warnings, missing_docs, rust_2018_idioms)]

use lock_runtime::{LockClient, LockError, distributed_lock};

#[distributed_lock(key = "unsafe:<a>")]
async unsafe fn unsafe_function(a: u8, pointer: Pointer) -> Result<u8, LockError> {
    // SAFETY: the caller guarantees that the pointer is valid.
    Ok(a + unsafe { *pointer.0 })
}

struct Pointer(*const u8);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let value = 4;
    // SAFETY: `value` lives until the call is done.
    let call = unsafe { unsafe_function(3, Pointer(&value)) };
    let sum = LockClient::in_memory().scope(call).await;
    assert_eq!(sum.unwrap(), 7);
}
