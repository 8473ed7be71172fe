//! [`keep_authenticated`]: renews credentials that end, over the connection that is up, so that it
//! loses nothing.

use std::future::pending;

use lock_store::timing::backoff;
use lock_store::{Instant, MIN_PAUSE, StoreError, StoreErrorKind};

use crate::commands::required_rights::Tried;
use crate::connection_login::{Asking, user_of};
use crate::context::ClientContext;
use crate::errors;
use crate::resp::{Command, RespConnection};

/// Authenticates a connection anew before its credentials end, as long as this is polled. Returns
/// why the user that it then has, who may be another one, can't use locks.
pub(crate) async fn keep_authenticated(
    connection: RespConnection,
    context: &ClientContext,
    mut renew_at: Option<Instant>,
    server: &str,
    tried: Option<Tried<'_>>,
) -> StoreError {
    let (Some(asking), clock) = (context.asking(), &context.clock) else {
        return pending().await;
    };
    let mut failures = 0;
    loop {
        let Some(at) = renew_at else {
            return pending().await;
        };
        clock.sleep_until(at).await;
        let limit = context.timeouts.connect + context.timeouts.command;
        let renewed = authenticate(&connection, asking);
        let renewed = clock.by(clock.now() + limit, renewed).await;
        let renewed = renewed.unwrap_or_else(|| {
            let text = format!(
                "the credentials provider does not answer in {limit:?} (`connect_timeout` and \
                 `command_timeout`)"
            );
            Err(StoreError::new(StoreErrorKind::Timeout, text))
        });
        match renewed {
            Ok(again) => {
                tracing::debug!(%server, "authenticated anew at the lock store");
                (failures, renew_at) = (0, again);
                if let Some(tried) = &tried
                    && let Err(error) = tried.ensure().await
                    && !error.kind().is_transient()
                {
                    return error;
                }
            }
            Err(error) => {
                failures += 1;
                if failures == 1 {
                    tracing::warn!(
                        %error, %server,
                        "the credentials at the lock store end soon and could not be renewed; \
                         it is tried again until they could"
                    );
                }
                renew_at = Some(clock.now() + backoff(failures).max(MIN_PAUSE));
            }
        }
    }
}

async fn authenticate(
    connection: &RespConnection,
    Asking { provider, clock }: Asking<'_>,
) -> Result<Option<Instant>, StoreError> {
    let (credentials, again) = provider.ask(clock).await?;
    let (username, password) = user_of(&credentials);
    let mut auth = Command::new("AUTH");
    auth.arg(username).arg(password);
    let reply = connection.query::<()>(&auth).await;
    reply.map_err(|error| errors::store_error(&error))?;
    Ok(again)
}
