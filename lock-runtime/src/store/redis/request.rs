//! One command, or one script, as it goes over whichever connection.

use std::fmt::Display;

use redis::{Cmd, FromRedisValue, RedisError, RedisWrite, ToRedisArgs, Value};

use super::connection::Connected;
use super::errors;
use super::scripts::Form;

/// What the script of one lock takes.
const USUAL_ARGUMENTS: usize = 16;
const USUAL_BYTES: usize = 384;

/// An argument that is written down as it is shown.
pub(super) struct Shown<T>(pub(super) T);

impl<T: Display> ToRedisArgs for Shown<T> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg_fmt(&self.0);
    }
}

/// What is sent. It can be sent again, to another server.
pub(super) struct Request {
    action: Action,
    /// Subscribed to before it is sent.
    channel: Option<String>,
}

enum Action {
    Command(Cmd),
    /// As it is sent to a server that knows the script.
    Script(&'static Form, Cmd),
}

impl Request {
    pub(super) fn command(command: Cmd) -> Self {
        Self {
            action: Action::Command(command),
            channel: None,
        }
    }

    pub(super) fn script(script: &'static Form, arguments: impl FnOnce(&mut Cmd)) -> Self {
        let mut by_hash = Cmd::with_capacity(USUAL_ARGUMENTS, USUAL_BYTES);
        by_hash.arg("EVALSHA").arg(script.hash());
        arguments(&mut by_hash);
        Self {
            action: Action::Script(script, by_hash),
            channel: None,
        }
    }

    /// Who sends it listens on this channel from then on.
    pub(super) fn listening(self, channel: Option<String>) -> Self {
        Self { channel, ..self }
    }

    /// Whether it must go over the connection on which messages are heard.
    pub(super) fn listens(&self) -> bool {
        self.channel.is_some()
    }

    /// `asking` is what a node that is to get the slot wants to hear first.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        up: &mut Connected,
        asking: bool,
    ) -> Result<T, RedisError> {
        if let Some(channel) = &self.channel {
            up.subscribe(channel, asking).await?;
        }
        match &self.action {
            Action::Command(command) => send(up, command, asking).await,
            Action::Script(script, by_hash) => match send(up, by_hash, asking).await {
                Err(error) if errors::is_no_script(&error) => {
                    send(up, &script.by_text(by_hash), asking).await
                }
                reply => reply,
            },
        }
    }
}

/// Sends one command.
pub(super) async fn send<T: FromRedisValue>(
    up: &mut Connected,
    command: &Cmd,
    asking: bool,
) -> Result<T, RedisError> {
    if !asking {
        return command.query_async(&mut up.connection).await;
    }
    // In one piece: it counts for the next command of the connection, whoever sends that.
    let mut both = redis::pipe();
    both.cmd("ASKING").ignore();
    both.add_command(command.clone()).ignore_errors();
    let mut replies: Vec<Result<Value, RedisError>> = both.query_async(&mut up.connection).await?;
    let reply = replies.pop().unwrap_or(Ok(Value::Nil))?;
    Ok(T::from_redis_value(reply)?)
}
