//! One of the processes: a scheduler, a clock of its own, and a line to its parent for every tick.

use std::error::Error;
use std::fmt;
use std::io::{Write, sink, stdin, stdout};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::FixedOffset;
use tokio_cron_scheduler::{Job, JobScheduler};

use crate::args::{ProcessArgs, URL_VARIABLE, usage};
use crate::job;

/// To the parent: connected and scheduled.
pub(crate) const READY: &str = "ready";
/// To the parent: the reason why this process stopped follows.
pub(crate) const FAILED: &str = "failed ";

/// What a process did at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Struck {
    /// The tick's number, counted from 1970: the same in all processes.
    pub(crate) tick: i64,
    /// Milliseconds after the tick by the right clock. Negative if this process's clock is fast.
    pub(crate) late: i64,
    pub(crate) ran: bool,
}

pub(crate) async fn run(args: ProcessArgs) -> Result<(), Box<dyn Error>> {
    let url = std::env::var(URL_VARIABLE)
        .map_err(|_| usage("`process` is what the example starts its own processes with"))?;
    match schedule(args, url).await {
        Ok(_scheduler) => {
            print(READY);
            // The parent says nothing. When this input ends, the parent has finished, or is gone.
            tokio::task::spawn_blocking(|| std::io::copy(&mut stdin(), &mut sink())).await??;
        }
        // The parent tells the user, once for all processes.
        Err(error) => print(format_args!("{FAILED}{error}")),
    }
    Ok(())
}

async fn schedule(args: ProcessArgs, url: String) -> Result<JobScheduler, Box<dyn Error>> {
    lock_runtime::init(url).await?;
    let clock = FixedOffset::east_opt(args.fast).ok_or("no clock is a day fast")?;
    let cron = format!("*/{} * * * * *", args.every);
    let scheduler = JobScheduler::new().await?;
    let job = Job::new_async_tz(cron, clock, move |_, _| Box::pin(strike(args)))?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    Ok(scheduler)
}

/// A tick, by the clock of this process.
async fn strike(args: ProcessArgs) {
    let every = i64::try_from(args.every * 1000).unwrap_or(i64::MAX);
    let now = millis_since_1970();
    let tick = (now + i64::from(args.fast) * 1000) / every;
    let late = now - tick * every;
    let closed = if args.no_hold {
        job::close_the_day_without_hold(args.shop).await
    } else {
        job::close_the_day(args.shop).await
    };
    match closed {
        Ok(closed) => {
            let ran = closed.is_some();
            print(Struck { tick, late, ran });
        }
        Err(error) => print(format_args!("{FAILED}{error}")),
    }
}

/// By the right clock.
pub(crate) fn millis_since_1970() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn print(line: impl fmt::Display) {
    // If the parent is gone, stdin shows it.
    let _ = writeln!(stdout(), "{line}");
}

impl fmt::Display for Struck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = if self.ran { "ran" } else { "skipped" };
        write!(f, "{did} {} {}", self.tick, self.late)
    }
}

impl FromStr for Struck {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let parse = || {
            let (did, numbers) = line.split_once(' ')?;
            let (tick, late) = numbers.split_once(' ')?;
            let ran = ["skipped", "ran"].iter().position(|word| *word == did)? == 1;
            Some(Self {
                tick: tick.parse().ok()?,
                late: late.parse().ok()?,
                ran,
            })
        };
        parse().ok_or_else(|| format!("not a line of the job: {line:?}"))
    }
}
