//! Every kind of fragment that `macro_rules!` can hand to the attribute, in every place.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock, lock_key, rate_limited};
use std::time::Duration;

macro_rules! with_body {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($parameter:pat, $ty:ty) -> $output:ty $body:block) => {
        $(#[$meta])*
        #[distributed_lock(key = "body")]
        $vis async fn $name($parameter: $ty) -> $output $body
    };
}

with_body! {
    /// Doubles.
    pub(crate) fn doubled(id, u32) -> Result<u32, LockError> {
        if id > 100 {
            return Ok(0);
        }
        Ok(id * 2)
    }
}

with_body! {
    fn added((a, b), (u32, u32)) -> Result<u32, LockError> { Ok(a + b) }
}

macro_rules! with_options {
    ($name:ident, $key:expr, $lease:literal, $wait:expr, $permits:expr, $flag:expr, $token:ident, $guard:ident,
     $locks:ident, $client:expr, $handler:expr, $krate:path) => {
        #[distributed_lock(key = $key, lease = $lease, wait = $wait, permits = $permits, renew = $flag, fence = $token,
            guard = $guard, client = &$client, on_error = $handler, crate = $krate)]
        async fn $name(id: u32, $locks: LockClient) -> String {
            format!("{id} {} {}", $guard.key(), u64::from($token) > 0)
        }
    };
}

with_options!(
    every_option,
    "options:<id>",
    "10s",
    Duration::from_secs(1) * 2,
    1 + 1,
    true,
    token,
    guard,
    locks,
    locks,
    |error| error.to_string(),
    ::lock_runtime
);

macro_rules! with_tokens {
    ($vis:vis, ($($options:tt)*), $item:item) => {
        #[distributed_lock($($options)*)]
        $item
    };
}

with_tokens!(pub(crate), (key = "tokens:<id>", mode = "read"), async fn tokens(id: u32) -> Result<u32, LockError> {
    Ok(id)
});

macro_rules! with_keys {
    ($name:ident, $keys:expr, $life:lifetime, $ty:ty, $bound:path) => {
        #[distributed_lock(keys = $keys)]
        async fn $name<$life, T: $bound>(from: &$life $ty, to: T) -> Result<String, LockError> {
            Ok(format!("{from} {to}"))
        }
    };
}

with_keys!(several, ["a:<from>", "a:<to>"], 'a, str, std::fmt::Display);

macro_rules! with_future {
    ($name:ident, $future:expr, $output:ty) => {
        #[distributed_lock(key = "future")]
        fn $name() -> impl Future<Output = $output> {
            $future
        }
    };
}

with_future!(by_hand, async move { Ok(7) }, Result<u32, LockError>);

macro_rules! limited {
    ($name:ident, $key:literal, $rate:literal, $body:block) => {
        #[rate_limited(key = $key, rate = $rate)]
        async fn $name() -> Result<u32, LockError> $body
    };
}

limited!(limited, "limited", "100/s", { Ok(8) });

macro_rules! key {
    ($template:literal) => {
        lock_key!($template).to_string()
    };
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(doubled(2).await.unwrap(), 4);
        assert_eq!(doubled(101).await.unwrap(), 0);
        assert_eq!(added((1, 2)).await.unwrap(), 3);
        let client = LockClient::in_memory();
        assert_eq!(every_option(3, client).await, "3 options:3 true");
        assert_eq!(tokens(4).await.unwrap(), 4);
        assert_eq!(several("x", 5).await.unwrap(), "x 5");
        assert_eq!(by_hand().await.unwrap(), 7);
        assert_eq!(limited().await.unwrap(), 8);
        assert_eq!(key!("plain"), "plain");
    });
}
