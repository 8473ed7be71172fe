//! A program that ends right after its work leaves no lock behind. Other processes do so here: this
//! program, started again for the "test" [`program`].
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient, LockClientBuilder, LockError};
use lock_testkit::{PostgresServer, RedisServer, SqliteFile};
use tokio::runtime::{Builder, Runtime};

const URL: &str = "PROGRAM_URL";
const WAY: &str = "PROGRAM_WAY";
/// `PROGRAM_MEASURES=60` counts as well what the last two ways leave, and prints it.
const MEASURES: &str = "PROGRAM_MEASURES";
const TIMES: usize = 20;
const PATIENT: Duration = Duration::from_secs(10);

/// How it ends. In none of them it waits for the release.
const WAYS: [&str; 9] = [
    "all is dropped in the runtime of a thread",
    "all is dropped in a runtime of several threads",
    "all is dropped in a task",
    "all is dropped outside of any runtime",
    "the global client is shut down",
    "a panic drops all in the runtime",
    "all is dropped on a thread for what blocks",
    "the runtime of a task that has it is shut down",
    NOT_SHUT_DOWN,
];

/// The one way that leaves locks: a global client never ends by itself.
const NOT_SHUT_DOWN: &str = "the global client is not shut down";

/// Not a test: what the other processes do.
#[test]
fn program() {
    let (Ok(url), Ok(way)) = (std::env::var(URL), std::env::var(WAY)) else {
        return;
    };
    let runtime = match WAYS.iter().position(|known| *known == way) {
        Some(1 | 2 | 6 | 7) => Builder::new_multi_thread().enable_all().build(),
        _ => Builder::new_current_thread().enable_all().build(),
    };
    let done = work(&url, &way, runtime.unwrap());
    // The end of `main`.
    std::process::exit(i32::from(done.is_err()));
}

fn work(url: &str, way: &str, runtime: Runtime) -> Result<(), LockError> {
    match WAYS.iter().position(|known| *known == way) {
        Some(0 | 1) => runtime.block_on(async {
            let _all = hold(patient(url)).await?;
            Ok(())
        }),
        Some(2) => {
            let task = runtime.spawn(hold(patient(url)));
            let task = async { runtime.spawn(async { drop(task.await.unwrap()) }).await };
            runtime.block_on(task).unwrap();
            Ok(())
        }
        Some(3) => runtime.block_on(hold(patient(url))).map(drop),
        Some(5) => {
            let panics = async { drop((hold(patient(url)).await, panic_now())) };
            let panics = std::panic::AssertUnwindSafe(|| runtime.block_on(panics));
            let _ = std::panic::catch_unwind(panics);
            Ok(())
        }
        Some(6) => {
            let all = runtime.block_on(hold(patient(url)))?;
            let dropped = runtime.spawn_blocking(|| drop(all));
            runtime.block_on(dropped).unwrap();
            Ok(())
        }
        Some(7) => {
            let task = runtime.spawn(hold(patient(url)));
            let all = runtime.block_on(task).unwrap()?;
            runtime.spawn(async move {
                let _all = all;
                std::future::pending::<()>().await;
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
            Ok(())
        }
        _ => runtime.block_on(async {
            patient(url).connect().await?.install()?;
            let guard = LockClient::global()?.lock("k").acquire().await?;
            drop(guard);
            if way != NOT_SHUT_DOWN {
                lock_runtime::shutdown(Duration::from_secs(5)).await;
            }
            Ok(())
        }),
    }
}

fn panic_now() {
    std::panic::resume_unwind(Box::new(()));
}

/// The machine is busy with programs that start and end.
fn patient(url: &str) -> LockClientBuilder {
    let builder = LockClient::builder().url(url);
    builder.command_timeout(PATIENT).connect_timeout(PATIENT)
}

/// The guard is dropped first.
async fn hold(builder: LockClientBuilder) -> Result<(Guard, LockClient), LockError> {
    let client = builder.connect().await?;
    let guard = client.lock("k").acquire().await?;
    Ok((guard, client))
}

/// How many of the programs left their lock.
async fn left_by(client: &LockClient, url: &str, way: &str, times: usize) -> usize {
    let mut left = 0;
    for _ in 0..times {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program"])
            .env(URL, url)
            .env(WAY, way)
            .stdout(Stdio::null())
            .status();
        assert!(ended.unwrap().success(), "{way}");
        left += usize::from(client.inspect("k").await.unwrap().holder.is_some());
        client.force_release("k").await.unwrap();
    }
    left
}

async fn assert_no_lock_left(url: String) {
    let client = patient(&url).connect().await.unwrap();
    for way in WAYS.into_iter().filter(|way| *way != NOT_SHUT_DOWN) {
        let left = left_by(&client, &url, way, TIMES).await;
        assert_eq!(left, 0, "of {TIMES} programs that left their lock: {way}");
    }
    if let Ok(times) = std::env::var(MEASURES) {
        for way in [NOT_SHUT_DOWN, "the global client is shut down"] {
            let left = left_by(&client, &url, way, times.parse().unwrap()).await;
            println!("{left} of {times} programs left their lock: {way}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_leaves_no_lock_in_redis() {
    let server = RedisServer::start().await;
    assert_no_lock_left(server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_leaves_no_lock_in_postgres() {
    let server = PostgresServer::start().await;
    assert_no_lock_left(server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_leaves_no_lock_in_sqlite() {
    let file = SqliteFile::new();
    assert_no_lock_left(file.url()).await;
}

/// How long the drop takes, and with the end of its thread, while the server says nothing.
async fn last_drop(in_runtime: bool) -> (Duration, Duration) {
    let server = RedisServer::start().await;
    let all = hold(LockClient::builder().url(server.url())).await.unwrap();
    server.pause();
    let begun = Instant::now();
    let dropped = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let within = in_runtime.then(|| runtime.enter());
        drop(all);
        drop(within);
        begun.elapsed()
    });
    let dropped = dropped.join().unwrap();
    let ended = begun.elapsed();
    server.resume();
    (dropped, ended)
}

const COMMAND: Duration = Duration::from_millis(450);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_drop_outside_of_a_runtime_waits_for_one_command_at_most() {
    let (dropped, _) = last_drop(false).await;
    assert!(dropped >= COMMAND && dropped < 4 * COMMAND, "{dropped:?}");
}

/// What logs there may be gone with the thread's other variables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_drop_in_a_runtime_blocks_nothing_but_the_end_of_its_thread() {
    let (dropped, ended) = last_drop(true).await;
    assert!(dropped < COMMAND, "{dropped:?}");
    assert!(ended >= COMMAND && ended < 4 * COMMAND, "{ended:?}");
}

#[tokio::test]
async fn without_a_global_client_a_shutdown_does_nothing() {
    lock_runtime::shutdown(Duration::from_secs(5)).await;
    assert!(matches!(
        LockClient::global(),
        Err(LockError::NotInitialized)
    ));
}
