//! The order in which the attribute does things: key, lock, body, parameters, release. A runtime
//! that notes every step shows it.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

#[path = "../ui/fake.rs"]
mod fake;

use fake::{FencingToken, LockClient, LockError, Next, Noted, note};
use lock_runtime::distributed_lock;

type Result<T> = std::result::Result<T, LockError>;

#[track_caller]
fn assert_happens<T>(next: Next, body: impl Future<Output = T>, expected: &[&str]) -> T {
    let (value, events) = fake::run(next, body);
    assert_eq!(events, expected);
    value
}

#[distributed_lock(key = "k:<id>:<order.0>", crate = crate::fake)]
async fn plain(id: Noted, order: Noted, tx: Noted) -> Result<u8> {
    note("body");
    drop(order);
    let _ = &tx;
    Ok(1)
}

#[test]
fn the_key_is_made_once_and_every_parameter_is_gone_before_the_release() {
    let value = assert_happens(
        Next::Granted,
        plain(Noted("id"), Noted("order"), Noted("tx")),
        &[
            "display id",
            "acquire k:[id=id]:[order.0=order] from global",
            "body",
            "drop order",
            "drop tx",
            "drop id",
            "release",
            "drop guard",
        ],
    );
    assert_eq!(value, Ok(1));
}

#[test]
fn a_refused_body_never_runs_and_its_parameters_are_dropped() {
    let value = assert_happens(
        Next::Busy,
        plain(Noted("id"), Noted("order"), Noted("tx")),
        &[
            "display id",
            "acquire k:[id=id]:[order.0=order] from global",
            "drop tx",
            "drop order",
            "drop id",
        ],
    );
    assert_eq!(value, Err(LockError::Busy));
}

#[test]
fn a_lost_lock_is_the_error_of_the_function() {
    let (value, events) = fake::run(
        Next::LostWhileRunning,
        plain(Noted("id"), Noted("order"), Noted("tx")),
    );
    assert_eq!(value, Err(LockError::Lost));
    assert!(!events.contains(&"body".to_owned()), "{events:?}");
    assert_eq!(events.last().map(String::as_str), Some("drop guard"));
}

struct Pair {
    id: u8,
    left: Noted,
    #[expect(dead_code, reason = "it is there to be dropped")]
    right: Noted,
}

fn pair() -> Pair {
    Pair {
        id: 1,
        left: Noted("left"),
        right: Noted("right"),
    }
}

#[distributed_lock(key = "k:<id>", crate = crate::fake)]
async fn patterns(
    _: Noted,
    _named: Noted,
    Pair { id, left, .. }: Pair,
    (first, _): (Noted, Noted),
) -> Result<u8> {
    note("body");
    let _ = (&left, &first);
    Ok(id)
}

#[test]
fn parameters_without_a_name_are_gone_before_the_release_too() {
    let (value, events) = fake::run(
        Next::Granted,
        patterns(
            Noted("ignored"),
            Noted("named"),
            pair(),
            (Noted("first"), Noted("second")),
        ),
    );
    assert_eq!(value, Ok(1));
    let release = events.iter().position(|event| event == "release").unwrap();
    let body = events.iter().position(|event| event == "body").unwrap();
    for name in ["ignored", "named", "left", "right", "first", "second"] {
        let dropped = format!("drop {name}");
        let at = events.iter().position(|event| *event == dropped).unwrap();
        assert!(body < at && at < release, "{name}: {events:?}");
    }
}

#[distributed_lock(key = "k", crate = crate::fake)]
async fn unmentioned(first: Noted, second: Noted, third: Noted) -> Result<()> {
    #![allow(unused_variables)]
    let local = Noted("local");
    Ok(())
}

#[test]
fn parameters_drop_in_the_usual_order() {
    let value = assert_happens(
        Next::Granted,
        unmentioned(Noted("first"), Noted("second"), Noted("third")),
        &[
            "acquire k from global",
            "drop local",
            "drop third",
            "drop second",
            "drop first",
            "release",
            "drop guard",
        ],
    );
    assert_eq!(value, Ok(()));
}

#[distributed_lock(key = "k:<first.0>:<second.0>", crate = crate::fake)]
async fn in_the_key(first: Noted, second: Noted) -> Result<()> {
    Ok(())
}

#[test]
fn parameters_of_the_key_drop_in_the_usual_order_too() {
    let value = assert_happens(
        Next::Granted,
        in_the_key(Noted("first"), Noted("second")),
        &[
            "acquire k:[first.0=first]:[second.0=second] from global",
            "drop second",
            "drop first",
            "release",
            "drop guard",
        ],
    );
    assert_eq!(value, Ok(()));
}

struct Owner {
    name: Noted,
    locks: LockClient,
}

impl Owner {
    #[distributed_lock(key = "k:<self.name.0>", client = &self.locks, crate = crate::fake)]
    async fn unused_self(self) -> Result<()> {
        note("body");
        Ok(())
    }

    #[distributed_lock(key = "k", client = &self.locks, crate = crate::fake)]
    async fn changed(&mut self) -> Result<()> {
        self.locks = LockClient("other");
        Ok(())
    }
}

#[test]
fn the_client_is_cloned_before_the_body_and_self_goes_before_the_release() {
    let owner = || Owner {
        name: Noted("name"),
        locks: LockClient("mine"),
    };
    assert_happens(
        Next::Granted,
        owner().unused_self(),
        &[
            "clone client mine",
            "acquire k:[self.name.0=name] from mine",
            "body",
            "drop name",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
    let mut owner = owner();
    assert_happens(
        Next::Granted,
        owner.changed(),
        &[
            "clone client mine",
            "acquire k from mine",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
}

#[distributed_lock(key = "k", fence = token, guard = lock, crate = crate::fake)]
async fn bound() -> Result<(FencingToken, String)> {
    Ok((token, format!("{:?}", lock.key)))
}

#[test]
fn fence_and_guard_are_there_in_the_body() {
    let (value, events) = fake::run(Next::Granted, bound());
    assert_eq!(value, Ok((FencingToken(7), "LockKey(\"k\")".to_owned())));
    assert!(events[1].contains("fenced: true"), "{events:?}");
}

#[test]
fn a_hold_without_its_token_is_given_back_and_the_body_does_not_run() {
    let (value, events) = fake::run(Next::NoToken, bound());
    assert_eq!(value, Err(LockError::Unavailable));
    assert_eq!(events.last().map(String::as_str), Some("drop guard"));
}

#[distributed_lock(
    key = "k",
    lease = "1m30s",
    renew = true,
    max_hold = "5m",
    wait = "forever",
    mode = "write",
    fair = true,
    reentrant = false,
    on_lost = "continue",
    hold_at_least = "500ms",
    hold_after = "success",
    crate = crate::fake
)]
async fn all_options() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "k", wait = "0s", renew = false, crate = crate::fake)]
async fn one_try() -> Result<()> {
    Ok(())
}

#[test]
fn every_option_reaches_the_runtime() {
    assert_happens(
        Next::Granted,
        all_options(),
        &[
            "acquire k from global",
            "Spec { lease: Some(90s), renew: Some(true), max_hold: Some(300s), \
             wait: Some(Forever), mode: Write, fair: true, reentrant: false, on_lost: Continue, \
             hold_at_least: Some(500ms), hold_after: Success, fenced: false }",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
    let (_, events) = fake::run(Next::Granted, one_try());
    assert!(
        events[1].contains("wait: Some(For(0ns))") && events[1].contains("renew: Some(false)"),
        "{events:?}"
    );
}

#[distributed_lock(
    key = "k",
    on_busy = "skip",
    on_error = |error| note(format_args!("{error:?}")),
    crate = crate::fake,
)]
async fn job() {
    note("body");
}

#[test]
fn a_skipped_job_is_no_error_and_a_dead_store_is_one() {
    for (next, told) in [(Next::Busy, &[][..]), (Next::Unavailable, &["Unavailable"])] {
        let ((), events) = fake::run(next, job());
        assert_eq!(events[0], "acquire k from global");
        assert!(events[1].contains("wait: Some(For(0ns))"), "{events:?}");
        assert_eq!(events[2..], *told);
    }
}

#[distributed_lock(key = "k:<name.0>", on_error = {
    note("made");
    let name = name.0;
    move |error| format!("{name}: {error:?}")
}, crate = crate::fake)]
async fn handled(name: Noted) -> String {
    name.0.to_owned()
}

#[test]
fn the_error_handler_is_made_before_the_lock_is_asked_for() {
    let value = assert_happens(
        Next::Unavailable,
        handled(Noted("n")),
        &["made", "acquire k:[name.0=n] from global", "drop n"],
    );
    assert_eq!(value, "n: Unavailable");
    let (value, _) = fake::run(Next::LostWhileRunning, handled(Noted("n")));
    assert_eq!(value, "n: Lost");
}

#[async_trait::async_trait]
trait Save {
    async fn save(&self, id: u8, tx: Noted) -> Result<u8>;
}

#[async_trait::async_trait]
impl Save for u8 {
    #[distributed_lock(key = "k:<self>:<id>", crate = crate::fake)]
    async fn save(&self, id: u8, tx: Noted) -> Result<u8> {
        note("body");
        let _ = &tx;
        Ok(*self)
    }
}

#[distributed_lock(key = "k:<id>", crate = crate::fake)]
fn by_hand(id: u8, tx: Noted) -> impl Future<Output = Result<()>> + Send {
    note("called");
    async move {
        note("body");
        drop(tx);
        Ok(())
    }
}

#[test]
fn futures_made_by_hand_and_async_trait_behave_alike() {
    assert_happens(
        Next::Granted,
        4_u8.save(5, Noted("tx")),
        &[
            "acquire k:[self=4]:[id=5] from global",
            "body",
            "drop tx",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
    assert_happens(
        Next::Granted,
        async { by_hand(5, Noted("tx")).await },
        &[
            "called",
            "acquire k:[id=5] from global",
            "body",
            "drop tx",
            "release",
            "drop guard",
        ],
    )
    .unwrap();
}

/// Below, the attribute of a runtime gets the function with its lock.
#[distributed_lock(key = "k", crate = crate::fake)]
#[tokio::test]
async fn a_test_whose_attribute_stands_below_runs_under_the_lock() -> Result<()> {
    note("body");
    Ok(())
}

#[distributed_lock(key = "k", crate = crate::fake)]
#[tokio::main(flavor = "current_thread")]
async fn a_program() -> Result<()> {
    note("body");
    Ok(())
}

#[test]
fn a_program_whose_attribute_stands_below_runs_under_the_lock() {
    a_program().unwrap();
}

#[distributed_lock(key = "k", on_busy = "skip", crate = crate::fake)]
async fn quiet_job() {
    note("body");
}

#[test]
fn a_job_without_a_result_needs_no_handler_to_skip() {
    for (next, event) in [
        (Next::Granted, Some("body")),
        (Next::Busy, None),
        (Next::Unavailable, Some("log Unavailable")),
    ] {
        let ((), events) = fake::run(next, quiet_job());
        assert_eq!(events.get(2).map(String::as_str), event, "{events:?}");
    }
}
