//! Patterns, `mut`, `_` and unused parameters.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing example panics"
)]
#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock, lock_key};

type Result<T> = std::result::Result<T, LockError>;

#[derive(Clone)]
struct Order {
    id: u64,
    items: Vec<String>,
    note: String,
}

struct Path<T>(T);

fn order() -> Order {
    Order {
        id: 7,
        items: vec!["apple".to_owned(), "pear".to_owned()],
        note: "quick".to_owned(),
    }
}

#[distributed_lock(key = "a:<a>")]
async fn mutable(mut a: u32, mut b: u32) -> Result<u32> {
    a += 1;
    b += 1;
    Ok(a + b)
}

#[distributed_lock(key = "ignored")]
async fn ignored(_: String, _named: String) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "extracted:<id>")]
async fn extracted(Path(id): Path<u64>) -> Result<u64> {
    Ok(id)
}

#[distributed_lock(key = "extracted:<id>")]
async fn extracted_for_the_key_only(Path(id): Path<u64>) -> Result<u64> {
    Ok(0)
}

#[distributed_lock(key = "parts:<id>:<items[0]>:<items.len()>")]
async fn taken_apart(Order { id, items, .. }: Order) -> Result<u64> {
    drop(items);
    Ok(id)
}

#[distributed_lock(key = "parts:<id>")]
async fn by_reference(
    &Order { id, ref note, .. }: &Order,
    (mut b, _): (u64, String),
) -> Result<u64> {
    b += note.len() as u64;
    Ok(id + b)
}

#[distributed_lock(key = "parts:<first>:<whole.len()>")]
async fn array(whole @ [first, ..]: [u8; 3]) -> Result<u8> {
    Ok(first + whole[2])
}

#[distributed_lock(key = format!("parts:{id}:{}", items[1]))]
async fn expression_over_a_pattern(Order { id, items, note: _ }: Order) -> Result<usize> {
    Ok(items.len() + usize::try_from(id).unwrap())
}

#[distributed_lock(key = lock_key!("made:<a.id>"))]
async fn key_macro(a: Order) -> Result<u64> {
    Ok(a.id)
}

#[distributed_lock(key = name)]
async fn moved_into_the_key(name: String) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "order:<order.items[0]>:<order.note.to_uppercase()>:<order.clone().id>")]
async fn moved_by_the_body(order: Order) -> Result<Vec<String>> {
    let Order { items, .. } = order;
    Ok(items)
}

#[distributed_lock(key = "a:<a>")]
async fn shadowed(a: u32) -> Result<u32> {
    let a = a + 1;
    Ok(a)
}

#[distributed_lock(key = "key:<key>:<guard>")]
async fn names_like_ours(key: u8, guard: u8, error: u8, value: u8, client: u8) -> Result<u8> {
    Ok(key + guard + error + value + client)
}

#[distributed_lock(key = "configured:<a>")]
async fn configured(
    a: u8,
    #[cfg(any())] gone: Gone,
    #[allow(unused_variables)] unused: u8,
) -> Result<u8> {
    Ok(a)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(mutable(1, 2).await.unwrap(), 5);
        ignored(String::new(), String::new()).await.unwrap();
        assert_eq!(extracted(Path(3)).await.unwrap(), 3);
        assert_eq!(extracted_for_the_key_only(Path(3)).await.unwrap(), 0);
        assert_eq!(taken_apart(order()).await.unwrap(), 7);
        assert_eq!(
            by_reference(&order(), (1, String::new())).await.unwrap(),
            13
        );
        assert_eq!(array([1, 2, 3]).await.unwrap(), 4);
        assert_eq!(expression_over_a_pattern(order()).await.unwrap(), 9);
        assert_eq!(key_macro(order()).await.unwrap(), 7);
        moved_into_the_key("name".to_owned()).await.unwrap();
        assert_eq!(moved_by_the_body(order()).await.unwrap().len(), 2);
        assert_eq!(shadowed(1).await.unwrap(), 2);
        assert_eq!(names_like_ours(1, 2, 3, 4, 5).await.unwrap(), 15);
        assert_eq!(configured(1, 2).await.unwrap(), 1);
    });
}
