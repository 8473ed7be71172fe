//! The Lua scripts, each sent once by text and then by hash.

use std::sync::LazyLock;

use redis::Script;

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $($file:literal),+;)+) => {
        $($(#[$doc])* pub(super) static $name: LazyLock<Text> =
            LazyLock::new(|| Text::new(concat!($(include_str!(concat!("scripts/", $file))),+)));)+
    };
}

scripts! {
    ACQUIRE = "lib.lua", "acquire.lua";
    ACQUIRE_ALL = "lib.lua", "acquire_all.lua";
    RELEASE = "lib.lua", "release.lua";
    ABANDON = "lib.lua", "abandon.lua";
    SHRINK = "lib.lua", "shrink.lua";
    RESIZE = "lib.lua", "resize.lua";
    FORCE_RELEASE = "lib.lua", "force_release.lua";
    FENCE = "lib.lua", "fence.lua";
    INSPECT = "lib.lua", "inspect.lua";
    RENEW = "renew.lua";
    RATE = "rate.lua";
    LATCH_SET = "latch.lua", "latch_set.lua";
    LATCH_COUNT_DOWN = "latch.lua", "latch_count_down.lua";
    LATCH_LOOK = "latch.lua", "latch_look.lua";
}

/// A script's text and its SHA-1, by which the server knows it.
pub(super) struct Text {
    pub(super) code: &'static str,
    pub(super) hash: String,
}

impl Text {
    fn new(code: &'static str) -> Self {
        Self {
            code,
            hash: Script::new(code).get_hash().to_owned(),
        }
    }
}
