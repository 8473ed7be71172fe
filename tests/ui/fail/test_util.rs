//! Tests that need a feature which is off.
#![deny(deprecated)]

use lock_runtime::LockClient;

fn paused() {
    let _client = LockClient::in_memory_paused();
}

#[allow(deprecated)]
fn with_faults() {
    let (_client, _faults) = LockClient::in_memory_with_faults();
}

fn main() {
    paused();
    with_faults();
}
