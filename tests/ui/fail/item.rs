//! Things that can't run under a lock.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a")]
fn not_async() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a")]
const fn constant() -> u8 {
    1
}

trait Store {
    #[distributed_lock(key = "a")]
    async fn declaration(&self) -> Result<()>;
}

#[distributed_lock(key = "a")]
struct Structure;

#[distributed_lock(key = "a")]
mod module {}

#[distributed_lock(key = "a")]
impl Structure {}

#[distributed_lock(key = "a")]
trait Trait {}

#[distributed_lock(key = "a")]
fn alias() -> Alias {
    Box::pin(async move { Ok(()) })
}

type Alias = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

fn main() {
    let _ = (not_async(), constant(), Structure, alias());
}
