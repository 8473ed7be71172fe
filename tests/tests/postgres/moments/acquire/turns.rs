//! Requests for parts of a lock, and for a lock that others wait for.

use super::Cases;

/// Parts are given as long as they fit.
const PARTS: &str = "
    + open('k', 4), shared('k', 'b1', 2, 1000), shared('k', 'c1', 1, 500)
    @ 499
    > ask('a1', 2, 4)
    (0,,,1,f,c1,,)
    > ask('a1', 1, 4)
    (1,,,,f,,,)
    k hold (,0,,t,4)
    k share a1(1,1499,)
    k share b1(2,1000,)
    k share c1(1,500,)

    + open('k', 4), shared('k', 'b1', 2, 1000), shared('k', 'c1', 1, 500)
    @ 500
    > ask('a1', 2, 4)
    (1,,,,f,,,)
    k hold (,0,,t,4)
    k share a1(2,1500,)
    k share b1(2,1000,)

    + open('k', 4), shared('k', 'b1', 2, 1000), shared('k', 'c1', 1, 500)
    > ask('a1', 2, 4, queue => 2)
    (0,,,500,t,c1,,)
    k hold (,0,,t,4)
    k share b1(2,1000,)
    k share c1(1,500,)
    k wait 1 a1(2,4,00:00:00.004,,0,0,)

    + open('k', 4), shared('k', 'b1', 2, 1000)
    > ask('a1', 1, 5, queue => 0)
    (1,,4,,f,,,)
    k hold (,0,,t,5)
    k share a1(1,1000,)
    k share b1(2,1000,)

    + open('k', 4), shared('k', 'b1', 2, 1000)
    > ask('a1', 3, 5, queue => 2)
    (1,,4,,f,,,)
    k hold (,0,,t,5)
    k share a1(3,1000,)
    k share b1(2,1000,)

    -- Its own part, in time and over, and of another size.
    + open('k', 4), shared('k', 'a1', 2, 1500, 7), shared('k', 'b1', 2, 1000)
    > ask('a1', 2, 4)
    (1,,,,f,,,)
    > ask('a1', 2, 5, lease => 2000, fences => 1)
    (1,+000000,4,,f,,,)
    k hold (,+000000,,t,4)
    k share a1(2,2000,+000000)
    k share b1(2,1000,)

    + open('k', 4), shared('k', 'a1', 2, 900, 7), shared('k', 'b1', 2, 1000)
    @ 900
    > ask('a1', 2, 4)
    (1,,,,f,,,)
    k hold (,0,,t,4)
    k share a1(2,1900,)
    k share b1(2,1000,)

    + open('k', 4), shared('k', 'a1', 2, 1500, 7)
    > ask('a1', 1, 4)
    (1,,,,f,,,)

    -- Nothing for those of another kind.
    + open('k', 4), shared('k', 'b1', 1, 1000), shared('k', 'c1', 1, 500)
    @ 500
    > ask('a1')
    (2,,,,f,,,)
    k hold (,0,,t,4)
    k share b1(1,1000,)

    + open('k', 4), shared('k', 'b1', 1, 1000)
    > ask('a1', queue => 0)
    (2,,,,f,,,)

    + open('k', 4), shared('k', 'b1', 1, 1000)
    > ask('a1', 1, rw())
    (2,,4,,f,,,)

    + open('k', 4), shared('k', 'b1', 1, 1000)
    > ask('a1', 1, rw(), queue => 0)
    (2,,4,,f,,,)

    + open('k', rw()), shared('k', 'b1', 1, 1000)
    > ask('a1', 1, 4)
    (2,,2147483647,,f,,,)

    + open('k', rw()), shared('k', 'b1', 1, 1000)
    > ask('a1', 1, rw())
    (1,,,,f,,,)
    k hold (,0,,t,2147483647)
    k share a1(1,1000,)
    k share b1(1,1000,)

    + open('k', rw()), shared('k', 'b1', 1, 1000)
    > ask('a1', 1, 4, queue => 2)
    (2,,2147483647,,f,,,)

    + open('k', 4), shared('k', 'b1', 1, 1000)
    @ 1000
    > ask('a1')
    (1,,,,f,,,)
    k hold a1(2000,0,,f,4)

    + open('k', 4), shared('k', 'b1', 1, 1000)
    @ 1000
    > ask('a1', 1, rw())
    (1,,,,f,,,)
    k hold (,0,,t,2147483647)
    k share a1(1,2000,)

    -- Nothing for parts while the whole is held.
    + held('k', 'b1', 1000, 5, 5)
    @ 999
    > ask('a1', 1, 3)
    (2,,,,f,,,)
    > ask('a1', 1, 3, queue => 0)
    (2,,,,f,,,)
    > ask('a1', 1, 3, queue => 2)
    (2,,,,f,,,)
    @ 1000
    > ask('a1', 1, 3)
    (1,,,,f,,,)
    k hold (1000,5,,t,3)
    k share a1(1,2000,)

    + held('k', 'b1', 1000, capacity => 7)
    > ask('a1', 1, 3)
    (2,,,,f,,,)

    + held('k', 'b1', 1000, special => true), shared('k', 'c1', 1, 0)
    > ask('a1', 1, 3)
    (2,,,,f,,,)
    k hold b1(1000,0,,f,)

    -- Those with parts are asked, also if the clock was set back.
    + held('k', NULL, 1000, special => true, capacity => 4), shared('k', 'b1', 1, 1000)
    > ask('a1', queue => 0)
    (2,,,,f,,,)

    + held('k', 'c1', 1000, special => true, capacity => 4), shared('k', 'b1', 1, 2000)
    @ 1000
    > ask('a1', queue => 0)
    (2,,,,f,,,)";

/// Whoever respects the queue hands over first.
const TURNS: &str = "
    + open('k'), waits('k', 4, 'b1', tokens => 2), waits('k', 5, 'c1')
    > ask('a1')
    (0,,,3000,f,b1,{b1},{+000000})
    k hold b1(3000,+000001,+000001,t,)
    k wait 5 c1(,,00:00:00.003,,0,0,)

    + open('k'), waits('k', 4, 'b1', tokens => 2), waits('k', 5, 'c1')
    > ask('a1', queue => 2)
    (0,,,3000,t,b1,{b1},{+000000})
    k hold b1(3000,+000001,+000001,t,)
    k wait 5 c1(,,00:00:00.003,,0,0,)
    k wait 6 a1(,,00:00:00.004,,0,0,)

    + open('k'), waits('k', 4, 'b1', tokens => 2), waits('k', 5, 'c1')
    > ask('a1', queue => 0)
    (1,,,,f,,,)
    k hold a1(1000,0,,t,)
    k wait 4 b1(,,00:00:00.003,,2,0,)
    k wait 5 c1(,,00:00:00.003,,0,0,)

    + open('k'), waits('k', 4, 'b1')
    > ask('a1', 1, 3)
    (2,,,,f,,{b1},{NULL})
    k hold b1(3000,0,,f,)

    + open('k'), waits('k', 4, 'b1', 1, 3)
    > ask('a1')
    (2,,,,f,,{b1},{NULL})
    k hold (,0,,t,3)
    k share b1(1,3000,)

    + open('k'), waits('k', 4, 'b1', 1, 3)
    > ask('a1', 2, 3)
    (1,,,,f,,{b1},{NULL})
    k hold (,0,,t,3)
    k share a1(2,1000,)
    k share b1(1,3000,)

    + open('k'), waits('k', 4, 'b1', 2, 3)
    > ask('a1', 2, 3)
    (0,,,3000,f,b1,{b1},{NULL})
    k hold (,0,,t,3)
    k share b1(2,3000,)

    + open('k'), waits('k', 4, 'b1', 1, 3)
    > ask('a1', 2, 5)
    (1,,,,f,,{b1},{NULL})
    k hold (,0,,t,5)
    k share a1(2,1000,)
    k share b1(1,3000,)

    + open('k'), waits('k', 4, 'b1', 1, 3)
    > ask('a1', 2, rw())
    (2,,,,f,,{b1},{NULL})
    k hold (,0,,t,3)
    k share b1(1,3000,)

    + open('k'), waits('k', 4, 'b1', rw(), rw())
    > ask('a1', 2, 4)
    (2,,,,f,,{b1},{NULL})
    k hold (,0,,t,2147483647)
    k share b1(2147483647,3000,)

    + open('k'), waits('k', 4, 'b1', 1, rw())
    > ask('a1', 1, rw())
    (1,,,,f,,{b1},{NULL})
    k hold (,0,,t,2147483647)
    k share a1(1,1000,)
    k share b1(1,3000,)

    -- The first does not fit, and nobody passes it.
    + open('k', 4), shared('k', 'b1', 3, 1000), waits('k', 4, 'c1', 2, 4)
    > ask('a1', 1, 4, queue => 2)
    (0,,,1000,t,b1,,)
    k hold (,0,,t,4)
    k share b1(3,1000,)
    k wait 4 c1(2,4,00:00:00.003,,0,0,)
    k wait 5 a1(1,4,00:00:00.004,,0,0,)

    + open('k', 4), shared('k', 'b1', 3, 1000), waits('k', 4, 'c1', 2, 4)
    > ask('a1', 1, 4, queue => 0)
    (0,,,1000,f,b1,,)

    -- Its own place is the first.
    + open('k'), waits('k', 4, 'a1'), waits('k', 5, 'b1')
    > ask('a1')
    (1,,,,t,,,)
    k hold a1(1000,0,,t,)
    k wait 5 b1(,,00:00:00.003,,0,0,)

    + open('k'), waits('k', 4, 'a1', tokens => 1), waits('k', 5, 'b1')
    > ask('a1', queue => 2, fences => 1)
    (1,+000000,,,t,,,)
    k hold a1(1000,+000000,+000000,t,)
    k wait 5 b1(,,00:00:00.003,,0,0,)

    -- It goes on with those behind it.
    + open('k', 4), shared('k', 'd1', 1, 1000), waits('k', 4, 'a1', 1, 4)
    + waits('k', 5, 'b1', 1, 4, tokens => 1), waits('k', 6, 'c1', 2, 4)
    > ask('a1', 1, 4, queue => 2)
    (1,,,,t,,{b1},{+000000})
    k hold (,+000000,,t,4)
    k share a1(1,1000,)
    k share b1(1,3000,+000000)
    k share d1(1,1000,)
    k wait 6 c1(2,4,00:00:00.003,,0,0,)

    + open('k', 4), shared('k', 'd1', 1, 1000), waits('k', 5, 'b1', 1, 4)
    > ask('a1', 1, 4, queue => 0)
    (1,,,,f,,{b1},{NULL})
    k hold (,0,,t,4)
    k share a1(1,1000,)
    k share b1(1,3000,)
    k share d1(1,1000,)

    1 DELETE FROM lock_store.place
    + open('k', 4), shared('k', 'd1', 1, 1000), waits('k', 5, 'b1', 1, 4)
    > ask('a1', 1, 4, queue => 0)
    (1,,,,f,,{b1},{NULL})
    k hold (,0,,t,4)
    k share a1(1,1000,)
    k share b1(1,3000,)
    k share d1(1,1000,)

    -- Its own place is behind one that is given something.
    + open('k', 4), shared('k', 'd1', 2, 1000), waits('k', 4, 'b1', 1, 4, tokens => 2)
    + waits('k', 5, 'a1', 2, 4, seen => -9), waits('k', 6, 'a2', 1, 4, suspended => -7)
    + waits('k', 7, 'c1', 1, 4, suspended => -7)
    > ask('a1', 2, 4, queue => 2)
    (0,,,1000,t,d1,{b1},{+000000})
    k hold (,+000001,,t,4)
    k share b1(1,3000,+000001)
    k share d1(2,1000,)
    k wait 5 a1(2,4,00:00:00.003,,0,0,)
    k wait 6 a2(1,4,00:00:00.003,,0,0,)
    k wait 7 c1(1,4,00:00:00.003,,0,0,-7)

    + open('k', 4), shared('k', 'd1', 2, 1000), waits('k', 4, 'b1', 1, 4, tokens => 2)
    + waits('k', 5, 'a1', 2, 4, seen => -9), waits('k', 6, 'a2', 1, 4, suspended => -7)
    > ask('a1', 2, 4)
    (0,,,1000,t,d1,{b1},{+000000})
    k hold (,+000001,,t,4)
    k share b1(1,3000,+000001)
    k share d1(2,1000,)
    k wait 5 a1(2,4,00:00:00.003,,0,-9,)
    k wait 6 a2(1,4,00:00:00.003,,0,0,-7)

    + open('k', 4), shared('k', 'd1', 2, 1000), waits('k', 4, 'b1', 1, 4, tokens => 2)
    + waits('k', 5, 'c1', 2, 4, seen => -9), waits('k', 6, 'a2', 1, 4, suspended => -7)
    > ask('a1', 2, 4)
    (0,,,1000,f,d1,{b1},{+000000})
    k hold (,+000001,,t,4)
    k share b1(1,3000,+000001)
    k share d1(2,1000,)
    k wait 5 c1(2,4,00:00:00.003,,0,-9,)
    k wait 6 a2(1,4,00:00:00.003,,0,0,-7)

    -- It is forgotten just now.
    + open('k', 4), shared('k', 'd1', 3, 900000000)
    + waits('k', 5, 'a1', 2, 4, suspended => 0)
    @ 60000001
    > ask('a1', 2, 4)
    (0,,,839999999,f,d1,,)
    k hold (,0,,t,4)
    k share d1(3,900000000,)";

/// An open `lock_check` keeps the lock busy.
const CHECKS: &str = "
    + held('k', 'b1', 1000, 5, 5)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR KEY SHARE
    @ 1000
    > ask('a1')
    (3,,,,f,,,)
    > ask('a1', queue => 0)
    (3,,,,f,,,)
    > ask('a1', 1, 3)
    (3,,,,f,,,)
    > ask('b1')
    (3,,,,f,,,)
    > ask('a1', queue => 2)
    (3,,,,t,,,)
    k hold b1(1000,5,5,t,)
    k wait 1 a1(,,00:00:00.004,,0,1000,)
    > ask('a1', queue => 2)
    (3,,,,t,,,)

    -- Others wait.
    + held('k', 'b1', 1000, 5, 5, true), waits('k', 4, 'c1')
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR KEY SHARE
    @ 1000
    > ask('a1')
    (3,,,,f,,,)
    > ask('a1', queue => 2)
    (3,,,,t,,,)
    k hold b1(1000,5,5,t,)
    k wait 4 c1(,,00:00:00.003,,0,0,)
    k wait 5 a1(,,00:00:00.004,,0,1000,)

    -- The check is that of a part, and others have none.
    + open('k', 4), shared('k', 'b1', 3, 1000)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR KEY SHARE
    > ask('a1', 1, 4)
    (3,,,1000,f,b1,,)
    > ask('a1', 2, 4)
    (0,,,1000,f,b1,,)
    > ask('a1')
    (2,,,,f,,,)

    + held('k', 'b1', 1000, 5, 5)
    2 BEGIN; SELECT FROM lock_store.hold WHERE name = 'k' FOR KEY SHARE
    > ask('a1')
    (0,,,1000,f,b1,,)
    > ask('a1', 1, 3)
    (2,,,,f,,,)";

/// Whoever joins gets the last place.
const JOINS: &str = "
    + held('k', 'b1', 1000)
    > ask('a1', queue => 2)
    (0,,,1000,t,b1,,)
    k hold b1(1000,0,,t,)
    k wait 1 a1(,,00:00:00.004,,0,0,)
    @ 100
    > ask('a2', queue => 2, wait => 50, fences => 3)
    (0,,,900,t,b1,,)
    k hold b1(1000,0,,t,)
    k wait 1 a1(,,00:00:00.004,,0,0,)
    k wait 2 a2(,,00:00:00.004,150,3,100,)
    > ask('c1', queue => 2)
    (0,,,900,t,b1,,)
    k hold b1(1000,0,,t,)
    k wait 1 a1(,,00:00:00.004,,0,0,)
    k wait 2 a2(,,00:00:00.004,150,3,100,)
    k wait 3 c1(,,00:00:00.004,,0,100,)

    + held('k', 'b1', 1000)
    > ask('a1', queue => 2)
    (0,,,1000,t,b1,,)
    k hold b1(1000,0,,t,)
    k wait 1 a1(,,00:00:00.004,,0,0,)
    @ 999
    > ask('a1', queue => 2)
    (0,,,1,t,b1,,)
    @ 1000
    > ask('a1', queue => 2)
    (1,,,,t,,,)
    k hold a1(2000,0,,f,)

    -- The client's places that were suspended come back, and no others.
    + held('k', 'b1', 9000, special => true), waits('k', 4, 'a2', suspended => -3)
    + waits('k', 6, 'a3', seen => -2), waits('k', 5, 'c1', suspended => -4)
    > ask('a1', queue => 2)
    (0,,,9000,t,b1,,)
    k hold b1(9000,0,,t,)
    k wait 4 a2(,,00:00:00.003,,0,0,)
    k wait 5 c1(,,00:00:00.003,,0,0,-4)
    k wait 6 a3(,,00:00:00.003,,0,-2,)
    k wait 7 a1(,,00:00:00.004,,0,0,)

    + open('k', 4), shared('k', 'b1', 4, 9000), waits('k', 3, 'c1', 1, 4)
    > ask('a1', 2, 4, wait => 70, queue => 2)
    (0,,,9000,t,b1,,)
    k hold (,0,,t,4)
    k share b1(4,9000,)
    k wait 3 c1(1,4,00:00:00.003,,0,0,)
    k wait 4 a1(2,4,00:00:00.004,70,0,0,)

    + open('k', 4), shared('k', 'b1', 4, 9000)
    > ask('a1', 2, 5, wait => 70, queue => 2, fences => 1)
    (0,,4,9000,t,b1,,)
    k hold (,0,,t,4)
    k share b1(4,9000,)
    k wait 1 a1(2,5,00:00:00.004,70,1,0,)";

#[tokio::test]
async fn a_request_gets_what_fits_when_it_is_its_turn() {
    let cases = Cases::new().await;
    for part in [PARTS, TURNS, CHECKS, JOINS] {
        cases.run(part).await;
    }
}
