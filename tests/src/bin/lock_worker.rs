//! Another process of a service. It follows commands on its standard input, line by line, and
//! reports on its standard output what happened. It ends when its input ends.
//!
//! - `connect URL`: makes the client that all else uses → `connected`
//! - `hold ID KEY OPTIONS…`: takes the lock (or several: `KEY,KEY`) and keeps it until `release ID`
//!   → `asking ID`, `held ID TOKEN NS`, then `done ID NS` or `failed ID NS ERROR`. Options:
//!   `lease=MS`, `wait=MS`, `renew`, `fair`, `fenced`, and `ticks`, which says `tick ID NS` from
//!   inside the body every few milliseconds. Of another kind: `read`, `write`, `permits=N/OF`, or
//!   `KEY,KEY` for several keys.
//! - `contend KEY TASKS MS OPTIONS…`: this many tasks take the lock over and over, and with
//!   `stays=MS` keep it for a while → `turn TASK FROM TO` for each turn, then `contended`
//! - `transfer URL ACCOUNTS TASKS MS`: TASKS tasks move money between `balance:0`, `balance:1`, …
//!   at that server, each time between two by lot and under the locks of both → `moved TASK TIMES
//!   LONGEST_WAIT` for each, then `transferred`
//! - `fork MS URL`: starts a child by `fork()`, which has copies of all that is open here, makes a
//!   client of its own and ends after so long → `forked`, and from the child `child RESULT`
//! - `limit KEY RATE BURST TASKS MS WAIT`: this many tasks ask a rate limiter of RATE a second over
//!   and over, and wait up to WAIT ms for their turn → `passed FROM TO` for each that passed, then
//!   `limited`
//! - `spend KIND TASKS MS`: this many tasks use one key after the other that never comes again: as
//!   `plain` or `fenced` locks, `kept` ones, `latch`es or `rate` limiters → `spent KEYS`
//! - `read MS PATH…`: reads these files over and over → `has read`
//!
//! NS is the machine's monotonic clock in nanoseconds, the same in every process.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a worker that can't go on ends, and its test fails"
)]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, Lock, LockClient, LockError, Rate};
use lock_testkit::monotonic_nanos;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    let mut client = None;
    let mut holds = HashMap::<String, Arc<Notify>>::new();
    while let Some(line) = commands.next_line().await? {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let arguments = words.get(1..).unwrap_or_default().to_vec();
        match words.first().map_or("", String::as_str) {
            "ping" => say(&format!("pong {}", arguments.join(" "))),
            "connect" => {
                let builder = LockClient::builder().url(&arguments[0]);
                // On a busy machine.
                let builder = match arguments.get(1).map(String::as_str) {
                    Some("patient") => builder
                        .connect_timeout(Duration::from_secs(10))
                        .command_timeout(Duration::from_secs(5)),
                    _ => builder,
                };
                client = Some(builder.connect().await.expect("the store is up"));
                say("connected");
            }
            "hold" => {
                let end = Arc::<Notify>::default();
                holds.insert(arguments[0].clone(), Arc::clone(&end));
                tokio::spawn(hold(connected(&client), arguments, end));
            }
            "release" => holds.get(&arguments[0]).expect("held before").notify_one(),
            "contend" => _ = tokio::spawn(contend(connected(&client), arguments)),
            "transfer" => _ = tokio::spawn(transfer(connected(&client), arguments)),
            "limit" => _ = tokio::spawn(limit(connected(&client), arguments)),
            "spend" => _ = tokio::spawn(spend(connected(&client), arguments)),
            "read" => _ = std::thread::spawn(|| read(arguments)),
            "fork" => fork_child(parsed(&arguments[0]), arguments[1].clone()),
            other => say(&format!("error: unknown command {other:?}")),
        }
    }
    Ok(())
}

fn connected(client: &Option<LockClient>) -> LockClient {
    client.clone().expect("`connect` comes first")
}

/// A request of the kind that the key and the options ask for.
fn of_kind(client: &LockClient, key: &str, options: &[String]) -> Lock {
    let mut kind = options
        .iter()
        .filter_map(|option| match option.split_once('=') {
            Some(("permits", permits)) => {
                let (permits, of) = permits.split_once('/').expect("N/OF");
                let number = |text: &str| text.parse().expect("a number of permits");
                let semaphore = client.semaphore(key, number(of));
                Some(semaphore.permits(number(permits)))
            }
            None if option == "read" => Some(client.rw_lock(key).read()),
            None if option == "write" => Some(client.rw_lock(key).write()),
            _ => None,
        });
    kind.next().unwrap_or_else(|| match key.contains(',') {
        true => client.multi_lock(key.split(',')),
        false => client.lock(key),
    })
}

fn request(client: &LockClient, key: &str, options: &[String]) -> Lock {
    let lock = of_kind(client, key, options);
    options
        .iter()
        .fold(lock, |lock, option| match option.split_once('=') {
            Some(("lease", millis)) => lock.lease(parsed(millis)),
            Some(("wait", millis)) => lock.wait(parsed(millis)),
            None if option == "renew" => lock.renew(true),
            None if option == "fair" => lock.fair(),
            None if option == "fenced" => lock.fenced(),
            Some(("permits" | "stays", _)) => lock,
            None if matches!(option.as_str(), "ticks" | "read" | "write") => lock,
            _ => panic!("unknown option {option}"),
        })
}

fn parsed(millis: &str) -> Duration {
    Duration::from_millis(millis.parse().expect("a number of milliseconds"))
}

fn fork_child(lasts: Duration, url: String) {
    match fork::fork().expect("a child process") {
        fork::Fork::Child => {
            // Outside of the copy of the parent's runtime, which has no threads here.
            std::thread::spawn(move || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().build().expect("a runtime");
                let client = LockClient::builder().url(url).connect();
                say(&format!("child {:?}", runtime.block_on(client)));
            });
            // Whatever that one does: nobody else would end this process.
            std::thread::sleep(lasts);
            std::process::exit(0);
        }
        fork::Fork::Parent(_) => say("forked"),
    }
}

async fn hold(client: LockClient, arguments: Vec<String>, end: Arc<Notify>) {
    let [id, key, options @ ..] = &arguments[..] else {
        panic!("hold ID KEY OPTIONS…")
    };
    let ticks = options.iter().any(|option| option == "ticks");
    let body = async |guard: &Guard| {
        let token = guard
            .fencing_token()
            .map_or("-".to_owned(), |token| token.to_string());
        say(&format!("held {id} {token} {}", monotonic_nanos()));
        let ticking = async {
            loop {
                if ticks {
                    say(&format!("tick {id} {}", monotonic_nanos()));
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            () = end.notified() => {}
            () = ticking => {}
        }
    };
    say(&format!("asking {id}"));
    match request(&client, key, options).run_with(body).await {
        Ok(()) => say(&format!("done {id} {}", monotonic_nanos())),
        Err(error) => say(&format!("failed {id} {} {error:?}", monotonic_nanos())),
    }
}

async fn contend(client: LockClient, arguments: Vec<String>) {
    let [key, tasks, millis, options @ ..] = &arguments[..] else {
        panic!("contend KEY TASKS MS OPTIONS…")
    };
    let mut stays = options
        .iter()
        .filter_map(|option| option.strip_prefix("stays="));
    let stays = stays.next().map(parsed);
    let until = Instant::now() + parsed(millis);
    let turns = Arc::new(Mutex::new(Vec::new()));
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks.parse::<usize>().expect("a number of tasks") {
        let request = request(&client, key, options).wait_forever();
        let turns = Arc::clone(&turns);
        running.spawn(async move {
            while Instant::now() < until {
                let guard = request.clone().acquire().await.expect("the lock");
                let from = monotonic_nanos();
                match stays {
                    Some(stays) => tokio::time::sleep(stays).await,
                    None => tokio::task::yield_now().await,
                }
                let to = monotonic_nanos();
                turns.lock().expect("not poisoned").push((task, from, to));
                guard.release().await.expect("a release");
            }
        });
    }
    while let Some(task) = running.join_next().await {
        task.expect("no panic");
    }
    for (task, from, to) in turns.lock().expect("not poisoned").iter() {
        say(&format!("turn {task} {from} {to}"));
    }
    say("contended");
}

async fn transfer(client: LockClient, arguments: Vec<String>) {
    let [url, accounts, tasks, millis] = &arguments[..] else {
        panic!("transfer URL ACCOUNTS TASKS MS")
    };
    let accounts: u64 = accounts.parse().expect("a number of accounts");
    let bank = redis::Client::open(url.as_str()).expect("a URL");
    // It takes its time on a busy machine.
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let bank = bank.get_multiplexed_async_connection_with_config(&patient);
    let bank = bank.await.expect("the bank is open");
    let until = Instant::now() + parsed(millis);
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks.parse::<u64>().expect("a number of tasks") {
        let (client, mut bank) = (client.clone(), bank.clone());
        running.spawn(async move {
            let (lots, mut times, mut longest) = (RandomState::new(), 0, Duration::ZERO);
            while Instant::now() < until {
                let lot = lots.hash_one(times);
                let from = lot % accounts;
                let to = (from + 1 + (lot >> 32) % (accounts - 1)) % accounts;
                let keys = [format!("account:{from}"), format!("account:{to}")];
                let asked = Instant::now();
                let guard = client.multi_lock(keys).wait_forever().acquire().await;
                let guard = guard.expect("the locks");
                longest = longest.max(asked.elapsed());
                // Read, think, write: without the locks, money appears or vanishes.
                let balances = [format!("balance:{from}"), format!("balance:{to}")];
                let read: Result<(i64, i64), _> = redis::cmd("MGET")
                    .arg(&balances)
                    .query_async(&mut bank)
                    .await;
                let (source, target) = read.expect("two balances");
                tokio::task::yield_now().await;
                let write: Result<(), _> = redis::cmd("MSET")
                    .arg(&balances[0])
                    .arg(source - 1)
                    .arg(&balances[1])
                    .arg(target + 1)
                    .query_async(&mut bank)
                    .await;
                write.expect("two balances");
                guard.release().await.expect("a release");
                times += 1;
            }
            say(&format!("moved {task} {times} {}", longest.as_nanos()));
        });
    }
    while let Some(task) = running.join_next().await {
        task.expect("no panic");
    }
    say("transferred");
}

async fn limit(client: LockClient, arguments: Vec<String>) {
    let [key, rate, burst, tasks, millis, wait] = &arguments[..] else {
        panic!("limit KEY RATE BURST TASKS MS WAIT")
    };
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let until = std::time::Instant::now() + parsed(millis);
    let limiter = client
        .rate_limiter(key, Rate::per_second(number(rate)).burst(number(burst)))
        .wait(parsed(wait));
    let passes = Arc::new(Mutex::new(Vec::new()));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..number(tasks) {
        let (limiter, passes) = (limiter.clone(), Arc::clone(&passes));
        running.spawn(async move {
            while std::time::Instant::now() < until {
                let from = monotonic_nanos();
                match limiter.acquire().await {
                    Ok(()) => {
                        let pass = (from, monotonic_nanos());
                        passes.lock().expect("not poisoned").push(pass);
                    }
                    // Much too early, so that requests never stop.
                    Err(LockError::RateLimited { retry_after, .. }) => {
                        tokio::time::sleep(retry_after.min(Duration::from_millis(2))).await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    while let Some(task) = running.join_next().await {
        task.expect("no panic");
    }
    for (from, to) in passes.lock().expect("not poisoned").iter() {
        say(&format!("passed {from} {to}"));
    }
    say("limited");
}

async fn spend(client: LockClient, arguments: Vec<String>) {
    let [kind, tasks, millis] = &arguments[..] else {
        panic!("spend KIND TASKS MS")
    };
    let until = Instant::now() + parsed(millis);
    let keys = Arc::new(AtomicU64::new(0));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..tasks.parse::<usize>().expect("a number of tasks") {
        let (client, keys, kind) = (client.clone(), Arc::clone(&keys), kind.clone());
        running.spawn(async move {
            while Instant::now() < until {
                let number = keys.fetch_add(1, Ordering::Relaxed);
                let key = format!("spent:{}:{number}", std::process::id());
                // On a machine that is busy a request may take too long.
                while let Err(error) = spend_one(&client, &kind, &key).await {
                    assert!(error.is_unavailable(), "{error}");
                }
            }
        });
    }
    while let Some(task) = running.join_next().await {
        task.expect("no panic");
    }
    say(&format!("spent {}", keys.load(Ordering::Relaxed)));
}

async fn spend_one(client: &LockClient, kind: &str, key: &str) -> Result<(), LockError> {
    let lock = client.lock(key);
    let lock = match kind {
        "plain" => lock,
        "fenced" => lock.fenced(),
        "kept" => lock.hold_at_least(Duration::from_millis(50)),
        "latch" => {
            let latch = client.latch(key).ttl(Duration::from_millis(50));
            return latch.set(1).await.map(drop);
        }
        "rate" => {
            let limiter = client.rate_limiter(key, Rate::per_second(1000));
            return limiter.acquire().await;
        }
        other => panic!("unknown kind {other}"),
    };
    lock.acquire().await?.release().await
}

fn read(arguments: Vec<String>) {
    let [millis, paths @ ..] = &arguments[..] else {
        panic!("read MS PATH…")
    };
    let until = Instant::now() + parsed(millis);
    loop {
        for path in paths {
            std::fs::read(path).expect("a file that can be read");
        }
        if Instant::now() >= until {
            break say("has read");
        }
    }
}

/// One event, as one line, at once.
fn say(event: &str) {
    // Rust's standard output is flushed at the end of a line, also into a pipe.
    println!("{event}");
}
