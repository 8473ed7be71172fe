//! The script that tells which commands the user may run, and commands that it may not.

use redis::{Cmd, FromRedisValue, RedisError, Value};

use crate::errors;
use crate::scripts;
use crate::transport::connected::Connected;

/// Which of some commands the user may run.
pub(crate) struct Rights<'c> {
    commands: &'c [&'c str],
    /// 0 is no. Empty if that can't be known without trying.
    replies: Vec<i64>,
}

impl<'c> Rights<'c> {
    /// Asks for commands with their arguments.
    pub(crate) async fn to(up: &Connected, commands: &'c [&'c str]) -> Result<Self, RedisError> {
        let form = scripts::RIGHTS.form(false);
        let mut by_hash = redis::cmd("EVALSHA");
        by_hash.arg(form.hash()).arg(0).arg(commands);
        let replies = if_allowed(up, true, &form.by_text(&by_hash)).await?;
        let replies = replies.unwrap_or_default();
        Ok(Self { commands, replies })
    }

    /// False if the user may not run this one of the commands.
    pub(crate) fn allow(&self, command: &str) -> bool {
        let mut answers = self.commands.iter().zip(&self.replies);
        !answers.any(|(one, reply)| *one == command && *reply == 0)
    }
}

/// The reply to a command, unless the user may not run it. `None` if the server refuses it. An
/// error if there is no answer, or none for now.
pub(crate) async fn if_allowed<T: FromRedisValue>(
    up: &Connected,
    may: bool,
    command: &Cmd,
) -> Result<Option<T>, RedisError> {
    if !may {
        return Ok(None);
    }
    match command
        .query_async::<Value>(&mut up.connection.clone())
        .await
    {
        Ok(value) => Ok(T::from_redis_value(value).ok()),
        Err(error) if error.code().is_some() && !errors::kind(&error).is_transient() => Ok(None),
        Err(error) => Err(error),
    }
}
