//! Mistakes in `keys`.

use lock_runtime::{FencingToken, LockError, distributed_lock};

#[distributed_lock(keys = ["a", "b"], keys = ["a", "b"])]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = "a")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = [])]
async fn empty_list() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", ""])]
async fn empty_key(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", 2])]
async fn number(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["a"; 2])]
async fn repeated() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = [
    "k:0", "k:1", "k:2", "k:3", "k:4", "k:5", "k:6", "k:7", "k:8", "k:9", "k:10", "k:11", "k:12",
    "k:13", "k:14", "k:15", "k:16", "k:17", "k:18", "k:19", "k:20", "k:21", "k:22", "k:23", "k:24", "k:25",
    "k:26", "k:27", "k:28", "k:29", "k:30", "k:31", "k:32", "k:33", "k:34", "k:35", "k:36", "k:37", "k:38",
    "k:39", "k:40", "k:41", "k:42", "k:43", "k:44", "k:45", "k:46", "k:47", "k:48", "k:49", "k:50", "k:51",
    "k:52", "k:53", "k:54", "k:55", "k:56", "k:57", "k:58", "k:59", "k:60", "k:61", "k:62", "k:63", "k:64"
])]
async fn too_many() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<from>"])]
async fn twice(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>" "account:<to>"])]
async fn without_comma(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "<from>-<to>"])]
async fn bad_template(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<too>"])]
async fn unknown_placeholder(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", to])]
async fn not_a_key(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["a:<id>", "b:<tags>"])]
async fn not_display(id: u64, tags: Vec<u64>) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], fence = token)]
async fn one_token(from: u64, to: u64) -> Result<FencingToken, LockError> {
    Ok(token)
}

#[distributed_lock(keys = [from, "account:<from>"])]
async fn moved_twice(from: String) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ids.iter().map(|id| format!("stock:{id}")))]
async fn as_many_as_there_are(ids: Vec<u64>) -> Result<(), LockError> {
    drop(ids);
    Ok(())
}

fn main() {}
