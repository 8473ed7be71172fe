//! Lifetimes: each error is at the user's own line, as it is without the attribute.

use lock_runtime::{Guard, LockError, distributed_lock};

struct User {
    name: String,
}

#[distributed_lock(key = "a")]
async fn returns_the_other<'a>(_one: &'a str, other: &str) -> Result<&'a str, LockError> {
    Ok(other)
}

#[distributed_lock(key = "a")]
async fn keeps_too_long<'a>(all: &mut Vec<&'a str>, one: &str) -> Result<(), LockError> {
    all.push(one);
    Ok(())
}

#[distributed_lock(key = "a")]
async fn keeps_a_local(all: &mut Vec<&str>) -> Result<(), LockError> {
    let local = String::new();
    all.push(&local);
    Ok(())
}

#[distributed_lock(key = "a")]
async fn keeps_a_part<'a>(all: &mut Vec<&'a str>, part: Option<&str>) -> Result<(), LockError> {
    all.extend(part);
    Ok(())
}

#[distributed_lock(key = "a")]
async fn returns_a_closure<'a>(name: &'a str) -> Result<Box<dyn Fn() -> String>, LockError> {
    Ok(Box::new(move || name.to_owned()))
}

#[distributed_lock(key = "a")]
async fn spawns(name: &str) -> Result<(), LockError> {
    tokio::spawn(async move { println!("{name}") });
    Ok(())
}

impl User {
    #[distributed_lock(key = "user:<self.name>")]
    async fn name<'a>(&self, _default: &'a str) -> Result<&'a str, LockError> {
        Ok(&self.name)
    }
}

#[distributed_lock(key = "a", guard = lock)]
async fn spawns_its_guard() -> Result<(), LockError> {
    tokio::spawn(async move { lock.is_held() });
    Ok(())
}

#[distributed_lock(key = "a", guard = lock)]
async fn returns_its_guard() -> Result<&'static Guard, LockError> {
    Ok(lock)
}

fn main() {}
