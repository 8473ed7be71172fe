//! Checks which commands the user may run, and runs commands that may be refused.

use redis::{FromRedisValue, RedisError, Value};

use crate::errors;
use crate::resp::Command;
use crate::scripts;
use crate::transport::connected::Connected;

/// The user's permissions for some commands.
pub(crate) struct Rights<'c> {
    commands: &'c [&'c str],
    /// 0 means no. Empty if only trying can tell.
    replies: Vec<i64>,
}

impl<'c> Rights<'c> {
    /// Asks about commands with their arguments.
    pub(crate) async fn to(up: &Connected, commands: &'c [&'c str]) -> Result<Self, RedisError> {
        let form = scripts::RIGHTS.form(false);
        let mut by_hash = form.call();
        by_hash.arg(0).arg(commands);
        let replies = if_allowed(up, true, &form.by_text(&by_hash)).await?;
        let replies = replies.unwrap_or_default();
        Ok(Self { commands, replies })
    }

    /// False if the user may not run this command, which must be one of those asked about.
    pub(crate) fn allow(&self, command: &str) -> bool {
        let mut answers = self.commands.iter().zip(&self.replies);
        !answers.any(|(one, reply)| *one == command && *reply == 0)
    }
}

/// The reply to a command, if the user may run it. `None` if the server refuses it. An error if
/// there is no answer, or a temporary error.
pub(crate) async fn if_allowed<T: FromRedisValue>(
    up: &Connected,
    may: bool,
    command: &Command,
) -> Result<Option<T>, RedisError> {
    if !may {
        return Ok(None);
    }
    match up.connection.query::<Value>(command).await {
        Ok(value) => Ok(T::from_redis_value(value).ok()),
        Err(error) if error.code().is_some() && !errors::kind(&error).is_transient() => Ok(None),
        Err(error) => Err(error),
    }
}
