//! `INFO`: what a server reports about itself, line by line.

use redis::{FromRedisValue, ParsingError, RedisError, Value};

use crate::resp::{Command, RespConnection};

/// The reply to `INFO`.
pub(crate) struct Info(String);

impl Info {
    /// Requests one section.
    pub(super) async fn section(
        connection: &RespConnection,
        section: &str,
    ) -> Result<Self, RedisError> {
        connection.query(Self::command().arg(section)).await
    }

    /// The command for the default sections.
    pub(crate) fn command() -> Command {
        Command::new("INFO")
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    /// True if a field has this value.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.field(name) == Some(value)
    }
}

impl FromRedisValue for Info {
    fn from_redis_value(reply: Value) -> Result<Self, ParsingError> {
        String::from_redis_value(reply).map(Self)
    }
}

#[cfg(test)]
impl From<&str> for Info {
    fn from(reply: &str) -> Self {
        Self(reply.to_owned())
    }
}
