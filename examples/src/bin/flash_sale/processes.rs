//! The sale in several processes: starts them, gathers their reports, and kills one on request.

use std::process::Stdio;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockKey, lock_key};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Failure;
use crate::args::{Args, URL_VARIABLE, usage};
use crate::event::{Event, FAILED, GO, Moment, READY};
use crate::inventory::{self, Inventory};
use crate::report::{Progress, Sale, Tally, shown};

pub(crate) async fn run(args: &Args, url: &str, processes: u32) -> Result<Sale, Failure> {
    let client = LockClient::builder().url(url).connect().await?;
    let Some(address) = inventory::address(url) else {
        return Err(usage("--url needs a Redis that all processes can use: redis://…").into());
    };
    // A product of its own for every run, so that two runs on one Redis do not meet.
    let product_id = Moment::now().as_micros();
    let inventory = Inventory::in_redis(url, product_id).await?;
    inventory.write(args.items).await?;
    let place = format!("in {processes} processes on Redis at {address}");
    let progress = Progress::start(args, &place);

    let sold = sell(args, url, processes, product_id, &client, &progress).await;
    let left = inventory.read().await;
    let removed = inventory.remove().await;
    progress.finish();
    // The sale's own error first, because it explains the others.
    let sold = sold?;
    removed?;
    Ok(Sale {
        buyers: args.buyers,
        items: args.items,
        locked: !args.no_lock,
        tally: sold.tally,
        left: left?,
        duration: sold.duration,
        unfinished: sold.unfinished,
    })
}

struct Sold {
    tally: Tally,
    duration: Duration,
    unfinished: u32,
}

/// Starts the processes, lets them sell, and returns when the last one has ended.
async fn sell(
    args: &Args,
    url: &str,
    processes: u32,
    product_id: u64,
    client: &LockClient,
    progress: &Progress,
) -> Result<Sold, Failure> {
    let (told, mut tellings) = unbounded_channel();
    let mut staff = Vec::new();
    for number in 1..=processes {
        staff.push(Seller::start(
            args, url, number, processes, product_id, &told,
        )?);
    }
    drop(told);
    wait_until_ready(&mut staff, &mut tellings).await?;

    let started = Instant::now();
    for seller in &mut staff {
        seller.order(GO).await?;
    }
    let (mut tally, mut unfinished) = (Tally::default(), 0);
    let mut crash: Option<Crash> = None;
    while let Some((number, told)) = tellings.recv().await {
        let seller = &mut staff[number as usize - 1];
        let Told::Line(line) = told else {
            unfinished += seller.end().await?;
            continue;
        };
        let event = seller.event(&line)?;
        match event {
            Event::Hanging => {
                let killed = seller
                    .kill(client, &lock_key!("stock:<product_id>"))
                    .await?;
                progress.say(&killed.to_string());
                crash = Some(killed);
            }
            Event::Entered { at, .. } => {
                if let Some(news) = crash.as_mut().and_then(|crash| crash.next_buyer(at)) {
                    progress.say(&news);
                }
            }
            Event::Sold | Event::SoldOut | Event::Interrupted => seller.answered += 1,
        }
        tally.count(event);
        progress.show(&tally);
    }
    if args.crash && crash.is_none() {
        return Err(broken("no process got far enough to be killed"));
    }
    Ok(Sold {
        tally,
        duration: started.elapsed(),
        unfinished,
    })
}

/// Some processes take longer to connect than others. Without this wait, the first would sell
/// everything.
async fn wait_until_ready(
    staff: &mut [Seller],
    tellings: &mut UnboundedReceiver<(u32, Told)>,
) -> Result<(), Failure> {
    let mut ready = 0;
    while ready < staff.len() {
        match tellings.recv().await {
            Some((_, Told::Line(line))) if line == READY => ready += 1,
            Some((number, Told::Line(line))) => {
                staff[number as usize - 1].event(&line)?;
            }
            Some((number, Told::End)) => {
                staff[number as usize - 1].end().await?;
            }
            None => break,
        }
    }
    Ok(())
}

/// A report of a process.
enum Told {
    Line(String),
    End,
}

/// A process that sells.
struct Seller {
    number: u32,
    child: Child,
    orders: ChildStdin,
    buyers: u32,
    answered: u32,
    killed: bool,
}

impl Seller {
    fn start(
        args: &Args,
        url: &str,
        number: u32,
        processes: u32,
        product_id: u64,
        told: &UnboundedSender<(u32, Told)>,
    ) -> Result<Self, Failure> {
        // The first processes take the remainder.
        let buyers = args.buyers / processes + u32::from(number <= args.buyers % processes);
        let mut command = Command::new(std::env::current_exe()?);
        command
            .env(URL_VARIABLE, url)
            .arg("process")
            .arg(format!("--product-id={product_id}"))
            .arg(format!("--buyers={buyers}"));
        if args.no_lock {
            command.arg("--no-lock");
        }
        if args.crash && number == 1 {
            // In the middle of its work: about half of what it will sell.
            let hang_after = buyers.min(args.items / processes) / 2;
            command.arg(format!("--hang-after={hang_after}"));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(orders), Some(words)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(broken("a process was started without its pipes"));
        };
        tokio::spawn(listen(number, words, told.clone()));
        Ok(Self {
            number,
            child,
            orders,
            buyers,
            answered: 0,
            killed: false,
        })
    }

    async fn order(&mut self, order: &str) -> Result<(), Failure> {
        let told = self.orders.write_all(format!("{order}\n").as_bytes()).await;
        told.map_err(|error| broken(format!("process {} is gone: {error}", self.number)))
    }

    fn event(&self, line: &str) -> Result<Event, Failure> {
        match line.strip_prefix(FAILED) {
            Some(reason) => Err(broken(reason)),
            None => line
                .parse()
                .map_err(|error| broken(format!("process {}: {error}", self.number))),
        }
    }

    /// Kills the process, which holds the lock, and looks at what it leaves behind.
    async fn kill(&mut self, client: &LockClient, key: &LockKey) -> Result<Crash, Failure> {
        let pid = self.child.id().unwrap_or_default();
        let at = Moment::now();
        self.killed = true;
        self.child.kill().await?;
        let left_behind = client.inspect(key.clone()).await?;
        Ok(Crash {
            number: self.number,
            pid,
            at,
            lease_left: left_behind.remaining,
            next_in: None,
        })
    }

    /// Called when the process has closed its side. Returns how many of its buyers got no answer;
    /// only a killed process may leave some.
    async fn end(&mut self) -> Result<u32, Failure> {
        let status = self.child.wait().await?;
        let unanswered = self.buyers.saturating_sub(self.answered);
        if !self.killed && (unanswered > 0 || !status.success()) {
            return Err(broken(format!(
                "process {} ended early ({status}), {unanswered} of its {} buyers got no answer",
                self.number, self.buyers
            )));
        }
        Ok(unanswered)
    }
}

async fn listen(number: u32, words: ChildStdout, told: UnboundedSender<(u32, Told)>) {
    let mut lines = BufReader::new(words).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // There is no listener any more once the sale was given up.
        let _ = told.send((number, Told::Line(line)));
    }
    let _ = told.send((number, Told::End));
}

/// A process that was killed while it held the lock.
struct Crash {
    number: u32,
    pid: u32,
    at: Moment,
    lease_left: Option<Duration>,
    next_in: Option<Duration>,
}

impl Crash {
    /// Remembers the first buyer that got in after the kill, and returns a line about it.
    fn next_buyer(&mut self, entered: Moment) -> Option<String> {
        // An entry from before the kill can be read after it, since each process has a pipe of its
        // own.
        if self.next_in.is_some() || entered <= self.at {
            return None;
        }
        let waited = entered.since(self.at);
        self.next_in = Some(waited);
        Some(format!(
            "Its lease ended by itself: the next buyer got in {} after the kill.",
            shown(waited)
        ))
    }
}

impl std::fmt::Display for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Killed process {} (pid {}) with SIGKILL while it held the lock",
            self.number, self.pid
        )?;
        match self.lease_left {
            Some(left) => write!(
                f,
                "; nobody released it, its lease has {} left.",
                shown(left)
            ),
            None => write!(f, "; its lease had ended already."),
        }
    }
}

fn broken(message: impl Into<String>) -> Failure {
    Failure::Broken(message.into().into())
}
