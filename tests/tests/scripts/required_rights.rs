//! What a new connection tries: the commands of each layout's locks, and which of them fail.

use lock_store::Layout;

use super::{Done, Stage};

/// What is asked about first.
const BY_HASH: &str = "may EVALSHA c 0";
/// What is tried for each layout. An empty argument is shown as nothing: two spaces, or one at the
/// end.
const COMMON: [&str; 4] = ["GET k", "SET k  XX PX 1", "DEL k", "PUBLISH c "];

/// What else is tried for a layout, and what is only asked about, since it would make a key.
struct Needed {
    layout: Layout,
    tried: &'static [&'static str],
    asked: &'static [&'static str],
}

const ALL: [Needed; 4] = [
    Needed {
        layout: Layout::Native,
        tried: &[
            "TIME",
            "PTTL k",
            "PEXPIRE k 1",
            "ZADD k XX 1 ",
            "ZREM k ",
            "ZRANGE k 0 0",
            "ZSCORE k ",
            "ZCOUNT k 0 0",
            "ZRANGEBYSCORE k 0 0",
            "PUBSUB NUMSUB c",
        ],
        asked: &[],
    },
    Needed {
        layout: Layout::ShedLock,
        tried: &["PTTL k", "PEXPIRE k 1", "TYPE k"],
        asked: &[],
    },
    Needed {
        layout: Layout::Timestamp,
        tried: &["TIME", "PEXPIRE k 1", "TYPE k"],
        asked: &[],
    },
    Needed {
        layout: Layout::Redisson,
        tried: &[
            "TIME",
            "PTTL k",
            "PEXPIRE k 1",
            "TYPE k",
            "EXISTS k",
            "HLEN k",
            "HSCAN k 0",
            "HGET k ",
            "HEXISTS k ",
            "HGETALL k",
            "HDEL k ",
            "LINDEX k 0",
            "LLEN k",
            "LRANGE k 0 0",
            "LREM k 0 ",
            "LPOP k",
            "ZADD k XX 1 ",
            "ZREM k ",
            "ZSCORE k ",
            "ZCARD k",
            "PUBSUB NUMSUB c",
        ],
        asked: &[
            "may HSET k  ",
            "may RPUSH k ",
            "may ZINCRBY k 0 ",
            "may INCR k",
            "may UNSUBSCRIBE",
        ],
    },
];

/// What `redis.acl_check_cmd` does.
const MAY_NOT: &str = "return false";
const UNKNOWN: &str = "error()";
const BEFORE_REDIS_7: &str = "";

impl Needed {
    fn all_tried(&self) -> Vec<&'static str> {
        [&COMMON, self.tried].concat()
    }
}

impl Stage {
    async fn tries(&mut self, layout: Layout) -> Done {
        let arguments = ["c", layout.as_str()];
        let done = self.run("REQUIRED_RIGHTS", &["k"], arguments).await;
        assert_eq!(self.command("DBSIZE").await, "0", "{layout}: {done:?}");
        done
    }
}

/// As the user's rights have it: with both words for a command that has two.
fn name(command: &str) -> &str {
    let command = command.trim_start_matches("may ");
    match command {
        "PUBSUB NUMSUB c" => "PUBSUB NUMSUB",
        _ => command.split(' ').next().unwrap(),
    }
}

#[tokio::test]
async fn each_layout_tries_its_own_commands_and_makes_no_key() {
    let mut stage = Stage::new().await;
    for needed in ALL {
        stage.asked = MAY_NOT;
        let done = stage.tries(needed.layout).await;
        let all = [&[BY_HASH], &COMMON[..], needed.tried, needed.asked].concat();
        assert_eq!(done.sent, all, "{}", needed.layout);
        assert_eq!(done.reply, "[1]", "{}", needed.layout);
        stage.asked = BEFORE_REDIS_7;
        let done = stage.tries(needed.layout).await;
        assert_eq!(done.sent, needed.all_tried(), "{}", needed.layout);
        assert_eq!(done.reply, "[0]", "{}", needed.layout);
    }
}

#[tokio::test]
async fn each_command_that_fails_is_told_with_what_is_said_of_it() {
    let mut stage = Stage::new().await;
    let may_not = "NOPERM no permissions to run the command";
    for needed in ALL {
        let tried = needed.all_tried();
        for (commands, asked, by_hash, said) in [
            (&*tried, MAY_NOT, 1, "NOPERM"),
            (&*tried, BEFORE_REDIS_7, 0, "NOPERM"),
            (needed.asked, MAY_NOT, 1, may_not),
            (needed.asked, UNKNOWN, 1, "ERR unknown command"),
        ] {
            stage.asked = asked;
            for command in commands {
                stage.refused = command;
                let done = stage.tries(needed.layout).await;
                let told = format!("[{by_hash}, {}, {said}]", name(command));
                assert_eq!(done.reply, told, "{}: {command}", needed.layout);
            }
        }
    }
}

#[tokio::test]
async fn a_script_may_be_sent_by_its_hash_only_if_the_server_says_so() {
    let mut stage = Stage::new().await;
    stage.refused = BY_HASH;
    for asked in [MAY_NOT, UNKNOWN] {
        stage.asked = asked;
        assert_eq!(stage.tries(Layout::Native).await.reply, "[0]", "{asked}");
    }
}
