//! What the attribute requests with `mode`, `permits` and `keys`, and in which order. A runtime
//! that notes every step shows it.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

#[path = "../ui/fake.rs"]
mod fake;

use fake::{FencingToken, LockClient, LockError, LockKey, Next, Noted, note};
use lock_runtime::{distributed_lock, lock_key};

type Result<T> = std::result::Result<T, LockError>;

#[track_caller]
fn assert_happens<T>(next: Next, body: impl Future<Output = T>, expected: &[&str]) -> T {
    let (value, events) = fake::run(next, body);
    assert_eq!(events, expected);
    value
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], crate = crate::fake)]
async fn transfer(from: Noted, to: Noted, tx: Noted) -> Result<()> {
    note("body");
    let _ = &tx;
    drop(to);
    Ok(())
}

#[test]
fn keys_are_made_once_in_the_order_listed_and_every_parameter_is_gone_before_the_release() {
    let value = assert_happens(
        Next::Granted,
        transfer(Noted("from"), Noted("to"), Noted("tx")),
        &[
            "display from",
            "display to",
            "acquire account:[from=from] and account:[to=to] from global",
            "body",
            "drop to",
            "drop tx",
            "drop from",
            "release",
            "drop guard",
        ],
    );
    assert_eq!(value, Ok(()));
}

#[test]
fn a_refused_transfer_never_runs_and_its_parameters_are_dropped() {
    let value = assert_happens(
        Next::Busy,
        transfer(Noted("from"), Noted("to"), Noted("tx")),
        &[
            "display from",
            "display to",
            "acquire account:[from=from] and account:[to=to] from global",
            "drop tx",
            "drop to",
            "drop from",
        ],
    );
    assert_eq!(value, Err(LockError::Busy));
}

fn made(of: &str) -> LockKey {
    note(format_args!("make {of}"));
    of.into()
}

const SETTINGS: &str = "settings:<not a template>";

#[distributed_lock(
    keys = [
        SETTINGS,
        made(&name),
        "b:<name>",
        lock_key!("c:<name>", crate = crate::fake),
        { note("moved"); made(&moved.0) },
    ],
    client = locks,
    crate = crate::fake,
)]
async fn expressions(name: String, moved: (String,), locks: &LockClient) -> Result<String> {
    Ok(name)
}

#[test]
fn templates_and_expressions_stand_side_by_side() {
    let value = assert_happens(
        Next::Granted,
        expressions("n".to_owned(), ("m".to_owned(),), &LockClient("mine")),
        &[
            "make n",
            "moved",
            "make m",
            "clone client mine",
            "acquire settings:<not a template> and n and b:[name=n] and c:[name=n] and m from mine",
            "release",
            "drop guard",
        ],
    );
    assert_eq!(value, Ok("n".to_owned()));
}

#[distributed_lock(
    keys = ["account:<from>", "account:<to>", "ledger"],
    fence = tokens,
    crate = crate::fake,
)]
async fn fenced(from: u8, to: u8) -> Result<[FencingToken; 3]> {
    Ok(tokens)
}

#[distributed_lock(keys = ["one"], fence = tokens, crate = crate::fake)]
async fn fenced_alone() -> Result<u64> {
    let [token] = tokens;
    Ok(token.0)
}

#[test]
fn each_key_has_its_token_in_the_order_listed() {
    let (value, events) = fake::run(Next::Granted, fenced(1, 2));
    assert_eq!(value, Ok([7, 8, 9].map(FencingToken)));
    assert!(events[1].contains("fenced: true"), "{events:?}");
    assert_eq!(fake::run(Next::Granted, fenced_alone()).0, Ok(7));
}

#[test]
fn keys_without_their_tokens_are_given_back_and_the_body_does_not_run() {
    let (value, events) = fake::run(Next::NoToken, fenced(1, 2));
    assert_eq!(value, Err(LockError::Unavailable));
    assert_eq!(events.last().map(String::as_str), Some("drop guard"));
}

struct Limits {
    most: u32,
    name: Noted,
    locks: LockClient,
}

fn limits() -> Limits {
    Limits {
        most: 5,
        name: Noted("limits"),
        locks: LockClient("mine"),
    }
}

#[distributed_lock(
    key = "api:<id>",
    permits = { note("permits"); limits.most },
    client = &limits.locks,
    crate = crate::fake,
)]
async fn counted(id: Noted, limits: &Limits) -> Result<()> {
    note("body");
    Ok(())
}

#[test]
fn permits_are_evaluated_once_behind_the_key_and_before_anything_is_asked_for() {
    let limits = limits();
    assert_happens(
        Next::Granted,
        counted(Noted("id"), &limits),
        &[
            "display id",
            "permits",
            "clone client mine",
            "acquire 1 of 5 permits of api:[id=id] from mine",
            "body",
            "drop id",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
}

#[distributed_lock(key = "api", permits = limits.most * 2 + 1, crate = crate::fake)]
async fn copied_out(limits: Limits) -> Result<()> {
    note("body");
    Ok(())
}

impl Limits {
    #[distributed_lock(key = "api:<self.name.0>", permits = self.most, crate = crate::fake)]
    async fn all_of_self(self) -> Result<()> {
        note("body");
        Ok(())
    }

    #[distributed_lock(key = "api", permits = self.most(), crate = crate::fake)]
    async fn raised(&mut self) -> Result<u32> {
        self.most += 1;
        Ok(self.most)
    }

    fn most(&self) -> u32 {
        self.most
    }
}

#[test]
fn what_the_permits_are_copied_from_is_gone_before_the_release() {
    let gone = ["body", "drop limits", "release", "drop guard"];
    let (value, events) = fake::run(Next::Granted, copied_out(limits()));
    assert_eq!(value, Ok(()));
    assert_eq!(events[0], "acquire 1 of 11 permits of api from global");
    assert_eq!(events[1..], gone);
    let (value, events) = fake::run(Next::Granted, limits().all_of_self());
    assert_eq!(value, Ok(()));
    assert_eq!(
        events[0],
        "acquire 1 of 5 permits of api:[self.name.0=limits] from global"
    );
    assert_eq!(events[1..], gone);
}

#[test]
fn the_body_may_change_what_the_permits_were_read_from() {
    let mut limits = limits();
    let (value, events) = fake::run(Next::Granted, limits.raised());
    assert_eq!(value, Ok(6));
    assert_eq!(events[0], "acquire 1 of 5 permits of api from global");
}

#[distributed_lock(key = "k", mode = "exclusive", crate = crate::fake)]
async fn exclusive() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "k", mode = "read", crate = crate::fake)]
async fn read() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "k", mode = "write", crate = crate::fake)]
async fn write() -> Result<()> {
    Ok(())
}

#[distributed_lock(
    keys = ["a", "b"],
    mode = "exclusive",
    hold_at_least = "5s",
    crate = crate::fake,
)]
async fn several() -> Result<()> {
    Ok(())
}

#[test]
fn the_mode_reaches_the_runtime() {
    // Without a `mode`, the lock is exclusive.
    assert_happens(
        Next::Granted,
        exclusive(),
        &["acquire k from global", "release", "drop guard"],
    )
    .unwrap();
    let (_, events) = fake::run(Next::Granted, read());
    assert!(events[1].contains("mode: Read"), "{events:?}");
    let (_, events) = fake::run(Next::Granted, write());
    assert!(events[1].contains("mode: Write"), "{events:?}");
    let (_, events) = fake::run(Next::Granted, several());
    assert_eq!(events[0], "acquire a and b from global");
    assert!(
        events[1].contains("mode: Exclusive") && events[1].contains("hold_at_least: Some(5s)"),
        "{events:?}"
    );
}

#[async_trait::async_trait]
trait Bank {
    async fn transfer(&self, from: u8, to: u8, tx: Noted) -> Result<u64>;
    async fn call(&self, id: u8, most: u32) -> Result<()>;
}

#[async_trait::async_trait]
impl Bank for u8 {
    #[distributed_lock(
        keys = ["<self>:<from>", "<self>:<to>"],
        fence = tokens,
        crate = crate::fake,
    )]
    async fn transfer(&self, from: u8, to: u8, tx: Noted) -> Result<u64> {
        let _ = &tx;
        Ok(tokens[1].0)
    }

    #[distributed_lock(key = "api:<id>", permits = most + u32::from(*self), crate = crate::fake)]
    async fn call(&self, id: u8, most: u32) -> Result<()> {
        Ok(())
    }
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], crate = crate::fake)]
fn by_hand(from: u8, to: u8, tx: Noted) -> impl Future<Output = Result<()>> + Send {
    note("called");
    async move {
        drop(tx);
        Ok(())
    }
}

#[test]
fn futures_made_by_hand_and_async_trait_behave_alike() {
    let value = assert_happens(
        Next::Granted,
        4_u8.transfer(5, 6, Noted("tx")),
        &[
            "acquire [self=4]:[from=5] and [self=4]:[to=6] from global",
            "Spec { lease: None, renew: None, max_hold: None, wait: None, mode: Exclusive, \
             fair: false, reentrant: true, on_lost: Cancel, hold_at_least: None, \
             hold_after: Always, fenced: true }",
            "drop tx",
            "release",
            "drop guard",
        ],
    );
    assert_eq!(value, Ok(8));
    assert_happens(
        Next::Granted,
        4_u8.call(5, 6),
        &[
            "acquire 1 of 10 permits of api:[id=5] from global",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
    assert_happens(
        Next::Granted,
        async { by_hand(1, 2, Noted("tx")).await },
        &[
            "called",
            "acquire account:[from=1] and account:[to=2] from global",
            "drop tx",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
}
