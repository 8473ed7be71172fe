//! [`Request`]: one command, or one script, whichever connection it goes over.

use lock_store::Instant;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};

use super::connected::Connected;
use super::pipeline;
use crate::errors;
use crate::scripts::Form;

/// What the script of one lock takes.
const USUAL_ARGUMENTS: usize = 16;
const USUAL_BYTES: usize = 384;

/// What is sent. It can be sent again, to another server.
pub(crate) struct Request {
    action: Action,
    /// Subscribed to before it is sent.
    channel: Option<String>,
    /// Sent in one piece with it. The reply is then a pair.
    behind: Option<Cmd>,
    /// It can be sent in parts, so it does not wait for its keys to be in one place.
    divisible: bool,
    is_repeated: bool,
    patience: Option<Instant>,
}

enum Action {
    Command(Cmd),
    /// As it is sent to a server that knows the script.
    Script(&'static Form, Cmd),
}

impl Request {
    pub(crate) fn command(command: Cmd) -> Self {
        Self {
            action: Action::Command(command),
            channel: None,
            behind: None,
            divisible: false,
            is_repeated: false,
            patience: None,
        }
    }

    pub(crate) fn script(script: &'static Form, arguments: impl FnOnce(&mut Cmd)) -> Self {
        let mut by_hash = Cmd::with_capacity(USUAL_ARGUMENTS, USUAL_BYTES);
        by_hash.arg("EVALSHA").arg(script.hash());
        arguments(&mut by_hash);
        Self {
            action: Action::Script(script, by_hash),
            channel: None,
            behind: None,
            divisible: false,
            is_repeated: false,
            patience: None,
        }
    }

    /// With another command behind it, in one piece. The replies come as a pair.
    pub(crate) fn followed_by(self, behind: Cmd) -> Self {
        let behind = Some(behind);
        Self { behind, ..self }
    }

    /// Its sender listens on this channel from then on.
    pub(crate) fn listening(self, channel: Option<String>) -> Self {
        Self { channel, ..self }
    }

    /// If its keys lie apart, that is told at once, and its sender sends parts of it.
    pub(crate) fn divisible(self) -> Self {
        Self {
            divisible: true,
            ..self
        }
    }

    /// Its sender sends it again if it is not answered, so that it need not wait for a connection
    /// that was replaced.
    pub(crate) fn repeated(self) -> Self {
        Self {
            is_repeated: true,
            ..self
        }
    }

    /// If the server is slow but answers, its sender waits until then.
    pub(crate) fn patient(self, until: Option<Instant>) -> Self {
        let patience = until;
        Self { patience, ..self }
    }

    /// How long its sender waits for a server that is slow but answers.
    pub(crate) fn patience(&self) -> Option<Instant> {
        self.patience
    }

    pub(crate) fn is_divisible(&self) -> bool {
        self.divisible
    }

    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Whether its answer takes time for other reasons than the way to the server: a `WAIT` behind
    /// it blocks its connection, and no other.
    pub(crate) fn blocks(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether messages are heard over the connection that it goes over.
    pub(crate) fn listens(&self) -> bool {
        self.channel.is_some()
    }

    /// The command for a server that knows the script.
    pub(crate) fn by_hash(&self) -> Cmd {
        let (Action::Command(command) | Action::Script(_, command)) = &self.action;
        command.clone()
    }

    /// The command for a server that may not know the script.
    pub(crate) fn by_text(&self) -> Cmd {
        match &self.action {
            Action::Command(command) => command.clone(),
            Action::Script(script, by_hash) => script.by_text(by_hash),
        }
    }

    /// Sends it. `asking` announces it to the node of a cluster that is about to get the slot.
    pub(crate) async fn run(&self, up: &Connected, asking: bool) -> Result<Value, RedisError> {
        let connection = &mut up.connection.clone();
        if let Some(channel) = &self.channel {
            let subscribe = up.subscriptions.subscribe(connection, channel, asking);
            // Boxed, like everything rare here: every command has room for the largest of what it
            // may wait for.
            Box::pin(subscribe).await?;
        }
        match &self.action {
            Action::Command(command) => self.send(connection, command, asking).await,
            Action::Script(script, by_hash) => match self.send(connection, by_hash, asking).await {
                Err(error) if errors::is_no_script(&error) => {
                    let by_text = script.by_text(by_hash);
                    Box::pin(self.send(connection, &by_text, asking)).await
                }
                reply => reply,
            },
        }
    }

    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        command: &Cmd,
        asking: bool,
    ) -> Result<Value, RedisError> {
        let Some(behind) = &self.behind else {
            return pipeline::send(connection, command, asking).await;
        };
        let both = pipeline::send_together(connection, command, asking, Some(behind));
        let (reply, last) = Box::pin(both).await?;
        Ok(Value::Array(vec![reply, last]))
    }
}
