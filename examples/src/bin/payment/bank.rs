//! [`Bank`]: accounts in PostgreSQL, and payments between them.

use lock_runtime::{LockClient, LockError, distributed_lock};
use thiserror::Error;
use tokio_postgres::{Client, NoTls};

/// What `lock_check` says when the lock is not held any more.
const LOST: &str = "LK002";

#[derive(Debug, Error)]
pub(crate) enum PaymentError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("there are only {0} cents")]
    TooLittle(i64),
    #[error("PostgreSQL: {}", self.detail())]
    Database(#[from] tokio_postgres::Error),
}

impl PaymentError {
    /// Whether the database has refused it, since its lock was lost.
    pub(crate) fn is_stale(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        error.code().is_some_and(|code| code.code() == LOST)
    }

    fn detail(&self) -> String {
        match self {
            Self::Database(error) => match error.as_db_error() {
                Some(error) => error.message().to_owned(),
                None => error.to_string(),
            },
            _ => String::new(),
        }
    }
}

pub(crate) struct Bank {
    url: String,
    pub(crate) locks: LockClient,
}

impl Bank {
    /// A bank whose accounts are numbered from 0 and begin with the same balance.
    pub(crate) async fn open(
        url: String,
        locks: LockClient,
        accounts: i64,
        cents: i64,
    ) -> Result<Self, PaymentError> {
        let bank = Self { url, locks };
        let session = bank.session().await?;
        session
            .batch_execute(
                "CREATE TABLE account (number BIGINT PRIMARY KEY, cents BIGINT NOT NULL)",
            )
            .await?;
        let open =
            "INSERT INTO account SELECT number, $2 FROM generate_series(0::bigint, $1) AS number";
        session.execute(open, &[&(accounts - 1), &cents]).await?;
        Ok(bank)
    }

    async fn session(&self) -> Result<Client, tokio_postgres::Error> {
        let (session, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        tokio::spawn(connection);
        Ok(session)
    }

    pub(crate) async fn total(&self) -> Result<i64, PaymentError> {
        let total = "SELECT sum(cents)::bigint FROM account";
        Ok(self.session().await?.query_one(total, &[]).await?.get(0))
    }

    /// Begins and commits inside: a transaction of the caller's would be committed after the
    /// release. `before` is what may take long, such as a question to another service.
    #[distributed_lock(
        keys = ["account:<from>", "account:<to>"],
        client = &self.locks,
        fence = tokens,
        guard = held
    )]
    pub(crate) async fn pay(
        &self,
        from: i64,
        to: i64,
        cents: i64,
        before: impl Future<Output = Result<(), LockError>>,
    ) -> Result<(), PaymentError> {
        before.await?;
        let mut session = self.session().await?;
        let payment = session.transaction().await?;
        // From here to the commit nobody takes the locks over, whatever the clocks say.
        let check = "SELECT lock_store.lock_check($1, $2)";
        for (name, token) in held.full_names().zip(tokens) {
            let token = i64::try_from(u64::from(token)).unwrap_or(i64::MAX);
            payment.execute(check, &[&name, &token]).await?;
        }
        let has = "SELECT cents FROM account WHERE number = $1";
        let has: i64 = payment.query_one(has, &[&from]).await?.get(0);
        if has < cents {
            return Err(PaymentError::TooLittle(has));
        }
        let change = "UPDATE account SET cents = cents + $2 WHERE number = $1";
        payment.execute(change, &[&from, &-cents]).await?;
        payment.execute(change, &[&to, &cents]).await?;
        payment.commit().await?;
        Ok(())
    }
}
