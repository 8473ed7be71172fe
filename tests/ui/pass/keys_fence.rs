//! `keys` with `fence`: a token for each key, as listed.

#[path = "../support.rs"]
mod support;

use lock_runtime::{FencingToken, LockError, distributed_lock};

#[distributed_lock(keys = ["account:<from>", "account:<to>"], fence = tokens, guard = held)]
async fn transfer(from: &str, to: &str) -> Result<(FencingToken, FencingToken), LockError> {
    assert!(held.is_held());
    let [of_from, of_to]: [FencingToken; 2] = tokens;
    Ok((of_from, of_to))
}

#[distributed_lock(keys = ["one"], fence = tokens)]
async fn one() -> Result<[FencingToken; 1], LockError> {
    Ok(tokens)
}

pub(crate) fn main() {
    support::run(async {
        let (a, b) = transfer("a", "b").await.unwrap();
        let (later_b, later_a) = transfer("b", "a").await.unwrap();
        assert!(later_a > a && later_b > b);
        // One lock, and its token in each of the two places.
        let (one_of_two, other) = transfer("c", "c").await.unwrap();
        assert_eq!(one_of_two, other);
        let [first] = one().await.unwrap();
        assert!(one().await.unwrap()[0] > first);
    });
}
