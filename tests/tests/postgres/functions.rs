//! The functions, one call after the other, in situations that random commands seldom make.

use lock_testkit::{PostgresServer, eventually, postgres_has_standbys};
use tokio_postgres::{Client, Error, Row};

use crate::crowd::row_of_k;
use crate::first::DEADLINE;

const READ: &str = "1, 2147483647";
const WRITE: &str = "2147483647, 2147483647";
const ALONE: &str = "NULL, NULL";
const RESPECT: u8 = 1;
const JOIN: u8 = 2;

const BUSY: i32 = 0;
const GRANTED: i32 = 1;
const CONFLICT: i32 = 2;
const CHECKED: i32 = 3;

/// A client, and the number of its request.
type Owner = (u8, u8);

fn bytes((client, request): Owner) -> Vec<u8> {
    let mut owner = vec![client; 16];
    owner.extend([request; 8]);
    owner
}

fn sql(owner: Owner) -> String {
    let digits: String = bytes(owner)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("'\\x{digits}'::bytea")
}

/// What an `acquire` said.
#[derive(Debug)]
struct Said {
    code: i32,
    token: Option<i64>,
    remaining: Option<i64>,
    told: Vec<Vec<u8>>,
}

/// Whom a call told of a grant.
fn told(row: &Row) -> Vec<Vec<u8>> {
    let told: Option<Vec<Vec<u8>>> = row.get("told");
    told.unwrap_or_default()
}

struct Functions {
    server: PostgresServer,
    session: Client,
}

impl Functions {
    async fn new() -> Self {
        let server = PostgresServer::start().await;
        let session = server.session().await;
        Self { server, session }
    }

    async fn try_call(&self, call: &str) -> Result<Row, Error> {
        let call = format!("SELECT * FROM lock_store.{call}");
        self.session.query_one(&call, &[]).await
    }

    async fn call(&self, call: &str) -> Row {
        self.try_call(call).await.unwrap()
    }

    async fn run(&self, statement: &str) {
        self.session.batch_execute(statement).await.unwrap();
    }

    async fn try_acquire(
        &self,
        key: &str,
        owner: Owner,
        of: &str,
        tokens: u32,
        queue: u8,
    ) -> Result<Said, Error> {
        let call = format!(
            "acquire('lock:{key}', {}, {of}, 30000000, 30000000, NULL, {tokens}, {queue}, NULL,
                {DEADLINE})",
            sql(owner)
        );
        let row = self.try_call(&call).await?;
        Ok(Said {
            code: row.get("code"),
            token: row.get("token"),
            remaining: row.get("remaining"),
            told: told(&row),
        })
    }

    async fn acquire(&self, key: &str, owner: Owner, of: &str, queue: u8) -> Said {
        self.try_acquire(key, owner, of, 0, queue).await.unwrap()
    }

    /// The code alone.
    async fn code(&self, key: &str, owner: Owner, of: &str, queue: u8) -> i32 {
        self.acquire(key, owner, of, queue).await.code
    }

    /// The token of a hold.
    async fn fenced(&self, key: &str, owner: Owner, of: &str) -> i64 {
        let said = self.try_acquire(key, owner, of, 1, RESPECT).await.unwrap();
        assert_eq!(said.code, GRANTED, "{said:?}");
        said.token.unwrap()
    }

    /// Those who are told of a grant.
    async fn release(&self, key: &str, owner: Owner, of: &str) -> Vec<Vec<u8>> {
        let call = format!("release('lock:{key}', {}, {of}, 0)", sql(owner));
        let row = self.call(&call).await;
        assert!(row.get::<_, bool>("held"));
        told(&row)
    }

    /// The lease of this owner's hold ends.
    async fn end(&self, owner: Owner) {
        let owner = sql(owner);
        self.run(&format!(
            "UPDATE lock_store.hold SET ends = '-infinity' WHERE owner = {owner};
             UPDATE lock_store.share SET ends = '-infinity' WHERE owner = {owner}"
        ))
        .await;
    }

    /// The clients that wait were seen earlier by so many milliseconds, and suspended as well.
    async fn age(&self, millis: u32) {
        let by = format!("interval '{millis} milliseconds'");
        self.run(&format!(
            "UPDATE lock_store.place SET seen = seen - {by}, suspended = suspended - {by}"
        ))
        .await;
    }

    async fn waiting(&self, key: &str) -> i64 {
        let row = self.call(&format!("inspect('lock:{key}')")).await;
        row.get("waiting")
    }

    async fn sets_latch(&self, key: &str, owner: Owner) -> bool {
        let call = format!(
            "latch_set('lock:{key}', {}, 0, {DEADLINE}, 1, 60000000)",
            sql(owner)
        );
        let code: i32 = self.call(&call).await.get("code");
        assert!(code == GRANTED || code == CONFLICT, "{code}");
        code == GRANTED
    }

    /// All of these two keys: the code, the number of the key that it is about, and who is told.
    async fn acquire_both(&self, keys: [&str; 2]) -> (i32, i32, Vec<Vec<u8>>) {
        let [a, b] = keys.map(|key| format!("'lock:{key}'::bytea"));
        let [first, second] = [3, 4].map(|request| sql((1, request)));
        let call = format!(
            "acquire_all(ARRAY[{a}, {b}], ARRAY[{first}, {second}],
                ARRAY[30000000, 30000000]::bigint[], ARRAY[0, 0], ARRAY[true, true], {DEADLINE})"
        );
        let row = self.call(&call).await;
        (row.get("code"), row.get("at"), told(&row))
    }

    /// A session with an open transaction that has checked this token of the key.
    async fn checking(&self, key: &str, token: i64) -> Client {
        let session = self.server.session().await;
        let check = format!("BEGIN; SELECT lock_store.lock_check('lock:{key}', {token})");
        session.batch_execute(&check).await.unwrap();
        session
    }
}

#[tokio::test]
async fn the_token_of_a_hold_that_is_over_is_not_that_of_the_next_one() {
    let locks = Functions::new().await;
    let token = locks.fenced("k", (1, 1), ALONE).await;
    // Kept when it is asked for again without one.
    assert_eq!(locks.code("k", (1, 1), ALONE, RESPECT).await, GRANTED);
    let check = format!("lock_check('lock:k', {token})");
    locks.call(&check).await;
    locks.end((1, 1)).await;
    assert_eq!(locks.code("k", (2, 1), ALONE, RESPECT).await, GRANTED);
    assert!(locks.try_call(&check).await.is_err());
}

/// A clock was set back, and what was swept before is remembered by `floor`.
#[tokio::test]
async fn tokens_are_later_than_all_that_were_swept() {
    let locks = Functions::new().await;
    let floor = 4_000_000_000_000_000;
    locks
        .run(&format!("UPDATE lock_store.meta SET floor = {floor}"))
        .await;
    for (key, of) in [("a", ALONE), ("b", READ), ("c", "1, 3")] {
        // A hold without a token leaves no row by which that is overlooked.
        assert_eq!(locks.code(key, (1, 1), of, RESPECT).await, GRANTED);
        locks.release(key, (1, 1), of).await;
        let rows = format!("SELECT count(*) FROM lock_store.hold WHERE name = 'lock:{key}'");
        assert_eq!(locks.server.number(&rows).await, 0, "{of}");
        for next in 1..4 {
            assert_eq!(locks.fenced(key, (1, 1), of).await, floor + next, "{of}");
            locks.release(key, (1, 1), of).await;
        }
    }
}

/// A transaction that has checked a hold keeps the lock, also when the lease has ended.
#[tokio::test]
async fn who_waits_for_an_open_check_waits_for_no_row_and_looks_again_soon() {
    let locks = Functions::new().await;
    let token = locks.fenced("k", (1, 1), ALONE).await;
    let session = locks.checking("k", token).await;
    // While it is held, its owner cannot be replaced.
    let instead = format!(
        "acquire('lock:k', {}, NULL, NULL, 30000000, 30000000, NULL, 0, 2, {}, {DEADLINE})",
        sql((1, 2)),
        sql((1, 1))
    );
    let refused = locks.try_call(&instead).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "LK004");
    locks.end((1, 1)).await;
    let said = locks.acquire("k", (2, 1), ALONE, RESPECT).await;
    assert_eq!((said.code, said.remaining), (CHECKED, None), "{said:?}");
    for (owner, times) in [((2, 1), 1), ((2, 2), 2), ((1, 3), 2)] {
        for _ in 0..times {
            assert_eq!(locks.code("k", owner, ALONE, JOIN).await, CHECKED);
        }
    }
    let abandon = format!("abandon('lock:k', {}, NULL, NULL)", sql((2, 1)));
    assert!(!locks.call(&abandon).await.get::<_, bool>("held"));
    session.batch_execute("COMMIT").await.unwrap();
    assert_eq!(locks.code("k", (2, 2), ALONE, JOIN).await, GRANTED);
    // Who is busy without one need not.
    assert_eq!(locks.code("l", (1, 1), READ, RESPECT).await, GRANTED);
    assert_eq!(locks.code("l", (1, 2), WRITE, JOIN).await, BUSY);
}

#[tokio::test]
async fn a_place_that_was_suspended_is_forgotten_after_a_minute_and_no_other() {
    let locks = Functions::new().await;
    // In `l` the place is the first, in `k` the second.
    locks.acquire("k", (1, 1), ALONE, JOIN).await;
    locks.acquire("l", (1, 9), ALONE, JOIN).await;
    assert_eq!(locks.code("k", (3, 7), ALONE, JOIN).await, BUSY);
    assert_eq!(locks.code("k", (2, 1), ALONE, JOIN).await, BUSY);
    assert_eq!(locks.code("k", (3, 1), ALONE, JOIN).await, BUSY);
    assert_eq!(locks.code("l", (2, 9), ALONE, JOIN).await, BUSY);
    let abandon = format!("abandon('lock:k', {}, NULL, NULL)", sql((3, 7)));
    locks.call(&abandon).await;
    locks.age(4000).await;
    for (key, owner) in [("k", (1, 1)), ("l", (1, 9))] {
        assert!(locks.release(key, owner, ALONE).await.is_empty());
    }
    assert_eq!((locks.waiting("k").await, locks.waiting("l").await), (2, 1));
    // Only the first one has been suspended for so long.
    locks
        .run(&format!(
            "UPDATE lock_store.place SET suspended = suspended - interval '61 seconds'
             WHERE owner IN ({}, {})",
            sql((2, 1)),
            sql((2, 9))
        ))
        .await;
    assert_eq!(locks.code("k", (1, 2), ALONE, 0).await, GRANTED);
    locks.release("k", (1, 2), ALONE).await;
    assert_eq!((locks.waiting("k").await, locks.waiting("l").await), (1, 1));
}

#[tokio::test]
async fn of_those_who_wait_only_the_client_that_asks_is_seen() {
    let locks = Functions::new().await;
    locks.acquire("k", (1, 1), ALONE, JOIN).await;
    assert_eq!(locks.code("k", (2, 1), ALONE, JOIN).await, BUSY);
    assert_eq!(locks.code("k", (1, 2), ALONE, JOIN).await, BUSY);
    for _ in 0..2 {
        locks.age(1600).await;
        assert_eq!(locks.code("k", (1, 2), ALONE, JOIN).await, BUSY);
    }
    assert_eq!(locks.release("k", (1, 1), ALONE).await, [bytes((1, 2))]);
}

#[tokio::test]
async fn who_can_only_wait_waits_for_no_row() {
    let locks = Functions::new().await;
    assert_eq!(locks.code("k", (1, 1), "1, 1", RESPECT).await, GRANTED);
    let row = row_of_k(&locks.server).await;
    assert_eq!(locks.code("k", (2, 1), "1, 1", RESPECT).await, BUSY);
    row.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(locks.code("k", (2, 1), "1, 1", JOIN).await, BUSY);
    locks.age(1000).await;
    let row = locks.server.session().await;
    row.batch_execute("BEGIN; SELECT 1 FROM lock_store.place FOR UPDATE")
        .await
        .unwrap();
    assert_eq!(locks.code("k", (2, 1), "1, 1", JOIN).await, BUSY);
    // It was given up long ago.
    let late = format!(
        "acquire('lock:k', {}, 1, 1, 30000000, 30000000, NULL, 0, 2, NULL, 1)",
        sql((2, 1))
    );
    let refused = locks.try_call(&late).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "LK001");
}

/// Nobody else asks: whoever does sees that a lease has ended, and does what is to be done.
#[tokio::test]
async fn a_permit_whose_lease_has_ended_is_handed_on_by_whoever_asks() {
    let locks = Functions::new().await;
    for (key, small) in [("exact", true), ("other", false)] {
        assert_eq!(locks.code(key, (1, 1), "1, 3", RESPECT).await, GRANTED);
        assert_eq!(locks.code(key, (1, 2), "2, 3", RESPECT).await, GRANTED);
        assert_eq!(locks.code(key, (2, 3), "1, 3", JOIN).await, BUSY);
        assert_eq!(locks.code(key, (1, 4), "2, 3", JOIN).await, BUSY);
        locks.end((1, 1)).await;
        if small {
            assert_eq!(locks.code(key, (2, 3), "1, 3", JOIN).await, GRANTED);
        } else {
            let said = locks.acquire(key, (1, 4), "2, 3", JOIN).await;
            assert_eq!((said.code, said.told), (BUSY, vec![bytes((2, 3))]));
        }
    }
    // Both places are suspended: they come back with their client.
    assert_eq!(locks.code("back", (1, 1), "1, 3", RESPECT).await, GRANTED);
    assert_eq!(locks.code("back", (1, 2), "2, 3", RESPECT).await, GRANTED);
    assert_eq!(locks.code("back", (2, 3), "1, 3", JOIN).await, BUSY);
    assert_eq!(locks.code("back", (2, 4), "2, 3", JOIN).await, BUSY);
    locks.age(4000).await;
    assert!(locks.release("back", (1, 1), "1, 3").await.is_empty());
    let said = locks.acquire("back", (2, 4), "2, 3", JOIN).await;
    assert_eq!((said.code, said.told), (BUSY, vec![bytes((2, 3))]));
    // Not more than there are, whoever asks first.
    assert_eq!(locks.code("sum", (1, 1), "3, 3", RESPECT).await, GRANTED);
    assert_eq!(locks.code("sum", (2, 2), "2, 3", JOIN).await, BUSY);
    assert_eq!(locks.code("sum", (1, 3), "2, 3", JOIN).await, BUSY);
    locks.end((1, 1)).await;
    let said = locks.acquire("sum", (1, 3), "2, 3", JOIN).await;
    assert_eq!((said.code, said.told), (BUSY, vec![bytes((2, 2))]));
    // An owner that asks again goes on with what it finds.
    assert_eq!(locks.code("on", (1, 1), "1, 3", RESPECT).await, GRANTED);
    assert_eq!(locks.code("on", (1, 2), "2, 3", RESPECT).await, GRANTED);
    assert_eq!(locks.code("on", (2, 3), "2, 3", JOIN).await, BUSY);
    locks.end((1, 2)).await;
    let said = locks.acquire("on", (1, 1), "1, 3", JOIN).await;
    assert_eq!((said.code, said.told), (GRANTED, vec![bytes((2, 3))]));
}

/// A place of a kind that does not fit to those who hold comes back as the first of the queue.
#[tokio::test]
async fn a_place_of_another_kind_keeps_nobody_off() {
    let locks = Functions::new().await;
    for (key, waits, enters) in [("permits", WRITE, "1, 3"), ("readers", ALONE, READ)] {
        assert_eq!(locks.code(key, (1, 1), waits, RESPECT).await, GRANTED);
        assert_eq!(locks.code(key, (2, 2), waits, JOIN).await, BUSY);
        locks.age(4000).await;
        assert!(locks.release(key, (1, 1), waits).await.is_empty());
        assert_eq!(locks.code(key, (1, 3), enters, RESPECT).await, GRANTED);
        assert_eq!(locks.code(key, (2, 2), waits, JOIN).await, CONFLICT);
        assert_eq!(locks.code(key, (1, 4), enters, RESPECT).await, GRANTED);
    }
    // Who is handed the lock decides of which kind it is.
    for (key, before, next, asks) in [("alone", ALONE, ALONE, READ), ("read", WRITE, READ, ALONE)] {
        assert_eq!(locks.code(key, (1, 5), before, RESPECT).await, GRANTED);
        assert_eq!(locks.code(key, (2, 6), next, JOIN).await, BUSY);
        locks.end((1, 5)).await;
        let said = locks.acquire(key, (1, 7), asks, RESPECT).await;
        assert_eq!((said.code, said.told), (CONFLICT, vec![bytes((2, 6))]));
    }
    assert_eq!(locks.code("read", (1, 8), ALONE, 0).await, CONFLICT);
}

/// Of many who wait, a part is let in by each command. The rest have their turn before others.
#[tokio::test]
async fn a_hand_over_that_stopped_halfway_lets_nobody_overtake() {
    let locks = Functions::new().await;
    assert_eq!(locks.code("k", (1, 1), WRITE, RESPECT).await, GRANTED);
    for reader in 1..=64 {
        assert_eq!(locks.code("k", (2, reader), READ, JOIN).await, BUSY);
    }
    assert_eq!(locks.code("k", (2, 65), WRITE, JOIN).await, BUSY);
    assert_eq!(locks.code("k", (2, 66), READ, JOIN).await, BUSY);
    locks.end((1, 1)).await;
    let said = locks.acquire("k", (2, 66), READ, JOIN).await;
    assert_eq!((said.code, said.told.len()), (BUSY, 64));
}

#[tokio::test]
async fn several_keys_are_not_taken_beside_who_is_just_handed_one_of_them() {
    let locks = Functions::new().await;
    assert_eq!(locks.code("b", (1, 1), WRITE, RESPECT).await, GRANTED);
    assert_eq!(locks.code("b", (2, 2), READ, JOIN).await, BUSY);
    locks.end((1, 1)).await;
    let told = vec![bytes((2, 2))];
    assert_eq!(locks.acquire_both(["a", "b"]).await, (BUSY, 2, told));
}

#[tokio::test]
async fn a_latch_and_a_lock_are_beside_each_other_only_under_two_keys() {
    let locks = Functions::new().await;
    for (key, other, of) in [("a", "b", ALONE), ("c", "d", READ)] {
        assert_eq!(locks.code(key, (1, 1), of, RESPECT).await, GRANTED);
        assert!(!locks.sets_latch(key, (1, 2)).await, "{of}");
        assert!(locks.sets_latch(other, (1, 2)).await, "{of}");
        locks.release(key, (1, 1), of).await;
        // Of a free lock there is nothing, whatever other keys are.
        let rows = format!("SELECT count(*) FROM lock_store.hold WHERE name = 'lock:{key}'");
        assert_eq!(locks.server.number(&rows).await, 0, "{of}");
    }
    // Set when the lease had ended: those who wait for the lock learn of it when they ask.
    assert_eq!(locks.code("k", (1, 1), ALONE, RESPECT).await, GRANTED);
    for waiter in 2..5 {
        assert_eq!(locks.code("k", (2, waiter), ALONE, JOIN).await, BUSY);
    }
    locks.end((1, 1)).await;
    assert!(locks.sets_latch("k", (1, 3)).await);
    let said = locks.acquire("k", (2, 2), ALONE, JOIN).await;
    assert_eq!((said.code, said.told), (CONFLICT, Vec::new()));
    let abandon = format!("abandon('lock:k', {}, NULL, NULL)", sql((2, 2)));
    assert_eq!(told(&locks.call(&abandon).await), Vec::<Vec<u8>>::new());
    // Of several keys, one is a latch.
    for latch in ["b", "k"] {
        let said = locks.acquire_both(["e", latch]).await;
        assert_eq!(said, (CONFLICT, 2, Vec::new()));
    }
    assert_eq!(locks.code("e", (1, 5), ALONE, RESPECT).await, GRANTED);
    // When the latch has ended, those who still wait have their turn before others.
    locks
        .run("UPDATE lock_store.latch SET ends = '-infinity' WHERE name = 'lock:k'")
        .await;
    let said = locks.acquire("k", (2, 4), ALONE, JOIN).await;
    assert_eq!((said.code, said.told), (BUSY, vec![bytes((2, 3))]));
    locks.release("k", (2, 3), ALONE).await;
    assert_eq!(locks.code("k", (2, 4), ALONE, JOIN).await, GRANTED);
    // The conflict counts, and not what stands behind it.
    let said = locks.acquire_both(["b", "e"]).await;
    assert_eq!(said, (CONFLICT, 1, Vec::new()));
}

#[tokio::test]
async fn a_part_is_renewed_and_given_back_only_as_it_is_held() {
    let locks = Functions::new().await;
    assert_eq!(locks.code("k", (1, 1), "2, 3", RESPECT).await, GRANTED);
    let owner = sql((1, 1));
    let renews = async |of: &str| {
        let row = locks
            .call(&format!("renew('lock:k', {owner}, {of}, 30000000)"))
            .await;
        row.get::<_, bool>(0)
    };
    assert!(renews("2, 3").await && !renews("1, 3").await && !renews(ALONE).await);
    locks
        .call(&format!("shrink('lock:k', {owner}, 2, 3, 1)"))
        .await;
    assert!(renews("1, 3").await && !renews("2, 3").await && !renews(READ).await);
    let release = format!("release('lock:k', {owner}, 2, 3, 0)");
    assert!(!locks.call(&release).await.get::<_, bool>("held"));
    locks.release("k", (1, 1), "1, 3").await;
}

/// The renewal's commit stands still: nobody sees the longer lease yet.
#[tokio::test]
async fn who_gives_back_a_part_waits_for_its_renewal() {
    let locks = Functions::new().await;
    assert_eq!(locks.code("k", (1, 1), WRITE, RESPECT).await, GRANTED);
    let of = format!("'lock:k', {}, {WRITE}", sql((1, 1)));
    let renewing = locks.server.session().await;
    renewing.batch_execute("BEGIN").await.unwrap();
    locks
        .run("UPDATE lock_store.share SET ends = clock_timestamp() + interval '2 seconds'")
        .await;
    let renew = format!("SELECT lock_store.renew({of}, 600000000)");
    assert!(
        renewing
            .query_one(&renew, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
    );
    let held = "SELECT count(*) FROM lock_store.share WHERE ends > clock_timestamp()";
    eventually("the old lease has ended", async || {
        locks.server.number(held).await == 0
    })
    .await;
    for call in ["release", "abandon"] {
        let end = match call {
            "release" => format!("release({of}, 0)"),
            _ => format!("abandon({of})"),
        };
        let error = locks.try_call(&end).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "55P03", "{call}");
    }
    renewing.batch_execute("COMMIT").await.unwrap();
    locks.release("k", (1, 1), WRITE).await;
    assert_eq!(
        locks
            .server
            .number("SELECT count(*) FROM lock_store.share")
            .await,
        0
    );
}

/// As behind a pooler that has moved on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_says_that_it_is_one() {
    if !postgres_has_standbys() {
        return;
    }
    let mut locks = Functions::new().await;
    let standby = locks.server.standby(true).await;
    assert_eq!(locks.code("k", (1, 1), ALONE, RESPECT).await, GRANTED);
    locks.session = standby.session().await;
    eventually("it knows of the hold", async || {
        let rows = locks
            .session
            .query_one("SELECT count(*) FROM lock_store.hold", &[]);
        rows.await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let refused = locks.try_acquire("k", (1, 2), ALONE, 0, RESPECT).await;
    let mut refusals = vec![refused.unwrap_err()];
    for call in [
        "inspect('lock:k')",
        "holders('lock:k')",
        "latch_look('lock:k')",
    ] {
        refusals.push(locks.try_call(call).await.unwrap_err());
    }
    for refused in refusals {
        let refused = refused.as_db_error().unwrap();
        assert_eq!(refused.code().code(), "25006");
        assert_eq!(refused.message(), "this server is a standby");
    }
}
