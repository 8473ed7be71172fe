//! `rate` takes a parameter that the body takes too.

use lock_runtime::{LockError, Rate, rate_limited};

fn rate_of(_: String) -> Rate {
    Rate::per_second(1)
}

#[rate_limited(key = "a", rate = rate_of(app))]
async fn work(app: String) -> Result<String, LockError> {
    Ok(app)
}

fn main() {}
