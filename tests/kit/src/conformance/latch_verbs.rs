//! A store's latches, verb by verb: commands are safe to repeat, and replies are true.

use std::sync::Arc;
use std::time::Duration;

use crate::{Backend, Heard, LatchRequest, LatchVerb, Latched, eventually, wall_micros};
use lock_store::{
    Acquire, Acquired, Claim, ClientId, Clock, Holder, Instant, LatchState, Listener, Owner, Queue,
    Release, Store,
};

super::on_every_store!(
    a_count_down_repeated_counts_once_and_gets_the_same_reply,
    a_count_down_repeated_after_the_latch_was_set_again_counts_nothing,
    a_set_repeated_after_the_latch_has_opened_sets_nothing,
    an_attempt_at_the_wrong_time_changes_nothing_and_is_told_the_time,
    a_repeat_gets_the_first_ones_reply_whatever_time_it_has,
    generations_rise_and_the_last_that_opened_is_known,
    each_place_is_told_once_which_generation_opened,
    a_place_that_was_left_gets_no_message,
    a_place_is_not_taken_at_an_open_latch,
    opening_takes_out_every_place_also_of_clients_that_are_gone,
    a_lock_is_not_handed_over_beside_a_latch,
);

/// Clients of one store, and what each hears.
struct Clients {
    stores: Vec<Arc<dyn Store>>,
    heard: Vec<Arc<Heard>>,
    subscribes_later: bool,
}

const TTL: Duration = Duration::from_secs(10);

const fn set(count: u32) -> LatchVerb {
    LatchVerb::Set { count, ttl: TTL }
}

fn owner(client: u128, request: u64) -> Owner {
    let client = ClientId(client);
    Owner { client, request }
}

impl Clients {
    fn new(backend: &Backend) -> Self {
        let heard: Vec<Arc<Heard>> = vec![Arc::default(), Arc::default()];
        let store = |(number, heard): (usize, &Arc<Heard>)| -> Arc<dyn Store> {
            let clock = Clock::new(tokio::runtime::Handle::current());
            let listener: Arc<dyn Listener> = heard.clone();
            let id = ClientId(number as u128 + 1);
            backend.store(id, &listener, clock)
        };
        let stores = heard.iter().enumerate().map(store).collect();
        Self {
            stores,
            heard,
            subscribes_later: backend.subscribes_later(),
        }
    }

    async fn ask(&self, owner: Owner, verb: LatchVerb) -> Latched {
        self.ask_made(owner, verb, Some(wall_micros())).await
    }

    async fn ask_made(&self, owner: Owner, verb: LatchVerb, made: Option<u64>) -> Latched {
        let at = usize::try_from(owner.client.0 - 1).unwrap();
        if self.subscribes_later && matches!(verb, LatchVerb::Wait) {
            self.heard[at].until_hearing().await;
        }
        let by = Instant::now() + Duration::from_secs(10);
        let store = &self.stores[at];
        let request = LatchRequest {
            key: "k".into(),
            owner,
            verb,
            made,
        };
        request.send(&**store, by).await.unwrap().value
    }

    async fn look(&self) -> LatchState {
        match self.ask(owner(1, 999), LatchVerb::Look).await {
            Latched::Is(latch) => latch,
            other => panic!("{other:?}"),
        }
    }

    async fn acquire(&self, request: Acquire) -> Acquired {
        let at = usize::try_from(request.claim.owner.client.0 - 1).unwrap();
        if self.subscribes_later && request.queue == Queue::Join {
            self.heard[at].until_hearing().await;
        }
        let by = Instant::now() + Duration::from_secs(10);
        self.stores[at].acquire(request, by).await.unwrap().value
    }

    fn heard(&self, client: usize) -> Vec<(Owner, Option<u64>)> {
        self.heard[client - 1].0.lock().unwrap().clone()
    }
}

async fn a_count_down_repeated_counts_once_and_gets_the_same_reply(store: Backend) {
    let clients = Clients::new(&store);
    assert_eq!(clients.ask(owner(1, 1), set(3)).await, Latched::Set(true));
    for (call, left) in [(2, 2), (3, 1), (4, 0)] {
        for _ in 0..3 {
            let counted = clients.ask(owner(1, call), LatchVerb::CountDown).await;
            assert_eq!(counted, Latched::Counted(left));
            assert_eq!(clients.look().await.count, left);
        }
    }
    // Also when others have counted since: exactly one call is told that it was the last.
    let first = clients.ask(owner(1, 2), LatchVerb::CountDown).await;
    assert_eq!(first, Latched::Counted(2));
    let more = clients.ask(owner(1, 5), LatchVerb::CountDown).await;
    assert_eq!(more, Latched::Counted(0), "never below");
}

async fn a_count_down_repeated_after_the_latch_was_set_again_counts_nothing(store: Backend) {
    let clients = Clients::new(&store);
    clients.ask(owner(1, 1), set(1)).await;
    let last = (owner(1, 2), LatchVerb::CountDown);
    assert_eq!(clients.ask(last.0, last.1).await, Latched::Counted(0));
    assert_eq!(clients.ask(owner(2, 1), set(1)).await, Latched::Set(true));
    assert_eq!(clients.ask(last.0, last.1).await, Latched::Counted(0));
    assert_eq!(clients.look().await.count, 1);
}

async fn a_set_repeated_after_the_latch_has_opened_sets_nothing(store: Backend) {
    let clients = Clients::new(&store);
    for _ in 0..2 {
        assert_eq!(clients.ask(owner(1, 1), set(1)).await, Latched::Set(true));
    }
    assert_eq!(clients.ask(owner(2, 1), set(7)).await, Latched::Set(false));
    clients.ask(owner(1, 2), LatchVerb::CountDown).await;
    assert_eq!(clients.ask(owner(1, 1), set(1)).await, Latched::Set(true));
    assert_eq!(clients.look().await.count, 0);
}

const SECOND: u64 = 1_000_000;

async fn an_attempt_at_the_wrong_time_changes_nothing_and_is_told_the_time(store: Backend) {
    let clients = Clients::new(&store);
    let wrong = || {
        let now = wall_micros();
        [
            None,
            Some(0),
            Some(now - 61 * SECOND),
            Some(now + 32 * SECOND),
        ]
    };
    let refused = async |call, verb| {
        for made in wrong() {
            let before = wall_micros();
            match clients.ask_made(owner(1, call), verb, made).await {
                // The embedded store goes by the monotonic clock.
                Latched::Untimely { now } => assert!(now.abs_diff(before) < SECOND, "{now}"),
                other => panic!("{made:?}: {other:?}"),
            }
        }
    };
    refused(1, set(3)).await;
    let unset = clients.ask(owner(1, 999), LatchVerb::Look).await;
    assert_eq!((unset, store.leftovers().await), (Latched::NotSet, 0));
    assert_eq!(clients.ask(owner(1, 1), set(3)).await, Latched::Set(true));
    refused(2, LatchVerb::CountDown).await;
    assert_eq!(clients.look().await.count, 3);
    let now = wall_micros();
    for (call, left, made) in [(2, 2, now - 58 * SECOND), (3, 1, now + 29 * SECOND)] {
        let made = clients.ask_made(owner(1, call), LatchVerb::CountDown, Some(made));
        assert_eq!(made.await, Latched::Counted(left));
    }
}

async fn a_repeat_gets_the_first_ones_reply_whatever_time_it_has(store: Backend) {
    let clients = Clients::new(&store);
    for (call, verb, reply) in [
        (1, set(2), Latched::Set(true)),
        (2, LatchVerb::CountDown, Latched::Counted(1)),
    ] {
        let now = wall_micros();
        for made in [
            Some(now),
            None,
            Some(now - 90 * SECOND),
            Some(now + 90 * SECOND),
        ] {
            assert_eq!(clients.ask_made(owner(1, call), verb, made).await, reply);
        }
    }
    assert_eq!(clients.look().await.count, 1);
}

async fn generations_rise_and_the_last_that_opened_is_known(store: Backend) {
    let clients = Clients::new(&store);
    let (mut generation, mut call) = (0, 0);
    for _ in 0..3 {
        call += 2;
        clients.ask(owner(1, call), set(1)).await;
        let latch = clients.look().await;
        assert_eq!((latch.count, latch.opened), (1, generation));
        assert!(latch.generation > generation, "{latch:?}");
        let remaining = latch.remaining.unwrap();
        assert!(remaining <= TTL && remaining > TTL / 2, "{latch:?}");
        generation = latch.generation;
        clients.ask(owner(1, call + 1), LatchVerb::CountDown).await;
        assert_eq!(clients.look().await.generation, generation);
    }
}

async fn each_place_is_told_once_which_generation_opened(store: Backend) {
    let clients = Clients::new(&store);
    // Before the latch is set, and after.
    let early = clients.ask(owner(1, 1), LatchVerb::Wait).await;
    assert_eq!(early, Latched::NotSet);
    clients.ask(owner(2, 1), set(2)).await;
    for _ in 0..2 {
        let late = clients.ask(owner(2, 2), LatchVerb::Wait).await;
        assert!(matches!(late, Latched::Is(LatchState { count: 2, .. })));
    }
    clients.ask(owner(2, 3), LatchVerb::CountDown).await;
    assert!(clients.heard(1).is_empty() && clients.heard(2).is_empty());
    for _ in 0..2 {
        clients.ask(owner(2, 4), LatchVerb::CountDown).await;
    }
    let generation = Some(clients.look().await.generation);
    eventually("both are told", async || {
        clients.heard(1) == [(owner(1, 1), generation)]
            && clients.heard(2) == [(owner(2, 2), generation)]
    })
    .await;
}

async fn a_place_that_was_left_gets_no_message(store: Backend) {
    let clients = Clients::new(&store);
    for request in 1..=2 {
        clients.ask(owner(1, request), LatchVerb::Wait).await;
    }
    for _ in 0..2 {
        assert_eq!(
            clients.ask(owner(1, 1), LatchVerb::Leave).await,
            Latched::Left
        );
    }
    clients.ask(owner(2, 1), set(1)).await;
    clients.ask(owner(2, 2), LatchVerb::CountDown).await;
    let generation = Some(clients.look().await.generation);
    eventually("one is told", async || !clients.heard(1).is_empty()).await;
    assert_eq!(clients.heard(1), [(owner(1, 2), generation)]);
}

async fn a_place_is_not_taken_at_an_open_latch(store: Backend) {
    let clients = Clients::new(&store);
    clients.ask(owner(1, 1), set(1)).await;
    clients.ask(owner(1, 2), LatchVerb::CountDown).await;
    let open = clients.ask(owner(1, 3), LatchVerb::Wait).await;
    assert!(matches!(open, Latched::Is(LatchState { count: 0, .. })));
    assert_eq!(store.leftovers().await, 1, "the latch itself");
}

async fn opening_takes_out_every_place_also_of_clients_that_are_gone(store: Backend) {
    let clients = Clients::new(&store);
    clients.ask(owner(1, 1), set(1)).await;
    clients.ask(owner(1, 2), LatchVerb::Wait).await;
    clients.ask(owner(2, 2), LatchVerb::Wait).await;
    clients.stores[1].close();
    eventually("the server noticed", async || store.channels().await <= 1).await;
    clients.ask(owner(1, 3), LatchVerb::CountDown).await;
    eventually("the other is told", async || clients.heard(1).len() == 1).await;
    assert_eq!(store.leftovers().await, 1, "the latch itself");
    assert!(clients.heard(2).is_empty());
}

/// The latch is set when the lock's lease has ended. Those who wait for the lock learn of it when
/// they ask.
async fn a_lock_is_not_handed_over_beside_a_latch(store: Backend) {
    let clients = Clients::new(&store);
    let lock = |owner, lease| {
        let mut request = Acquire::new(Claim::new("k".into(), owner, None), lease);
        request.first_lease = TTL;
        request.queue = Queue::Join;
        request
    };
    let brief = lock(owner(1, 1), Duration::from_millis(250));
    let by = || Instant::now() + Duration::from_secs(10);
    let mut number = 10;
    // On a busy machine, the lease may have ended before both wait.
    let waiters = loop {
        clients.acquire(brief.clone()).await;
        let waiters = [number, number + 1].map(|number| lock(owner(2, number), TTL));
        let mut replies = Vec::new();
        for waiter in &waiters {
            replies.push(clients.acquire(waiter.clone()).await);
        }
        let waits = |reply: &Acquired| matches!(reply, Acquired::Busy(_));
        let found = clients.stores[0].inspect("k".into(), by()).await.unwrap();
        let holder = found.value.unwrap().holder.map(|holder| holder.who());
        if replies.iter().all(waits) && holder == Some(Holder::Owner(owner(1, 1))) {
            break waiters;
        }
        for waiter in waiters {
            clients.stores[1].abandon(waiter, by()).await.unwrap();
        }
        let left = clients.stores[0].abandon(brief.clone(), by()).await;
        left.unwrap();
        number += 2;
    };
    eventually("the lease ends", async || {
        clients.ask(owner(1, 2), set(1)).await == Latched::Set(true)
    })
    .await;
    let end = Release::new(brief.claim.clone(), Duration::ZERO);
    let ended = clients.stores[0].release(vec![end], by()).await;
    ended.unwrap();
    for waiter in &waiters {
        let reply = clients.acquire(waiter.clone()).await;
        assert_eq!(reply, Acquired::Conflict);
        let left = clients.stores[1].abandon(waiter.clone(), by()).await;
        left.unwrap();
    }
    // Other messages would have come before this one.
    let told = owner(2, 3);
    clients.ask(told, LatchVerb::Wait).await;
    clients.ask(owner(1, 3), LatchVerb::CountDown).await;
    let heard = || -> Vec<Owner> {
        let heard = clients.heard(2);
        heard.iter().map(|(owner, _)| *owner).collect()
    };
    eventually("it hears that the latch has opened", async || {
        heard().contains(&told)
    })
    .await;
    let is_a_grant = |waiter: &Acquire| heard().contains(&waiter.claim.owner);
    assert!(!waiters.iter().any(is_a_grant), "{:?}", heard());
}
