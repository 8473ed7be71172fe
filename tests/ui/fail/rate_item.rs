//! `#[rate_limited]` where it can't stand, without what it needs, and with what it does not know; all mistakes in one build.

use lock_runtime::{LockError, rate_limited};
use std::pin::Pin;

type Result<T> = std::result::Result<T, LockError>;

#[rate_limited]
async fn nothing_said(app_id: u64) -> Result<()> {
    Ok(())
}

#[rate_limited(rate = "1/s")]
async fn without_key() -> Result<()> {
    Ok(())
}

#[rate_limited(kye = "a", rte = "1/s", limit = 3, max_burst = 4, lease = "10s", banana = 1)]
async fn misspelt() -> Result<()> {
    Ok(())
}

#[rate_limited("api", "100/s")]
async fn without_names() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "<ap_id>", rate = "1/sec", burst = 0, wiat = "0s")]
async fn all_at_once(app_id: u64) -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s")]
fn not_async() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s")]
const fn constant() -> u8 {
    1
}

trait Api {
    #[rate_limited(key = "a", rate = "1/s")]
    async fn declaration(&self) -> Result<()>;
}

#[rate_limited(key = "a", rate = "1/s")]
struct Struct;

#[rate_limited(key = "a", rate = "1/s")]
impl Struct {}

#[rate_limited(key = "a", rate = "1/s")]
async fn number() -> u32 {
    1
}

#[rate_limited(key = "a", rate = "1/s")]
fn boxed() -> Pin<Box<dyn Future<Output = Option<u32>>>> {
    Box::pin(async move { Some(1) })
}

#[rate_limited(key = "a", rate = "1/s", on_error = |error| error.to_string())]
async fn other_type() -> u32 {
    1
}

#[rate_limited(key = "a", rate = "1/s")]
async fn wrong_body() -> Result<String> {
    if true {
        return Err("early");
    }
    Ok(1)
}

#[rate_limited(key = "a:<moved>", rate = make(moved))]
async fn moved_away(moved: String) -> Result<String> {
    Ok(moved)
}

fn make(_: String) -> lock_runtime::Rate {
    lock_runtime::Rate::per_second(1)
}

fn main() {
    // The functions are there: none of this is one more error.
    let _ = (nothing_said(1), without_key(), misspelt(), without_names(), all_at_once(1));
}
