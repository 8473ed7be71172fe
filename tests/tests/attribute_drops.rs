//! Parameters drop before the release, and in the order in which the function drops them without
//! the attribute: however the body ends, and whichever options use them.

#![allow(
    clippy::panic,
    clippy::too_many_arguments,
    clippy::unwrap_used,
    clippy::used_underscore_binding,
    dead_code,
    unused_assignments,
    unused_mut,
    unused_variables,
    reason = "each shape is written as a user may write it"
)]

#[path = "../ui/fake.rs"]
mod fake;

use fake::{LockClient, LockError, LockKey, Next, Noted, note};
use lock_runtime::{distributed_lock, rate_limited};
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

type Result<T> = std::result::Result<T, LockError>;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Returns,
    Fails,
    Panics,
    Cancelled,
}

thread_local! {
    static END: Cell<End> = const { Cell::new(End::Returns) };
}

/// Where each body may end early.
async fn checkpoint() -> Result<()> {
    note("body");
    tokio::task::yield_now().await;
    match END.get() {
        End::Returns => Ok(()),
        End::Fails => Err(LockError::Unavailable),
        End::Panics => std::panic::panic_any("the body panics"),
        End::Cancelled => pending().await,
    }
}

/// Polls until the body has ended in that way.
fn events_of<T>(end: End, next: Next, body: impl Future<Output = T>) -> Vec<String> {
    END.set(end);
    let ((), events) = fake::run(next, async {
        let mut body = Some(Box::pin(body));
        for _ in 0..20 {
            let polled = poll_fn(|cx| {
                let Some(running) = body.as_mut() else {
                    return Poll::Ready(true);
                };
                match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
                    Ok(polled) => Poll::Ready(polled.is_ready()),
                    Err(_) => Poll::Ready(true),
                }
            });
            if polled.await {
                body = None;
            }
        }
        drop(body);
    });
    events
}

fn drop_events(events: &[String]) -> Vec<&String> {
    let is_step = |event: &&String| {
        (event.starts_with("drop ") && *event != "drop guard") || *event == "body"
    };
    events.iter().filter(is_step).collect()
}

fn position(events: &[String], wanted: &str) -> Option<usize> {
    events.iter().position(|event| event == wanted)
}

#[track_caller]
fn assert_alike<A: Future, B: Future, C: Future>(
    plain: impl Fn() -> A,
    locked: impl Fn() -> B,
    without_body: impl Fn() -> C,
) {
    for end in [End::Returns, End::Fails, End::Panics, End::Cancelled] {
        let expected = events_of(end, Next::Granted, plain());
        let events = events_of(end, Next::Granted, locked());
        assert_eq!(
            drop_events(&events),
            drop_events(&expected),
            "{end:?}: {events:?}"
        );
        let last = events
            .iter()
            .rposition(|event| drop_events(&events).contains(&event));
        let over = position(&events, "release").or(position(&events, "drop guard"));
        assert!(last < over, "{end:?}: {events:?}");
    }
    let expected = events_of(End::Returns, Next::Granted, without_body());
    for next in [Next::Busy, Next::Unavailable, Next::LostWhileRunning] {
        let events = events_of(End::Returns, next, locked());
        assert_eq!(
            drop_events(&events),
            drop_events(&expected),
            "{next:?}: {events:?}"
        );
        let last = events
            .iter()
            .rposition(|event| drop_events(&events).contains(&event));
        let guard = position(&events, "drop guard");
        assert!(guard.is_none() || last < guard, "{next:?}: {events:?}");
    }
}

/// The function with the attribute, without it, and with nothing in its body.
macro_rules! alike {
    ($($test:ident: [$($options:tt)*]
        async fn shape $([$($generics:tt)*])? ($($inputs:tt)*) { $($body:tt)* }
        $args:tt
    )*) => {$(
        #[test]
        fn $test() {
            async fn plain $(<$($generics)*>)? ($($inputs)*) -> Result<()> { $($body)* }
            #[distributed_lock($($options)*, crate = crate::fake)]
            async fn locked $(<$($generics)*>)? ($($inputs)*) -> Result<()> { $($body)* }
            async fn without_body $(<$($generics)*>)? ($($inputs)*) {}
            assert_alike(|| plain $args, || locked $args, || without_body $args);
        }
    )*};
}

struct Pair {
    id: u8,
    left: Noted,
    right: Noted,
}

fn pair(left: &'static str, right: &'static str) -> Pair {
    Pair {
        id: 1,
        left: Noted(left),
        right: Noted(right),
    }
}

struct Tx(Noted, u32);

impl Tx {
    fn key(&self) -> &'static str {
        self.0.0
    }
}

fn tx() -> Tx {
    Tx(Noted("tx"), 5)
}

fn limit(number: u32) -> u32 {
    number
}

struct Shared {
    locks: LockClient,
    name: Noted,
}

fn shared(name: &'static str) -> Shared {
    Shared {
        locks: LockClient("mine"),
        name: Noted(name),
    }
}

struct Borrowing<'a>(&'a str);

impl Drop for Borrowing<'_> {
    fn drop(&mut self) {
        note(format_args!("drop borrow of {}", self.0));
    }
}

alike! {
    nothing_is_mentioned: [key = "k"]
    async fn shape(first: Noted, second: Noted, third: Noted) {
        let local = Noted("local");
        checkpoint().await
    }
    (Noted("first"), Noted("second"), Noted("third"))

    some_are_moved: [key = "k"]
    async fn shape(first: Noted, mut second: Noted, third: Noted) {
        drop(second);
        checkpoint().await?;
        drop(first);
        Ok(())
    }
    (Noted("first"), Noted("second"), Noted("third"))

    every_pattern: [key = "k:<id>"]
    async fn shape(
        before: Noted,
        _: Noted,
        _named: Noted,
        Pair { id, left, .. }: Pair,
        (one, _, mut three): (Noted, Noted, Noted),
        Tx(whole, number): Tx,
        [head, .., tail]: [Noted; 3],
        behind: Noted
    ) {
        checkpoint().await?;
        drop(one);
        Ok(())
    }
    (
        Noted("before"),
        Noted("ignored"),
        Noted("named"),
        pair("left", "right"),
        (Noted("one"), Noted("two"), Noted("three")),
        tx(),
        [Noted("head"), Noted("middle"), Noted("tail")],
        Noted("behind"),
    )

    nested_patterns: [key = "k:<id>:<number>"]
    async fn shape(
        (Pair { id, ref left, .. }, Tx(_, number)): (Pair, Tx),
        after: Noted,
        ((_, inner), _): ((Noted, Noted), Noted)
    ) {
        checkpoint().await
    }
    (
        (pair("left", "right"), tx()),
        Noted("after"),
        ((Noted("a"), Noted("b")), Noted("c")),
    )

    only_the_key_mentions_it: [key = "k:<tx.0.0>"]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    a_method_in_the_key: [key = "k:<tx.key()>"]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    an_expression_is_the_key: [key = tx.key()]
    async fn shape(first: Noted, tx: Tx, last: Noted) {
        checkpoint().await?;
        drop(last);
        Ok(())
    }
    (Noted("first"), tx(), Noted("last"))

    several_keys: [keys = [tx.key(), "k:<first.0>", last.0]]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    permits_of_it: [key = "k", permits = limit(tx.1)]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    durations_of_it: [
        key = "k", lease = std::time::Duration::from_secs(u64::from(tx.1)),
        wait = std::time::Duration::from_secs(u64::from(limit(tx.1)))
    ]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    its_client: [key = "k", client = &shared.locks]
    async fn shape(first: Noted, shared: Shared, last: Noted) { checkpoint().await }
    (Noted("first"), shared("shared"), Noted("last"))

    a_handler_that_borrows_it: [key = "k", on_error = |error| { let _ = &tx; Err(error) }]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    a_handler_that_borrows_the_first: [
        key = "k:<last.0>", on_error = |error| { let _ = &tx; Err(error) }
    ]
    async fn shape(tx: Tx, Pair { left, .. }: Pair, mut middle: Noted, last: Noted) {
        checkpoint().await?;
        let _ = &left;
        drop(middle);
        Ok(())
    }
    (tx(), pair("left", "right"), Noted("middle"), Noted("last"))

    a_handler_that_mentions_a_reference: [
        key = "k", on_error = |error| { let _ = name.len(); Err(error) }
    ]
    async fn shape(first: Noted, name: &str, last: Noted) {
        checkpoint().await?;
        drop(first);
        Ok(())
    }
    (Noted("first"), "name", Noted("last"))

    a_handler_of_nothing: [key = "k:<tx.0.0>", on_error = Err]
    async fn shape(first: Noted, tx: Tx, last: Noted) { checkpoint().await }
    (Noted("first"), tx(), Noted("last"))

    the_body_moves_parts: [key = "k:<order.id>"]
    async fn shape(first: Noted, order: Pair, last: Noted) {
        drop(order.right);
        checkpoint().await
    }
    (Noted("first"), pair("left", "right"), Noted("last"))

    references_among_them: [key = "k:<name>"]
    async fn shape['a](first: Noted, name: &'a str, second: Borrowing<'a>, mut all: &[u8]) {
        all = &all[1..];
        checkpoint().await
    }
    (Noted("first"), "name", Borrowing("lent"), b"abc")

    generic_ones: [key = "k"]
    async fn shape[T: Send, const N: usize](first: T, rest: [T; N], last: impl Send) {
        checkpoint().await
    }
    (Noted("first"), [Noted("one"), Noted("two")], Noted("last"))

    what_the_value_borrows: [key = "k"]
    async fn shape(first: std::sync::Mutex<Noted>, last: Noted) {
        checkpoint().await?;
        Borrowing(first.lock().unwrap().0).0.parse::<u8>().map(drop).or(Ok(()))
    }
    (std::sync::Mutex::new(Noted("first")), Noted("last"))
}

impl Shared {
    async fn plain(self, first: Noted, _: Noted) -> Result<()> {
        checkpoint().await
    }
    #[distributed_lock(key = self.name.0, client = &self.locks, crate = crate::fake)]
    async fn locked(self, first: Noted, _: Noted) -> Result<()> {
        checkpoint().await
    }
    async fn without_body(self, first: Noted, _: Noted) {}

    async fn plain_handled(self, first: Noted, _: Noted) -> Result<()> {
        checkpoint().await
    }
    #[distributed_lock(
        key = "k:<first.0>",
        on_error = |error| { let _ = &self.name; Err(error) },
        crate = crate::fake
    )]
    async fn locked_handled(self, first: Noted, _: Noted) -> Result<()> {
        checkpoint().await
    }
}

#[test]
fn owned_self_drops_last() {
    let owner = || shared("owner");
    let args = || (Noted("first"), Noted("second"));
    assert_alike(
        || owner().plain(args().0, args().1),
        || owner().locked(args().0, args().1),
        || owner().without_body(args().0, args().1),
    );
    assert_alike(
        || owner().plain_handled(args().0, args().1),
        || owner().locked_handled(args().0, args().1),
        || owner().without_body(args().0, args().1),
    );
}

#[async_trait::async_trait]
trait Save {
    async fn plain(self: Box<Self>, tx: Tx, _: Noted, pair: (Noted, Noted)) -> Result<()>;
    async fn locked(self: Box<Self>, tx: Tx, _: Noted, pair: (Noted, Noted)) -> Result<()>;
    async fn without_body(self: Box<Self>, tx: Tx, _: Noted, pair: (Noted, Noted));
}

#[async_trait::async_trait]
impl Save for Pair {
    async fn plain(self: Box<Self>, tx: Tx, _: Noted, (one, _): (Noted, Noted)) -> Result<()> {
        checkpoint().await?;
        drop(one);
        Ok(())
    }

    #[distributed_lock(key = tx.key(), permits = limit(tx.1), crate = crate::fake)]
    async fn locked(self: Box<Self>, tx: Tx, _: Noted, (one, _): (Noted, Noted)) -> Result<()> {
        checkpoint().await?;
        drop(one);
        Ok(())
    }

    async fn without_body(self: Box<Self>, tx: Tx, _: Noted, (one, _): (Noted, Noted)) {}
}

#[test]
fn async_trait_drops_in_its_order() {
    let this = || Box::new(pair("left", "right"));
    let rest = || (Noted("ignored"), (Noted("one"), Noted("two")));
    assert_alike(
        || this().plain(tx(), rest().0, rest().1),
        || this().locked(tx(), rest().0, rest().1),
        || this().without_body(tx(), rest().0, rest().1),
    );
}

#[test]
fn a_rate_limited_function_drops_in_its_order() {
    async fn plain(Pair { left, .. }: Pair, _: Noted, tx: Tx) -> Result<()> {
        checkpoint().await
    }
    #[rate_limited(key = tx.key(), rate = "1/s", crate = crate::fake)]
    async fn limited(Pair { left, .. }: Pair, _: Noted, tx: Tx) -> Result<()> {
        checkpoint().await
    }
    for end in [End::Returns, End::Fails, End::Panics, End::Cancelled] {
        let args = || (pair("left", "right"), Noted("ignored"), tx());
        let (a, b, c) = args();
        let expected = events_of(end, Next::Granted, plain(a, b, c));
        let (a, b, c) = args();
        let events = events_of(end, Next::Granted, limited(a, b, c));
        assert_eq!(
            drop_events(&events),
            drop_events(&expected),
            "{end:?}: {events:?}"
        );
    }
}

/// Without the attribute, `tx` drops first. The handler needs it after the body, which has `first`.
#[test]
fn what_a_handler_borrows_drops_after_what_the_body_uses() {
    #[distributed_lock(
        key = "k", on_error = |error| { let _ = &tx; Err(error) }, crate = crate::fake
    )]
    async fn borrowed(first: Noted, tx: Tx) -> Result<()> {
        let _ = &first;
        checkpoint().await
    }
    for end in [End::Returns, End::Fails, End::Panics, End::Cancelled] {
        let events = events_of(end, Next::Granted, borrowed(Noted("first"), tx()));
        let expected = ["body", "drop first", "drop tx"];
        assert_eq!(drop_events(&events), expected, "{end:?}: {events:?}");
        let over = position(&events, "release").or(position(&events, "drop guard"));
        assert!(position(&events, "drop tx") < over, "{end:?}: {events:?}");
    }
}

#[async_trait::async_trait]
trait Borrow {
    async fn borrowed(&self, a: Noted, pair: (Noted, Noted), tx: Tx, z: Noted) -> Result<()>;
}

#[async_trait::async_trait]
impl Borrow for () {
    #[distributed_lock(
        key = "k", on_error = |error| { let _ = &tx; Err(error) }, crate = crate::fake
    )]
    async fn borrowed(&self, a: Noted, (one, _): (Noted, Noted), tx: Tx, z: Noted) -> Result<()> {
        let _ = &one;
        checkpoint().await
    }
}

/// What nothing uses drops where it does without the attribute: `z` first, and `a` last. What a
/// pattern leaves behind, `#[async_trait]` drops where it begins.
#[test]
fn what_a_handler_borrows_drops_in_the_same_place_under_async_trait() {
    for end in [End::Returns, End::Fails, End::Panics, End::Cancelled] {
        let pair = (Noted("one"), Noted("two"));
        let borrowed = ().borrowed(Noted("a"), pair, tx(), Noted("z"));
        let events = events_of(end, Next::Granted, borrowed);
        let expected = [
            "drop two", "body", "drop z", "drop one", "drop tx", "drop a",
        ];
        assert_eq!(drop_events(&events), expected, "{end:?}: {events:?}");
        let over = position(&events, "release").or(position(&events, "drop guard"));
        assert!(position(&events, "drop a") < over, "{end:?}: {events:?}");
    }
}

#[test]
fn what_an_option_takes_is_gone_before_the_body() {
    fn into_key(order: Pair) -> LockKey {
        LockKey::from(order.left.0)
    }
    #[distributed_lock(key = into_key(order), crate = crate::fake)]
    async fn taken(first: Noted, order: Pair, last: Noted) -> Result<()> {
        checkpoint().await
    }
    #[distributed_lock(
        key = "k",
        on_error = { let tx = tx; move |error| { drop(tx); Err(error) } },
        crate = crate::fake
    )]
    async fn taken_by_the_handler(first: Noted, tx: Tx, last: Noted) -> Result<()> {
        checkpoint().await
    }
    let three = (Noted("first"), pair("left", "right"), Noted("last"));
    let events = events_of(
        End::Returns,
        Next::Granted,
        taken(three.0, three.1, three.2),
    );
    let expected = ["drop left", "drop right", "body", "drop last", "drop first"];
    assert_eq!(drop_events(&events), expected, "{events:?}");
    let call = taken_by_the_handler(Noted("first"), tx(), Noted("last"));
    let events = events_of(End::Returns, Next::Granted, call);
    let release = position(&events, "release");
    assert!(position(&events, "drop tx") < release, "{events:?}");
    assert!(position(&events, "drop first") < release, "{events:?}");
}
