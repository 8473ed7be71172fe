//! One of the replicas: it sends mails as long as it leads.

use std::error::Error;
use std::fmt::Display;
use std::io::{Write, sink, stdin, stdout};
use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockError};

use crate::args::{Args, URL_VARIABLE};
use crate::line::{Line, What};

/// Short, so that the example does not take long. A service leaves the 30 s of the default: nobody
/// else leads before they are over if the leader dies, and no shorter outage ends a term.
const LEASE: Duration = Duration::from_secs(2);
/// How long a mail takes.
const A_MAIL: Duration = Duration::from_millis(50);

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let usage = "`replica` is what the example starts its own processes with";
    let url = std::env::var(URL_VARIABLE).map_err(|_| lock_examples::usage::<Args>(usage))?;
    let client = LockClient::builder()
        .url(url)
        .lease(LEASE)
        .connect()
        .await?;
    let on_shutdown = client.clone();
    tokio::spawn(async move {
        // The parent says nothing. When this input ends, the parent has finished, or is gone.
        let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut stdin(), &mut sink())).await;
        on_shutdown.shutdown(Duration::from_secs(1)).await;
    });
    match send_mails(&client).await {
        Err(LockError::Shutdown) => Ok(()),
        ended => Ok(ended?),
    }
}

/// Sends mails whenever this process leads, until the shutdown.
async fn send_mails(client: &LockClient) -> Result<(), LockError> {
    let mailer = client.lock("leader:mailer").fenced();
    mailer
        .lead(async |term: &Guard| {
            // It rises with each term. Who takes the mails refuses those of an earlier term.
            let token = term.fencing_token().map_or(0, u64::from);
            tell(Line::now(What::Began, token));
            let _ended = Ended(token);
            loop {
                tell(Line::now(What::Mail, token));
                tokio::select! {
                    () = term.closing() => return, // The mail is sent: a good moment to end.
                    () = tokio::time::sleep(A_MAIL) => {}
                }
            }
        })
        .await
}

/// Says that the body has ended or was stopped.
struct Ended(u64);

impl Drop for Ended {
    fn drop(&mut self) {
        tell(Line::now(What::Ended, self.0));
    }
}

fn tell(line: impl Display) {
    // If the parent is gone, stdin shows it.
    let _ = writeln!(stdout(), "{line}");
}
