//! The guarded resource: it checks fencing tokens, on a server without faults.

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError};

use crate::RedisServer;
use crate::history::Access;

/// As the documentation shows for a database: each read and write stores its token. An access with
/// an older token is refused with -1.
const ACCESS: &str = "
local at, key, token, base, check = ARGV[1], KEYS[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local last = tonumber(redis.call('HGET', key, 'token') or '0')
local version = tonumber(redis.call('HGET', key, 'version') or '0')
if check == '1' and token < last then
  redis.call('INCR', '%refused')
  return -1
end
redis.call('HSET', key, 'token', string.format('%.0f', math.max(last, token)))
if base ~= '-' then redis.call('HINCRBY', key, 'version', 1) end
redis.call('RPUSH', '%log', at .. ' ' .. key .. ' ' .. ARGV[2] .. ' ' .. base .. ' ' .. version)
return version
";

/// A worker's connection to the guarded resource.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    connection: MultiplexedConnection,
    checks: bool,
}

impl Resource {
    pub(super) async fn connect(url: &str, checks: bool) -> Result<Self, RedisError> {
        let connection = Client::open(url)?
            .get_multiplexed_async_connection()
            .await?;
        Ok(Self { connection, checks })
    }

    /// The present version, or `None` for an older token.
    pub(super) async fn read(&self, at: u64, key: &str, token: u64) -> Option<u64> {
        self.access(at, key, token, "-").await
    }

    /// Overwrites the version that was read.
    pub(super) async fn write(&self, at: u64, key: &str, token: u64, base: u64) -> Option<u64> {
        self.access(at, key, token, &base.to_string()).await
    }

    async fn access(&self, at: u64, key: &str, token: u64, base: &str) -> Option<u64> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("EVAL");
        command.arg(ACCESS).arg(1).arg(key).arg(at);
        command.arg(token).arg(base).arg(u8::from(self.checks));
        // Without a reply, the sender does not know the outcome; the resource's own log does.
        let reply: i64 = command.query_async(&mut connection).await.unwrap_or(-1);
        u64::try_from(reply).ok()
    }
}

/// Every accepted access, in order, and the number of refused ones.
pub(super) async fn accesses(server: &RedisServer) -> (Vec<Access>, u64) {
    let lines: Vec<String> = server.query(&["LRANGE", "%log", "0", "-1"]).await;
    let accesses = lines.iter().map(|line| {
        line.parse()
            .unwrap_or_else(|()| panic!("the resource's log has {line:?}"))
    });
    (accesses.collect(), refused(server).await)
}

/// The number of accesses refused so far.
pub(super) async fn refused(server: &RedisServer) -> u64 {
    let refused: Option<u64> = server.query(&["GET", "%refused"]).await;
    refused.unwrap_or(0)
}
