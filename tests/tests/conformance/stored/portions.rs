//! Many waiters that can have their turn at once get it in portions: a script stops the whole
//! server.

use lock_store::Permits;
use lock_testkit::Backend;

use super::{LOCK, QUEUE, Stored};
use crate::verbs::{LEASE, owner};

crate::on_one_server!(readers_that_can_all_have_their_turn_get_it_in_portions);

const READERS: u64 = 1200;

async fn readers_that_can_all_have_their_turn_get_it_in_portions(backend: Backend) {
    let stored = Stored::on(backend);
    let (first, writer) = (owner(0, 1), owner(0, 2));
    let (read, write) = (Some(Permits::READ), Some(Permits::WRITE));
    // From now on the server knows the scripts.
    stored.takes(first, write).await;
    stored.frees(first, write).await;
    stored.abandons(first, write).await;
    for ends in ["the release of a writer", "a waiting writer gives up"] {
        let is_release = ends.contains("release");
        let holds = if is_release { write } else { read };
        // Also on a machine that takes long to write down who waits.
        stored.takes_for(first, holds, 60 * LEASE).await;
        if !is_release {
            stored.queues(writer, write, 0).await;
        }
        for number in 0..READERS {
            stored.queues(owner(0, 100 + number), read, 0).await;
        }
        // However long that took, the client runs.
        stored.queues(owner(0, 100), read, 0).await;
        let before = stored.server().command_calls("evalsha").await;
        if is_release {
            stored.frees(first, holds).await;
        } else {
            stored.abandons(writer, write).await;
        }
        let scripts = stored.server().command_calls("evalsha").await - before;
        assert_eq!(scripts, 3, "{ends}: 500 at a time");
        assert_eq!(stored.number(&format!("EXISTS {QUEUE}")).await, 0, "{ends}");
        let used = stored.number(&format!("ZSCORE {LOCK} used")).await;
        let others = if is_release { 0 } else { 1 };
        assert_eq!(used, -i64::try_from(READERS + others).unwrap(), "{ends}");
        stored.command("FLUSHALL").await;
    }
}
