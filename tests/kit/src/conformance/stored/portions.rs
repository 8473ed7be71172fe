//! Many waiters whose turn comes at once are served in portions, because a script stops the whole
//! server.

use std::ops::Range;
use std::time::Duration;

use crate::Backend;
use lock_store::{Acquired, Permits, Queue};

use super::{LOCK, QUEUE, Stored, request};
use crate::conformance::verbs::owner;

crate::conformance::on_one_server!(readers_that_can_all_have_their_turn_get_it_in_portions);

const READERS: u64 = 1200;
/// How many permits a read-write lock has.
const WRITE: u32 = Permits::WRITE.of;

async fn readers_that_can_all_have_their_turn_get_it_in_portions(backend: Backend) {
    let stored = Stored::settled(backend).await;
    let (first, writer) = (owner(0, 1), owner(0, 2));
    let (read, write) = (Some(Permits::READ), Some(Permits::WRITE));
    // From now on the server knows the scripts.
    stored.take(first, write).await;
    stored.free(first, write).await;
    stored.abandon(first, write).await;
    for ends in ["the release of a writer", "a waiting writer gives up"] {
        let is_release = ends.contains("release");
        let holds = if is_release { write } else { read };
        stored.take(first, holds).await;
        if !is_release {
            stored.queue(writer, write, 0).await;
        }
        // All at once: a writer that does not look for two seconds would be suspended.
        stored.queue_readers(100..100 + READERS).await;
        stored.queue(owner(0, 100), read, 0).await;
        let before = stored.server().command_calls("evalsha").await;
        if is_release {
            stored.free(first, holds).await;
        } else {
            stored.abandon(writer, write).await;
        }
        let scripts = stored.server().command_calls("evalsha").await - before;
        assert_eq!(scripts, 3, "{ends}: 500 at a time");
        assert_eq!(stored.number(&format!("EXISTS {QUEUE}")).await, 0, "{ends}");
        let used = stored.number(&format!("ZSCORE {LOCK} used")).await;
        let others = if is_release { 0 } else { 1 };
        assert_eq!(used, -i64::try_from(READERS + others).unwrap(), "{ends}");
        stored.command("FLUSHALL").await;
    }
    // A request that finds the key free serves them too, and is told to come again at once.
    stored.take(first, write).await;
    stored.queue_readers(100..100 + READERS).await;
    stored.queue(owner(0, 100), read, 0).await;
    stored.command(&format!("DEL {LOCK}")).await;
    let reply = stored.ask(request(writer, write, Queue::Respect)).await;
    let at_once = Acquired::busy(Some(Duration::ZERO), false);
    assert_eq!(reply, at_once);
    let used = stored.number(&format!("ZSCORE {LOCK} used")).await;
    assert_eq!(used, -500);
    // The first of them asks: it is served at its own place, and all behind it are.
    stored.command("FLUSHALL").await;
    stored.take(first, write).await;
    stored.queue_readers(100..100 + READERS).await;
    stored.command(&format!("DEL {LOCK}")).await;
    let before = stored.server().command_calls("evalsha").await;
    let mut reader = request(owner(0, 100), read, Queue::Join);
    (reader.first_lease, reader.wait) = (Duration::from_secs(2), None);
    let reply = stored.ask(reader).await;
    assert!(matches!(reply, Acquired::Granted(_)), "{reply:?}");
    let scripts = stored.server().command_calls("evalsha").await - before;
    assert_eq!(scripts, 3);
    let used = stored.number(&format!("ZSCORE {LOCK} used")).await;
    assert_eq!(used, -i64::try_from(READERS).unwrap());
}

impl Stored {
    /// Takes places for these requests of the first client, in one script.
    async fn queue_readers(&self, requests: Range<u64>) {
        let places = requests
            .map(|number| format!("{}:2000:0:0:1:{WRITE}", owner(0, number)))
            .collect::<Vec<_>>();
        let script = "local time = redis.call('TIME')
            for i = 1, #ARGV do
              redis.call('ZADD', KEYS[1], time[1] * 1000000 + time[2] + i, ARGV[i])
            end
            return redis.call('PEXPIRE', KEYS[1], 60000)";
        let mut words = vec!["EVAL", script, "1", QUEUE];
        words.extend(places.iter().map(String::as_str));
        self.server().command(&words).await;
    }
}
