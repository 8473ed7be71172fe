//! One command, alone or in one piece with what belongs before and behind it.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};

/// Sends one command. `asking` announces it to the node of a cluster that is about to get the slot.
pub(crate) async fn send(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
    asking: bool,
) -> Result<Value, RedisError> {
    if !asking {
        return command.query_async(connection).await;
    }
    // Boxed, like everything rare here: every command has room for the largest of what it may wait
    // for.
    let (reply, _) = Box::pin(send_together(connection, command, asking, None)).await?;
    Ok(reply)
}

/// Sends a command in one piece with what belongs before and behind it: `ASKING` counts for the
/// next command of the connection, from whichever task that is, and `WAIT` for those before it. The
/// replies of the command and of the last one.
pub(crate) async fn send_together(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
    asking: bool,
    behind: Option<&Cmd>,
) -> Result<(Value, Value), RedisError> {
    let mut all = redis::pipe();
    if asking {
        all.cmd("ASKING").ignore();
    }
    all.add_command(command.clone());
    if let Some(behind) = behind {
        all.add_command(behind.clone());
    }
    all.ignore_errors();
    let replies: Vec<Result<Value, RedisError>> = all.query_async(connection).await?;
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
    Ok((next()?, next()?))
}

/// Sends one command for each argument, in one piece. The first error of the server, if any.
pub(crate) async fn send_all(
    connection: &mut MultiplexedConnection,
    command: &str,
    arguments: &[String],
) -> Result<(), RedisError> {
    if arguments.is_empty() {
        return Ok(());
    }
    let mut all = redis::pipe();
    for argument in arguments {
        all.cmd(command).arg(argument);
    }
    all.ignore_errors();
    let replies: Vec<Result<Value, RedisError>> = all.query_async(connection).await?;
    replies
        .into_iter()
        .find_map(Result::err)
        .map_or(Ok(()), Err)
}
