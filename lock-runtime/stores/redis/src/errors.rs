//! What a Redis error means: is it temporary, was the command carried out, what to tell the user.

use lock_store::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};

use crate::server_text::without_secrets;

/// The kind of an error reply or of a broken connection.
///
/// The code may be anywhere in the text: before Redis 7, an error inside a script came wrapped in
/// another.
pub(crate) fn kind(error: &RedisError) -> StoreErrorKind {
    use StoreErrorKind as Kind;
    if error.is_timeout() {
        return Kind::Timeout;
    }
    if error.is_io_error() || error.is_connection_dropped() || error.is_connection_refusal() {
        return Kind::Disconnected;
    }
    if is_redirect(error) {
        return Kind::Misconfigured;
    }
    kind_of(&text(error))
}

fn kind_of(text: &str) -> StoreErrorKind {
    use StoreErrorKind as Kind;
    // Whole words only: an error may repeat a key, which can contain anything.
    let has = |codes: &[&str]| {
        text.split(|c: char| !c.is_ascii_uppercase())
            .any(|word| codes.contains(&word))
    };
    let says = |texts: &[&str]| texts.iter().any(|part| text.contains(part));
    if has(&["NOAUTH", "WRONGPASS", "NOPERM"]) || is_denied(text) {
        Kind::Denied
    } else if has(&["LOCKVERSION"]) {
        Kind::OtherVersion
    } else if has(&["OOM"]) || says(&["'maxmemory'"]) {
        Kind::OutOfMemory
    } else if has(&["READONLY", "MISCONF", "NOREPLICAS"]) || has_become_replica(text) {
        Kind::ReadOnly
    } else if has(&["LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN"])
        || says(&["max number of clients", WRITES_WHILE_DOWN])
    {
        Kind::Loading
    } else {
        Kind::Refused
    }
}

/// What a script's first write is told where a cluster that is down may be read
/// (`cluster-allow-reads-when-down`).
const WRITES_WHILE_DOWN: &str = "while the cluster is down";

/// True if the text says that the user lacks a right, or is another one, where not every server
/// puts a code before it: in a script, and before Redis 6.
fn is_denied(text: &str) -> bool {
    const TEXTS: [&str; 7] = [
        "invalid password",
        "invalid username-password",
        "has no permissions",
        "ACL failure in script",
        "can't run this command",
        "can't access",
        "can't publish",
    ];
    TEXTS.iter().any(|part| text.contains(part))
}

/// What a command can't be run without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The right to the command.
    Right,
    /// The right to the key.
    Key,
    /// The right to the channel.
    Channel,
    /// The command itself.
    Command,
    /// The server's leave, where hosts and proxies forbid commands to everybody.
    Leave,
}

/// What is missing, if the server's words to a command say so: something that waiting does not
/// mend.
pub(crate) fn missing(said: &str) -> Option<Missing> {
    if kind_of(said).is_transient() {
        return None;
    }
    let said_low = said.to_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|part| said_low.contains(part));
    if said.contains("NOPERM") || is_denied(said) {
        // A user's name may be any of these words, and has no spaces.
        return Some(if says(&["to run the", "run this command"]) {
            Missing::Right
        } else if says(&[" channel"]) {
            Missing::Channel
        } else if says(&["access a key", "access the", "one of the keys"]) {
            Missing::Key
        } else {
            Missing::Right
        });
    }
    if says(&["unknown"]) && says(&["command"]) {
        return Some(Missing::Command);
    }
    let forbidden = [
        "not allowed",
        "not available",
        "not support",
        "unsupported",
        "disabled",
        "undeclared key",
        "bad lua script",
    ];
    (says(&["command", "script"]) && says(&forbidden)).then_some(Missing::Leave)
}

/// True if what came is no reply, or one that is too long. It ended the connection.
pub(crate) fn is_unreadable(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Io && error.detail().is_some()
}

/// True if the server is a replica: another server may be the master by now.
pub(crate) fn is_replica(error: &RedisError) -> bool {
    let text = text(error);
    text.contains("READONLY") || has_become_replica(&text)
}

/// What a master says of a `WAIT` when it is made a replica, and of each later one.
fn has_become_replica(text: &str) -> bool {
    text.contains("UNBLOCKED force unblock") || text.contains("cannot be used with replica")
}

/// True if the keys of a lock are moving from one node of a cluster to another.
pub(crate) fn is_try_again(error: &RedisError) -> bool {
    error.code() == Some("TRYAGAIN")
}

/// True if another node of a cluster has the keys, or several have. A client of a cluster follows
/// that. To another client it says what its server is, whatever `HELLO` says.
pub(crate) fn is_redirect(error: &RedisError) -> bool {
    matches!(error.code(), Some("MOVED" | "ASK" | "CROSSSLOT"))
}

/// True if the server refused a command because of one of its keys, before it did anything.
pub(crate) fn is_about_keys(error: &RedisError) -> bool {
    is_redirect(error) || error.code() == Some("NOPERM") && !may_have_acted(error)
}

/// The error if a redirect could not be followed in time.
pub(crate) fn moving(error: &RedisError) -> StoreError {
    StoreError::new(StoreErrorKind::Loading, without_secrets(&text(error)))
}

/// The error if a URL is for another kind of Redis than the one that answers.
pub(crate) fn other_kind(is: &str, instead: &str) -> StoreError {
    let text = format!("it is {is}; the URL for it is {instead}");
    StoreError::new(StoreErrorKind::Misconfigured, text)
}

/// The error if a node of a cluster answers a URL for another kind of Redis.
pub(crate) fn cluster_node() -> StoreError {
    let instead = "`redis-cluster://host:port,…` (its nodes)";
    other_kind("a node of a Redis Cluster", instead)
}

/// The error if a server without slots answers a URL for a cluster.
pub(crate) fn no_cluster_node() -> StoreError {
    other_kind("a server of its own", "`redis://host:port`")
}

/// True if the command may be carried out later, or soon elsewhere.
pub(crate) fn is_passing(error: &RedisError) -> bool {
    error.code() == Some("ASK") || kind(error).is_transient()
}

/// True if the cluster, or its part for this slot, is down.
pub(crate) fn is_cluster_down(error: &RedisError) -> bool {
    error.code() == Some("CLUSTERDOWN") || text(error).contains(WRITES_WHILE_DOWN)
}

/// True if a key of ours holds another type.
pub(crate) fn is_wrong_type(error: &RedisError) -> bool {
    text(error).contains("WRONGTYPE")
}

/// True if the server does not know the script, so that its text must be sent.
pub(crate) fn is_no_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

/// True if a script may have changed something before it failed with this reply. The server checks
/// some codes before it starts a command: then nothing was changed.
pub(crate) fn may_have_acted(error: &RedisError) -> bool {
    matches!(
        kind(error),
        StoreErrorKind::Refused | StoreErrorKind::Timeout | StoreErrorKind::Disconnected
    ) || ["can't run this command", "ACL failure in script"]
        .iter()
        .any(|denied| text(error).contains(denied))
}

pub(crate) fn store_error(error: &RedisError) -> StoreError {
    if is_redirect(error) {
        return cluster_node().of(&without_secrets(&text(error)));
    }
    advised(StoreError::new(kind(error), without_secrets(&text(error))))
}

/// What to do, in Redis's terms.
pub(crate) fn advised(error: StoreError) -> StoreError {
    match error.kind() {
        StoreErrorKind::OutOfMemory => error.advise("raise `maxmemory` or free some"),
        StoreErrorKind::ReadOnly => {
            error.advise("connect to the master, and check its replicas and persistence errors")
        }
        StoreErrorKind::Loading if error.detail().contains("max number of clients") => {
            error.advise("raise `maxclients`, or close connections")
        }
        StoreErrorKind::Denied => {
            error.advise("check user, password and the ACL rule (`~ns:* &ns:*`)")
        }
        _ => error,
    }
}

/// The reply to every call on a client that was shut down.
pub(crate) fn shut_down() -> StoreError {
    StoreError::new(StoreErrorKind::Refused, "the client was shut down")
}

/// The error if a server does not answer a question about itself.
pub(crate) fn no_self_description() -> StoreError {
    let text = "it does not answer questions about itself";
    StoreError::new(StoreErrorKind::Timeout, text)
}

/// Code and detail in the server's own words, to tell errors apart. They may repeat anything, so
/// errors and logs use [`without_secrets`] instead.
pub(crate) fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        (None, Some(why)) if is_unreadable(error) => why.to_owned(),
        (None, _) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As users of hosted servers and of other engines report them.
    #[test]
    fn the_words_of_servers_and_hosts_say_what_is_missing() {
        use Missing::{Channel, Command, Key, Leave, Right};
        for (said, expected) in [
            (
                "NOPERM this user has no permissions to run the 'evalsha' command",
                Right,
            ),
            (
                "NOPERM User app has no permissions to run the 'time' command",
                Right,
            ),
            (
                "NOPERM User channel-7 has no permissions to run the 'time' command",
                Right,
            ),
            ("NOPERM No permissions to access a key", Key),
            ("ACL failure in script: No permissions to access a key", Key),
            (
                "ERR The user executing the script can't access at least one of the keys",
                Key,
            ),
            ("NOPERM No permissions to access a channel", Channel),
            (
                "ERR The user executing the script can't publish to the channel",
                Channel,
            ),
            (
                "ERR unknown command 'TIME', with args beginning with:",
                Command,
            ),
            ("ERR Unknown Redis command called from script", Command),
            (
                "ERR unknown subcommand 'SHARDNUMSUB'. Try PUBSUB HELP.",
                Command,
            ),
            ("ERR This Redis command is not allowed from scripts", Leave),
            ("ERR This Valkey command is not allowed from script", Leave),
            ("ERR command eval not support for normal user", Leave),
            ("ERR command eval not support for your account", Leave),
            ("ERR Command is not available: 'EVAL'", Leave),
            (
                "ERR bad lua script for redis cluster, all the keys …",
                Leave,
            ),
            ("ERR script tried accessing undeclared key, key: k", Leave),
            (
                "ERR Write commands not allowed after non deterministic commands",
                Leave,
            ),
        ] {
            assert_eq!(missing(said), Some(expected), "{said}");
        }
    }

    #[test]
    fn a_server_that_has_become_a_replica_says_so_of_each_wait() {
        for said in [
            "UNBLOCKED force unblock from blocking operation, instance state changed",
            "ERR WAIT cannot be used with replica instances.",
        ] {
            assert_eq!(kind_of(said), StoreErrorKind::ReadOnly, "{said}");
        }
        assert_eq!(kind_of("ERR replica instances"), StoreErrorKind::Refused);
    }

    #[test]
    fn a_cluster_that_is_down_says_so_to_scripts_as_well() {
        for said in [
            "CLUSTERDOWN The cluster is down",
            "ERR Script attempted to execute a write command while the cluster is down and \
             readonly",
        ] {
            assert_eq!(kind_of(said), StoreErrorKind::Loading, "{said}");
        }
    }

    #[test]
    fn what_passes_says_that_nothing_is_missing() {
        for passes in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR command not allowed when used memory > 'maxmemory'.",
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
            "NOREPLICAS Not enough good replicas to write.",
            "MISCONF Redis is configured to save RDB snapshots, commands are disabled",
            "BUSY Redis is busy running a script.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "CLUSTERDOWN The cluster is down",
            "NOSCRIPT No matching script. Please use EVAL.",
            "ERR max number of clients reached",
        ] {
            assert_eq!(missing(passes), None, "{passes}");
        }
    }
}
