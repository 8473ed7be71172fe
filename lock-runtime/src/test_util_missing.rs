//! Names what is missing where the feature `test-util` is off: what tests call is there, and gives
//! nothing but an error that says so.

use crate::client::LockClient;

/// What the feature `test-util` gives. In `Cargo.toml`: `[dev-dependencies] lock-runtime = {
/// features = ["test-util"] }`.
#[doc(hidden)]
#[derive(Debug)]
#[expect(
    non_camel_case_types,
    reason = "its name is what the compiler's error says"
)]
pub struct switch_on_the_feature_test_util_of_lock_runtime(());

impl LockClient {
    /// Needs the feature `test-util`.
    #[doc(hidden)]
    #[must_use]
    #[deprecated = "it needs lock-runtime's feature `test-util`: write `lock-runtime = { …, \
                    features = [\"test-util\"] }` in `[dev-dependencies]`"]
    pub fn in_memory_paused() -> switch_on_the_feature_test_util_of_lock_runtime {
        switch_on_the_feature_test_util_of_lock_runtime(())
    }

    /// Needs the feature `test-util`.
    #[doc(hidden)]
    #[must_use]
    #[deprecated = "it needs lock-runtime's feature `test-util`: write `lock-runtime = { …, \
                    features = [\"test-util\"] }` in `[dev-dependencies]`"]
    pub fn in_memory_with_faults() -> switch_on_the_feature_test_util_of_lock_runtime {
        switch_on_the_feature_test_util_of_lock_runtime(())
    }
}
