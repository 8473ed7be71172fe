//! Parameters that a pattern takes apart.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

struct Path<T>(T);

struct Order {
    id: u64,
    items: Vec<String>,
    note: String,
}

fn order() -> Order {
    Order {
        id: 7,
        items: vec!["apple".to_owned(), "pear".to_owned()],
        note: "quick".to_owned(),
    }
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

pub(crate) fn main() {
    support::run(async {
        assert_eq!(extracted(Path(3)).await.unwrap(), 3);
        assert_eq!(extracted_for_the_key_only(Path(3)).await.unwrap(), 0);
        assert_eq!(taken_apart(order()).await.unwrap(), 7);
        let sum = by_reference(&order(), (1, String::new())).await;
        assert_eq!(sum.unwrap(), 13);
        assert_eq!(array([1, 2, 3]).await.unwrap(), 4);
        assert_eq!(expression_over_a_pattern(order()).await.unwrap(), 9);
    });
}
