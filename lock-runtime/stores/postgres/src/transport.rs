//! [`Transport`]: a connection in plain or over TLS, and what comes over it.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Socket};
#[cfg(feature = "tls")]
use tokio_postgres_rustls::MakeRustlsConnect;

#[cfg(feature = "tls")]
pub(crate) use lock_store::Tls as Certificates;
#[cfg(not(feature = "tls"))]
pub(crate) use std::convert::Infallible as Certificates;

/// How connections are made.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Tls(MakeRustlsConnect),
}

lock_store::show!(Transport);

type Polled = Poll<Option<Result<AsyncMessage, Error>>>;

/// What the server says on its own. Polled, it carries the bytes of a connection.
pub(crate) struct SessionMessages(Box<dyn FnMut(&mut Context<'_>) -> Polled + Send>);

impl SessionMessages {
    /// The next one. `None` at the end of the connection. That is also where a commit was made to
    /// wait no longer for its standby: whatever takes over may not have it, so nobody may take it
    /// for done.
    pub(crate) async fn next(&mut self) -> Option<AsyncMessage> {
        let message = poll_fn(|cx| (self.0)(cx)).await?.ok()?;
        if is_of_unconfirmed_commit(&message) {
            tracing::warn!(
                "PostgreSQL was made to wait no longer for the standby of a commit: it is not \
                 taken for done, and its connection ends"
            );
            return None;
        }
        Some(message)
    }
}

/// The server warns in its own language, and names the place in its source.
fn is_of_unconfirmed_commit(message: &AsyncMessage) -> bool {
    matches!(message, AsyncMessage::Notice(said) if said.routine() == Some("SyncRepWaitForLSN"))
}

impl Transport {
    pub(crate) async fn connect(
        &self,
        config: &Config,
    ) -> Result<(Client, SessionMessages), Error> {
        match self {
            Self::Plain => over(config, NoTls).await,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => over(config, tls.clone()).await,
        }
    }
}

async fn over<T>(config: &Config, tls: T) -> Result<(Client, SessionMessages), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, mut connection) = config.connect(tls).await?;
    let messages = SessionMessages(Box::new(move |cx| connection.poll_message(cx)));
    Ok((client, messages))
}
