//! The tables.
//!
//! Times are nanoseconds of the machine's boot time, except in `machine` and `fence`. A lock, a
//! latch or a bucket has a name: namespace, `:`, key. A namespace has no `:`. A session is one
//! client's life. Numbers of requests are stored as signed.

/// Says whose database it is: `lock` in ASCII.
pub(crate) const APPLICATION: i64 = 0x6C6F_636B;

/// Rises whenever the tables change.
pub(crate) const VERSION: i64 = 1;

pub(crate) const TABLES: &str = "
    -- The boot in which all times of the other tables are, and its clock: `micros` since 1970 at
    -- the boot time `nanos`. No token below `floor` is given again.
    CREATE TABLE machine (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        boot TEXT NOT NULL,
        micros INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        floor INTEGER NOT NULL
    );
    CREATE TABLE client (
        session INTEGER PRIMARY KEY AUTOINCREMENT,
        file TEXT NOT NULL,
        client BLOB NOT NULL,
        process INTEGER,
        space INTEGER
    );
    -- `kept` is 0, or the number of permits that stay taken after a release. Such a rest has no
    -- session: it lasts longer than its client. All holds of a lock have the capacity of the last
    -- holder's request.
    CREATE TABLE hold (
        name TEXT NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        session INTEGER,
        permits INTEGER,
        capacity INTEGER,
        ends INTEGER NOT NULL,
        PRIMARY KEY (name, client, request, kept)
    ) WITHOUT ROWID;
    CREATE TABLE place (
        name TEXT NOT NULL,
        number INTEGER NOT NULL,
        session INTEGER NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        permits INTEGER,
        capacity INTEGER,
        first_lease INTEGER NOT NULL,
        ends INTEGER,
        tokens INTEGER NOT NULL,
        heard INTEGER NOT NULL,
        passed_over INTEGER,
        PRIMARY KEY (name, number)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX place_of ON place (name, session, client, request);
    CREATE TABLE fence (
        name TEXT PRIMARY KEY,
        token INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX fence_by_token ON fence (token);
    CREATE TABLE rate (
        name TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        debt INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX rate_by_end ON rate (ends);
    CREATE TABLE latch (
        name TEXT PRIMARY KEY,
        count INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        opened INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE latch_place (
        name TEXT NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        session INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        PRIMARY KEY (name, client, request)
    ) WITHOUT ROWID;
    -- The counts that calls on latches left.
    CREATE TABLE call (
        name TEXT NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        left INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        PRIMARY KEY (name, client, request)
    ) WITHOUT ROWID;
    CREATE INDEX call_by_end ON call (ends);
";

/// What ends with the machine. Tokens stay: they rise for ever.
pub(crate) const END_OF_BOOT: &str = "
    DELETE FROM client;
    DELETE FROM hold;
    DELETE FROM place;
    DELETE FROM rate;
    DELETE FROM latch;
    DELETE FROM latch_place;
    DELETE FROM call;
";
