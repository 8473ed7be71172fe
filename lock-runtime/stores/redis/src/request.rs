//! One command, or one script, as it goes over whichever connection.

use redis::{Cmd, FromRedisValue, RedisError, Value};

use super::connection::Connected;
use super::scripts::Form;
use super::{errors, millis};
use crate::config::Replicas;

/// What the script of one lock takes.
const USUAL_ARGUMENTS: usize = 16;
const USUAL_BYTES: usize = 384;

/// What is sent. It can be sent again, to another server.
pub(super) struct Request {
    action: Action,
    /// Subscribed to before it is sent.
    channel: Option<String>,
    /// How many replicas are to have it before the reply.
    replicas: Option<Replicas>,
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
            replicas: None,
        }
    }

    pub(super) fn script(script: &'static Form, arguments: impl FnOnce(&mut Cmd)) -> Self {
        let mut by_hash = Cmd::with_capacity(USUAL_ARGUMENTS, USUAL_BYTES);
        by_hash.arg("EVALSHA").arg(script.hash());
        arguments(&mut by_hash);
        Self {
            action: Action::Script(script, by_hash),
            channel: None,
            replicas: None,
        }
    }

    /// With the reply comes how many replicas have what it wrote: as a pair.
    pub(super) fn confirmed_by(self, replicas: Replicas) -> Self {
        Self {
            replicas: Some(replicas),
            ..self
        }
    }

    /// Who sends it listens on this channel from then on.
    pub(super) fn listening(self, channel: Option<String>) -> Self {
        Self { channel, ..self }
    }

    /// Whether messages are heard over the connection that it goes over.
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
            // Boxed, like everything rare here: every command has room for the largest of what it may wait for.
            Box::pin(up.subscribe(channel, asking)).await?;
        }
        match &self.action {
            Action::Command(command) => self.send(up, command, asking).await,
            Action::Script(script, by_hash) => match self.send(up, by_hash, asking).await {
                Err(error) if errors::is_no_script(&error) => {
                    self.send(up, &script.by_text(by_hash), asking).await
                }
                reply => reply,
            },
        }
    }

    async fn send<T: FromRedisValue>(
        &self,
        up: &mut Connected,
        command: &Cmd,
        asking: bool,
    ) -> Result<T, RedisError> {
        let Some(replicas) = self.replicas else {
            return send(up, command, asking).await;
        };
        let all = together(up, command, asking, Some(wait(replicas)));
        let (reply, confirmed) = Box::pin(all).await?;
        Ok(T::from_redis_value(Value::Array(vec![reply, confirmed]))?)
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
    let (reply, _) = Box::pin(together(up, command, asking, None)).await?;
    Ok(T::from_redis_value(reply)?)
}

/// Sends several of them and one `WAIT` behind them in one piece. What each replied, and how many replicas have it all.
pub(super) async fn confirmed_together(
    up: &mut Connected,
    requests: &[Request],
    replicas: Replicas,
) -> Result<(Vec<Result<Value, RedisError>>, u32), RedisError> {
    let mut by_text = false;
    loop {
        let mut all = redis::pipe();
        for (at, request) in requests.iter().enumerate() {
            all.add_command(match &request.action {
                // Those behind the first are known by then, if they are the same.
                Action::Script(script, by_hash) if by_text && at == 0 => script.by_text(by_hash),
                Action::Script(_, command) | Action::Command(command) => command.clone(),
            });
        }
        all.add_command(wait(replicas)).ignore_errors();
        let mut replies: Vec<Result<Value, RedisError>> =
            all.query_async(&mut up.connection).await?;
        let is_missing =
            |reply: &Result<_, RedisError>| reply.as_ref().is_err_and(errors::is_no_script);
        if !by_text && replies.iter().any(is_missing) {
            by_text = true;
            continue;
        }
        let confirmed = replies.pop().unwrap_or(Ok(Value::Nil))?;
        return Ok((replies, u32::from_redis_value(confirmed)?));
    }
}

fn wait(replicas: Replicas) -> Cmd {
    let mut wait = redis::cmd("WAIT");
    wait.arg(replicas.count).arg(millis(replicas.timeout));
    wait
}

/// Sends a command and what belongs before and after it in one piece: `ASKING` counts for the next command of the
/// connection, whoever sends that, and `WAIT` for those before it. The replies of the command and of the last one.
async fn together(
    up: &mut Connected,
    command: &Cmd,
    asking: bool,
    after: Option<Cmd>,
) -> Result<(Value, Value), RedisError> {
    let mut all = redis::pipe();
    if asking {
        all.cmd("ASKING").ignore();
    }
    all.add_command(command.clone());
    if let Some(after) = after {
        all.add_command(after);
    }
    all.ignore_errors();
    let replies: Vec<Result<Value, RedisError>> = all.query_async(&mut up.connection).await?;
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
    Ok((next()?, next()?))
}
