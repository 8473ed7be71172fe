//! Payments in PostgreSQL: the lock is checked in the transaction that moves the money.
//!
//! `cargo run -p lock-examples --features payment --bin payment -- --url
//! postgres://postgres@127.0.0.1/bank` makes a table `account` there and applies the migration of
//! the locks. Then 40 payments between 4 accounts run at once, and one whose locks are taken away
//! while it works: the database refuses it.

mod bank;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use lock_runtime::{LockClient, LockError};
use tokio::task::JoinSet;

use crate::bank::{Bank, PaymentError};

const ACCOUNTS: i64 = 4;
const CENTS: i64 = 1000;
const PAYMENTS: i64 = 40;

/// Payments in PostgreSQL: the lock is checked in the transaction that moves the money.
#[derive(Debug, Parser)]
#[command(name = "payment")]
struct Args {
    /// A database in which this user may create a schema: `postgres://user:password@host/name`
    #[arg(long)]
    url: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(status) => status,
        Err(error) => lock_examples::give_up("payment", &*error),
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let Args { url } = lock_examples::read()?;
    let locks = LockClient::builder()
        .url(&url)
        .namespace("bank")
        .command_timeout(Duration::from_secs(5))
        .wait(Duration::from_secs(60))
        .connect_lazy()?;
    locks.migrate().await?;
    let bank = Box::leak(Box::new(Bank::open(url, locks, ACCOUNTS, CENTS).await?));
    let before = bank.total().await?;
    let paid = pay_around(bank).await?;
    let stale = pay_too_late(bank).await;
    let after = bank.total().await?;
    println!("payments at once:\n  {:<24}{paid}", "paid");
    println!("one whose locks were taken away:");
    println!(
        "  {:<24}{}",
        "refused",
        stale.is_err_and(|error| error.is_stale())
    );
    println!("cents in all accounts:");
    println!("  {:<24}{before}\n  {:<24}{after}", "before", "after");
    bank.locks.shutdown(Duration::from_secs(5)).await;
    Ok(ExitCode::from(u8::from(before != after)))
}

/// All of them want the same few accounts, in either order.
async fn pay_around(bank: &'static Bank) -> Result<usize, PaymentError> {
    let mut payments = JoinSet::new();
    for number in 0..PAYMENTS {
        let (from, to) = (number % ACCOUNTS, (number * 3 + 1) % ACCOUNTS);
        payments.spawn(bank.pay(from, to, 1 + number, async { Ok(()) }));
    }
    let mut paid = 0;
    while let Some(payment) = payments.join_next().await {
        match payment {
            Ok(Ok(())) => paid += 1,
            Ok(Err(error)) => return Err(error),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
    Ok(paid)
}

/// As if the process had stood still for longer than its lease: somebody else may have the locks
/// by now, and it does not know.
async fn pay_too_late(bank: &Bank) -> Result<(), PaymentError> {
    let taken_away = async {
        for key in ["account:0", "account:1"] {
            bank.locks.force_release(key).await?;
        }
        Ok::<_, LockError>(())
    };
    bank.pay(0, 1, 1, taken_away).await
}
