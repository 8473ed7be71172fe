//! Functions of every shape, which `tests/lints.rs` shows to clippy with and without the attribute.
#![allow(dead_code, unexpected_cfgs)]

use async_trait::async_trait;
use lock_runtime::LockError;
#[cfg(locked)]
use lock_runtime::distributed_lock;
use std::collections::HashMap;
use std::fmt::{Debug, Display};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

type Result<T> = std::result::Result<T, LockError>;

struct Path<T>(T);

struct Order {
    id: u64,
    lines: Vec<String>,
}

struct Shop<T> {
    name: String,
    inner: T,
}

async fn pause() {
    tokio::task::yield_now().await;
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn items_first(id: u64) -> Result<u64> {
    use std::cmp::max;
    const STEP: u64 = 2;
    static BASE: u64 = 1;
    struct Local(u64);
    fn twice(number: u64) -> u64 {
        number * STEP
    }
    pause().await;
    Ok(max(twice(id), Local(BASE).0))
}

#[cfg_attr(locked, distributed_lock(key = "a:<id>"))]
async fn items_first_with_a_value(id: u64) -> Result<u64> {
    fn twice(number: u64) -> u64 {
        number * 2
    }
    pause().await;
    Ok(twice(id))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn a_macro_first(id: u64) -> Result<u64> {
    macro_rules! seen {
        () => {
            id
        };
    }
    fn twice(number: u64) -> u64 {
        number * 2
    }
    pause().await;
    Ok(twice(seen!()))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn items_behind_statements(id: u64) -> Result<u64> {
    pause().await;
    fn twice(number: u64) -> u64 {
        number * 2
    }
    Ok(twice(id))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn items_behind_items_and_statements(id: u64) -> Result<u64> {
    const STEP: u64 = 2;
    pause().await;
    const BASE: u64 = 1;
    Ok(id * STEP + BASE)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn one_line() -> Result<u64> { pause().await; Ok(1) }

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn one_expression() -> Result<()> { pause().await; Ok(()) }

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn small(id: u64) -> Result<u64> {
    pause().await;
    Ok(id)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn only_an_item() -> Result<()> {
    const LIMIT: u64 = 5;
    pause().await;
    Err(LockError::Shutdown)
}

#[cfg_attr(locked, distributed_lock(key = "a", on_error = |_| ()))]
async fn unit() {
    pause().await;
}

#[cfg_attr(locked, distributed_lock(key = "a", on_error = |_| ()))]
async fn unit_with_an_item() {
    const TIMES: u64 = 2;
    for _ in 0..TIMES {
        pause().await;
    }
}

#[cfg_attr(locked, distributed_lock(key = "a", on_error = |_| ()))]
async fn unit_without_semicolon() {
    pause().await
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn early_return(id: u64) -> Result<u64> {
    if id == 0 {
        return Ok(1);
    }
    pause().await;
    return Ok(id);
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn question_mark(id: u64) -> Result<u64> {
    let id = small(id).await?;
    let value = Ok(small(id).await?);
    value
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn by_value(name: String, lines: Vec<String>) -> Result<usize> {
    pause().await;
    Ok(name.len() + lines.len())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn large(bytes: [u8; 20_000]) -> Result<usize> {
    pause().await;
    Ok(bytes.len())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn by_reference(name: &String, lines: &Vec<String>, all: &mut Vec<u8>) -> Result<usize> {
    pause().await;
    all.push(1);
    Ok(name.len() + lines.len())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn mutable(mut id: u64, mut name: String) -> Result<String> {
    id += 1;
    pause().await;
    name.push_str(&format!("{}", id));
    Ok(name)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn patterns(Path(id): Path<u64>, Order { lines, .. }: Order, (one, _): (u8, u8)) -> Result<u64> {
    pause().await;
    Ok(id + lines.len() as u64 + u64::from(one))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn underscore(_id: u64, _name: String) -> Result<()> {
    pause().await;
    Ok(())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn used_underscore(_id: u64) -> Result<u64> {
    pause().await;
    Ok(_id)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn unused(id: u64, name: &str) -> Result<()> {
    pause().await;
    let unused = 1;
    Ok(())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn shadows(id: u64) -> Result<u64> {
    let id = id + 1;
    pause().await;
    let id = id.to_string();
    Ok(id.len() as u64)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn generic<T: Display + Debug, const N: usize>(id: T, all: [T; N]) -> Result<String> {
    pause().await;
    Ok(format!("{id} {all:?}"))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn impl_parameter(id: impl Display + Send) -> Result<String> {
    pause().await;
    Ok(id.to_string())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn impl_return<'a>(text: &'a str) -> Result<impl Iterator<Item = char> + 'a> {
    pause().await;
    Ok(text.chars())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn not_send() -> Result<u64> {
    let shared = Rc::new(1);
    pause().await;
    Ok(*shared)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn holds_a_mutex(counter: &Mutex<u64>) -> Result<u64> {
    let mut counter = counter.lock().map_err(|_| LockError::Shutdown)?;
    *counter += 1;
    pause().await;
    Ok(*counter)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn mutex_in_the_last_expression(counter: Arc<Mutex<u64>>) -> Result<u64> {
    pause().await;
    counter.lock().map(|counter| *counter).map_err(|_| LockError::Shutdown)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn unwraps(id: Option<u64>, all: &HashMap<u64, u64>) -> Result<u64> {
    pause().await;
    let id = id.unwrap();
    match all.get(&id) {
        Some(found) => Ok(*found),
        None => Ok(0),
    }
}

/// Documented, without errors and panics.
#[cfg_attr(locked, distributed_lock(key = "a"))]
pub async fn documented(id: u64) -> Result<u64> {
    pause().await;
    assert!(id > 0);
    Ok(id)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
pub async fn many(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: bool, i: bool, j: bool, k: bool) -> Result<u8> {
    pause().await;
    Ok(if h && i && j && k { a + b + c + d } else { e + f + g })
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn branches(id: u64, a: bool, b: bool) -> Result<u64> {
    let mut sum = 0;
    for at in 0..id {
        if a && at > 1 {
            if b || at > 2 {
                sum += at;
            } else if at == 3 {
                continue;
            }
        }
        match at {
            0 => sum += 1,
            1 | 2 if a => sum += 2,
            3 => {
                while sum < 10 {
                    sum += 1;
                    if sum == 7 && b { break; }
                }
            }
            _ => {}
        }
    }
    pause().await;
    Ok(sum)
}

#[cfg_attr(locked, distributed_lock(key = "a", on_error = |_| 0))]
fn by_hand(id: u64) -> impl Future<Output = u64> {
    async move {
        pause().await;
        id
    }
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
fn boxed(id: u64) -> Pin<Box<dyn Future<Output = Result<u64>> + Send>> {
    Box::pin(async move {
        fn twice(number: u64) -> u64 {
            number * 2
        }
        pause().await;
        Ok(twice(id))
    })
}

impl<T: Display + Send + Sync> Shop<T> {
    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn by_reference(&self, id: u64) -> Result<String> {
        pause().await;
        Ok(format!("{}{}{id}", self.name, self.inner))
    }

    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn by_mutable_reference(&mut self, name: String) -> Result<()> {
        pause().await;
        self.name = name;
        Ok(())
    }

    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn owned(self) -> Result<String> {
        pause().await;
        Ok(self.name)
    }

    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn shared(self: Arc<Self>) -> Result<usize> {
        pause().await;
        Ok(self.name.len())
    }

    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn without_self(id: u64) -> Result<u64> {
        pause().await;
        Ok(id)
    }

    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn never_uses_self(&self) -> Result<()> {
        pause().await;
        Ok(())
    }
}

trait Store {
    async fn save(&mut self, id: u64) -> Result<usize>;
}

impl Store for Vec<u64> {
    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn save(&mut self, id: u64) -> Result<usize> {
        pause().await;
        self.push(id);
        Ok(self.len())
    }
}

#[async_trait]
trait Boxed {
    async fn load(&self, id: u64, name: String) -> Result<String>;
}

#[async_trait]
impl Boxed for Order {
    #[cfg_attr(locked, distributed_lock(key = "a"))]
    async fn load(&self, id: u64, name: String) -> Result<String> {
        const STEP: u64 = 2;
        pause().await;
        Ok(format!("{name}{}", self.id + id * STEP))
    }
}

// With values in the key and in the options.

const LEASE: std::time::Duration = std::time::Duration::from_secs(10);

#[cfg_attr(locked, distributed_lock(key = "a:<name>:<id>"))]
async fn values(name: String, id: u64) -> Result<String> {
    const STEP: u64 = 2;
    pause().await;
    Ok(format!("{name}{}", id * STEP))
}

#[cfg_attr(locked, distributed_lock(key = "a:<_name>"))]
async fn underscore_in_the_key(_name: String, other: &str) -> Result<usize> {
    pause().await;
    Ok(other.len() + _name.len())
}

#[cfg_attr(locked, distributed_lock(keys = ["a:<one>", "a:<order.id>"], lease = LEASE, renew = true, max_hold = LEASE * 2))]
async fn several(one: u64, order: Order) -> Result<usize> {
    pause().await;
    Ok(order.lines.len() + usize::from(one > 0))
}

#[cfg_attr(locked, distributed_lock(key = "a:<id>:<lines[0]>"))]
async fn values_of_a_pattern(Path(id): Path<u64>, Order { lines, .. }: Order, mut last: u64) -> Result<u64> {
    last += id;
    pause().await;
    Ok(last + lines.len() as u64)
}

#[cfg_attr(locked, distributed_lock(key = "a", permits = limit, wait = "1s", on_busy = "skip", reentrant = false))]
async fn skipped(limit: u32) -> Result<Option<u32>> {
    pause().await;
    Ok(Some(limit))
}

#[cfg_attr(locked, distributed_lock(key = order.id.to_string().as_str(), on_error = |error| error.to_string()))]
async fn handled(order: &Order) -> String {
    fn first(lines: &[String]) -> &str {
        &lines[0]
    }
    pause().await;
    first(&order.lines).to_owned()
}

impl Order {
    #[cfg_attr(locked, distributed_lock(key = "a:<self.id>:<name.len()>", client = locks, fair = true))]
    async fn with_client(&mut self, locks: &lock_runtime::LockClient, name: String) -> Result<u64> {
        let health = locks.health().await?;
        self.lines.push(name);
        Ok(self.id + health.waiting as u64)
    }
}

// What the nursery and the pedantic ones look at.

struct Cart {
    id: u64,
    lines: Vec<String>,
    lock: Mutex<u64>,
}

#[cfg_attr(locked, distributed_lock(key = "a:<id>"))]
async fn unused_beside_the_key(id: u64, Order { id: other, lines }: Order, (one, two): (u8, u8), mut last: u64) -> Result<u64> {
    pause().await;
    Ok(id)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn never_read(mut id: u64, mut name: u8) -> Result<()> {
    id = 5;
    pause().await;
    name = 6;
    Ok(())
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn shadowed_and_unused(id: u64, name: String) -> Result<u64> {
    let id = 1;
    pause().await;
    Ok(id)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn locked_for_long(Cart { id, ref lock, .. }: Cart, counter: Arc<Mutex<u64>>) -> Result<u64> {
    pause().await;
    let mut guard = lock.lock().map_err(|_| LockError::Shutdown)?;
    *guard += id;
    let second = counter.lock().map_err(|_| LockError::Shutdown)?;
    let sum = *guard + *second;
    println!("{sum}");
    Ok(sum)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn clones_the_last(name: String, cart: Cart) -> Result<(String, Vec<String>)> {
    pause().await;
    let lines = cart.lines.clone();
    let name = name.clone();
    Ok((name, lines))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn options_and_matches(id: Option<u64>, name: Option<String>) -> Result<u64> {
    pause().await;
    let id = if let Some(id) = id { id + 1 } else { 0 };
    let length = match name {
        Some(name) => name.len() as u64,
        None => 0,
    };
    Ok(id + length)
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn never_changes(all: &mut Vec<u8>, cart: &mut Cart) -> Result<usize> {
    pause().await;
    Ok(all.len() + cart.lines.len())
}

#[cfg_attr(locked, distributed_lock(key = "a:<_id>"))]
async fn used_underscores(_id: u64, _name: String, (_one, _two): (u8, u8)) -> Result<usize> {
    pause().await;
    let length = _name.len();
    Ok(length + usize::from(_one))
}

#[cfg_attr(locked, distributed_lock(key = "a"))]
async fn complex(id: u64, a: bool, b: bool) -> Result<u64> {
    let mut sum = 0;
    for at in 0..id {
        if a && at > 1 { sum += 1; }
        if b && at > 2 { sum += 1; }
        if a && at > 3 { sum += 1; }
        if b && at > 4 { sum += 1; }
        if a && at > 5 { sum += 1; }
        if b && at > 6 { sum += 1; }
        if a && at > 7 { sum += 1; }
        if b && at > 8 { sum += 1; }
        if a && at > 9 { sum += 1; }
        if b && at > 10 { sum += 1; }
        if a && at > 11 { sum += 1; }
    }
    pause().await;
    Ok(sum)
}

#[cfg_attr(locked, distributed_lock(key = "a", on_error = |_| id))]
async fn complex_handled(id: u64, a: bool, b: bool) -> u64 {
    let mut sum = 0;
    for at in 0..id {
        if a && at > 1 { sum += 1; }
        if b && at > 2 { sum += 1; }
        if a && at > 3 { sum += 1; }
        if b && at > 4 { sum += 1; }
        if a && at > 5 { sum += 1; }
        if b && at > 6 { sum += 1; }
        if a && at > 7 { sum += 1; }
        if b && at > 8 { sum += 1; }
        if a && at > 9 { sum += 1; }
        if b && at > 10 { sum += 1; }
        if a && at > 11 { sum += 1; }
    }
    pause().await;
    sum
}

impl Cart {
    #[cfg_attr(locked, distributed_lock(key = "a:<self.id>"))]
    async fn own(self, other: Cart) -> Result<Cart> {
        pause().await;
        let count = self.lines.len() + other.lines.len();
        Ok(Cart { id: count as u64, ..self })
    }

    #[cfg_attr(locked, distributed_lock(key = "a", on_error = |error| { drop(error); self.lines.len() }))]
    async fn handled(&self, id: u64, name: String) -> usize {
        pause().await;
        if id > 5 {
            return 1;
        }
        return name.len();
    }
}
