//! Locks and shares of one key. In Redis, the number of permits in use always equals the sum of
//! what the holders have.

use std::time::Duration;

use lock_store::{
    Acquire, Acquired, Busy, Claim, ClientId, Fenced, Granted, Owner, Permits, Queue, Release,
    Renewal,
};

use crate::{
    Both, FIRST_LEASE, KEEPS, LEASES, Random, Side, TICKS, WAITS, by, rounded, to_commands,
};

const STEPS: usize = 400;

/// The key's holder and set: {type, `used`, sum over the members, time to live, longest lease}.
const LOOK: &str = r"
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' then return {kind, 0, 0, redis.call('PTTL', KEYS[1]), 0} end
local sum, last, time = 0, 0, redis.call('TIME')
local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  if tonumber(all[i + 1]) > 0 then
    sum, last = sum + string.match(all[i], ':(%d+)$'), math.max(last, all[i + 1])
  end
end
return {kind, -redis.call('ZSCORE', KEYS[1], 'used'), sum, redis.call('PTTL', KEYS[1]),
  math.floor((last - time[1] * 1000000 - time[2]) / 1000)}";

/// Whether there are places that were suspended a minute ago. At most one is forgotten by each
/// command, and the two stores do not agree on every one by which.
const FORGETS: &str = r"
local queue = string.gsub(KEYS[1], '^(.-):(.*)$', '%1:%%queue:{%1:%2}')
local time, minute = redis.call('TIME'), 60000
local before = 6000000000000000 + time[1] * 1000 + math.floor(time[2] / 1000) - minute
for _, place in ipairs(redis.call('ZRANGEBYSCORE', queue, 3000000000000000, '(6000000000000000')) do
  local suspended = redis.call('ZSCORE', queue, string.sub(place, 1, 32))
  if suspended and tonumber(suspended) < before then return 1 end
end
return 0";

/// A client's request, and what it believes to have.
#[derive(Clone, Debug)]
struct Request {
    /// Which of the two clients sends it.
    through: usize,
    acquire: Acquire,
    /// Its permits, as later commands claim them.
    claims: Option<Permits>,
}

#[derive(Clone, Debug)]
enum Verb {
    Acquire(Queue),
    Renew(Duration),
    Release(Duration),
    Abandon,
    Shrink(u32),
    Fence,
    Inspect,
    ForceRelease,
}

/// `forgets`: there are places that may be forgotten.
async fn run(side: &mut Side, request: &Request, verb: &Verb, forgets: bool) -> String {
    let store = std::sync::Arc::clone(&side.stores[request.through]);
    let key = request.acquire.claim.key.clone();
    let mut claim = request.acquire.claim.clone();
    claim.permits = request.claims;
    match verb {
        Verb::Acquire(queue) => {
            let mut acquire = request.acquire.clone();
            acquire.queue = *queue;
            match store.acquire(acquire, by()).await.unwrap().value {
                Acquired::Granted(Granted { token, limit, .. }) => {
                    side.note_token(key.as_str(), token);
                    format!("granted {} {limit:?}", token.is_some())
                }
                Acquired::Busy(Busy {
                    remaining,
                    queued,
                    holder,
                    limit,
                    ..
                }) => {
                    // If several holds end at the same time, the two stores name different ones.
                    let exclusive = holder.filter(|_| claim.permits.is_none());
                    let holder = (holder.is_some(), exclusive);
                    format!(
                        "busy {:?} {queued} {holder:?} {limit:?}",
                        rounded(remaining)
                    )
                }
                Acquired::Conflict => "conflict".to_owned(),
            }
        }
        Verb::Renew(lease) => {
            let renewal = Renewal::new(claim, *lease);
            format!(
                "{:?}",
                store.renew(vec![renewal], by()).await.unwrap().value
            )
        }
        Verb::Release(keep) => {
            let release = Release::new(claim, *keep);
            format!(
                "{:?}",
                store.release(vec![release], by()).await.unwrap().value
            )
        }
        Verb::Abandon => {
            let reply = store.abandon(request.acquire.clone(), by()).await.unwrap();
            format!("{:?}", reply.value)
        }
        Verb::Shrink(rest) => {
            let reply = store.shrink(claim, *rest, by()).await.unwrap();
            format!("{:?}", reply.value)
        }
        Verb::Fence => match store.fence(claim, by()).await.unwrap().value {
            Fenced::Token(token) => {
                side.note_token(key.as_str(), Some(token));
                "token".to_owned()
            }
            other => format!("{other:?}"),
        },
        Verb::Inspect => {
            let found = store.inspect(key, by()).await.unwrap().value.unwrap();
            let (held, left) = (found.holder.is_some(), rounded(found.remaining));
            let waiting = (!forgets).then_some(found.waiting);
            format!("{held} {} {left:?} {waiting:?}", found.holders)
        }
        Verb::ForceRelease => {
            format!("{:?}", store.force_release(key, by()).await.unwrap().value)
        }
    }
}

/// A new request, mostly of the scenario's kind. Sometimes its client has long been silent.
fn request(random: &mut Random, focus: u64, key: &str, number: u64) -> Request {
    let through = random.index(2);
    let dead = random.below(6) == 0;
    let client = if dead { 99 } else { through as u128 + 1 };
    let permits = |random: &mut Random, of: u32| Permits {
        count: u32::try_from(random.below(u64::from(of))).unwrap() + 1,
        of,
    };
    // Mostly one kind, so that requests conflict.
    let kind = if random.below(10) < 8 {
        focus % 4
    } else {
        random.below(5)
    };
    let permits = match kind {
        0 | 1 if random.below(3) > 0 => Some(Permits::READ),
        0 | 1 => Some(Permits::WRITE),
        2 => Some(permits(random, 3)),
        3 => Some(permits(random, 5)),
        _ => None,
    };
    Request {
        through,
        acquire: {
            let mut request = Acquire::new(
                Claim::new(
                    key.into(),
                    Owner {
                        client: ClientId(client),
                        request: number,
                    },
                    permits,
                ),
                Duration::from_secs(random.of(&LEASES)),
            );
            request.first_lease = FIRST_LEASE;
            request.wait = random.of(&WAITS);
            request.tokens = random.of(&[0, 0, 1, 3]);
            request.queue = Queue::Join;
            request
        },
        claims: permits,
    }
}

fn verb(random: &mut Random, request: &mut Request) -> Verb {
    match random.below(30) {
        0..=6 => Verb::Acquire(Queue::Join),
        7 | 8 => Verb::Acquire(Queue::Respect),
        // The plain command can't tell a conflict. It has tests of its own.
        9 if request.acquire.claim.permits.is_none() && request.acquire.tokens > 0 => {
            Verb::Acquire(Queue::Barge)
        }
        10..=13 => Verb::Renew(Duration::from_secs(random.of(&LEASES))),
        14..=19 => Verb::Release(Duration::from_secs(random.of(&KEEPS))),
        20 | 21 => Verb::Abandon,
        22..=24 => match request.claims {
            Some(permits) => {
                // As after a downgrade with an unknown outcome: the claim is what the owner has at
                // least.
                let rest = if permits.of == Permits::READ_WRITE {
                    1
                } else {
                    u32::try_from(random.below(u64::from(permits.count))).unwrap() + 1
                };
                if permits.of == Permits::READ_WRITE && random.below(3) == 0 {
                    request.claims = Some(Permits::READ);
                }
                Verb::Shrink(rest)
            }
            None => Verb::Inspect,
        },
        25 => Verb::Fence,
        26 => Verb::Inspect,
        27 if random.below(3) == 0 => Verb::ForceRelease,
        _ => Verb::Inspect,
    }
}

#[test]
fn the_stores_agree_on_locks_and_permits_in_use_are_those_of_the_holders() {
    to_commands(1, scenario);
}

fn scenario(both: &mut Both<'_>, seed: u64) {
    let mut random = Random(seed);
    both.keys = &["k"];
    let mut numbers = 0;
    let mut fresh = |random: &mut Random| {
        numbers += 1;
        request(random, seed, "k", numbers)
    };
    let mut requests: Vec<Request> = (0..7).map(|_| fresh(&mut random)).collect();
    for _ in 0..STEPS {
        let at = random.index(requests.len());
        match random.below(20) {
            0 => both.pass_time(random.of(&TICKS)),
            1 => requests[at] = fresh(&mut random),
            _ => {
                let verb = verb(&mut random, &mut requests[at]);
                let other = random.index(requests.len());
                let other = requests[other].acquire.claim.owner;
                requests[at].acquire.instead_of = (random.below(4) == 0).then_some(other);
                let request = &requests[at];
                let claim = (&request.acquire.claim.permits, request.claims);
                let (owner, tokens) = (request.acquire.claim.owner, request.acquire.tokens);
                let name = format!(
                    "{:x}-{:x} {claim:?} tokens={tokens} {verb:?}",
                    owner.client.0, owner.request
                );
                let forgets = both.eval::<i64>(FORGETS, "k") > 0;
                let run = async |side: &mut Side| run(side, request, &verb, forgets).await;
                let reply = both.compare(name, run);
                if both.are_apart {
                    return;
                }
                if let Verb::Shrink(permits) = verb
                    && reply == "Released"
                {
                    let of = request.claims;
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
        check(both);
    }
}

fn check(both: &Both<'_>) {
    let (kind, used, sum, ttl, lease): (String, i64, i64, i64, i64) = both.eval(LOOK, "k");
    let after = || both.after();
    assert_eq!(used, sum, "permits in use against those held, {}", after());
    if kind == "zset" {
        assert!(sum > 0, "an empty set stays, {}", after());
        assert!(ttl >= lease, "{ttl} ms to live of {lease}, {}", after());
    }
    assert!(kind == "none" || ttl > 0, "{kind} without TTL, {}", after());
}
