//! Return types that can't carry a `LockError`, or nothing for `on_busy = "skip"`.

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn nothing() {}

#[distributed_lock(key = "a")]
async fn number() -> u32 {
    1
}

#[distributed_lock(key = "a")]
async fn option() -> Option<u32> {
    Some(1)
}

struct OtherError;

#[distributed_lock(key = "a")]
async fn other_error() -> Result<u32, OtherError> {
    Ok(1)
}

#[distributed_lock(key = "a")]
async fn generic_error<T, E>(value: Result<T, E>) -> Result<T, E> {
    value
}

#[distributed_lock(key = "a")]
async fn impl_trait() -> impl std::fmt::Display {
    1
}

type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[distributed_lock(key = "a")]
fn boxed_future() -> BoxFuture<'static, u32> {
    Box::pin(async move { 1 })
}

#[distributed_lock(key = "a")]
async fn never() -> ! {
    std::future::pending().await
}

#[async_trait]
trait Store {
    async fn save(&self, id: u32) -> u32;
}

#[async_trait]
impl Store for u8 {
    #[distributed_lock(key = "a:<id>")]
    async fn save(&self, id: u32) -> u32 {
        id
    }
}

#[distributed_lock(key = "a", on_busy = "skip")]
async fn cannot_skip() -> Result<u32, LockError> {
    Ok(1)
}

#[distributed_lock(key = "a", on_busy = "skip", on_error = |_| 0)]
async fn cannot_skip_without_result() -> u32 {
    1
}

#[distributed_lock(key = "a")]
async fn text_error() -> Result<(), String> {
    Ok(())
}

#[distributed_lock(key = "a", on_busy = "skip")]
async fn skips_with_text() -> Result<(), String> {
    Ok(())
}

fn main() {}
