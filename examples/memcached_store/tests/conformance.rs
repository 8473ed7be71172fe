//! The behaviours of the contract, as far as memcached can do what they need.
#![expect(clippy::expect_used, reason = "a test that can't go on has failed")]

mod server;

use lock_example_memcached::capabilities;
use lock_testkit::Backend;
use lock_testkit::conformance::Engine;

use self::server::Memcached;

const MEMCACHED: Engine = Engine::new("memcached", || Box::pin(start()))
    .that_can(capabilities)
    .that_fails()
    .at_once(8);

lock_testkit::conformance!(MEMCACHED);

async fn start() -> Backend {
    Backend::new(Memcached::start_with(&["--disable-evictions"]).await)
}
