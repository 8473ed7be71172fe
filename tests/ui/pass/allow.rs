//! `#[allow]` and `#[expect]` on the function and inside its body.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "allowed:<a>")]
#[allow(unused_variables)]
async fn with_allow(a: u8, unused: u8) -> Result<(), LockError> {
    let also_unused = 1;
    Ok(())
}

#[distributed_lock(key = "inner:<a>")]
async fn with_inner_attribute(a: u8) -> Result<(), LockError> {
    #![allow(unused_variables)]
    let unused = 1;
    Ok(())
}

#[expect(unused_variables, reason = "without the attribute they would be too")]
#[distributed_lock(key = "expected:<a>")]
async fn with_expect(a: u8, unused: u8) -> Result<(), LockError> {
    let also_unused = 1;
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        with_allow(1, 2).await.unwrap();
        with_inner_attribute(1).await.unwrap();
        with_expect(1, 2).await.unwrap();
    });
}
