//! [`Connected`]: a connection that is up.

use std::sync::Arc;

use lock_store::{Instant, Link};
use redis::Client;

use super::subscribe::Subscriptions;
use crate::resp::{Driver, RespConnection};
use crate::topology::address::name_of;

/// The connection of one link; commands of one request over it are carried out in order.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) link: Link,
    pub(crate) connection: RespConnection,
    /// Runs as long as anybody has this.
    pub(crate) _driver: Arc<Driver>,
    /// When it was made.
    pub(crate) since: Instant,
    /// Makes another connection to the same server.
    pub(crate) client: Arc<Client>,
    /// To a server of a quorum: from when on its answers count there.
    pub(crate) counts_from: Option<Instant>,
    pub(crate) subscriptions: Arc<Subscriptions>,
}

impl Connected {
    /// The server's address, for messages.
    pub(crate) fn address(&self) -> String {
        name_of(self.client.get_connection_info())
    }
}
