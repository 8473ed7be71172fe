//! [`Connected`]: a connection that is up.

use std::sync::Arc;

use lock_store::{Instant, Link};
use redis::Client;
use redis::aio::MultiplexedConnection;

use super::subscribe::Subscriptions;
use crate::topology::address::name_of;
use crate::topology::driver::Driver;
use crate::topology::traffic::{Mark, Traffic};

/// The connection of one link; commands over it are carried out in order.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) link: Link,
    pub(crate) connection: MultiplexedConnection,
    /// Runs as long as anybody has this. `None` if the redis crate takes care of it.
    pub(crate) driver: Option<Arc<Driver>>,
    /// When it was made.
    pub(crate) since: Instant,
    /// Makes another connection to the same server.
    pub(crate) client: Arc<Client>,
    /// To a server of a quorum: from when on its answers count there.
    pub(crate) counts_from: Option<Instant>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) traffic: Arc<Traffic>,
}

impl Connected {
    /// Marks the point before a request is sent.
    pub(crate) fn mark(&self) -> Mark {
        let mark = self.traffic.mark();
        if self.driver.is_none() {
            // Nobody counts there when it writes. It writes at once.
            self.traffic.wrote();
        }
        mark
    }

    /// The server's address, for messages.
    pub(crate) fn address(&self) -> String {
        name_of(self.client.get_connection_info())
    }
}
