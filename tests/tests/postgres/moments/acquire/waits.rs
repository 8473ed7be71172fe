//! Requests for a lock that is free, held, a latch or locked by others, and for several at once.

use super::Cases;

/// A free key is given at once.
const FREE: &str = "
    > ask('a1')
    (1,,,,f,,,)
    k hold a1(1000,0,,f,)

    > ask('a1', fences => 1)
    (1,+000000,,,f,,,)
    k hold a1(1000,+000000,+000000,f,)

    @ 70
    > ask('a1', fences => 3)
    (1,+000070,,,f,,,)
    k hold a1(1070,+000072,+000072,f,)

    + held('k', NULL, NULL, 5)
    > ask('a1')
    (1,,,,f,,,)
    k hold a1(1000,5,,f,)

    + held('k', NULL, NULL, 1800000000000100)
    @ 70
    > ask('a1', fences => 1)
    (1,+000101,,,f,,,)
    k hold a1(1070,+000101,+000101,f,)

    + held('k', NULL, NULL, 1800000000000100)
    @ 70
    > ask('a1', fences => 3)
    (1,+000101,,,f,,,)
    k hold a1(1070,+000103,+000103,f,)

    + held('k', NULL, NULL, 1800000000000100)
    @ 200
    > ask('a1', fences => 3)
    (1,+000200,,,f,,,)
    k hold a1(1200,+000202,+000202,f,)

    1 UPDATE lock_store.meta SET floor = 1800000000000300
    @ 200
    > ask('a1', fences => 3)
    (1,+000301,,,f,,,)
    k hold a1(1200,+000303,+000303,f,)

    + held('k', NULL, NULL, 1800000000000100)
    1 UPDATE lock_store.meta SET floor = 1800000000000300
    @ 200
    > ask('a1', fences => 3)
    (1,+000301,,,f,,,)
    k hold a1(1200,+000303,+000303,f,)

    -- The row says that there may be more.
    + open('k')
    > ask('a1')
    (1,,,,f,,,)
    k hold a1(1000,0,,f,)

    + open('k', 5)
    > ask('a1', 1, 3)
    (1,,,,f,,,)
    k hold (,0,,t,3)
    k share a1(1,1000,)

    > ask('a1', 2, 3, fences => 2)
    (1,+000000,,,f,,,)
    k hold (,+000001,,t,3)
    k share a1(2,1000,+000001)

    > ask('a1', queue => 2)
    (1,,,,f,,,)
    k hold a1(1000,0,,f,)

    > ask('a1', queue => 0, fences => 2)
    (1,+000000,,,f,,,)
    k hold a1(1000,+000001,+000001,f,)

    > ask('a1', instead => 'b1')
    (1,,,,f,,,)
    k hold a1(1000,0,,f,)

    + held('k', 'b1', 1000, 5, 5)
    @ 1000
    > ask('a1')
    (1,,,,f,,,)
    k hold a1(2000,5,,f,)

    + held('k', 'b1', 1000, 5, 5)
    @ 1000
    > ask('a1', fences => 2, queue => 0)
    (1,+001000,,,f,,,)
    k hold a1(2000,+001001,+001001,f,)

    -- Asked for again.
    + held('k', 'a1', 1500, 5, 5)
    > ask('a1')
    (1,,,,f,,,)
    > ask('a1', lease => 2000, fences => 2)
    (1,+000000,,,f,,,)
    k hold a1(2000,+000001,+000001,f,)
    > ask('a2')
    (0,,,2000,f,a1,,)";

/// Several locks are given at once, or none.
const SEVERAL: &str = "
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,t}')
    (1,0,{NULL,NULL},,)
    k hold a1(1000,0,,f,)
    l hold a2(2000,0,,f,)

    > ask_all('{l,k}', '{a1,a2}', '{1000,2000}', '{1,3}', '{f,f}')
    (1,0,{+000000,+000000},,)
    k hold a2(2000,+000002,+000002,f,)
    l hold a1(1000,+000000,+000000,f,)

    + held('k', 'a1', 1500, 5, 5), held('l', 'b1', 30, 6, 6), held('m', 'c1', 500)
    @ 30
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,2}', '{f,f}')
    (1,0,{NULL,+000030},,)
    k hold a1(1500,5,5,f,)
    l hold a2(2030,+000031,+000031,f,)
    m hold c1(500,0,,f,)

    -- The second is held until 30.
    + held('l', 'b1', 30, 6, 6)
    @ 29
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{1,2}', '{f,t}')
    (0,2,,,)

    + held('l', 'b1', 30, 6, 6)
    @ 29
    > ask_all('{l,k}', '{a1,a2}', '{1000,2000}', '{1,2}', '{f,t}')
    (0,1,,,)

    + held('l', NULL, 30, 6)
    @ 29
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,f}')
    (1,0,{NULL,NULL},,)
    k hold a1(1029,0,,f,)
    l hold a2(2029,6,,f,)

    + held('l', 'a2', 30, 6, 6)
    @ 29
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{1,0}', '{f,t}')
    (1,0,{+000029,NULL},,)
    k hold a1(1029,+000029,+000029,f,)
    l hold a2(2029,6,6,f,)

    -- The second is a latch until 30.
    + open('l'), latched('l', 30)
    @ 29
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,f}')
    (2,2,,,)
    @ 30
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,f}')
    (1,0,{NULL,NULL},,)
    k hold a1(1030,0,,f,)
    l hold a2(2030,0,,f,)

    + latched('k', 30)
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,f}')
    (2,1,,,)
    k hold (,0,,t,)

    -- The second is shared until 30.
    + open('l', 4), shared('l', 'a2', 1, 30), shared('l', 'c1', 1, 20)
    @ 29
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,t}')
    (2,2,,,)
    l hold (,0,,t,4)
    l share a2(1,30,)
    @ 30
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,t}')
    (1,0,{NULL,NULL},,)
    k hold a1(1030,0,,f,)
    l hold a2(2030,0,,f,4)

    + open('l', 4), shared('l', 'a2', 1, 30), shared('l', 'c1', 1, 20)
    @ 30
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,f}')
    (1,0,{NULL,NULL},,)
    k hold a1(1030,0,,f,)
    l hold a2(2030,0,,f,4)

    -- An open check of another's that is over.
    + held('l', 'b1', 30, 6, 6)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'l' FOR KEY SHARE
    @ 30
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,f}')
    (0,2,,,)
    > ask_all('{k,m}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,f}')
    (1,0,{NULL,NULL},,)
    k hold a1(1030,0,,f,)
    l hold b1(30,6,6,f,)
    m hold a2(2030,0,,f,)
    > ask_all('{l,m}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,f}')
    (0,1,,,)

    -- Others wait.
    + held('k', NULL, NULL, 4, special => true), waits('k', 5, 'b1', tokens => 2)
    > ask_all('{l,k}', '{a1,a2}', '{1000,2000}', '{1,1}', '{t,t}')
    (0,2,,{b1},{+000000})
    k hold b1(3000,+000001,+000001,f,)

    + held('k', 'c1', 30, 4, 4, true), waits('k', 5, 'b1', tokens => 2)
    @ 30
    > ask_all('{l,k}', '{a1,a2}', '{1000,2000}', '{1,1}', '{t,t}')
    (0,2,,{b1},{+000030})
    k hold b1(3030,+000031,+000031,f,)

    + held('k', 'c1', 30, 4, 4, true), waits('k', 5, 'b1', tokens => 2)
    @ 29
    > ask_all('{l,k}', '{a1,a2}', '{1000,2000}', '{1,1}', '{t,t}')
    (0,2,,,)

    + held('k', NULL, NULL, 4, special => true), waits('k', 5, 'b1', tokens => 2)
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{1,1}', '{f,t}')
    (1,0,{+000000,+000000},,)
    k hold a1(1000,+000000,+000000,t,)
    k wait 5 b1(,,00:00:00.003,,2,0,)
    l hold a2(2000,+000000,+000000,f,)

    + open('k'), waits('k', 5, 'b1', 1, 3)
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,f}')
    (0,1,,{b1},{NULL})
    k hold (,0,,t,3)
    k share b1(1,3000,)

    + open('k'), waits('k', 5, 'b1', suspended => 0)
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,f}')
    (1,0,{NULL,NULL},,)
    k hold a1(1000,0,,t,)
    k wait 5 b1(,,00:00:00.003,,0,0,0)
    l hold a2(2000,0,,f,)

    + open('k'), open('l'), waits('k', 5, 'b1', 1, 3, tokens => 1), waits('l', 6, 'c1')
    > ask_all('{l,k}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,t}')
    (0,1,,{c1},{NULL})
    k hold (,0,,t,)
    k wait 5 b1(1,3,00:00:00.003,,1,0,)
    l hold c1(3000,0,,f,)

    + open('k'), open('l'), waits('k', 5, 'b1', ends => -1), waits('l', 6, 'c1', ends => 0)
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,t}')
    (0,2,,{c1},{NULL})
    l hold c1(3000,0,,f,)

    -- The first that fails is named.
    + open('k'), latched('k', 30), held('l', 'b1', 30)
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{f,f}')
    (2,1,,,)

    -- Those who wait come first, also if the clock was set back.
    + held('k', NULL, 30, special => true), waits('k', 5, 'b1')
    > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,0}', '{t,f}')
    (0,1,,{b1},{NULL})
    k hold b1(3000,0,,f,)";

/// Whoever can only wait does not wait for the head row, which another transaction has locked.
const BUSY: &str = "
    1 ALTER FUNCTION lock_store.acquire SET lock_timeout = '20ms'
    + held('k', 'b1', 1000)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR UPDATE
    > ask('a1')
    (0,,,1000,f,b1,,)
    > ask('a1', queue => 0)
    (0,,,1000,f,b1,,)
    > ask('a1', queue => 2)
    55P03
    > ask('a1', instead => 'b2')
    55P03
    > ask('a1', 1, 3)
    55P03
    > ask('b1')
    55P03

    -- It has a place, and its client is seen.
    + held('k', 'b1', 900000, special => true), waits('k', 1, 'c1', seen => -5)
    + waits('k', 2, 'a1', seen => -400000), waits('k', 3, 'a2', suspended => -5)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR UPDATE
    @ 100001
    > ask('a1', queue => 0)
    (0,,,799999,f,b1,,)
    > ask('a1', queue => 1)
    (0,,,799999,t,b1,,)
    > ask('a3', queue => 1)
    (0,,,799999,f,b1,,)
    > ask('a3', queue => 2)
    55P03
    > ask('a1', queue => 0, instead => 'b2')
    55P03
    > ask('a1', queue => 2, instead => 'b2')
    55P03
    > ask('a1', queue => 2)
    (0,,,799999,t,b1,,)
    k hold b1(900000,0,,t,)
    k wait 1 c1(,,00:00:00.003,,0,-5,)
    k wait 2 a1(,,00:00:00.003,,0,100001,)
    k wait 3 a2(,,00:00:00.003,,0,100001,)

    + open('k', 4), shared('k', 'b1', 3, 1000), shared('k', 'c1', 1, 900)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR UPDATE
    > ask('a1', 1, 4)
    (0,,,900,f,c1,,)
    > ask('a1', 2, 5)
    (0,,4,900,f,c1,,)
    > ask('a1', 1, 3)
    (0,,4,900,f,c1,,)
    > ask('a1', 1, 5)
    55P03
    > ask('a1')
    55P03
    > ask('a1', 1, 4, queue => 2)
    55P03";

/// Others have locked the head row, and change it.
const RACES: &str = "
    1 ALTER FUNCTION lock_store.acquire SET lock_timeout = '20s'
    + held('k', NULL, NULL, 1800000000000100)
    2 BEGIN; UPDATE lock_store.hold SET last = 1800000000000500 WHERE name = 'k'
    ~ ask('a1', fences => 3)
    (1,+000501,,,f,,,)
    k hold a1(1000,+000503,+000503,f,)

    -- A sweep deletes it just now.
    + held('k', NULL, NULL, 1800000000000100)
    2 BEGIN; DELETE FROM lock_store.hold WHERE name = 'k'
    ~ ask('a1', fences => 3)
    (1,+000101,,,f,,,)
    k hold a1(1000,+000103,+000103,f,)

    + held('k', NULL, NULL, 5)
    2 BEGIN; UPDATE lock_store.hold SET last = 6 WHERE name = 'k'
    ~ ask('a1')
    (1,,,,f,,,)
    k hold a1(1000,6,,f,)

    2 BEGIN; SELECT set_clock.held('k', NULL, NULL, 5)
    ~ ask('a1')
    (1,,,,f,,,)
    k hold a1(1000,5,,f,)

    -- It is not free any more.
    + held('k', NULL, NULL, 5)
    2 SET search_path = set_clock, lock_store, pg_catalog
    2 BEGIN; UPDATE hold SET owner = o('b1'), ends = t(1000) WHERE name = 'k'
    ~ ask('a1')
    (0,,,1000,f,b1,,)
    k hold b1(1000,5,,f,)

    + held('k', NULL, NULL, 5)
    2 BEGIN; UPDATE lock_store.hold SET special = true WHERE name = 'k'
    2 SELECT set_clock.waits('k', 4, 'b1')
    ~ ask('a1')
    (0,,,3000,f,b1,{b1},{NULL})
    k hold b1(3000,5,,f,)

    -- It is ended meanwhile.
    + held('k', 'b1', 1000)
    2 BEGIN; UPDATE lock_store.hold SET owner = NULL, ends = '-infinity' WHERE name = 'k'
    ~ ask('a1', queue => 2)
    (1,,,,f,,,)
    k hold a1(1000,0,,f,)

    -- What is part of a statement with others does not wait.
    + held('k', 'b1', 1000)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR UPDATE
    ~ pg_current_xact_id() IS NULL, ask('a1', queue => 2)
    55P03

    + held('k', 'b1', 1000)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR UPDATE
    ~ pg_current_xact_id() IS NULL, ask('a1', 1, 3)
    f|(2,,,,f,,,)

    + held('k', 'b1', 1000)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR UPDATE
    ~ ask('a1', 1, 3, queue => 2)
    (2,,,,f,,,)";

/// A latch is no lock.
const LATCHES: &str = "
    + open('k'), latched('k', 1000)
    @ 999
    > ask('a1')
    (2,,,,f,,,)
    @ 1000
    > ask('a1')
    (1,,,,f,,,)
    k hold a1(2000,0,,f,)

    + open('k'), latched('k', 1000)
    > ask('a1', 1, 3)
    (2,,,,f,,,)
    > ask('a1', queue => 2)
    (2,,,,f,,,)

    -- Nothing is changed there.
    + open('k'), latched('k', 1000), waits('k', 4, 'b1', ends => -1), shared('k', 'c1', 1, 0)
    > ask('a1')
    (2,,,,f,,,)
    > ask('b1', queue => 2)
    (2,,,,t,,,)";

/// A hold is exchanged for another.
const EXCHANGES: &str = "
    + held('k', 'b1', 1000, 5, 5)
    > ask('a1', instead => 'b1')
    (1,,,,f,,,)
    k hold a1(1000,5,,f,)

    + held('k', 'b1', 1000, 5, 5)
    > ask('a1', rw(), rw(), instead => 'b1')
    (1,,,,f,,,)
    k hold (,5,,t,2147483647)
    k share a1(2147483647,1000,)

    + held('k', 'b1', 1000, 5, 5)
    > ask('a1', 1, 3, instead => 'b1', queue => 0, fences => 1)
    (1,+000000,,,f,,,)
    k hold (,+000000,,t,3)
    k share a1(1,1000,+000000)

    -- Another's, which is not exchanged.
    + held('k', 'c1', 1000, 5, 5)
    > ask('a1', instead => 'b1')
    (0,,,1000,f,c1,,)

    + held('k', 'c1', 1000, 5, 5)
    > ask('a1', instead => 'b1', queue => 2)
    (0,,,1000,t,c1,,)
    k hold c1(1000,5,5,t,)
    k wait 1 a1(,,00:00:00.004,,0,0,)

    -- An open check keeps it.
    + held('k', 'b1', 1000, 5, 5)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR KEY SHARE
    > ask('a1', instead => 'b1')
    LK004
    > ask('a1', 1, 3, instead => 'b1')
    LK004
    > ask('a1', instead => 'b2')
    (0,,,1000,f,b1,,)
    @ 1000
    > ask('a1', instead => 'b1')
    (3,,,,f,,,)

    -- Those who wait come first.
    + held('k', 'b1', 1000, 5, 5, true), waits('k', 4, 'c1', tokens => 2)
    > ask('a1', instead => 'b1')
    (0,,,3000,f,c1,{c1},{+000000})
    k hold c1(3000,+000001,+000001,f,)

    + held('k', 'b1', 1000, 5, 5, true), waits('k', 4, 'c1', tokens => 2)
    > ask('a1', instead => 'b1', queue => 0)
    (1,,,,f,,,)
    k hold a1(1000,5,,t,)
    k wait 4 c1(,,00:00:00.003,,2,0,)

    -- It waits itself.
    + held('k', 'c1', 1000, 5, 5, true), waits('k', 4, 'a1'), waits('k', 5, 'b1')
    > ask('a1', instead => 'b1')
    (0,,,1000,t,c1,,)
    > ask('a2', instead => 'b1')
    (0,,,1000,f,c1,,)
    > ask('a1', instead => 'b1', queue => 0)
    (0,,,1000,f,c1,,)
    > ask('a1', instead => 'b1', queue => 2)
    (0,,,1000,t,c1,,)";

#[tokio::test]
async fn a_free_lock_is_given_and_one_that_is_held_is_not() {
    let cases = Cases::new().await;
    for part in [FREE, LATCHES, EXCHANGES, SEVERAL, BUSY, RACES] {
        cases.run(part).await;
    }
}

/// Each row that is written takes a microsecond.
#[tokio::test]
async fn a_command_that_comes_too_late_leaves_nothing() {
    let cases = Cases::new().await;
    cases.moments.run(super::TAKES_TIME).await;
    cases
        .run(
            "
            @ 1
            > ask('a1', late => 0)
            LK001

            @ 1
            > ask('a1', late => 1)
            LK001

            @ 0
            > ask('a1', late => 0)
            LK001

            @ 0
            > ask('a1', late => 1)
            (1,,,,f,,,)
            k hold a1(1000,0,,f,)

            + held('k', NULL, NULL, 5)
            @ 0
            > ask('a1', late => 1)
            (1,,,,f,,,)
            k hold a1(1000,5,,f,)

            + held('k', 'b1', 1000)
            @ 1
            > ask('a1', late => 0)
            LK001

            -- The head row is made late.
            + latched('k', 1000)
            @ 0
            > ask('a1', 1, 3, late => 0)
            LK001

            + latched('k', 1000)
            @ 0
            > ask('a1', 1, 3, late => 1)
            (2,,,,f,,,)
            k hold (,0,,f,)

            @ 0
            > ask('a1', 1, 3, late => 2)
            LK001

            @ 0
            > ask('a1', 1, 3, late => 3)
            (1,,,,f,,,)
            k hold (,0,,t,3)
            k share a1(1,1001,)

            + held('k', 'b1', 1000)
            @ 0
            > ask('a1', queue => 2, late => 0)
            LK001

            + held('k', 'b1', 1000)
            @ 0
            > ask('a1', queue => 2, late => 1)
            LK001

            + held('k', 'b1', 1000)
            @ 0
            > ask('a1', queue => 2, late => 2)
            (0,,,1000,t,b1,,)
            k hold b1(1000,0,,t,)
            k wait 1 a1(,,00:00:00.004,,0,0,)

            @ 0
            > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,1}', '{t,f}', late => 3)
            LK001

            @ 0
            > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,1}', '{t,f}', late => 4)
            LK001

            @ 0
            > ask_all('{k,l}', '{a1,a2}', '{1000,2000}', '{0,1}', '{t,f}', late => 5)
            (1,0,{NULL,+000002},,)
            k hold a1(1002,0,,f,)
            l hold a2(2002,+000002,+000002,f,)",
        )
        .await;
}
