//! Who holds a lock, and until when.

use super::{Moments, owner};

/// A request for an exclusive lock for a millisecond, which does not wait.
fn acquire(name: &str) -> String {
    let owner = owner(name);
    format!("acquire('k', {owner}, NULL, NULL, 1000, 1000, NULL, 0, 1, NULL, 2000000000000000)")
}

#[tokio::test]
async fn a_hold_is_over_at_the_end_of_its_lease() {
    let moments = Moments::new().await;
    assert_eq!(moments.call(acquire("a1")).await, "1||||f|||");
    let held = moments.rows("owner, after(ends)", "hold").await;
    assert_eq!(held, ["a1|1000"]);
    moments.at(999).await;
    assert_eq!(moments.call(acquire("b1")).await, "0|||1|f|a1||");
    moments.at(1000).await;
    assert_eq!(moments.call(acquire("b1")).await, "1||||f|||");
}
