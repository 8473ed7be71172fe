//! By sampling, on a real Redis behind a network that delays, loses replies and cuts connections.

use std::time::Duration;

use lock_runtime::{Guard, LockClient};
use lock_testkit_core::{Proxy, RedisServer, eventually, polled};

use super::simulated::all_of;
use super::subjects::{Case, LEASE, MS, PERMITS, guards, others, requests};
use crate::rng::Rng;
use crate::world::sleep;

/// How long undos go on after a connection was replaced.
const SHORT_LEASE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Held,
    HandedOver(Duration),
    NoReply,
    Cut(Duration),
}

fn samples() -> u64 {
    let samples = std::env::var("LOCK_CANCEL_SAMPLES").ok();
    samples.map_or(72, |samples| samples.parse().unwrap())
}

async fn client(url: &str, lease: Duration) -> LockClient {
    let builder = LockClient::builder().url(url).lease(lease);
    builder.connect().await.unwrap()
}

/// Everything that a subject may ask for.
async fn hold_all(other: &LockClient) -> Vec<Guard> {
    let permits = other.semaphore("sem", PERMITS).permits(PERMITS);
    vec![
        other.lock("k").acquire().await.unwrap(),
        other.lock("m").acquire().await.unwrap(),
        other.rw_lock("rw").write().acquire().await.unwrap(),
        permits.acquire().await.unwrap(),
    ]
}

struct Place {
    server: RedisServer,
    proxy: Proxy,
    other: LockClient,
}

impl Place {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        proxy.delay(2 * MS);
        let other = client(&server.url(), LEASE).await;
        Self {
            server,
            proxy,
            other,
        }
    }

    async fn drop_one(&self, case: &Case, state: State, polls: usize, time: Duration) {
        let replaced = matches!(state, State::NoReply | State::Cut(_));
        let lease = if replaced { SHORT_LEASE } else { LEASE };
        let subject = client(&self.proxy.url(), lease).await;
        let guard = match case.before {
            Some(before) => Some(before(&subject).acquire().await.unwrap()),
            None => None,
        };
        let mut held = Vec::new();
        if guard.is_none() && matches!(state, State::Held | State::HandedOver(_)) {
            held = hold_all(&self.other).await;
        }
        self.proxy.drop_replies(state == State::NoReply);
        let meanwhile = async {
            match state {
                State::HandedOver(after) => {
                    sleep(after).await;
                    held.clear();
                }
                State::Cut(after) => {
                    sleep(after).await;
                    self.proxy.cut();
                }
                _ => {}
            }
        };
        let future = tokio::time::timeout(time, polled(polls, (case.make)(subject.clone(), guard)));
        let (_, ()) = tokio::join!(future, meanwhile);
        self.proxy.drop_replies(false);
        if state == State::Held {
            self.until_nobody_waits().await;
        }
        drop(held);
        for (key, guard) in all_of(&self.other, Duration::from_secs(10)).await {
            if let Err(error) = guard {
                panic!("{key} is not free: {error}");
            }
        }
        if let Ok(health) = subject.health().await {
            assert_eq!((health.held, health.waiting), (0, 0));
        }
        drop(subject);
        self.until_nothing_is_left().await;
    }

    async fn until_nobody_waits(&self) {
        eventually("the queues are empty", async || {
            let mut waiting = 0;
            for key in ["k", "m", "rw", "sem"] {
                waiting += self.other.inspect(key).await.unwrap().waiting;
            }
            waiting == 0
        })
        .await;
    }

    async fn until_nothing_is_left(&self) {
        eventually("the server's keys are gone", async || {
            let keys = self.server.keys("*").await;
            let left = |key: &String| !key.contains("%fence") && !key.contains("%call");
            !keys.iter().any(left)
        })
        .await;
        eventually("the client's connection and channel are gone", async || {
            self.proxy.open_connections() == 0 && self.server.grant_channels().await.len() <= 1
        })
        .await;
    }
}

#[tokio::test]
async fn futures_dropped_at_random_leave_nothing_in_redis() {
    let seed = std::env::var("LOCK_SIM_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut rng = Rng::new(seed);
    let place = Place::new().await;
    let cases: Vec<Case> = [requests(), guards(), others()]
        .into_iter()
        .flatten()
        .collect();
    let few = cases.len();
    for sample in 0..samples() {
        let case = &cases[usize::try_from(sample).unwrap() % few];
        let state = rng.pick(&[
            State::Free,
            State::Held,
            State::HandedOver(Duration::from_micros(rng.clone().below(20_000))),
            State::NoReply,
            State::Cut(Duration::from_micros(rng.clone().below(12_000))),
        ]);
        let polls = usize::try_from(rng.below(8)).unwrap();
        let time = Duration::from_micros(rng.below(40_000));
        let (polls, time) = rng.pick(&[(polls, Duration::from_secs(2)), (usize::MAX, time)]);
        println!(
            "{sample}: {}, {state:?}, {polls} polls, {time:?}",
            case.name
        );
        place.drop_one(case, state, polls, time).await;
    }
    println!("{} futures dropped", samples());
}

#[tokio::test]
async fn connect_dropped_after_any_number_of_polls_leaves_no_connection() {
    let place = Place::new().await;
    for polls in 0.. {
        let connecting = LockClient::builder().url(place.proxy.url()).connect();
        let connected = polled(polls, connecting).await;
        let complete = connected.is_some();
        drop(connected);
        place.until_nothing_is_left().await;
        if complete {
            return;
        }
    }
}
