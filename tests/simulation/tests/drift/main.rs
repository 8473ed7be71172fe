//! Drives the two stores with the same random commands. Both give the same replies and announce the
//! same grants. The embedded store is compared with the rules alone, too.
//!
//! `LOCK_DRIFT_COMMANDS` sets how many (default 50,000). `LOCK_DRIFT_SEED` runs one seed only.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod latches;
mod locks;
mod rules;
mod several;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use lock_store::Clock;
use lock_store::memory::MemoryStore;
use lock_store::{ClientId, Instant, Listener, Owner, Store};
use lock_testkit_core::{Heard, PATIENT, RedisServer, context};
use tokio::runtime::{Builder, Runtime};

/// Leases end halfway between the instants to which time is set. So the test's own duration changes
/// no result.
const LEASES: [u64; 3] = [1050, 2050, 3050];
const FIRST_LEASE: Duration = Duration::from_secs(750);
const KEEPS: [u64; 2] = [0, 1550];
/// In milliseconds. The short ones decide about places: waits, and the silence that a client is
/// allowed, end halfway between their multiples.
const TICKS: [u64; 4] = [400_000, 1_100_000, 1500, 1500];
const WAITS: [Option<Duration>; 3] = [
    None,
    Some(Duration::from_millis(2250)),
    Some(Duration::from_secs(750)),
];

/// How far the clock of Redis may be ahead of the embedded store's.
const OWN_TIME: Duration = Duration::from_millis(100);
/// If it is further ahead when a command has ended, the command's reply says nothing: some times
/// are half a second away from those to which the clocks are set, and what a command has made may
/// be as much too late.
const APART: Duration = Duration::from_millis(200);
/// Makes everything that these keys have end earlier by this many milliseconds: times to live, and
/// the times in sets (in ms for the latches' waiters, in µs for shares and places). The end of a
/// queue is only put off, since the embedded store never forgets one. Refuses a key without an end.
const TICK: &str = r"
local millis, time = tonumber(ARGV[1]), redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for _, key in ipairs(KEYS) do
  local kind, left = redis.call('TYPE', key).ok, redis.call('PTTL', key)
  if left == -1 then error(key .. ' never ends') end
  if string.find(key, '%queue:', 1, true) then
    local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    local last = now
    for i = #all - 1, 1, -2 do
      -- The time at which a client was suspended is in milliseconds.
      local in_millis = all[i + 1] - 6000000000000000
      local unit = in_millis > 0 and in_millis < 100000000000000 and 1 or 1000
      local at = all[i + 1] - millis * unit
      -- Nothing waits since later than now, and who came later waits after it.
      if at < 2 * now then
        at = math.min(at, last)
        last = at - 1
      end
      redis.call('ZADD', key, at, all[i])
    end
    if millis > 0 then kind = 'none' end
  elseif kind == 'zset' then
    local unit = string.find(key, '%latch:', 1, true) and 1 or 1000
    local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do
      if tonumber(all[i + 1]) > 0 then redis.call('ZINCRBY', key, -millis * unit, all[i]) end
    end
  end
  if kind ~= 'none' then redis.call('PEXPIRE', key, left - millis) end
end
return 1";

/// The generator of Steele, Lea and Flood (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}

/// What all scenarios of a test share.
struct Ground {
    real: Runtime,
    paused: Runtime,
    server: RedisServer,
}

/// One kind of store with its two clients.
struct Side {
    stores: [Arc<dyn Store>; 2],
    heard: [Arc<Heard>; 2],
    last_token: HashMap<String, u64>,
    /// Generations of latches, in the order of their appearance. Their numbers differ between the
    /// stores.
    generations: Vec<u64>,
}

impl Side {
    fn heard(&self, in_order: bool) -> [Vec<(Owner, bool)>; 2] {
        let told = |heard: &Arc<Heard>| {
            let heard = heard.0.lock().unwrap();
            let mut told: Vec<_> = heard.iter().map(|(o, t)| (*o, t.is_some())).collect();
            if !in_order {
                told.sort_unstable_by_key(|(owner, _)| owner.request);
            }
            told
        };
        [told(&self.heard[0]), told(&self.heard[1])]
    }

    fn note_token(&mut self, key: &str, token: Option<u64>) {
        if let Some(token) = token {
            let last = self.last_token.insert(key.to_owned(), token);
            assert!(last < Some(token), "{token} after {last:?}");
        }
    }
}

/// Far more time than a command needs.
fn by() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// Rounded, so that the test's own duration makes no difference.
fn rounded(remaining: Option<Duration>) -> Option<u64> {
    remaining.map(|left| left.as_secs().div_ceil(100))
}

/// Both kinds of store, and what was done with them.
struct Both<'g> {
    ground: &'g Ground,
    namespace: String,
    redis: Side,
    memory: Side,
    steps: Vec<String>,
    commands: usize,
    /// Whether the order in which a client hears of grants must be the same.
    in_order: bool,
    /// Whose time passes. Without any, that of all which are there.
    keys: &'static [&'static str],
    /// Since when the test's own duration has not been taken back.
    since: std::time::Instant,
    /// The machine was so slow that nothing more can be said of this scenario.
    are_apart: bool,
}

impl<'g> Both<'g> {
    fn new(ground: &'g Ground, seed: u64) -> Self {
        let (embedded, namespace) = (MemoryStore::new(), format!("seed-{seed}"));
        let side = |redis: bool| {
            let heard = [Arc::<Heard>::default(), Arc::default()];
            let store = |number: usize| -> Arc<dyn Store> {
                let listener: Arc<dyn Listener> = heard[number].clone();
                let id = ClientId(number as u128 + 1);
                if redis {
                    let _entered = ground.real.enter();
                    let clock = Clock::new(ground.real.handle().clone());
                    let url = ground.server.url();
                    lock_testkit_core::redis_store(&url, &namespace, id, &listener, clock, PATIENT)
                } else {
                    let clock = Clock::simulated(ground.paused.handle().clone());
                    embedded.connect(context(&namespace, id, &listener, clock))
                }
            };
            Side {
                stores: [store(0), store(1)],
                heard: heard.clone(),
                last_token: HashMap::new(),
                generations: Vec::new(),
            }
        };
        let (redis, memory) = (side(true), side(false));
        Self {
            ground,
            namespace,
            redis,
            memory,
            steps: Vec::new(),
            commands: 0,
            in_order: true,
            keys: &[],
            since: std::time::Instant::now(),
            are_apart: false,
        }
    }

    /// Runs the same command on both stores, and compares the replies.
    fn compare(&mut self, name: String, run: impl AsyncFn(&mut Side) -> String) -> String {
        if self.since.elapsed() > OWN_TIME {
            self.take_back_own_time();
        }
        let real = &self.ground.real;
        let expected = real.block_on(run(&mut self.memory));
        self.steps.push(format!("{name} -> {expected}"));
        let reply = real.block_on(run(&mut self.redis));
        self.are_apart |= self.since.elapsed() > APART;
        if self.are_apart {
            return reply;
        }
        assert_eq!(reply, expected, "Redis against memory, {}", self.after());
        self.commands += 1;
        let started = Instant::now();
        while self.redis.heard(self.in_order) != self.memory.heard(self.in_order) {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "told in Redis {:?}\nand in memory {:?}\n{}",
                self.redis.heard(self.in_order),
                self.memory.heard(self.in_order),
                self.after()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        reply
    }

    /// Lets this many milliseconds pass in both stores. In Redis, for its keys and their queues.
    fn pass_time(&mut self, millis: u64) {
        self.steps.push(format!("{millis} ms later"));
        let ground = self.ground;
        let advance = async || tokio::time::advance(Duration::from_millis(millis)).await;
        ground.paused.block_on(advance());
        self.take_back_own_time();
        self.tick(millis.cast_signed());
    }

    /// In the embedded store, no time passes but the ticks.
    fn take_back_own_time(&mut self) {
        let own = self.since.elapsed();
        self.are_apart |= own > APART;
        let millis = u64::try_from(own.as_millis()).unwrap();
        self.since += Duration::from_millis(millis);
        self.tick(-millis.cast_signed());
    }

    fn tick(&self, millis: i64) {
        let keys: Vec<String> = match self.keys {
            [] => self.keys(),
            keys => keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        if keys.is_empty() {
            return;
        }
        let names = keys.iter().map(|key| self.name(key));
        let queue = |name: &String| self.name(&format!("%queue:{{{name}}}"));
        let names: Vec<String> = names.flat_map(|name| [queue(&name), name]).collect();
        let millis = millis.to_string();
        let count = names.len().to_string();
        let mut tick = vec!["EVAL", TICK, &count];
        tick.extend(names.iter().map(String::as_str));
        tick.push(&millis);
        let ground = self.ground;
        ground.real.block_on(ground.server.command(&tick));
    }

    /// The names of all keys of this scenario in Redis.
    fn keys(&self) -> Vec<String> {
        let all = format!("{}:*", self.namespace);
        let ground = self.ground;
        let query = async || ground.server.query::<Vec<String>>(&["KEYS", &all]).await;
        let keys = ground.real.block_on(query());
        let prefix = format!("{}:", self.namespace);
        keys.iter()
            .filter_map(|key| key.strip_prefix(&prefix).map(ToOwned::to_owned))
            .collect()
    }

    fn name(&self, key: &str) -> String {
        format!("{}:{key}", self.namespace)
    }

    /// Runs a script on a key.
    fn eval<T: redis::FromRedisValue>(&self, script: &str, key: &str) -> T {
        let (ground, key) = (self.ground, self.name(key));
        let query = async || ground.server.query(&["EVAL", script, "1", &key]).await;
        ground.real.block_on(query())
    }

    /// For messages: the last steps.
    fn after(&self) -> String {
        let from = self.steps.len().saturating_sub(40);
        let mut text = format!("{}, after\n", self.namespace);
        for (number, step) in self.steps.iter().enumerate().skip(from) {
            let _ = writeln!(text, "{number}: {step}");
        }
        text
    }
}

/// Runs seed after seed until this share (one of this many) of the requested commands is done.
fn to_commands(share: usize, scenario: impl Fn(&mut Both<'_>, u64)) {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        let number = text.parse::<usize>();
        Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number")))
    };
    let wanted = number("LOCK_DRIFT_COMMANDS").unwrap_or(50_000) / share;
    let real = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = real.block_on(RedisServer::start());
    let paused = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let ground = Ground {
        real,
        paused,
        server,
    };
    let one = number("LOCK_DRIFT_SEED").map(|seed| seed as u64);
    let (mut done, mut given_up, mut seed) = (0, 0, one.unwrap_or(0));
    while done < wanted {
        let mut both = Both::new(&ground, seed);
        scenario(&mut both, seed);
        done += both.commands;
        given_up += usize::from(both.are_apart);
        seed += 1;
        if one.is_some() {
            break;
        }
    }
    println!("{done} commands, the same replies from both stores; {given_up} scenarios cut short");
}
