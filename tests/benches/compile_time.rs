//! What the attribute adds to the time of a build: `cargo check` of a crate of 1,000 functions, all
//! of them changed. In turn: without a lock, with a hand-written lock, and with the attribute. Run
//! it with `cargo bench -p lock-benches --bench compile_time`.
#![expect(clippy::expect_used, reason = "a benchmark that can't go on ends")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const FUNCTIONS: usize = 1000;
const ROUNDS: usize = 5;

#[derive(Clone, Copy)]
enum Way {
    Plain,
    ByHand,
    Attribute,
}

fn source(way: Way) -> String {
    let mut text = String::from(
        "#![allow(unused_imports)]\n\
         use lock_runtime::{LockClient, LockError, distributed_lock, lock_key};\n",
    );
    let (before, body) = match way {
        Way::Plain => ("", "let _ = id; Ok(amount + 1)"),
        Way::ByHand => (
            "",
            "LockClient::global()?.lock(lock_key!(\"stock:<id>\"))\n\
             .lease(std::time::Duration::from_secs(10))\n\
             .run(async move { let _ = id; Ok(amount + 1) }).await?",
        ),
        Way::Attribute => (
            "#[distributed_lock(key = \"stock:<id>\", lease = \"10s\")]",
            "let _ = id; Ok(amount + 1)",
        ),
    };
    for n in 0..FUNCTIONS {
        writeln!(
            text,
            "{before}\npub async fn f{n}(id: u64, amount: u32) -> Result<u32, LockError> \
             {{ {body} }}"
        )
        .expect("a string takes everything");
    }
    text
}

/// The time of `cargo check` for this source, with all dependencies built.
fn check(folder: &Path, way: Way) -> Duration {
    std::fs::write(folder.join("src/lib.rs"), source(way)).expect("the source");
    let started = Instant::now();
    let status = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline"])
        .current_dir(folder)
        .status()
        .expect("cargo");
    assert!(status.success());
    started.elapsed()
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort();
    values[values.len() / 2]
}

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("src")).expect("a folder");
    std::fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");
    let manifest = format!(
        "[package]\nname = \"thousand\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nlock-runtime = {{ path = {:?} }}\n",
        workspace.join("lock-runtime")
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest");
    let ways = [
        (Way::Plain, "without a lock"),
        (Way::ByHand, "client.lock(key).run(…)"),
        (Way::Attribute, "the attribute"),
    ];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (way, _) in ways {
            let time = check(folder, way);
            // The first round also checks the dependencies, and fills the file caches.
            if round > 0 {
                times[way as usize].push(time);
            }
        }
    }
    let medians = times.map(median);
    for ((_, name), time) in ways.iter().zip(medians) {
        println!(
            "{FUNCTIONS} functions, {name:24} {time:8.2?}  {:5.2} of by hand",
            time.as_secs_f64() / medians[1].as_secs_f64()
        );
    }
}
