//! The parts of `acquire`.

use super::Cases;

/// Tokens are above the last, the clock and the floor.
const TOKENS: &str = "
    + held('k', 'a1', 5, 1800000000000100, 4)
    > mint('k', 1, t(50))
    +000101
    k hold a1(5,+000101,4,f,)

    + held('k', 'a1', 5, 1800000000000100)
    1 UPDATE lock_store.meta SET floor = 1800000000000070
    > mint('k', 3, t(50))
    +000103
    k hold a1(5,+000103,,f,)

    + held('k', 'a1', 5, 1800000000000100)
    1 UPDATE lock_store.meta SET floor = 1800000000000070
    > mint('k', 3, t(200))
    +000202
    k hold a1(5,+000202,,f,)

    + held('k', 'a1', 5, 1800000000000100)
    1 UPDATE lock_store.meta SET floor = 1800000000000300
    > mint('k', 3, t(200))
    +000303
    k hold a1(5,+000303,,f,)";

/// An exclusive hold replaces what has ended, and is never shortened.
const HOLDS: &str = "
    + held('k', NULL, NULL, 5)
    > enter('k', o('a1'), NULL, NULL, t(1000), 0, t(10))
    k hold a1(1000,5,,f,)

    + held('k', NULL, NULL)
    > enter('k', o('a1'), NULL, NULL, t(1000), 1, t(10))
    +000010
    k hold a1(1000,+000010,+000010,f,)

    + held('k', NULL, NULL)
    > enter('k', o('a1'), NULL, NULL, t(1000), 3, t(10))
    +000010
    k hold a1(1000,+000012,+000012,f,)

    -- Its own is not shortened, and keeps its token.
    + held('k', 'a1', 1001, 6, 6)
    > enter('k', o('a1'), NULL, NULL, t(1000), 0, t(10))
    > enter('k', o('a1'), NULL, NULL, t(1002), 0, t(10))
    k hold a1(1002,6,6,f,)
    > enter('k', o('a1'), NULL, NULL, t(1003), 2, t(10))
    +000010
    k hold a1(1003,+000011,+000011,f,)

    -- Its own that is over.
    + held('k', 'a1', 1000, 6, 6)
    > enter('k', o('a1'), NULL, NULL, t(999), 0, t(1000))
    k hold a1(999,6,6,f,)

    -- Another's.
    + held('k', 'b1', 1000, 6, 6)
    > enter('k', o('a1'), NULL, NULL, t(1500), 0, t(1000))
    k hold a1(1500,6,,f,)

    + held('k', 'b1', 1000, 6, 6)
    > enter('k', o('a1'), NULL, NULL, t(900), 0, t(500))
    k hold a1(900,6,,f,)

    + held('k', 'b1', 1000, 6, 6)
    > enter('k', o('a1'), NULL, NULL, t(1500), 1, t(1000))
    +001000
    k hold a1(1500,+001000,+001000,f,)";

/// A part is added, and sets the capacity once.
const SHARES: &str = "
    + held('k', 'b1', 9, 6, 6)
    > enter('k', o('a1'), 2, 5, t(1000), 0, t(10))
    k hold (9,6,,t,5)
    k share a1(2,1000,)

    + held('k', NULL, NULL)
    > enter('k', o('a1'), 2, 5, t(1000), 3, t(10))
    +000010
    k hold (,+000012,,t,5)
    k share a1(2,1000,+000012)

    -- Another's part of another size.
    + open('k', 7), shared('k', 'b1', 1, 500), shared('k', 'a2', 1, 500)
    > enter('k', o('a1'), 2, 5, t(1000), 0, t(10))
    k hold (,0,,t,5)
    k share a1(2,1000,)
    k share a2(1,500,)
    k share b1(1,500,)

    -- Its own.
    + open('k', 7), shared('k', 'a1', 1, 1001, 3), shared('k', 'b1', 1, 500)
    > enter('k', o('a1'), 2, 5, t(1000), 0, t(10))
    > enter('k', o('a1'), 2, 5, t(1002), 0, t(10))
    k hold (,0,,t,7)
    k share a1(1,1002,3)
    k share b1(1,500,)
    > enter('k', o('a1'), 2, 5, t(1003), 2, t(10))
    +000010
    k hold (,+000011,,t,7)
    k share a1(1,1003,+000011)
    k share b1(1,500,)";

/// A claim is held by its owner, in time and in its size.
const CLAIMS: &str = "
    + held('k', 'a1', 1000)
    > has(h('k'), 'k', o('a1'), NULL, NULL, t(999))
    t
    > has(h('k'), 'k', o('a1'), NULL, NULL, t(1000))
    f
    > has(h('k'), 'k', o('a2'), NULL, NULL, t(999))
    f
    > has(h('k'), 'k', o('a2'), NULL, NULL, t(1000))
    f
    > has(h('k'), 'k', o('a1'), 1, 3, t(999))
    f

    + held('k', NULL, 1000)
    > has(h('k'), 'k', o('a1'), NULL, NULL, t(999))
    f

    + open('k', 3), shared('k', 'a1', 2, 1000), shared('k', 'b1', 1, 2000)
    > has(h('k'), 'k', o('a1'), 2, 3, t(999))
    t
    > has(h('k'), 'k', o('a1'), 2, 9, t(999))
    t
    > has(h('k'), 'k', o('a1'), 1, 3, t(999))
    f
    > has(h('k'), 'k', o('a1'), 2, 3, t(1000))
    f
    > has(h('k'), 'k', o('b1'), 2, 3, t(999))
    f
    > has(h('k'), 'k', o('b2'), 1, 3, t(999))
    f
    > has(h('k'), 'k', o('a1'), 2, rw(), t(999))
    f
    > has(h('k'), 'k', o('a1'), NULL, NULL, t(999))
    f

    -- Only another lock's.
    + open('k', 3), shared('k', 'b1', 1, 2000)
    > has(h('k'), 'k', o('a1'), 1, 3, t(999))
    f

    + open('k', rw()), shared('k', 'a1', 2, 1000)
    > has(h('k'), 'k', o('a1'), 1, rw(), t(999))
    t
    > has(h('k'), 'k', o('a1'), 2, 3, t(999))
    f

    -- Not looked up.
    + held('k', NULL, NULL, capacity => 3), shared('k', 'a1', 2, 1000)
    > has(h('k'), 'k', o('a1'), 2, 3, t(999))
    f";

/// The hold that ends first is named.
const FIRST_ENDS: &str = "
    + held('k', 'b1', 1000)
    > * FROM first_end(h('k'), 'k', t(1))
    999|b1
    > * FROM first_end(h('k'), 'k', t(999))
    1|b1
    > * FROM first_end(h('k'), 'k', t(1000))
    |

    + held('k', NULL, 1000)
    > * FROM first_end(h('k'), 'k', t(1))
    |

    + open('k'), shared('k', 'c1', 1, 700), shared('k', 'b1', 1, 500)
    + shared('k', 'd1', 1, 900), shared('k', 'a3', 1, 700)
    > * FROM first_end(h('k'), 'k', t(499))
    1|b1
    > * FROM first_end(h('k'), 'k', t(500))
    200|a3
    > * FROM first_end(h('k'), 'k', t(700))
    200|d1
    > * FROM first_end(h('k'), 'k', t(900))
    |";

/// A client is seen at its places that nobody changes just now.
const SEEN: &str = "
    + open('k'), waits('k', 1, 'a1', seen => -400000), waits('k', 2, 'a2', seen => -399999)
    + waits('k', 3, 'a3', seen => 99000, suspended => 1), waits('k', 4, 'a4', seen => -400001)
    + waits('k', 5, 'b1', seen => -900000), waits('k', 6, 'b2', suspended => 1)
    > look('k', substr(o('a1'), 1, 16), t(100000))
    k hold (,0,,t,)
    k wait 1 a1(,,00:00:00.003,,0,-400000,)
    k wait 2 a2(,,00:00:00.003,,0,-399999,)
    k wait 3 a3(,,00:00:00.003,,0,100000,)
    k wait 4 a4(,,00:00:00.003,,0,100000,)
    k wait 5 b1(,,00:00:00.003,,0,-900000,)
    k wait 6 b2(,,00:00:00.003,,0,0,1)

    -- Another transaction changes the second.
    + open('k'), waits('k', 1, 'a1', seen => -900000), waits('k', 2, 'a2', seen => -900000)
    2 BEGIN; SELECT FROM lock_store.place WHERE name = 'k' AND number = 2 FOR UPDATE
    > look('k', substr(o('a1'), 1, 16), t(100000))
    k hold (,0,,t,)
    k wait 1 a1(,,00:00:00.003,,0,100000,)
    k wait 2 a2(,,00:00:00.003,,0,-900000,)";

/// A command is in time until its limit.
const IN_TIME: &str = "
    @ 1000
    > expect_in_time(t(1000))
    > expect_in_time(t(999))
    LK001

    > acquire_first('k', o('a1'), 1000, 1800000000000000)
    t
    k hold a1(1000,0,,f,)

    @ 1
    > acquire_first('k', o('a1'), 1000, 1800000000000000)
    LK001

    @ 1
    + held('k', NULL, NULL, 5)
    > acquire_first('k', o('a1'), 1000, 1800000000000001)
    f
    > acquire_first('k', o('a1'), 1000, 1800000000000000)
    f";

/// A lock is full if nobody can get anything of it, whoever asks.
const FULL: &str = "
    > is_full(h('k'), 'k', o('a1'), NULL, NULL, t(0))
    f
    > is_full(h('k'), 'k', o('a1'), 1, 3, t(0))
    f

    -- Held by another, until its end.
    + held('k', 'b1', 1000)
    > is_full(h('k'), 'k', o('a1'), NULL, NULL, t(999))
    t
    > is_full(h('k'), 'k', o('a1'), NULL, NULL, t(1000))
    f
    > is_full(h('k'), 'k', o('a1'), 1, 3, t(999))
    f
    > is_full(h('k'), 'k', o('b1'), NULL, NULL, t(999))
    f
    > is_full(h('k'), 'k', o('b1'), 1, 3, t(999))
    f

    + held('k', NULL, 1000)
    > is_full(h('k'), 'k', o('a1'), NULL, NULL, t(999))
    f

    -- Shared. One part is over.
    + open('k', 4), shared('k', 'b1', 2, 1000), shared('k', 'c1', 2, 500)
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(499))
    t
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(500))
    f
    > is_full(h('k'), 'k', o('a1'), 2, 4, t(500))
    f
    > is_full(h('k'), 'k', o('a1'), 3, 4, t(500))
    t
    > is_full(h('k'), 'k', o('a1'), 3, 4, t(1000))
    f
    > is_full(h('k'), 'k', o('a1'), 1, 5, t(499))
    f
    > is_full(h('k'), 'k', o('a1'), 2, 5, t(499))
    t
    > is_full(h('k'), 'k', o('a1'), NULL, NULL, t(499))
    f
    > is_full(h('k'), 'k', o('b1'), 3, 4, t(499))
    f
    > is_full(h('k'), 'k', o('c1'), 3, 4, t(499))
    f
    > is_full(h('k'), 'k', o('c1'), 3, 4, t(500))
    t
    > is_full(h('k'), 'k', o('a1'), 5, rw(), t(499))
    f
    > is_full(h('k'), 'k', o('a1'), rw(), rw(), t(499))
    f

    -- Readers.
    + open('k', rw()), shared('k', 'b1', 2, 1000)
    > is_full(h('k'), 'k', o('a1'), rw() - 2, rw(), t(1))
    f
    > is_full(h('k'), 'k', o('a1'), rw() - 1, rw(), t(1))
    t
    > is_full(h('k'), 'k', o('a1'), 3, 4, t(1))
    f

    -- The first place fits, or does not.
    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 1, 4)
    + waits('k', 3, 'c2', 3, 4)
    > is_full(h('k'), 'k', o('a1'), 2, 4, t(1))
    f

    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 2, 4, 1000, 0)
    + waits('k', 3, 'c2', 1, 4)
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(1))
    t
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(999))
    t
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(1000))
    t
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(1001))
    f

    + open('k', 4), shared('k', 'b1', 3, 9000000), waits('k', 2, 'c1', 2, 4, seen => 0)
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(2999999))
    t
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(3000000))
    t
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(3000001))
    f

    -- The first place is suspended, of another client and of the same.
    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 1, 4, suspended => 0)
    + waits('k', 3, 'c2', 2, 4)
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(1))
    t
    > is_full(h('k'), 'k', o('c3'), 1, 4, t(1))
    f

    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 2, 4, suspended => 0)
    + waits('k', 3, 'c2', 1, 4)
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(1))
    f
    > is_full(h('k'), 'k', o('c3'), 1, 4, t(1))
    t

    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 2, 4, suspended => 0)
    > is_full(h('k'), 'k', o('a1'), 1, 4, t(1))
    f
    > is_full(h('k'), 'k', o('a1'), 2, 4, t(1))
    t

    -- The first place is of another kind: it has ended.
    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 9, rw())
    > is_full(h('k'), 'k', o('a1'), 2, 4, t(1))
    f

    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', rw(), rw())
    > is_full(h('k'), 'k', o('a1'), 2, 4, t(1))
    f

    + open('k', 4), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1')
    > is_full(h('k'), 'k', o('a1'), 2, 4, t(1))
    f

    + open('k', rw()), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', 9, 4)
    > is_full(h('k'), 'k', o('a1'), rw(), rw(), t(1))
    f

    + open('k', rw()), shared('k', 'b1', 3, 9000), waits('k', 2, 'c1', rw(), rw())
    > is_full(h('k'), 'k', o('a1'), rw(), rw(), t(1))
    t";

#[tokio::test]
async fn parts_of_acquire_go_by_time_owner_and_size() {
    let cases = Cases::new().await;
    for part in [
        TOKENS, HOLDS, SHARES, CLAIMS, FIRST_ENDS, SEEN, IN_TIME, FULL,
    ] {
        cases.run(part).await;
    }
}

#[tokio::test]
async fn the_head_row_is_made_and_locked() {
    let cases = Cases::new().await;
    let locked = "SELECT convert_from(name, 'UTF8') FROM lock_store.hold ORDER BY 1";
    let free = async |lock: &str| {
        let query = format!("{locked} {lock} SKIP LOCKED");
        let rows = cases.second.query(&query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    cases
        .run(
            "
            + held('k', 'a1', 5)
            > may_change('k')
            t
            > expect_unchecked('k')

            + held('k', 'a1', 5)
            2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'j' FOR KEY SHARE
            > may_change('k')
            t
            > expect_unchecked('k')

            + held('k', 'a1', 5)
            2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR KEY SHARE
            > may_change('k')
            f
            > expect_unchecked('k')
            LK004

            > owner, after(ends), last, token, special, capacity FROM head('k')
            ||0||f|
            k hold (,0,,f,)

            + held('k', 'a1', 5, 6, 7, true, 8)
            > owner, after(ends), last, token, special, capacity FROM head('k')
            a1|5|6|7|t|8

            1 SET default_transaction_isolation = 'read uncommitted'
            > special FROM head('k')
            f
            k hold (,0,,f,)

            1 SET default_transaction_isolation = 'repeatable read'
            + held('k', 'a1', 5)
            > head('k')
            LK003

            1 SET default_transaction_isolation = 'serializable'
            > head('k')
            LK003

            1 SET default_transaction_isolation = 'read committed'
            + held('k', 'a1', 5)
            1 BEGIN; SELECT head('k')",
        )
        .await;
    assert_eq!(free("FOR NO KEY UPDATE").await, ["j"]);
    assert_eq!(free("FOR KEY SHARE").await, ["j", "k"]);
    cases.moments.run("SELECT may_change('k')").await;
    assert_eq!(free("FOR KEY SHARE").await, ["j"]);
}

/// The name by which functions ask is given to another function.
#[tokio::test]
async fn a_standby_gives_no_answer() {
    let cases = Cases::new().await;
    let standby = "
        ALTER FUNCTION pg_catalog.pg_is_in_recovery() RENAME TO pg_was_in_recovery;
        CREATE FUNCTION pg_catalog.pg_is_in_recovery() RETURNS boolean LANGUAGE sql
        AS $$ SELECT true $$";
    cases.moments.run(standby).await;
    cases
        .run(
            "
            > expect_primary()
            25006

            + held('k', 'b1', 1000)
            > ask('a1')
            25006",
        )
        .await;
}
