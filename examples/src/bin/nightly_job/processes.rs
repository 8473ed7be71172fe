//! The parent: starts the processes, and gathers what each of them did at every tick.

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::args::{Args, URL_VARIABLE, usage};
use crate::night::{Nights, say};
use crate::process::{FAILED, READY, millis_since_1970};

/// How much later than planned a process may report the last tick: a machine can be busy.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(args: &Args, url: &str) -> Result<Nights, Box<dyn Error>> {
    // One try here, so that a wrong URL is reported once and not by three processes.
    let connected = LockClient::builder().url(url).connect().await;
    connected.map_err(|error| match error {
        LockError::Config { .. } => usage(error).into(),
        error => Box::<dyn Error>::from(error),
    })?;
    // A shop of its own for every run, so that two runs on one Redis do not meet.
    let shop = millis_since_1970();
    let skew = i64::try_from(args.skew)?;
    let clocks = [0, skew, -skew];
    let (told, mut tellings) = unbounded_channel();
    let mut processes = Vec::new();
    for (number, fast) in (1..).zip(clocks) {
        processes.push(start(args, url, shop, number, fast, &told)?);
    }
    drop(told);
    for _ in &processes {
        // The first processes report early ticks while the others start. Those are not watched yet.
        while next(&mut tellings).await?.1 != READY {}
    }

    // The first tick that is still to come for all clocks, and the time until the last one is over.
    let (every, ticks) = (i64::try_from(args.every)?, i64::try_from(args.ticks)?);
    let first = (millis_since_1970() / 1000 + skew + 1) / every + 1;
    let over = ((first + ticks - 1) * every + skew) * 1000 - millis_since_1970();
    let time = Duration::from_millis(u64::try_from(over)?) + PATIENCE;

    let hold = if args.no_hold { "WITHOUT" } else { "with" };
    say(&format!(
        "3 processes, clocks {:+} s, {:+} s and {:+} s, a tick every {every} s, \
         {hold} hold_at_least",
        clocks[0], clocks[1], clocks[2]
    ));
    let mut nights = Nights::watch(clocks, every, first, ticks);
    let gathering = async {
        while !nights.are_over() {
            let (number, line) = next(&mut tellings).await?;
            nights.note(number, line.parse()?);
        }
        Ok::<_, Box<dyn Error>>(())
    };
    // When the time is over, the table shows what is missing.
    if let Ok(gathered) = tokio::time::timeout(time, gathering).await {
        gathered?;
    }
    for mut process in processes {
        process.wait().await?; // Closes its stdin first, which ends it.
    }
    Ok(nights)
}

/// Starts a process. It ends with its parent, because its stdin does.
fn start(
    args: &Args,
    url: &str,
    shop: i64,
    number: usize,
    fast: i64,
    told: &UnboundedSender<(usize, Option<String>)>,
) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .env(URL_VARIABLE, url)
        .args([
            "process",
            &format!("--shop={shop}"),
            &format!("--fast={fast}"),
        ])
        .arg(format!("--every={}", args.every))
        .args(args.no_hold.then_some("--no-hold"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut process = command.spawn()?;
    if let Some(words) = process.stdout.take() {
        tokio::spawn(listen(number, words, told.clone()));
    }
    Ok(process)
}

async fn listen(number: usize, words: ChildStdout, told: UnboundedSender<(usize, Option<String>)>) {
    let mut lines = BufReader::new(words).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // There is no listener any more once all is over.
        let _ = told.send((number, Some(line)));
    }
    let _ = told.send((number, None));
}

async fn next(
    tellings: &mut UnboundedReceiver<(usize, Option<String>)>,
) -> Result<(usize, String), Box<dyn Error>> {
    match tellings.recv().await {
        Some((number, Some(line))) => match line.strip_prefix(FAILED) {
            Some(reason) => Err(format!("process {number}: {reason}").into()),
            None => Ok((number, line)),
        },
        Some((number, None)) => Err(format!("process {number} ended early").into()),
        None => Err("no process is left".into()),
    }
}
