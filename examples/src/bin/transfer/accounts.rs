//! The accounts: balances that can be read and written, and nothing cleverer. The lock keeps them
//! right. Where a holder lost its lock without knowing it, the tokens do.

use std::sync::{Mutex, PoisonError};

use lock_runtime::FencingToken;

/// Stands for a table in a database.
#[derive(Debug)]
pub(crate) struct Accounts(Vec<Mutex<Account>>);

#[derive(Debug)]
struct Account {
    balance: i64,
    /// The highest token seen. A caller with a lower one has been overtaken.
    newest: Option<FencingToken>,
}

/// A later holder of the lock has been at this account. The balance that was read is out of date,
/// and nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("account {0} was changed by a later holder of its lock")]
pub(crate) struct Overtaken(usize);

impl Accounts {
    pub(crate) fn new(accounts: usize, balance: i64) -> Self {
        let newest = None;
        let open = |_| Mutex::new(Account { balance, newest });
        Self((0..accounts).map(open).collect())
    }

    /// From now on a lower token is refused. A holder that wakes up late can't write what this one
    /// would not see.
    pub(crate) fn read(&self, id: usize, token: Option<FencingToken>) -> Result<i64, Overtaken> {
        self.check(id, token, |account| account.balance)
    }

    pub(crate) fn write(
        &self,
        id: usize,
        balance: i64,
        token: Option<FencingToken>,
    ) -> Result<(), Overtaken> {
        self.check(id, token, |account| account.balance = balance)
    }

    pub(crate) fn money(&self) -> i64 {
        let balance = |account: &Mutex<Account>| lock(account).balance;
        self.0.iter().map(balance).sum()
    }

    /// `None` stands for callers without a lock. It checks nothing, and is lower than every token.
    fn check<T>(
        &self,
        id: usize,
        token: Option<FencingToken>,
        access: impl FnOnce(&mut Account) -> T,
    ) -> Result<T, Overtaken> {
        let mut account = lock(&self.0[id]);
        if token < account.newest {
            return Err(Overtaken(id));
        }
        account.newest = token;
        Ok(access(&mut account))
    }
}

fn lock(account: &Mutex<Account>) -> impl std::ops::DerefMut<Target = Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use lock_runtime::{LockClient, LockError};

    use super::*;

    #[tokio::test]
    async fn an_overtaken_holder_can_neither_read_nor_write() -> Result<(), LockError> {
        let locks = LockClient::in_memory();
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let guard = locks.lock("account:0").fenced().acquire().await?;
            tokens.push(guard.fencing_token());
            guard.release().await?;
        }
        let accounts = Accounts::new(1, 100);
        assert_eq!(accounts.read(0, tokens[0]), Ok(100));
        assert_eq!(accounts.read(0, tokens[1]), Ok(100));
        assert_eq!(accounts.write(0, 1, tokens[0]), Err(Overtaken(0)));
        assert_eq!(accounts.read(0, tokens[0]), Err(Overtaken(0)));
        assert_eq!(accounts.write(0, 90, tokens[1]), Ok(()));
        assert_eq!(accounts.money(), 90);
        Ok(())
    }
}
