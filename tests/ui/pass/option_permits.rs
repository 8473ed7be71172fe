//! `permits`: a number, a constant, and values of parameters and of `self`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

const MOST: u32 = 3;

#[distributed_lock(key = "a", permits = 5)]
async fn number() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "b", permits = 2_147_483_646)]
async fn the_most() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "c", permits = MOST + 1)]
async fn constant() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "d:<limit>", permits = limit)]
async fn parameter(limit: u32) -> Result<u32, LockError> {
    Ok(limit)
}

#[distributed_lock(key = "e", permits = *limit)]
async fn reference(limit: &u32) -> Result<u32, LockError> {
    Ok(*limit)
}

#[distributed_lock(key = "f", permits = u32::try_from(names.len()).unwrap_or(1))]
async fn computed(names: Vec<String>) -> Result<Option<String>, LockError> {
    Ok(names.into_iter().next())
}

struct Limits {
    calls: u32,
    name: String,
}

#[distributed_lock(key = "g", permits = limits.calls)]
async fn field(limits: Limits) -> Result<String, LockError> {
    Ok(limits.name)
}

#[distributed_lock(key = "h", permits = calls)]
async fn pattern(Limits { calls, name }: Limits) -> Result<String, LockError> {
    Ok(format!("{name}{calls}"))
}

#[distributed_lock(key = "i", permits = calls)]
async fn part_of_a_pattern(Limits { calls, .. }: Limits) -> Result<u32, LockError> {
    Ok(calls)
}

impl Limits {
    #[distributed_lock(key = "j", permits = self.calls)]
    async fn by_mut_reference(&mut self) -> Result<u32, LockError> {
        self.calls += 1;
        Ok(self.calls)
    }

    #[distributed_lock(key = "k", permits = self.calls)]
    async fn unused_owned(self) -> Result<u32, LockError> {
        Ok(0)
    }
}

#[async_trait::async_trait]
trait Call {
    async fn call(&self, limit: u32) -> Result<u32, LockError>;
}

#[async_trait::async_trait]
impl Call for Limits {
    #[distributed_lock(key = "l:<self.name>", permits = limit)]
    async fn call(&self, limit: u32) -> Result<u32, LockError> {
        Ok(self.calls)
    }
}

pub(crate) fn main() {
    support::run(async {
        number().await.unwrap();
        the_most().await.unwrap();
        constant().await.unwrap();
        assert_eq!(parameter(2).await.unwrap(), 2);
        assert_eq!(reference(&2).await.unwrap(), 2);
        let name = || "n".to_owned();
        assert_eq!(computed(vec![name()]).await.unwrap(), Some(name()));
        let limits = || Limits {
            calls: 4,
            name: "n".to_owned(),
        };
        assert_eq!(field(limits()).await.unwrap(), "n");
        assert_eq!(pattern(limits()).await.unwrap(), "n4");
        assert_eq!(part_of_a_pattern(limits()).await.unwrap(), 4);
        assert_eq!(limits().by_mut_reference().await.unwrap(), 5);
        assert_eq!(limits().unused_owned().await.unwrap(), 0);
        assert_eq!(limits().call(2).await.unwrap(), 4);
    });
}
