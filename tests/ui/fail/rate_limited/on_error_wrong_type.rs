//! `on_error` gives another type than the function.

use lock_runtime::rate_limited;

#[rate_limited(key = "a", rate = "1/s", on_error = |error| error.to_string())]
async fn work() -> u32 {
    1
}

fn main() {}
