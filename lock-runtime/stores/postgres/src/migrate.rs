//! The migration is applied.

use lock_store::{Clock, StoreError};
use tokio_postgres::Client;

use crate::connection::{drive, expect_writable};
use crate::errors::of_migration;
use crate::route::Route;

/// Applies it over a session of its own. A user who may not is told so only if there is something
/// to do.
pub(crate) async fn migrate(route: &Route, clock: &Clock) -> Result<(), StoreError> {
    let greet = async |session| {
        let (client, open, server) = drive(session, clock);
        expect_writable(&client, &server).await?;
        Ok((client, open, server))
    };
    let (client, _open, server) = route.connect(clock, greet).await?;
    let Err(error) = client.batch_execute(crate::MIGRATION).await else {
        return Ok(());
    };
    match is_applied(&client).await {
        true => Ok(()),
        false => Err(of_migration(&error, &server)),
    }
}

/// Whether the functions are there, are of this version, and may be used.
async fn is_applied(client: &Client) -> bool {
    // The migration begins a transaction.
    let _ = client.batch_execute("ROLLBACK").await;
    let rows = client.query_typed("SELECT lock_store.version()", &[]).await;
    let version = rows.ok().and_then(|rows| rows.first()?.try_get(0).ok());
    version == Some(crate::VERSION)
}
