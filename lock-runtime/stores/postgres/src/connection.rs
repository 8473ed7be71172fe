//! [`Connection`]: one session for commands.

use lock_store::{Clock, Instant, Link, Mutex, StoreError, StoreErrorKind};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, Row};

use crate::errors::of_postgres;

/// The version of the tables and functions.
const VERSION: i32 = 1;

/// A parameter and its type, so that no statement has to be prepared: poolers would lose it.
pub(crate) type Parameter<'p> = (&'p (dyn ToSql + Sync), Type);

/// A session for commands. Several may be under way; the server carries them out one by one.
pub(crate) struct Connection {
    client: Client,
    pub(crate) link: Link,
    signs: Mutex<Signs>,
}

/// When the server was heard, and asked after that.
struct Signs {
    heard: Instant,
    asked: Option<Instant>,
}

/// What the server says to a client that connects.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    /// Where this client listens.
    pub(crate) channel: String,
    /// The advisory lock of a session that listens.
    pub(crate) listens: i64,
}

impl Connection {
    pub(crate) fn new(client: Client, link: Link, now: Instant) -> Self {
        let signs = Mutex::new(Signs {
            heard: now,
            asked: None,
        });
        Self {
            client,
            link,
            signs,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Sends one statement, and returns its rows.
    pub(crate) async fn query(
        &self,
        clock: &Clock,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        let now = clock.now();
        self.signs.lock().asked.get_or_insert(now);
        let rows = self.client.query_typed(statement, parameters).await;
        let mut signs = self.signs.lock();
        signs.heard = clock.now();
        signs.asked = None;
        rows
    }

    /// For how long the server has not answered anything, of a command that was not answered.
    pub(crate) fn silent_since(&self) -> Instant {
        let signs = self.signs.lock();
        signs.asked.map_or(signs.heard, |asked| asked.max(signs.heard))
    }
}

/// Introduces the client, and checks that this version's functions are there.
pub(crate) async fn hello(
    session: &Client,
    client: &[u8],
    address: &str,
) -> Result<Hello, StoreError> {
    let said = session
        .query_typed(
            "SELECT o_version, o_channel, o_listens FROM lock_runtime.hello_v1($1)",
            &[(&client, Type::BYTEA)],
        )
        .await
        .map_err(|error| of_postgres(&error, address))?;
    let garbled = || StoreError::new(StoreErrorKind::Refused, "its greeting is garbled").of(address);
    let row = said.first().ok_or_else(garbled)?;
    let version: i32 = row.try_get(0).map_err(|_| garbled())?;
    if version != VERSION {
        let text = format!(
            "its tables and functions for locks are of version {version}, and this library needs \
             version {VERSION}"
        );
        let error = StoreError::new(StoreErrorKind::Misconfigured, text).of(address);
        return Err(error.advise("let this version of the library call `migrate`"));
    }
    Ok(Hello {
        channel: row.try_get(1).map_err(|_| garbled())?,
        listens: row.try_get(2).map_err(|_| garbled())?,
    })
}

/// With what each session needs: a name, and an end when the network is gone.
pub(crate) fn prepared(config: &Config, name: &str, connect: std::time::Duration) -> Config {
    const SILENCE: std::time::Duration = std::time::Duration::from_secs(10);
    let mut config = config.clone();
    if config.get_application_name().is_none() && !name.is_empty() {
        config.application_name(name);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(connect);
    }
    config.keepalives_idle(SILENCE);
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config
}
