//! The business: a transfer reads two balances, thinks, and writes them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_runtime::{FencingToken, LockError, distributed_lock};
use tokio::task::JoinSet;

use crate::Args;
use crate::accounts::{Accounts, Overtaken};
use crate::report::{Day, Sender};

const ACCOUNTS: usize = 8;
const BALANCE: i64 = 1000;
/// How long a transfer thinks between reading and writing.
const THINK: Duration = Duration::from_millis(1);
/// A task that has not ended this long after the day is stuck. This is longer than the longest wait
/// for a lock, 10 s.
const PATIENCE: Duration = Duration::from_secs(20);

/// What stops a transfer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Overtaken(#[from] Overtaken),
}

/// Sends money. Nothing happens if the balance is too small. Both accounts are locked, or none: a
/// transfer in the other direction waits, and holds no lock while it waits for the other. The
/// tokens are in the order of the keys.
#[distributed_lock(keys = ["account:<from>", "account:<to>"], fence = tokens)]
async fn transfer(
    accounts: &Accounts,
    from: usize,
    to: usize,
    amount: i64,
) -> Result<(), TransferError> {
    read_think_write(
        accounts,
        (from, Some(tokens[0])),
        (to, Some(tokens[1])),
        amount,
    )
    .await
}

/// The same without that line.
async fn transfer_without_lock(
    accounts: &Accounts,
    from: usize,
    to: usize,
    amount: i64,
) -> Result<(), TransferError> {
    read_think_write(accounts, (from, None), (to, None), amount).await
}

/// Right only if no other transfer uses one of the accounts at the same time.
async fn read_think_write(
    accounts: &Accounts,
    (from, from_token): (usize, Option<FencingToken>),
    (to, to_token): (usize, Option<FencingToken>),
    amount: i64,
) -> Result<(), TransferError> {
    let (there, here) = (
        accounts.read(from, from_token)?,
        accounts.read(to, to_token)?,
    );
    if there < amount {
        return Ok(());
    }
    tokio::time::sleep(THINK).await;
    accounts.write(from, there - amount, from_token)?;
    accounts.write(to, here + amount, to_token)?;
    Ok(())
}

/// Where the tasks send money.
#[derive(Debug)]
pub(crate) struct Bank {
    accounts: Accounts,
    locked: bool,
    closes: Instant,
}

impl Bank {
    /// Lets all tasks send money until the time is over.
    pub(crate) async fn open(args: &Args) -> Result<Day, TransferError> {
        let day = Duration::from_secs(args.seconds);
        let bank = Arc::new(Self {
            accounts: Accounts::new(ACCOUNTS, BALANCE),
            locked: !args.no_lock,
            closes: Instant::now() + day,
        });
        let before = bank.accounts.money();
        let mut sending = JoinSet::new();
        for _ in 0..args.tasks {
            sending.spawn(Arc::clone(&bank).send());
        }
        let mut senders = Vec::new();
        let gathering = async {
            while let Some(sent) = sending.join_next().await {
                match sent {
                    Ok(sender) => senders.push(sender?),
                    Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
                }
            }
            Ok::<_, TransferError>(())
        };
        // A task that has not ended by then is stuck. The report counts it.
        if let Ok(gathered) = tokio::time::timeout(day + PATIENCE, gathering).await {
            gathered?;
        }
        Ok(Day {
            tasks: args.tasks,
            accounts: ACCOUNTS,
            locked: bank.locked,
            senders,
            before,
            after: bank.accounts.money(),
        })
    }

    async fn send(self: Arc<Self>) -> Result<Sender, TransferError> {
        let dice = RandomState::new();
        let roll = |what: (u32, &str), below: usize| (dice.hash_one(what) % below as u64) as usize;
        let mut sender = Sender::default();
        while Instant::now() < self.closes {
            let turn = sender.sent;
            let from = roll((turn, "from"), ACCOUNTS);
            let to = (from + 1 + roll((turn, "to"), ACCOUNTS - 1)) % ACCOUNTS;
            let amount = 1 + roll((turn, "amount"), 100) as i64;
            let asked = Instant::now();
            if self.locked {
                transfer(&self.accounts, from, to, amount).await?;
            } else {
                transfer_without_lock(&self.accounts, from, to, amount).await?;
            }
            sender.note(asked.elapsed());
        }
        Ok(sender)
    }
}
