//! How locks are taken: `acquire`, and the functions that are its parts.
//!
//! Cases are text. Lines of a case, with microseconds after `NOW`:
//! - `@ 5` the time, `+ …` rows that are there, as calls of `SHORT`,
//! - `1 …` statements of the session that is asked,
//! - `2 …` statements of a second session, which ends its transaction with the case,
//! - `~ …` a query for which the second session ends its transaction when it waits for that,
//! - `> …` a query; then the rows it gives, and all rows but `j`'s if they are others
//!   than before. Those of `j` stay.

mod parts;
mod turns;
mod waits;

use tokio_postgres::Client;

use super::Moments;

/// Shorter ways to write rows, and to ask.
const SHORT: &str = "
    CREATE FUNCTION set_clock.t(us bigint) RETURNS timestamptz LANGUAGE sql AS
    $$ SELECT coalesce(
        'epoch'::timestamptz + lock_store.span(1800000000000000 + us), '-infinity') $$;
    CREATE FUNCTION set_clock.o(owner text) RETURNS bytea LANGUAGE sql AS
    $$ SELECT decode(repeat(left(owner, 1), 32) || repeat('0' || substr(owner, 2), 8), 'hex') $$;
    CREATE FUNCTION set_clock.h(name text) RETURNS lock_store.hold LANGUAGE sql AS
    $$ SELECT * FROM lock_store.hold h WHERE h.name = $1::bytea $$;
    -- The capacity of a read-write lock.
    CREATE FUNCTION set_clock.rw() RETURNS integer LANGUAGE sql AS $$ SELECT 2147483647 $$;

    CREATE FUNCTION set_clock.held(
        name text, owner text, ends bigint, last bigint DEFAULT 0, token bigint DEFAULT NULL,
        special boolean DEFAULT false, capacity integer DEFAULT NULL
    ) RETURNS void LANGUAGE sql AS $$
        INSERT INTO lock_store.hold VALUES (
            name::bytea, set_clock.o(owner), set_clock.t(ends), last, token, special, capacity)
    $$;
    -- A head row of a lock that others share, or wait for.
    CREATE FUNCTION set_clock.open(name text, capacity integer DEFAULT NULL)
    RETURNS void LANGUAGE sql AS
    $$ SELECT set_clock.held(name, NULL, NULL, special => true, capacity => capacity) $$;
    CREATE FUNCTION set_clock.shared(
        name text, owner text, permits integer, ends bigint, token bigint DEFAULT NULL
    ) RETURNS void LANGUAGE sql AS $$
        INSERT INTO lock_store.share
        VALUES (name::bytea, set_clock.o(owner), permits, token, set_clock.t(ends))
    $$;
    CREATE FUNCTION set_clock.waits(
        name text, number bigint, owner text, permits integer DEFAULT NULL,
        capacity integer DEFAULT NULL, ends bigint DEFAULT NULL, seen bigint DEFAULT 0,
        suspended bigint DEFAULT NULL, tokens integer DEFAULT 0
    ) RETURNS void LANGUAGE sql AS $$
        INSERT INTO lock_store.place VALUES (
            name::bytea, number, set_clock.o(owner), substr(set_clock.o(owner), 1, 16), permits,
            capacity, '3 milliseconds',
            CASE WHEN ends IS NULL THEN 'infinity' ELSE set_clock.t(ends) END, tokens,
            set_clock.t(seen), CASE WHEN suspended IS NOT NULL THEN set_clock.t(suspended) END)
    $$;
    CREATE FUNCTION set_clock.latched(name text, ends bigint) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO lock_store.latch VALUES (name::bytea, 1, 1, 0, set_clock.t(ends)) $$;

    CREATE FUNCTION set_clock.ask(
        owner text, p integer DEFAULT NULL, c integer DEFAULT NULL, queue integer DEFAULT 1,
        fences integer DEFAULT 0, instead text DEFAULT NULL, wait bigint DEFAULT NULL,
        lease bigint DEFAULT 1000, late bigint DEFAULT 2000000000
    ) RETURNS text LANGUAGE sql AS $$
        SELECT x::text FROM lock_store.acquire(
            'k', set_clock.o(owner), p, c, lease, 4000, wait, fences, queue,
            set_clock.o(instead), 1800000000000000 + late) x
    $$;
    CREATE FUNCTION set_clock.ask_all(
        names text[], owners text[], leases bigint[], fences integer[], respects boolean[],
        late bigint DEFAULT 2000000000
    ) RETURNS text LANGUAGE sql AS $$
        SELECT x::text FROM lock_store.acquire_all(
            names::bytea[], ARRAY(SELECT set_clock.o(u.o) FROM unnest(owners) u (o)), leases,
            fences, respects, 1800000000000000 + late) x
    $$";

/// Beside what a case is about.
const BESIDE: &str = "
    DELETE FROM lock_store.hold; DELETE FROM lock_store.share; DELETE FROM lock_store.place;
    DELETE FROM lock_store.latch; UPDATE lock_store.meta SET floor = 0;
    SELECT held('j', 'd1', 77000, 9, 8, true, 3), shared('j', 'a1', 1, 88000, 4),
        shared('j', 'c1', 2, -88), waits('j', 1, 'a2', seen => -900000),
        waits('j', 7, 'a1', 2, 5, 5000, -900000, -4000), latched('j', 99000)";

/// All rows.
const ROWS: &str = "
    SELECT format('%s hold %s%s', encode(name, 'escape'), owner,
        ROW(after(ends), last, token, special, capacity))
    FROM lock_store.hold UNION ALL
    SELECT format('%s share %s%s', encode(name, 'escape'), owner, ROW(permits, after(ends), token))
    FROM lock_store.share UNION ALL
    SELECT format('%s wait %s %s%s', encode(name, 'escape'), number, owner, ROW(
        permits, capacity, first_lease, after(ends), tokens, after(seen), after(suspended)))
        || CASE WHEN client = substr(owner, 1, 16) THEN '' ELSE 'of another' END
    FROM lock_store.place ORDER BY 1";

/// Ends the second session's transaction when another waits for it, or needs not.
const AWAITED: &str = "
    DO $$ BEGIN
        FOR i IN 1 .. 15000 LOOP
            PERFORM pg_stat_clear_snapshot();
            EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted)
                OR EXISTS (SELECT FROM pg_stat_activity
                           WHERE query LIKE 'SELECT %ask(%' AND state <> 'active');
            PERFORM pg_sleep(0.001);
        END LOOP;
    END $$;
    COMMIT";

/// Each row that is written takes a microsecond.
const TAKES_TIME: &str = "
    CREATE FUNCTION set_clock.takes_time() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config(
            'moment.now', (current_setting('moment.now')::numeric + 0.000001)::text, false);
        RETURN NULL;
    END $$;
    CREATE TRIGGER takes_time AFTER INSERT OR UPDATE OR DELETE ON lock_store.hold
        FOR EACH ROW EXECUTE FUNCTION set_clock.takes_time();
    CREATE TRIGGER takes_time AFTER INSERT OR UPDATE OR DELETE ON lock_store.share
        FOR EACH ROW EXECUTE FUNCTION set_clock.takes_time();
    CREATE TRIGGER takes_time AFTER INSERT OR UPDATE OR DELETE ON lock_store.place
        FOR EACH ROW EXECUTE FUNCTION set_clock.takes_time()";

/// Cases, run on a server of their own.
struct Cases {
    moments: Moments,
    second: Client,
}

impl Cases {
    async fn new() -> Self {
        let moments = Moments::new().await;
        moments.run(SHORT).await;
        let second = moments.server.session().await;
        Self { moments, second }
    }

    /// The rows of `k` and others, and those of `j`.
    async fn rows(&self) -> (Vec<String>, Vec<String>) {
        let rows = self.query(ROWS).await.into_iter();
        rows.partition(|row| !row.starts_with("j "))
    }

    /// Tokens at the clock are shown as `+` and six digits.
    async fn query(&self, query: &str) -> Vec<String> {
        let rows = self.moments.query(query).await;
        let shown = |row: String| row.replace('\\', "").replace("1800000000", "+");
        let rows = rows.into_iter().map(shown);
        rows.filter(|row| !row.is_empty()).collect()
    }

    async fn run(&self, cases: &str) {
        for case in cases.split("\n\n") {
            self.second.batch_execute("ROLLBACK").await.unwrap();
            self.moments.run(&format!("ROLLBACK; {BESIDE}")).await;
            self.moments.at(0).await;
            let (mut said, mut expected) = (Vec::new(), Vec::new());
            for line in case.lines().map(str::trim).filter(|line| !line.is_empty()) {
                match line.split_once(' ') {
                    Some(("--", _)) => {}
                    Some(("@", time)) => self.moments.at(time.parse().unwrap()).await,
                    Some(("+", rows)) => self.moments.run(&format!("SELECT {rows}")).await,
                    Some(("1", other)) => self.moments.run(other).await,
                    Some(("2", other)) => self.second.batch_execute(other).await.unwrap(),
                    Some((how @ (">" | "~"), query)) => {
                        let (before, beside) = self.rows().await;
                        let query = format!("SELECT {query}");
                        said.extend(if how == ">" {
                            self.query(&query).await
                        } else {
                            let (said, ended) = tokio::join!(
                                self.query(&query),
                                self.second.batch_execute(AWAITED)
                            );
                            ended.unwrap();
                            said
                        });
                        let (after, left) = self.rows().await;
                        assert_eq!(left, beside, "{case}");
                        said.extend(if after == before { vec![] } else { after });
                    }
                    _ => expected.push(line.to_owned()),
                }
            }
            assert_eq!(said, expected, "{case}");
        }
    }
}
