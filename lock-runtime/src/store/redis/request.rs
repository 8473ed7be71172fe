//! One command, or one script, as it goes over whichever connection.

use redis::{Cmd, FromRedisValue, RedisError, Value};

use super::connection::Connected;
use super::errors;
use super::scripts::Text;

/// What is sent. It can be sent again, to another server.
pub(super) struct Request {
    action: Action,
    /// Subscribed to before it is sent.
    channel: Option<String>,
}

enum Action {
    Command(Cmd),
    /// With its arguments.
    Script(&'static Text, Cmd),
}

impl Request {
    pub(super) fn command(command: Cmd) -> Self {
        Self {
            action: Action::Command(command),
            channel: None,
        }
    }

    pub(super) fn script(script: &'static Text, arguments: impl FnOnce(&mut Cmd)) -> Self {
        let mut given = Cmd::new();
        arguments(&mut given);
        Self {
            action: Action::Script(script, given),
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
            Action::Script(script, arguments) => {
                let form = script.form(up.is_sharded());
                match send(up, &form.by_hash(arguments), asking).await {
                    Err(error) if errors::is_no_script(&error) => {
                        send(up, &form.by_text(arguments), asking).await
                    }
                    reply => reply,
                }
            }
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
