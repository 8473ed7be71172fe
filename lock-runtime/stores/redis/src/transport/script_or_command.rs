//! [`Request`]: one command, or one script, whichever connection it goes over.

use lock_store::Instant;
use redis::{RedisError, Value};

use super::connected::Connected;
use crate::errors;
use crate::resp::{Command, Limits};
use crate::scripts::Form;

/// What is sent. It can be sent again, to another server.
pub(crate) struct Request {
    action: Action,
    /// Subscribed to before it is sent.
    channel: Option<String>,
    /// Sent in one piece with it. The reply is then a pair.
    behind: Option<Box<Command>>,
    /// It can be sent in parts, so it does not wait for its keys to be in one place.
    divisible: bool,
    is_repeated: bool,
    patience: Option<Instant>,
}

enum Action {
    Command(Command),
    /// As it is sent to a server that knows the script.
    Script(&'static Form, Command),
}

impl Request {
    pub(crate) fn command(command: Command) -> Self {
        Self::of(Action::Command(command))
    }

    pub(crate) fn script(script: &'static Form, arguments: impl FnOnce(&mut Command)) -> Self {
        let mut by_hash = script.call();
        arguments(&mut by_hash);
        Self::of(Action::Script(script, by_hash))
    }

    fn of(action: Action) -> Self {
        Self {
            action,
            channel: None,
            behind: None,
            divisible: false,
            is_repeated: false,
            patience: None,
        }
    }

    /// With another command behind it, in one piece. The replies come as a pair.
    pub(crate) fn followed_by(self, behind: Command) -> Self {
        let behind = Some(Box::new(behind));
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

    /// The command for a server that knows the script.
    pub(crate) fn by_hash(&self) -> &Command {
        let (Action::Command(command) | Action::Script(_, command)) = &self.action;
        command
    }

    /// The command for a server that may not know the script.
    pub(crate) fn by_text(&self) -> Command {
        match &self.action {
            Action::Command(command) => command.clone(),
            Action::Script(script, by_hash) => script.by_text(by_hash),
        }
    }

    /// Sends it. `asking` announces it to the node of a cluster that is about to get the slot.
    pub(crate) async fn run(
        &self,
        up: &Connected,
        asking: bool,
        limits: &Limits,
    ) -> Result<Value, RedisError> {
        if let Some(channel) = &self.channel
            && !up.subscriptions.use_if_heard(channel)
        {
            let subscribe =
                up.subscriptions
                    .subscribe(&up.connection, channel, asking, Some(*limits));
            Box::pin(subscribe).await?;
        }
        let by_hash = self.by_hash();
        let reply = match &self.behind {
            None => up.connection.send(by_hash, asking, Some(limits)).await,
            Some(behind) => Box::pin(send_both(up, by_hash, behind, asking, limits)).await,
        };
        match reply {
            // Another lock's key may have refused a merged call. One by text is not merged.
            Err(error)
                if self.is_script()
                    && (errors::is_no_script(&error)
                        || by_hash.may_be_merged() && errors::is_about_keys(&error)) =>
            {
                Box::pin(self.run_by_text(up, asking, limits)).await
            }
            reply => reply,
        }
    }

    fn is_script(&self) -> bool {
        matches!(self.action, Action::Script(..))
    }

    async fn run_by_text(
        &self,
        up: &Connected,
        asking: bool,
        limits: &Limits,
    ) -> Result<Value, RedisError> {
        let by_text = self.by_text();
        match &self.behind {
            None => up.connection.send(&by_text, asking, Some(limits)).await,
            Some(behind) => send_both(up, &by_text, behind, asking, limits).await,
        }
    }
}

/// Sends two commands in one piece. Their replies come as a pair.
async fn send_both(
    up: &Connected,
    command: &Command,
    behind: &Command,
    asking: bool,
    limits: &Limits,
) -> Result<Value, RedisError> {
    let both = [command, behind];
    let both = up.connection.send_together(&both, asking, Some(limits));
    let both: Result<Vec<Value>, _> = both.await?.into_iter().collect();
    both.map(Value::Array)
}
