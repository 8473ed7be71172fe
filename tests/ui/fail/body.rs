//! Mistakes in the body are reported as without the attribute.

use lock_runtime::{LockError, distributed_lock};

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
async fn moved_twice(name: String) -> Result<String, LockError> {
    drop(name);
    Ok(name)
}

#[distributed_lock(key = "a")]
async fn not_mutable(count: u8) -> Result<u8, LockError> {
    count += 1;
    Ok(count)
}

#[distributed_lock(key = "a")]
#[deny(unused_mut)]
async fn unused_mut(mut a: u8) -> Result<u8, LockError> {
    Ok(a)
}

// An unused parameter. The key counts as a use.
#[distributed_lock(key = "a:<used_by_key>")]
#[deny(unused_variables)]
async fn unused_parameter(used_by_key: u8, unused: u8) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a")]
#[deny(unused_variables)]
async fn unused_part_of_a_pattern((a, b): (u8, u8)) -> Result<u8, LockError> {
    Ok(a)
}

fn assert_send(_: impl Send) {}

#[distributed_lock(key = "a")]
async fn not_send() -> Result<u8, LockError> {
    let shared = std::rc::Rc::new(1);
    tokio::task::yield_now().await;
    Ok(*shared)
}

fn send_it() {
    assert_send(not_send());
}

#[distributed_lock(key = "a")]
async unsafe fn unsafe_call(pointer: *const u8) -> Result<u8, LockError> {
    Ok(unsafe { *pointer })
}

fn call_it() {
    let _ = unsafe_call(std::ptr::null());
}

fn main() {}
