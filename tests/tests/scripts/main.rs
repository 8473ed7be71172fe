//! What single scripts reply and send, at a time that the test sets: their boundaries, which a
//! server's own clock does not meet.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod boundaries;
mod free_and_holders;
mod latch;
mod limit;
mod queue;
mod quorum;
mod replies;
mod required_rights;
mod shedlock;
mod short_ways;
mod timestamp;
mod writes;

use lock_testkit::{LuaScripts, RedisServer};
use redis::Value;
use redis::aio::MultiplexedConnection;

/// Some time in 2027, in microseconds since 1970.
const NOW: u64 = 1_800_000_000_003_456;
/// Clients.
const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/// The keys of a lock: itself, its queue, its fence counter.
const KEYS: [&str; 3] = ["k", "q", "f"];
/// As in lib.lua.
const SUSPENDED: u64 = 3_000_000_000_000_000;
const HEARD: u64 = 6_000_000_000_000_000;

/// The owner of a client's request.
fn owner(client: &str) -> String {
    format!("{client}-1")
}

/// A server on which scripts meet the time, the TTL of keys and the rights that a test sets.
struct Stage {
    server: RedisServer,
    connection: MultiplexedConnection,
    scripts: LuaScripts,
    /// The time, in microseconds.
    now: u64,
    /// The reply to each `PTTL`, instead of the server's own.
    pttl: Option<i64>,
    /// The command that is refused: its name, or all of it.
    refused: &'static str,
    /// What `redis.acl_check_cmd` does if asked about that command, in Lua. Empty: there is no such
    /// function, as before Redis 7.
    asked: &'static str,
}

/// What a script has done.
#[derive(Debug)]
struct Done {
    reply: String,
    /// The commands that it sent, and those that it asked about: `may `, and the command.
    sent: Vec<String>,
}

impl Done {
    /// Whether a command begins so.
    fn has_sent(&self, beginning: &str) -> bool {
        !self.all(beginning).is_empty()
    }

    /// The commands that begin so.
    fn all(&self, beginning: &str) -> Vec<&str> {
        let sent = self.sent.iter().map(String::as_str);
        sent.filter(|sent| sent.starts_with(beginning)).collect()
    }
}

impl Stage {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        Self {
            connection: lock_testkit::patient_connection(&server.url()).await,
            server,
            scripts: LuaScripts::under_test(),
            now: NOW,
            pttl: None,
            refused: "",
            asked: "",
        }
    }

    /// A command, and the text of its reply.
    async fn command(&mut self, words: &str) -> String {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        text(&command.query_async(&mut self.connection).await.unwrap())
    }

    /// What the keys of a lock hold.
    async fn dump(&mut self) -> Vec<Value> {
        let mut all = redis::pipe();
        for key in KEYS {
            all.cmd("DUMP").arg(key);
        }
        all.query_async(&mut self.connection).await.unwrap()
    }

    /// Puts these into the queue, each with its score.
    async fn queue(&mut self, members: &[(u64, &str)]) {
        let mut command = redis::cmd("ZADD");
        command.arg("q");
        for (score, member) in members {
            command.arg(score).arg(member);
        }
        let () = command.query_async(&mut self.connection).await.unwrap();
    }

    /// Runs a script.
    async fn run<'a>(
        &mut self,
        script: &str,
        keys: &[&str],
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Done {
        let text_of = |pttl: i64| pttl.to_string();
        let surroundings = format!(
            "local server, sent = redis, {{}}
            local function is_refused(before, command, ...)
              local words = {{command, ...}}
              for i, word in ipairs(words) do
                if type(word) == 'number' then words[i] = string.format('%.17g', word) end
              end
              sent[#sent + 1] = before .. table.concat(words, ' ')
              return command == '{refused}' or sent[#sent] == '{refused}'
            end
            local function ask(how, command, ...)
              if is_refused('', command, ...) then
                if how == 'call' then error('NOPERM') end
                return {{err = 'NOPERM'}}
              end
              if command == 'TIME' then return {{'{}', '{}'}} end
              if command == 'PTTL' and {pttl} then return {pttl} end
              return server[how](command, ...)
            end
            local redis = {{
              error_reply = server.error_reply,
              call = function(...) return ask('call', ...) end,
              pcall = function(...) return ask('pcall', ...) end,
            }}
            if '{asked}' ~= '' then
              function redis.acl_check_cmd(...)
                if is_refused('may ', ...) then {asked} end
                return not server.acl_check_cmd or server.acl_check_cmd(...)
              end
            end
            local function script()
            {}
            end
            local ran, reply = pcall(script)
            if not ran and '{refused}' == '' then error(reply) end
            return {{type(reply) == 'table' and reply.err or reply or false, sent}}",
            self.now / 1_000_000,
            self.now % 1_000_000,
            self.scripts.script(script),
            pttl = self.pttl.map_or("false".to_owned(), text_of),
            refused = self.refused,
            asked = self.asked,
        );
        let mut command = redis::cmd("EVAL");
        command.arg(surroundings).arg(keys.len()).arg(keys);
        for argument in arguments {
            command.arg(argument);
        }
        let (reply, sent): (Value, Vec<String>) =
            command.query_async(&mut self.connection).await.unwrap();
        Done {
            reply: text(&reply),
            sent,
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(text).collect();
            format!("[{}]", values.join(", "))
        }
        other => panic!("{other:?}"),
    }
}
