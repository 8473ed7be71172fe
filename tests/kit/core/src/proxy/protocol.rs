//! What clients and the server speak.

use crate::postgres_wire::PostgresRequests;
use crate::resp::{CompleteRequest, RequestParser};
use crate::zookeeper_wire::ZooKeeperRequests;

/// What passes through a proxy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Protocol {
    Redis,
    Postgres,
    ZooKeeper,
    /// Whose requests are not read.
    Other,
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) enum Requests {
    Redis(RequestParser),
    Postgres(PostgresRequests),
    ZooKeeper(ZooKeeperRequests),
    Other,
}

impl Protocol {
    pub(super) fn requests(self) -> Requests {
        match self {
            Self::Redis => Requests::Redis(RequestParser::default()),
            Self::Postgres => Requests::Postgres(PostgresRequests::default()),
            Self::ZooKeeper => Requests::ZooKeeper(ZooKeeperRequests::default()),
            Self::Other => Requests::Other,
        }
    }
}

impl Requests {
    /// Reads a chunk. Returns the requests that are complete at its end.
    pub(super) fn read(&mut self, chunk: &[u8]) -> Vec<CompleteRequest> {
        match self {
            Self::Redis(requests) => requests.read(chunk),
            Self::Postgres(requests) => requests.read(chunk),
            Self::ZooKeeper(requests) => requests.read(chunk),
            Self::Other => Vec::new(),
        }
    }
}
