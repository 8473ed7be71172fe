//! Items that can't have the attribute.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
fn not_async() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a")]
const fn const_fn() -> u8 {
    1
}

// A future whose type does not show its output.
type Alias = std::pin::Pin<Box<dyn Future<Output = Result<(), LockError>> + Send>>;

#[distributed_lock(key = "a")]
fn hidden_output() -> Alias {
    Box::pin(async move { Ok(()) })
}

// The other future would run without the lock.
#[distributed_lock(key = "a")]
fn two_futures(small: bool) -> std::pin::Pin<Box<dyn Future<Output = Result<(), LockError>> + Send>> {
    if small {
        return Box::pin(async move { Ok(()) });
    }
    Box::pin(async move { Ok(()) })
}

trait Store {
    #[distributed_lock(key = "a")]
    async fn save(&self) -> Result<(), LockError>;
}

#[distributed_lock(key = "a")]
trait Trait {
    fn work();
}

struct Implemented;

#[distributed_lock(key = "a")]
impl Implemented {
    fn work(&self) {}
}

#[distributed_lock(key = "a")]
mod module {
    pub(crate) fn work() {}
}

#[distributed_lock(key = "a")]
struct Structure;

#[distributed_lock(key = "a")]
enum Enumeration {
    One,
}

#[distributed_lock(key = "a")]
const CONSTANT: u8 = 1;

#[distributed_lock(key = "a")]
type Number = u8;

fn main() {
    let _ = not_async();
    const _: u8 = const_fn();
    let _ = hidden_output();
    Implemented.work();
    module::work();
    let _ = Structure;
    let _ = Enumeration::One;
    let _ = CONSTANT;
    let _: Number = 1;
}
