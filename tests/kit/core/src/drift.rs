//! [`compare_with_rules`]: drives an engine and the rules over plain lists with the same random
//! commands, at the same times. Both give the same replies and announce the same grants.
//!
//! `LOCK_DRIFT_COMMANDS` sets how many.
#![expect(
    clippy::unwrap_used,
    reason = "test support: an error of the harness must end the test, loudly"
)]

mod commands;

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_store::{ClientId, Clock, Listener, Permits, Queue, Store};
use tokio::runtime::{Builder, Runtime};

use self::commands::{Request, Side, Verb, by, request, run, verb};
use crate::backend::Asks;
use crate::listed_store::ListedLocks;
use crate::seeded::Seeded;

const STEPS: usize = 300;
/// How far the engine's clock may be ahead of the rules' when a command begins.
const OWN_TIME: Duration = Duration::from_millis(100);
/// And when its reply comes: later ones are not judged, nor what follows.
const TOO_LATE: Duration = Duration::from_millis(500);
/// In milliseconds. The short ones, which are the engine's own, decide about places.
const LONG_TICKS: [u64; 2] = [400_000, 1_100_000];

/// An engine whose time a test can set.
pub trait Ages {
    /// The store of one more client, in the namespace `lock`.
    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store>;
    /// In milliseconds: after two of these a client stands still, and after three a wait of 2.75 s
    /// has ended.
    fn tick(&self) -> u64;
    /// Lets time pass: all that is stored ends this many milliseconds earlier. Less than zero
    /// takes back time that passed by itself.
    fn age(&self, millis: i64) -> Asks<'_, ()>;
    /// True: time passes by itself, too.
    fn has_running_clock(&self) -> bool {
        false
    }
    /// False: it forgets suspended places at other times than by the rules, which do so when
    /// somebody asks.
    fn forgets_when_asked(&self) -> bool {
        true
    }
    /// True: it hands over after each grant of a share, also if that repeats an earlier one.
    fn goes_on_after_shares(&self) -> bool {
        false
    }
    /// True: it remembers of a client that places of it were suspended, and hears it when it takes
    /// another place, also if it has given up the others.
    fn remembers_suspensions(&self) -> bool {
        false
    }
    /// True: it subscribes in the background, and has its client look again once it hears.
    fn subscribes_later(&self) -> bool {
        false
    }
    /// From which the tokens of each key are counted one by one, if it is later than any clock.
    fn tokens_after(&self) -> Option<u64> {
        None
    }
}

struct Both<'e> {
    real: &'e Runtime,
    engine: &'e dyn Ages,
    under_test: Side,
    listed: ListedLocks,
    rules: Side,
    steps: Vec<String>,
    /// Since when the engine's own time has not been taken back, if it has some.
    since: Instant,
    was_too_late: bool,
}

impl<'e> Both<'e> {
    fn new(real: &'e Runtime, engine: &'e dyn Ages) -> Self {
        let tokens_after = engine.tokens_after();
        let under_test = Side::new(tokens_after, |id, listener| {
            let _entered = real.enter();
            engine.store(id, listener, Clock::new(real.handle().clone()))
        });
        for store in &under_test.stores {
            real.block_on(store.await_connection(by())).unwrap();
        }
        if engine.subscribes_later() {
            real.block_on(under_test.until_hearing());
        }
        let listed = ListedLocks::new(
            engine.goes_on_after_shares(),
            engine.remembers_suspensions(),
        );
        let tokens_after = tokens_after.and(Some(0));
        let rules = Side::new(tokens_after, |id, listener| listed.connect(id, listener));
        Self {
            real,
            engine,
            under_test,
            listed,
            rules,
            steps: Vec::new(),
            since: Instant::now(),
            was_too_late: false,
        }
    }

    fn own_time(&self) -> Duration {
        match self.engine.has_running_clock() {
            true => self.since.elapsed(),
            false => Duration::ZERO,
        }
    }

    fn compare(&mut self, request: &Request, verb: &Verb) -> String {
        self.take_back_own_time();
        let forgets = self.listed.has_suspended();
        let rules = run(&mut self.rules, request, verb, forgets);
        let expected = self.real.block_on(rules);
        let owner = request.acquire.claim.owner;
        self.steps.push(format!(
            "{}-{} {:?} {:?} {verb:?} -> {expected}",
            owner.client.0, owner.request, request.acquire.claim.key, request.claims
        ));
        let reply = run(&mut self.under_test, request, verb, forgets);
        let reply = self.real.block_on(reply);
        self.was_too_late |= self.own_time() > TOO_LATE;
        if self.was_too_late {
            return expected;
        }
        assert_eq!(
            reply,
            expected,
            "the engine against the rules, {}",
            self.after()
        );
        let started = Instant::now();
        while self.under_test.heard() != self.rules.heard() {
            let (engine, rules) = (self.under_test.heard(), self.rules.heard());
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "told by the engine {engine:?}\nand by the rules {rules:?}\n{}",
                self.after()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        reply
    }

    fn pass_some_time(&mut self, random: &mut Seeded) {
        let engine = self.engine;
        let is_forgetful = engine.forgets_when_asked();
        match random.below(4) {
            long @ 0..2 if is_forgetful || !self.listed.has_suspended() => {
                self.pass_time(LONG_TICKS[long]);
            }
            _ => self.pass_time(engine.tick()),
        }
    }

    /// Lets time pass in both. In the engine, everything ends earlier.
    fn pass_time(&mut self, millis: u64) {
        self.steps.push(format!("{millis} ms later"));
        self.listed.pass_time(Duration::from_millis(millis));
        self.real.block_on(self.engine.age(millis.cast_signed()));
    }

    /// For the rules, no time passes but the ticks.
    fn take_back_own_time(&mut self) {
        let own = self.own_time();
        if own > OWN_TIME {
            self.since += own;
            let millis = i64::try_from(own.as_millis()).unwrap();
            self.real.block_on(self.engine.age(-millis));
        }
    }

    /// For messages: the last steps.
    fn after(&self) -> String {
        let from = self.steps.len().saturating_sub(100);
        let mut text = String::from("after\n");
        for (number, step) in self.steps.iter().enumerate().skip(from) {
            let _ = writeln!(text, "{number}: {step}");
        }
        text
    }
}

/// Compares an engine of this kind with the rules, by this many commands or more.
///
/// # Panics
/// If they differ.
pub fn compare_with_rules<E: Ages>(commands: usize, start: impl AsyncFn() -> E) {
    let wanted = std::env::var("LOCK_DRIFT_COMMANDS");
    let wanted = wanted.map_or(commands, |number| number.parse().unwrap());
    let real = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (mut done, mut seed, mut cut_short) = (0, 0, 0);
    while done < wanted {
        println!("seed {seed}");
        let engine = real.block_on(start());
        let mut both = Both::new(&real, &engine);
        scenario(&mut both, seed);
        match both.was_too_late {
            true => cut_short += 1,
            false => done += both.steps.len(),
        }
        seed += 1;
    }
    println!("{done} commands, the same replies; {cut_short} scenarios of {seed} cut short");
}

/// Random commands seldom do this: the first of several readers asks, who wait for a writer whose
/// lease has ended.
fn ask_behind_a_lease_that_ended(both: &mut Both<'_>, like: &Request) {
    let asks = |both: &mut Both<'_>, number: u64, permits| {
        let mut request = like.clone();
        request.acquire.claim.owner.request = 1000 + number;
        (request.acquire.claim.permits, request.claims) = (Some(permits), Some(permits));
        request.acquire.wait = None;
        both.compare(&request, &Verb::Acquire(Queue::Join))
    };
    asks(both, 0, Permits::WRITE);
    for reader in 1..=3 {
        asks(both, reader, Permits::READ);
    }
    both.pass_time(3_100_000);
    let granted = asks(both, 1, Permits::READ);
    assert!(granted.starts_with("granted"), "{granted}");
}

fn scenario(both: &mut Both<'_>, seed: u64) {
    let mut random = Seeded::new(seed);
    let mut numbers = 0;
    let mut fresh = |random: &mut Seeded| {
        numbers += 1;
        request(random, seed, numbers)
    };
    let mut requests: Vec<Request> = (0..7).map(|_| fresh(&mut random)).collect();
    if seed.is_multiple_of(5) {
        ask_behind_a_lease_that_ended(both, &requests[0]);
    }
    for _ in 0..STEPS {
        if both.was_too_late {
            return;
        }
        let at = random.below(requests.len());
        match random.below(20) {
            0 => both.pass_some_time(&mut random),
            1 => requests[at] = fresh(&mut random),
            _ => {
                let verb = verb(&mut random, &mut requests[at]);
                let other = requests[random.below(requests.len())].clone();
                let instead_of = (random.below(4) == 0).then_some(other.acquire.claim.owner);
                requests[at].acquire.instead_of = instead_of;
                let claims = requests[at].claims;
                // What it does not have, for the most part. No client takes permits for a reader,
                // and engines differ there.
                let is_rw =
                    |claims: Option<Permits>| claims.map(|part| part.of == Permits::READ.of);
                let (own, others) = (is_rw(claims), is_rw(other.claims));
                if matches!(verb, Verb::Renew(_) | Verb::Release(_) | Verb::Fence)
                    && random.below(10) == 0
                    && (own == others || own.is_none() || others.is_none())
                {
                    requests[at].claims = other.claims;
                }
                let reply = both.compare(&requests[at], &verb);
                requests[at].claims = claims;
                if let Verb::Shrink(permits) = verb
                    && reply == "Released"
                {
                    let of = requests[at].claims;
                    requests[at].claims = of.map(|claimed| Permits {
                        count: permits,
                        ..claimed
                    });
                    // An acquire can still arrive late only if it is a writer's.
                    if of.is_some_and(|permits| permits.of != Permits::READ_WRITE) {
                        requests[at].acquire.claim.permits = requests[at].claims;
                    }
                }
            }
        }
    }
}
