//! The attribute costs no box, and at most one copy of the arguments in the future.
#![allow(clippy::large_futures, reason = "their size is the question")]

use lock_runtime::{LockError, distributed_lock};
use std::mem::size_of_val;

type Result<T> = std::result::Result<T, LockError>;

struct Bytes<const N: usize>([u8; N]);

async fn touch<const N: usize>(bytes: &Bytes<N>) -> usize {
    tokio::task::yield_now().await;
    bytes.0.len()
}

async fn plain<const N: usize>(id: u32, bytes: Bytes<N>) -> Result<usize> {
    let length = touch(&bytes).await;
    Ok(length + id as usize)
}

#[distributed_lock(key = "size:<id>")]
async fn locked<const N: usize>(id: u32, bytes: Bytes<N>) -> Result<usize> {
    let length = touch(&bytes).await;
    Ok(length + id as usize)
}

#[distributed_lock(key = "size:<id>")]
async fn locked_copy<const N: usize>(id: u32, bytes: [u8; N]) -> Result<usize> {
    tokio::task::yield_now().await;
    Ok(bytes.len() + id as usize)
}

async fn plain_copy<const N: usize>(id: u32, bytes: [u8; N]) -> Result<usize> {
    tokio::task::yield_now().await;
    Ok(bytes.len() + id as usize)
}

#[distributed_lock(key = "size")]
async fn locked_part<const N: usize>((bytes, _): ([u8; N], u8)) -> Result<usize> {
    tokio::task::yield_now().await;
    Ok(bytes.len())
}

async fn plain_part<const N: usize>((bytes, _): ([u8; N], u8)) -> Result<usize> {
    tokio::task::yield_now().await;
    Ok(bytes.len())
}

#[distributed_lock(key = "size:<bytes.0.len()>")]
async fn locked_by_it<const N: usize>(id: u32, bytes: Bytes<N>) -> Result<usize> {
    let length = touch(&bytes).await;
    Ok(length + id as usize)
}

async fn plain_local<const N: usize>() -> Result<usize> {
    let bytes = Bytes([0; N]);
    Ok(touch(&bytes).await)
}

#[distributed_lock(key = "size")]
async fn locked_local<const N: usize>() -> Result<usize> {
    let bytes = Bytes([0; N]);
    Ok(touch(&bytes).await)
}

const LARGE: usize = 4096;
/// The copies' padding differs by a few bytes.
const SLACK: usize = 64;

#[test]
fn an_argument_is_in_the_future_at_most_once_more() {
    let plain = size_of_val(&plain(1, Bytes([0; LARGE]))) - size_of_val(&plain(1, Bytes([0; 0])));
    let locked =
        size_of_val(&locked(1, Bytes([0; LARGE]))) - size_of_val(&locked(1, Bytes([0; 0])));
    let by_it = size_of_val(&locked_by_it(1, Bytes([0; LARGE])))
        - size_of_val(&locked_by_it(1, Bytes([0; 0])));
    println!("an argument of {LARGE}: plain {plain}, locked {locked}, locked by it {by_it}");
    assert!(locked <= plain + LARGE + SLACK, "{locked} and {plain}");
    assert!(by_it <= plain + LARGE + SLACK, "{by_it} and {plain}");
}

#[test]
fn what_the_body_keeps_is_in_the_future_once() {
    let plain = size_of_val(&plain_local::<LARGE>()) - size_of_val(&plain_local::<0>());
    let locked = size_of_val(&locked_local::<LARGE>()) - size_of_val(&locked_local::<0>());
    println!("a local of {LARGE}: plain {plain}, locked {locked}");
    assert!(locked <= plain + SLACK, "{locked} and {plain}");
}

/// A future keeps each place through which a `Copy` value was copied, unless the value is wrapped
/// on its way.
#[test]
fn a_copy_argument_is_there_at_most_once_more_too() {
    let plain = size_of_val(&plain_copy(1, [0; LARGE])) - size_of_val(&plain_copy(1, [0; 0]));
    let locked = size_of_val(&locked_copy(1, [0; LARGE])) - size_of_val(&locked_copy(1, [0; 0]));
    println!("a `Copy` argument of {LARGE}: plain {plain}, locked {locked}");
    assert!(locked <= plain + LARGE + SLACK, "{locked} and {plain}");
}

#[test]
fn an_argument_that_a_pattern_takes_apart_is_there_at_most_once_more_too() {
    let plain = size_of_val(&plain_part(([0; LARGE], 1))) - size_of_val(&plain_part(([0; 0], 1)));
    let locked =
        size_of_val(&locked_part(([0; LARGE], 1))) - size_of_val(&locked_part(([0; 0], 1)));
    println!("a part of an argument of {LARGE}: plain {plain}, locked {locked}");
    assert!(locked <= plain + LARGE + SLACK, "{locked} and {plain}");
}
