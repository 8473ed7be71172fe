//! Mistakes in the body: reported as without the attribute, and generated names are not there.

#![deny(unused_variables, unused_mut)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<used_by_key>")]
async fn unused(used_by_key: u8, unused: u8, mut unused_mut: u8, (a, b): (u8, u8)) -> Result<u8, LockError> {
    Ok(a + unused_mut)
}

#[distributed_lock(key = "a")]
async fn wrong_value() -> Result<String, LockError> {
    Ok("x")
}

#[distributed_lock(key = "a")]
async fn wrong_early_return(early: bool) -> Result<u8, LockError> {
    if early {
        return Err("early");
    }
    Ok(1)
}

#[distributed_lock(key = "a")]
async fn no_value() -> Result<u8, LockError> {
    let _ = 1;
}

#[distributed_lock(key = "a")]
async fn generated_names() -> Result<u8, LockError> {
    Ok(__lock_guard + __lock_key + __lock_return + guard)
}

#[distributed_lock(key = "a")]
async fn moved_twice(name: String) -> Result<String, LockError> {
    drop(name);
    Ok(name)
}

#[distributed_lock(key = "a")]
async fn not_mutable(count: u8) -> Result<u8, LockError> {
    count += 1;
    Ok(count)
}

fn assert_send(_: impl Send) {}

#[distributed_lock(key = "a")]
async fn not_send() -> Result<u8, LockError> {
    let shared = std::rc::Rc::new(1);
    tokio::task::yield_now().await;
    Ok(*shared)
}

fn main() {
    assert_send(not_send());
}
