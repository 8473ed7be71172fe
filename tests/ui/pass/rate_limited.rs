//! `#[rate_limited]` on every kind of function, together with other attributes, and with itself.
#![allow(clippy::unwrap_used, reason = "a failing example panics")]
#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]

#[path = "../support.rs"]
mod support;

use async_trait::async_trait;
use lock_runtime::{LockClient, LockError, Rate, distributed_lock, rate_limited};
use std::fmt::Display;
use std::pin::Pin;
use std::rc::Rc;
use tracing::instrument;

type Result<T> = std::result::Result<T, LockError>;
const KEY: &str = "plain <text>";
const RATE: Rate = Rate::per_second(1000);
const BURST: u32 = 100;

#[rate_limited(key = "free:<id>", rate = "100/s", burst = 20)]
async fn free(id: u64, mut count: u32) -> Result<u64> {
    #![allow(clippy::no_effect_underscore_binding)]
    count += 1;
    let _why = ();
    tokio::task::yield_now().await;
    Ok(id + u64::from(count))
}

#[rate_limited(key = KEY, rate = RATE, burst = BURST, wait = "1s")]
async fn constants() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "5/m", burst = 10)]
async fn limited_rest() -> Result<()> {
    Ok(())
}

struct Path<T>(T);
struct Order {
    id: u64,
    lines: Vec<String>,
}

#[rate_limited(key = "shop:<shop>:order:<id>:<lines[0]>", rate = "10/500ms")]
async fn patterns(
    Path(shop): Path<u32>,
    Order { id, lines, .. }: Order,
    (a, _): (u8, u8),
) -> Result<usize> {
    let taken = lines;
    Ok(taken.len() + usize::try_from(id).unwrap() + usize::from(a) + shop as usize)
}

#[rate_limited(key = "g:<value>", rate = "1/h")]
async fn generic<T: Display + Send, const N: usize>(value: T, _: [u8; N]) -> Result<impl Display> {
    tokio::task::yield_now().await;
    Ok(value)
}

#[rate_limited(key = "unit:<id>", rate = "1/h", on_error = |_| ())]
async fn unit(id: u32) {}

#[rate_limited(key = "page:<user>", rate = "1/h", on_error = |error| format!("{user}: {error}"))]
async fn takes_for_the_error(user: String) -> String {
    user
}

#[rate_limited(key = "page:<user>", rate = "1/h", on_error = explain)]
async fn by_function(user: &str) -> &str {
    user
}

fn explain(_: LockError) -> &'static str {
    "limited"
}

struct Gateway {
    locks: LockClient,
    calls: u32,
}

impl Gateway {
    #[rate_limited(key = "{<self.calls>}:<tenant>", rate = *rate, burst = rates[0], client = &self.locks)]
    async fn forward(&mut self, tenant: &str, rate: &Rate, rates: Vec<u32>) -> Result<u32> {
        self.calls += rates.into_iter().max().unwrap();
        tokio::task::yield_now().await;
        Ok(self.calls)
    }
}

#[rate_limited(key = "future:<id>", rate = "1/h")]
fn future(id: u32) -> impl Future<Output = Result<u32>> + Send {
    let doubled = id * 2;
    async move {
        tokio::task::yield_now().await;
        Ok(doubled)
    }
}

#[rate_limited(key = "boxed:<id>", rate = "1/h")]
fn boxed(id: &str) -> Pin<Box<dyn Future<Output = Result<usize>> + Send + '_>> {
    Box::pin(async move { Ok(id.len()) })
}

#[rate_limited(key = "local:<n>", rate = "1/h")]
async fn not_send(n: u32) -> Result<u32> {
    let shared = Rc::new(n);
    tokio::task::yield_now().await;
    Ok(*shared)
}

#[rate_limited(key = "recursive:<n>", rate = "1/h")]
async fn recursive(n: u32) -> Result<u32> {
    if n == 0 {
        return Ok(0);
    }
    Ok(Box::pin(recursive(n - 1)).await? + 1)
}

trait Native {
    async fn native(&self, id: u32) -> Result<u32>;
}

impl Native for u32 {
    #[rate_limited(key = "native:<self>:<id>", limit = "1/1h")]
    async fn native(&self, id: u32) -> Result<u32> {
        Ok(self + id)
    }
}

#[async_trait]
trait Load {
    async fn load(&self, id: u32, only_in_key: u32) -> Result<u32>;
    async fn save(&mut self, id: u32) -> Result<u32>;
}

#[async_trait]
impl Load for u32 {
    #[rate_limited(key = "load:<self>:<id>:<only_in_key>", rate = "1/h")]
    async fn load(&self, id: u32, only_in_key: u32) -> Result<u32> {
        Ok(self + id)
    }

    #[rate_limited(key = "save:<id>", rate = "100/s")]
    #[instrument]
    #[distributed_lock(key = "save:<id>")]
    async fn save(&mut self, id: u32) -> Result<u32> {
        *self += id;
        Ok(*self)
    }
}

#[instrument]
#[rate_limited(key = "a:<id>", rate = "100/s")]
async fn span_around(id: u32, mut count: u32) -> Result<u32> {
    count += 1;
    tokio::task::yield_now().await;
    Ok(id + count)
}

#[rate_limited(key = "a:<id>", rate = "100/s")]
#[instrument(skip(count), fields(double = id * 2), err)]
async fn around_the_span(id: u32, mut count: u32) -> Result<u32> {
    count += 1;
    tokio::task::yield_now().await;
    Ok(id + count)
}

#[rate_limited(key = "a:<id>", rate = "100/s")]
#[distributed_lock(key = "b:<id>", wait = "1s")]
async fn above_the_lock(id: u32, name: String) -> Result<usize> {
    drop(name);
    Ok(id as usize)
}

#[distributed_lock(key = "b:<id>", fence = token)]
#[rate_limited(key = "a:<id>", rate = "100/s")]
async fn below_the_lock(id: u32, name: String) -> Result<usize> {
    let _ = token;
    drop(name);
    Ok(id as usize)
}

#[rate_limited(key = "all", rate = "1000/s")]
#[rate_limited(key = "each:<id>", rate = "100/s")]
async fn twice(id: u32) -> Result<u32> {
    Ok(id)
}

macro_rules! limited {
    ($name:ident, $parameter:ident, $key:literal, $rate:literal, $burst:literal) => {
        #[rate_limited(key = $key, rate = $rate, burst = $burst)]
        async fn $name($parameter: u32) -> Result<u32> {
            Ok($parameter)
        }
    };
}

limited!(by_macro, id, "macro:<id>", "1/s", 3);

mod facade {
    pub(crate) mod locks {
        pub(crate) use lock_runtime::*;
    }
}

#[rate_limited(key = "facade", rate = "1/h", crate = facade::locks)]
async fn through_a_facade() -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Ok(())
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(assert_send(free(1, 2)).await.unwrap(), 4);
        assert_send(constants()).await.unwrap();
        limited_rest().await.unwrap();
        let order = Order {
            id: 1,
            lines: vec!["x".to_owned()],
        };
        let ordered = assert_send(patterns(Path(1), order, (1, 2))).await;
        assert_eq!(ordered.unwrap(), 4);
        let shown = assert_send(generic("a", [0; 2])).await.unwrap().to_string();
        assert_eq!(shown, "a");
        unit(1).await;
        unit(1).await;
        assert_eq!(takes_for_the_error("u".to_owned()).await, "u");
        let second = takes_for_the_error("u".to_owned()).await;
        assert!(second.starts_with("u: the rate limit"), "{second}");
        assert_eq!(by_function("v").await, "v");
        assert_eq!(by_function("v").await, "limited");
        let mut gateway = Gateway {
            locks: LockClient::in_memory(),
            calls: 0,
        };
        let forwarded = assert_send(gateway.forward("t", &RATE, vec![5, 6])).await;
        assert_eq!(forwarded.unwrap(), 6);
        assert_eq!(assert_send(future(2)).await.unwrap(), 4);
        assert_eq!(assert_send(boxed("ab")).await.unwrap(), 2);
        assert_eq!(not_send(2).await.unwrap(), 2);
        assert_eq!(assert_send(recursive(2)).await.unwrap(), 2);
        assert_eq!(1_u32.native(2).await.unwrap(), 3);
        assert_eq!(assert_send(1_u32.load(2, 3)).await.unwrap(), 3);
        assert_eq!(assert_send(1_u32.save(2)).await.unwrap(), 3);
        assert_eq!(assert_send(span_around(1, 2)).await.unwrap(), 4);
        assert_eq!(assert_send(around_the_span(1, 2)).await.unwrap(), 4);
        assert_eq!(
            assert_send(above_the_lock(1, String::new())).await.unwrap(),
            1
        );
        assert_eq!(
            assert_send(below_the_lock(1, String::new())).await.unwrap(),
            1
        );
        assert_eq!(assert_send(twice(1)).await.unwrap(), 1);
        assert_eq!(by_macro(1).await.unwrap(), 1);
        through_a_facade().await.unwrap();
    });
}
