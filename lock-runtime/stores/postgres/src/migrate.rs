//! The migration is applied.

use std::cmp::Ordering;

use lock_store::{Clock, StoreError};
use tokio_postgres::Client;

use crate::connection::drive;
use crate::errors::of_migration;
use crate::greeting::Greeting;
use crate::route::Route;

/// Applies it over a session of its own. A user who may not is told so only if there is something
/// to do.
pub(crate) async fn migrate(route: &Route, clock: &Clock) -> Result<(), StoreError> {
    let greet = async |session| {
        let (client, open, server) = drive(session, clock);
        Greeting::of(&client, &server).await?;
        Ok((client, open, server))
    };
    let (client, _open, server) = route.connect(clock, greet, || ()).await?;
    let Err(error) = client.batch_execute(crate::MIGRATION).await else {
        return Ok(());
    };
    match is_applied(&client, &server).await {
        true => Ok(()),
        false => Err(of_migration(&error, &server)),
    }
}

/// Whether the functions are of a later version, or are of this one and all there, and may be used.
/// Runs nothing that is there: a stranger may have made it.
async fn is_applied(client: &Client, server: &str) -> bool {
    // The migration begins a transaction.
    let _ = client.batch_execute("ROLLBACK").await;
    let found = "SELECT p.prosrc FROM pg_catalog.pg_proc p \
                 JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
                 WHERE n.nspname = 'lock_store' AND p.proname = 'version' AND p.pronargs = 0 \
                     AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
                     AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')";
    let rows = client.query_typed(found, &[]).await;
    let source: Option<String> = rows.ok().and_then(|rows| rows.first()?.try_get(0).ok());
    let version = source.and_then(|source| source.trim().strip_prefix("SELECT ")?.parse().ok());
    let greeting = Greeting::of(client, server).await;
    let is_complete = greeting.is_ok_and(|greeting| greeting.expect_complete(server).is_ok());
    version.is_some_and(|version: i32| match version.cmp(&crate::VERSION) {
        Ordering::Greater => true,
        Ordering::Equal => is_complete,
        Ordering::Less => false,
    })
}
