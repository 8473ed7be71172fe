//! The inventory: one number that can be read and written, and nothing cleverer. The lock keeps it
//! right.

use std::sync::atomic::{AtomicU32, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Client, ConnectionAddr, RedisError};

/// An interrupted sale leaves its number behind. This time to live removes it.
const FORGOTTEN_AFTER_SECONDS: u32 = 60 * 60;

#[derive(Debug)]
pub(crate) enum Inventory {
    /// A number in this process.
    Memory(AtomicU32),
    /// A number in a Redis that all processes use.
    Redis {
        connection: MultiplexedConnection,
        key: String,
    },
}

/// The inventory can't be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the inventory in Redis can't be used: {0}; check that it runs and takes writes")]
pub(crate) struct InventoryError(#[from] RedisError);

impl Inventory {
    pub(crate) fn in_memory(items: u32) -> Self {
        Self::Memory(AtomicU32::new(items))
    }

    /// Connects to the number of this product. Writes nothing yet.
    pub(crate) async fn in_redis(url: &str, product_id: u64) -> Result<Self, InventoryError> {
        let connection = Client::open(url)?
            .get_multiplexed_async_connection()
            .await?;
        Ok(Self::Redis {
            connection,
            key: format!("flash_sale:left:{product_id}"),
        })
    }

    pub(crate) async fn read(&self) -> Result<u32, InventoryError> {
        match self {
            Self::Memory(left) => Ok(left.load(Ordering::SeqCst)),
            Self::Redis { connection, key } => Ok(redis::cmd("GET")
                .arg(key)
                .query_async(&mut connection.clone())
                .await?),
        }
    }

    pub(crate) async fn write(&self, left: u32) -> Result<(), InventoryError> {
        match self {
            Self::Memory(number) => number.store(left, Ordering::SeqCst),
            Self::Redis { connection, key } => {
                redis::cmd("SET")
                    .arg(key)
                    .arg(left)
                    .arg("EX")
                    .arg(FORGOTTEN_AFTER_SECONDS)
                    .exec_async(&mut connection.clone())
                    .await?;
            }
        }
        Ok(())
    }

    /// Removes the number after the sale.
    pub(crate) async fn remove(&self) -> Result<(), InventoryError> {
        match self {
            Self::Memory(_) => {}
            Self::Redis { connection, key } => {
                redis::cmd("DEL")
                    .arg(key)
                    .exec_async(&mut connection.clone())
                    .await?;
            }
        }
        Ok(())
    }
}

/// Where a Redis is, without user and password.
pub(crate) fn address(url: &str) -> Option<ConnectionAddr> {
    let client = Client::open(url).ok()?;
    Some(client.get_connection_info().addr().clone())
}
