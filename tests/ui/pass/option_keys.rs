//! `keys`: templates, expressions, one, and as many as there can be.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock, lock_key};

const LEDGER: &str = "ledger";

#[distributed_lock(keys = ["account:<from>", "account:<to>"])]
async fn templates(from: String, to: String) -> Result<String, LockError> {
    Ok(from + &to)
}

#[distributed_lock(keys = [LEDGER, format!("{id}"), lock_key!("a:<id>"), key_of(&name), name, "b:<id>",])]
async fn expressions(id: u64, name: String) -> Result<u64, LockError> {
    Ok(id)
}

fn key_of(name: &str) -> LockKey {
    lock_key!("name:<name>")
}

#[distributed_lock(keys = ["one"])]
async fn one() -> Result<(), LockError> {
    Ok(())
}

// Equal values are one key.
#[distributed_lock(keys = ["<a>", "<b>"], hold_at_least = "10ms", wait = "1s", mode = "exclusive")]
async fn equal(a: u8, b: u8) -> Result<(), LockError> {
    Ok(())
}

#[rustfmt::skip]
#[distributed_lock(keys = [
    "k:1", "k:2", "k:3", "k:4", "k:5", "k:6", "k:7", "k:8", "k:9", "k:10", "k:11", "k:12", "k:13", "k:14", "k:15", "k:16",
    "k:17", "k:18", "k:19", "k:20", "k:21", "k:22", "k:23", "k:24", "k:25", "k:26", "k:27", "k:28", "k:29", "k:30", "k:31",
    "k:32", "k:33", "k:34", "k:35", "k:36", "k:37", "k:38", "k:39", "k:40", "k:41", "k:42", "k:43", "k:44", "k:45", "k:46",
    "k:47", "k:48", "k:49", "k:50", "k:51", "k:52", "k:53", "k:54", "k:55", "k:56", "k:57", "k:58", "k:59", "k:60", "k:61",
    "k:62", "k:63", "k:64",
])]
async fn the_most() -> Result<(), LockError> {
    Ok(())
}

macro_rules! both {
    ($name:ident, $first:literal, $second:expr) => {
        #[distributed_lock(keys = [$first, $second])]
        async fn $name(id: u64) -> Result<u64, LockError> {
            Ok(id)
        }
    };
}

both!(from_a_macro, "a:<id>", "b");

pub(crate) fn main() {
    support::run(async {
        assert_eq!(templates("a".into(), "b".into()).await.unwrap(), "ab");
        assert_eq!(expressions(1, "name".into()).await.unwrap(), 1);
        one().await.unwrap();
        equal(1, 1).await.unwrap();
        the_most().await.unwrap();
        assert_eq!(from_a_macro(1).await.unwrap(), 1);
    });
}
