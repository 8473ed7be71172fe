//! The Lua scripts. `transport/script_or_command.rs` sends one by hash, and by text to a server
//! that does not know it.

use std::sync::LazyLock;

use redis::Script;

use crate::resp::Command;

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $($file:literal),+;)+) => {
        $($(#[$doc])* pub(crate) static $name: LazyLock<Text> =
            LazyLock::new(|| {
                Text::new(&[$(source($file, include_str!(concat!("commands/", $file)))),+].concat())
            });)+
    };
}

/// What a script's file says.
///
/// Tests may bring broken scripts, to see that they are found out, without a build for each: a file
/// in the folder named by `LOCK_SCRIPTS` takes the place of the text that is built in. If it
/// can't be read, the text is that error, which the server refuses to compile. Redisson's are
/// never broken.
#[cfg(feature = "__internals")]
fn source(file: &str, built_in: &'static str) -> std::borrow::Cow<'static, str> {
    match std::env::var_os("LOCK_SCRIPTS") {
        None => built_in.into(),
        Some(_) if file.contains("/redisson/") => built_in.into(),
        Some(folder) => std::fs::read_to_string(
            std::path::Path::new(&folder).join(file.trim_start_matches("../")),
        )
        .unwrap_or_else(|error| format!("{file} in LOCK_SCRIPTS: {error}"))
        .into(),
    }
}

#[cfg(not(feature = "__internals"))]
fn source(_: &str, built_in: &'static str) -> &'static str {
    built_in
}

scripts! {
    ACQUIRE = "acquire_first.lua", "denied.lua", "tokens.lua", "version.lua", "lib.lua",
        "acquire.lua";
    ACQUIRE_ALL = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "acquire_all.lua";
    RELEASE = "release_first.lua", "denied.lua", "tokens.lua", "version.lua", "lib.lua",
        "release.lua";
    LEAVE_FREE = "denied.lua", "leave_free.lua";
    ABANDON = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "abandon.lua";
    SHRINK = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "shrink.lua";
    FORCE_RELEASE = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "force_release.lua";
    FENCE = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "fence.lua";
    INSPECT = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "inspect.lua";
    HOLDERS = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "holders.lua";
    RENEW = "denied.lua", "renew.lua";
    QUORUM_TAKE = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "quorum_take.lua";
    QUORUM_CONFIRM = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "quorum_confirm.lua";
    QUORUM_END = "denied.lua", "tokens.lua", "version.lua", "lib.lua", "quorum_end.lua";
    RATE = "version.lua", "rate.lua";
    LIMIT = "version.lua", "limit.lua";
    RIGHTS = "rights.lua";
    REQUIRED_RIGHTS = "required_rights.lua";
    LATCH_SET = "version.lua", "latch.lua", "latch_set.lua";
    LATCH_COUNT_DOWN = "version.lua", "latch.lua", "latch_count_down.lua";
    LATCH_LOOK = "version.lua", "latch.lua", "latch_look.lua";
    REDISSON_LOCK = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/lock.lua";
    REDISSON_LOCK_FIRST = "../layouts/redisson/lock_first.lua";
    REDISSON_RELEASE = "denied.lua",
        "../layouts/redisson/release_first.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/release.lua";
    REDISSON_READ_WRITE = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/read_write.lua";
    REDISSON_READ_WRITE_END = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/read_write_end.lua";
    REDISSON_PERMITS = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/permits.lua";
    REDISSON_PERMITS_END = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/permits_end.lua";
    REDISSON_RENEW = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/renew.lua";
    REDISSON_FENCE = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/fence.lua";
    REDISSON_INSPECT = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/inspect.lua";
    REDISSON_FORCE_RELEASE = "denied.lua",
        "../layouts/redisson/lib.lua",
        "../layouts/redisson/force_release.lua";
    SHEDLOCK = "denied.lua", "../layouts/shedlock.lua";
    TIMESTAMP = "denied.lua", "../layouts/timestamp.lua";
}

/// A script, for one server and for the nodes of a cluster.
pub(crate) struct Text {
    plain: Form,
    sharded: Form,
}

/// A script's text, and how a call begins that names it by its SHA-1.
pub(crate) struct Form {
    code: String,
    call: Command,
}

impl Text {
    fn new(code: &str) -> Self {
        // In a cluster, a plain message would go to every node.
        let sharded = code
            .replace("'PUBLISH'", "'SPUBLISH'")
            .replace("'NUMSUB'", "'SHARDNUMSUB'")
            .replace("'UNSUBSCRIBE'", "'SUNSUBSCRIBE'");
        Self {
            plain: Form::new(code),
            sharded: Form::new(&sharded),
        }
    }

    pub(crate) fn form(&self, sharded: bool) -> &Form {
        if sharded { &self.sharded } else { &self.plain }
    }
}

impl Form {
    fn new(code: &str) -> Self {
        let mut call = Command::new("EVALSHA");
        call.arg(Script::new(code).get_hash());
        Self {
            code: code.to_owned(),
            call,
        }
    }

    /// The command without its keys.
    pub(crate) fn call(&self) -> Command {
        Command::begin_like(&self.call)
    }

    /// The command with the script's text instead of its hash.
    pub(crate) fn by_text(&self, by_hash: &Command) -> Command {
        let mut command = Command::new("EVAL");
        command.arg(&self.code).with_rest_of(by_hash, 2);
        command
    }
}
