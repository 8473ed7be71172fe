-- Locks of lock-runtime: tables and functions, in the schema `lock_store`.
--
-- Whoever applies this owns the locks. Clients need no rights on the tables:
--
--     GRANT USAGE ON SCHEMA lock_store TO app;
--     GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO app;
--
-- It may be applied again at any time, and then changes nothing.
--
-- How it works
-- - These are the rules of lock_store::rules. Where a function has the name of a part there, it is
--   the same: `hand_over`, `enter`, `has`, `mint`, and what a client calls. `look` is `hear` there.
--   What fits, and whose turn it is, stands in `hand_over`. `leave` is another: a client ends.
-- - A lock has a name: namespace, `:`, key, as bytes of UTF-8. All that changes a lock's holders or
--   its queue does so under the lock of its row in `hold`, the head row.
-- - An exclusive holder is in the head row, so that a free key takes one statement. Holders that
--   share a lock are in `share`. `special` is true if there may be rows in `share` or `place`, or a
--   latch. Where it is false, the head row is all there is, and one statement on it decides.
-- - Time is the server's, `clock_timestamp()`.
-- - An owner is the client's id of 16 bytes and the request's number of 8. More bytes mean that the
--   hold was released and stays taken for a while.
-- - The unique index `hold_check` makes a take-over, a release and a new token an update of a key.
--   `lock_check` locks the row FOR KEY SHARE, which keeps those out and lets renewals pass.
-- - Functions that are not `SECURITY DEFINER` are parts of others. Clients can't use them, for lack
--   of rights on the tables.
-- - Messages are not sent here, but by the client, in a transaction of their own: NOTIFY takes a
--   lock of the whole cluster until its transaction is on disk.

BEGIN;

-- Functions and operators that others have made for whoever applies this are not found.
SET LOCAL search_path = pg_catalog, pg_temp;
-- Locks go on: who waits for this waits no longer than so.
SET LOCAL lock_timeout = '10s';
-- Two that apply it at once wait for each other.
SELECT pg_advisory_xact_lock(7812447653921);
SET LOCAL client_min_messages = warning;
DO $do$
BEGIN
    -- The owner of the schema may apply this without the right to make one.
    IF to_regnamespace('lock_store') IS NULL THEN
        CREATE SCHEMA lock_store;
    END IF;
END
$do$;

-- Whoever may create schemas could make this one first, and would own what runs here with the
-- rights of the one who applies this. So all that is there must belong to that one, or to a role of
-- which it is a member. A superuser is one of those only that were granted to it, and not by the
-- role itself.
DO $do$
DECLARE
    stranger record;
BEGIN
    WITH RECURSIVE mine (role) AS (
        SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user
        UNION
        SELECT m.roleid FROM mine JOIN pg_catalog.pg_auth_members m
        ON m.member = mine.role AND m.grantor <> m.roleid
    ), there (classid, objid) AS (
        SELECT tableoid, oid FROM pg_catalog.pg_namespace WHERE nspname = 'lock_store'
        UNION
        SELECT d.classid, d.objid FROM pg_catalog.pg_namespace s JOIN pg_catalog.pg_depend d
        ON d.refclassid = s.tableoid AND d.refobjid = s.oid WHERE s.nspname = 'lock_store'
    )
    SELECT pg_catalog.pg_describe_object(classid, objid, 0) AS what,
        pg_catalog.pg_get_userbyid(refobjid) AS owner INTO stranger
    FROM there JOIN pg_catalog.pg_shdepend USING (classid, objid)
    WHERE deptype = 'o' AND refobjid NOT IN (SELECT role FROM mine)
      AND dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'LK005',
            MESSAGE = format('%s belongs to %s, and %s is not a member of that role',
                stranger.what, stranger.owner, current_user),
            HINT = 'apply the migration as the owner of the schema lock_store; if that is a '
                'stranger, drop the schema first';
    END IF;
END
$do$;

DO $do$
DECLARE
    found integer;
BEGIN
    IF to_regclass('lock_store.meta') IS NOT NULL THEN
        EXECUTE 'SELECT version FROM lock_store.meta' INTO found;
        IF found <> 1 THEN
            RAISE EXCEPTION 'the tables in lock_store are of version %, and this migration is of 1',
                found USING HINT = 'apply the migration of the newest lock-runtime in use';
        END IF;
    END IF;
END
$do$;

-- No token at or below `floor` is given for a lock whose row is gone. `keeps` is how long the rows
-- of what has ended stay, and how long it is from one sweep to the next.
CREATE TABLE IF NOT EXISTS lock_store.meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    floor bigint NOT NULL DEFAULT 0,
    swept timestamptz NOT NULL DEFAULT '-infinity',
    keeps interval NOT NULL DEFAULT '60 seconds'
);
INSERT INTO lock_store.meta (version) VALUES (1) ON CONFLICT DO NOTHING;

-- `last` is the last token of this lock, or 0; `token` is the token of the present exclusive hold.
-- `capacity` is that of the last holder that shares.
CREATE TABLE IF NOT EXISTS lock_store.hold (
    name bytea PRIMARY KEY,
    owner bytea,
    ends timestamptz NOT NULL DEFAULT '-infinity',
    last bigint NOT NULL DEFAULT 0,
    token bigint,
    special boolean NOT NULL DEFAULT false,
    capacity integer
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE IF NOT EXISTS lock_store.share (
    name bytea,
    owner bytea,
    permits integer NOT NULL,
    token bigint,
    ends timestamptz NOT NULL,
    PRIMARY KEY (name, owner)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- `seen` is when the place was taken, or a request of its client asked again. `suspended` is when
-- it was suspended, until its client is seen.
CREATE TABLE IF NOT EXISTS lock_store.place (
    name bytea,
    number bigint,
    owner bytea NOT NULL,
    client bytea NOT NULL,
    permits integer,
    capacity integer,
    first_lease interval NOT NULL,
    ends timestamptz NOT NULL,
    tokens integer NOT NULL,
    seen timestamptz NOT NULL,
    suspended timestamptz,
    PRIMARY KEY (name, number)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- These wait for whoever uses the table, as a backup, and keep all others from it meanwhile, also
-- if there is nothing to do. So that is looked up.
DO $do$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                   WHERE attrelid = 'lock_store.meta'::regclass AND attname = 'keeps') THEN
        ALTER TABLE lock_store.meta ADD keeps interval NOT NULL DEFAULT '60 seconds';
    END IF;
    -- Of before the first release.
    IF EXISTS (SELECT FROM pg_catalog.pg_attribute
               WHERE attrelid = 'lock_store.place'::regclass AND attname = 'passed'
                 AND NOT attisdropped) THEN
        ALTER TABLE lock_store.place RENAME passed TO suspended;
    END IF;
    IF to_regclass('lock_store.hold_check') IS NULL THEN
        CREATE UNIQUE INDEX hold_check ON lock_store.hold (name, owner, token);
    END IF;
    IF to_regclass('lock_store.place_of') IS NULL THEN
        CREATE UNIQUE INDEX place_of ON lock_store.place (name, owner);
    END IF;
END
$do$;

CREATE TABLE IF NOT EXISTS lock_store.latch (
    name bytea PRIMARY KEY,
    count bigint NOT NULL,
    generation bigint NOT NULL,
    opened bigint NOT NULL,
    ends timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE IF NOT EXISTS lock_store.latch_place (
    name bytea,
    owner bytea,
    ends timestamptz NOT NULL,
    PRIMARY KEY (name, owner)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- The counts that calls on latches left.
CREATE TABLE IF NOT EXISTS lock_store.latch_call (
    name bytea,
    owner bytea,
    remains bigint NOT NULL,
    ends timestamptz NOT NULL,
    PRIMARY KEY (name, owner)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- Nanoseconds: since 1970, and from then on.
CREATE TABLE IF NOT EXISTS lock_store.rate (
    name bytea PRIMARY KEY,
    at bigint NOT NULL,
    turn bigint NOT NULL,
    debt bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- An exact limit's lines in the order of passing. `at` and `ends` are microseconds since 1970,
-- `times` are microseconds after `at`.
CREATE TABLE IF NOT EXISTS lock_store.pass_log (
    name bytea PRIMARY KEY,
    at bigint NOT NULL,
    times bigint[] NOT NULL,
    counts integer[] NOT NULL,
    ends bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE OR REPLACE FUNCTION lock_store.version() RETURNS integer
LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = lock_store, pg_temp
AS $$ SELECT 1 $$;

-- True if clients of that version may use these functions. A later migration that changes what one
-- of them means, takes or gives makes it under another name. It drops those that it does not serve.
CREATE OR REPLACE FUNCTION lock_store.serves(client integer) RETURNS boolean
LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = lock_store, pg_temp
AS $$ SELECT client = 1 $$;

-- Microseconds since 1970.
CREATE OR REPLACE FUNCTION lock_store.micros(t timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT (pg_catalog.date_part('epoch', t) * 1000000)::bigint $$;

CREATE OR REPLACE FUNCTION lock_store.span(us bigint) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$ SELECT us * interval '1 microsecond' $$;

-- Locks the head row, which is made if there is none.
CREATE OR REPLACE FUNCTION lock_store.head(n bytea) RETURNS lock_store.hold
LANGUAGE plpgsql AS $$
DECLARE
    h lock_store.hold;
BEGIN
    IF pg_catalog.current_setting('transaction_isolation') NOT LIKE 'read%' THEN
        RAISE EXCEPTION USING ERRCODE = 'LK003',
            MESSAGE = 'locks need the isolation level READ COMMITTED';
    END IF;
    LOOP
        SELECT * INTO h FROM lock_store.hold WHERE name = n FOR NO KEY UPDATE;
        IF FOUND THEN
            RETURN h;
        END IF;
        INSERT INTO lock_store.hold (name) VALUES (n) ON CONFLICT (name) DO NOTHING;
    END LOOP;
END $$;

-- After `head`: false if an open `lock_check` keeps changes of the holder out.
CREATE OR REPLACE FUNCTION lock_store.may_change(n bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM lock_store.hold WHERE name = n FOR UPDATE SKIP LOCKED;
    RETURN FOUND;
END $$;

-- After `head`: refused while a `lock_check` is open. Nobody waits for its end under the lock of
-- the row, which others need.
CREATE OR REPLACE FUNCTION lock_store.expect_unchecked(n bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT lock_store.may_change(n) THEN
        RAISE EXCEPTION USING ERRCODE = 'LK004',
            MESSAGE = 'a transaction with an open lock_check keeps the lock';
    END IF;
END $$;

-- The last of `tokens` new tokens, after `head`.
CREATE OR REPLACE FUNCTION lock_store.mint(n bytea, tokens integer, t timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    minted bigint;
BEGIN
    UPDATE lock_store.hold SET last = tokens - 1 + greatest(
        last + 1, lock_store.micros(t), (SELECT floor + 1 FROM lock_store.meta)
    ) WHERE name = n RETURNING last INTO minted;
    RETURN minted;
END $$;

-- Grants: an exclusive hold replaces what has ended, a share is added. A hold that the owner has
-- keeps its part and is never shortened. The first of the tokens, if any.
CREATE OR REPLACE FUNCTION lock_store.enter(
    n bytea, o bytea, p integer, c integer, until timestamptz, tokens integer, t timestamptz
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    minted bigint;
BEGIN
    IF tokens > 0 THEN
        minted := lock_store.mint(n, tokens, t);
    END IF;
    IF p IS NULL THEN
        UPDATE lock_store.hold SET
            ends = CASE WHEN owner = o AND ends > t THEN greatest(ends, until) ELSE until END,
            token = CASE WHEN owner = o THEN coalesce(minted, token) ELSE minted END,
            owner = o
        WHERE name = n;
    ELSE
        -- The capacity is that of the last one who came to hold a part.
        UPDATE lock_store.hold SET owner = NULL, token = NULL, special = true,
            capacity = CASE WHEN EXISTS (
                SELECT 1 FROM lock_store.share s WHERE s.name = n AND s.owner = o
            ) THEN capacity ELSE c END
        WHERE name = n;
        INSERT INTO lock_store.share AS s (name, owner, permits, token, ends)
        VALUES (n, o, p, minted, until)
        ON CONFLICT (name, owner) DO UPDATE SET
            ends = greatest(s.ends, excluded.ends), token = coalesce(excluded.token, s.token);
    END IF;
    RETURN minted - tokens + 1;
END $$;

-- True if the claim is held at that time. `h` is its head row.
CREATE OR REPLACE FUNCTION lock_store.has(
    h lock_store.hold, n bytea, o bytea, p integer, c integer, t timestamptz
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF p IS NULL THEN
        RETURN coalesce(h.owner = o AND h.ends > t, false);
    END IF;
    -- The parts of a read-write lock change when a writer becomes a reader, which may cross this.
    RETURN h.special AND EXISTS (
        SELECT 1 FROM lock_store.share s
        WHERE s.name = n AND s.owner = o AND s.ends > t
          AND CASE WHEN h.capacity = 2147483647 OR c = 2147483647
                   THEN h.capacity = c ELSE s.permits = p END
    );
END $$;

-- Gives what is free to the first places, and leaves it to them to go on after some: a commit with
-- hundreds of grants takes too long. Stops at the place of `me`: 1 there and at the end of the
-- queue, 2 at an open `lock_check`, else NULL.
CREATE OR REPLACE FUNCTION lock_store.hand_over(
    n bytea, me bytea, t timestamptz,
    INOUT told bytea[], INOUT tokens bigint[], OUT turn integer
) LANGUAGE plpgsql AS $$
DECLARE
    h lock_store.hold;
    q lock_store.place;
    used bigint;
    given integer := 0;
BEGIN
    LOOP
        SELECT * INTO h FROM lock_store.hold WHERE name = n;
        IF given = 64 OR h.owner IS NOT NULL AND h.ends > t THEN
            RETURN;
        END IF;
        SELECT * INTO q FROM lock_store.place
        WHERE name = n AND suspended IS NULL ORDER BY number LIMIT 1;
        IF NOT FOUND THEN
            DELETE FROM lock_store.place
            WHERE name = n AND suspended < t - interval '60 seconds' AND number = (
                SELECT min(number) FROM lock_store.place WHERE name = n AND suspended IS NOT NULL
            );
            turn := 1;
            RETURN;
        END IF;
        IF q.owner = me THEN
            turn := 1;
            RETURN;
        END IF;
        IF q.ends < t THEN
            DELETE FROM lock_store.place WHERE name = n AND number = q.number;
            CONTINUE;
        END IF;
        IF q.seen < t - interval '3 seconds' THEN
            -- None of its client's is forgotten before the others.
            UPDATE lock_store.place SET suspended = t
            WHERE name = n AND client = q.client AND (number = q.number OR suspended IS NOT NULL);
            CONTINUE;
        END IF;
        DELETE FROM lock_store.share WHERE name = n AND ends <= t;
        SELECT sum(permits) INTO used FROM lock_store.share WHERE name = n;
        IF used IS NOT NULL THEN
            IF q.permits IS NULL OR (h.capacity = 2147483647) <> (q.capacity = 2147483647) THEN
                -- Its request learns of it when it asks again.
                DELETE FROM lock_store.place WHERE name = n AND number = q.number;
                CONTINUE;
            END IF;
            IF used + q.permits > q.capacity THEN
                RETURN;
            END IF;
        END IF;
        -- A latch set while the lock was free: whoever waits learns of it by asking again.
        IF given = 0
           AND EXISTS (SELECT 1 FROM lock_store.latch WHERE name = n AND ends > t) THEN
            RETURN;
        END IF;
        IF NOT lock_store.may_change(n) THEN
            turn := 2;
            RETURN;
        END IF;
        DELETE FROM lock_store.place WHERE name = n AND number = q.number;
        given := given + 1;
        told := told || q.owner;
        tokens := tokens || lock_store.enter(
            n, q.owner, q.permits, q.capacity, t + q.first_lease, q.tokens, t
        );
    END LOOP;
END $$;

-- After a change: sets `special` anew, and drops the row of a free lock without tokens. Waits for a
-- renewal that is being committed.
CREATE OR REPLACE FUNCTION lock_store.tidy(n bytea, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    rest boolean;
BEGIN
    DELETE FROM lock_store.share WHERE name = n AND ends <= t;
    rest := EXISTS (SELECT 1 FROM lock_store.place WHERE name = n)
        OR EXISTS (SELECT 1 FROM lock_store.share WHERE name = n)
        OR EXISTS (SELECT 1 FROM lock_store.latch WHERE name = n AND ends > t);
    IF NOT rest THEN
        DELETE FROM lock_store.hold WHERE name = n AND owner IS NULL AND last = 0;
    END IF;
    UPDATE lock_store.hold SET special = rest WHERE name = n AND special <> rest;
END $$;

-- Whether a lock is held under this name.
CREATE OR REPLACE FUNCTION lock_store.is_lock(n bytea, t timestamptz) RETURNS boolean
LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT 1 FROM lock_store.hold WHERE name = n AND owner IS NOT NULL AND ends > t
    ) OR EXISTS (SELECT 1 FROM lock_store.share WHERE name = n AND ends > t)
$$;

-- A repeated call to a latch gets the reply of the first.
CREATE OR REPLACE FUNCTION lock_store.remember(n bytea, o bytea, left_over bigint, t timestamptz)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO lock_store.latch_call (name, owner, remains, ends)
    VALUES (n, o, left_over, t + interval '120 seconds')
    ON CONFLICT (name, owner) DO UPDATE SET remains = excluded.remains, ends = excluded.ends
$$;

-- Locks that only take writes: an answer of a standby would be an old one.
CREATE OR REPLACE FUNCTION lock_store.expect_primary() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = lock_store, pg_temp AS $$
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = '25006', MESSAGE = 'this server is a standby';
    END IF;
END $$;

-- A command that was given up has an end: what it waited for may have taken it past that.
CREATE OR REPLACE FUNCTION lock_store.expect_in_time(limit_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF clock_timestamp() > limit_at THEN
        RAISE EXCEPTION USING ERRCODE = 'LK001', MESSAGE = 'the command came too late';
    END IF;
END $$;

-- Whose hold ends first, and when.
CREATE OR REPLACE FUNCTION lock_store.first_end(
    h lock_store.hold, n bytea, t timestamptz, OUT remaining bigint, OUT holder bytea
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT lock_store.micros(x.ends) - lock_store.micros(t), x.owner INTO remaining, holder FROM (
        SELECT h.ends, h.owner WHERE h.owner IS NOT NULL AND h.ends > t
        UNION ALL SELECT s.ends, s.owner FROM lock_store.share s WHERE s.name = n AND s.ends > t
    ) x ORDER BY x.ends, x.owner LIMIT 1;
END $$;

-- A client is seen at a lock. Of its places, those that others change just now are left out: nobody
-- waits here.
CREATE OR REPLACE FUNCTION lock_store.look(n bytea, which bytea, t timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lock_store.place SET seen = t, suspended = NULL
    WHERE name = n AND number = ANY (ARRAY(
        SELECT number FROM lock_store.place
        WHERE name = n AND client = which
          AND (seen < t - interval '500 milliseconds' OR suspended IS NOT NULL)
        FOR UPDATE SKIP LOCKED));
END $$;

-- True if nobody can get anything of the lock now, whoever asks, and the owner has nothing of it.
CREATE OR REPLACE FUNCTION lock_store.is_full(
    h lock_store.hold, n bytea, o bytea, p integer, c integer, t timestamptz
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    q lock_store.place;
    used bigint;
    mine boolean;
BEGIN
    IF h.owner IS NOT NULL AND h.ends > t THEN
        RETURN p IS NULL AND h.owner <> o;
    END IF;
    SELECT sum(permits), bool_or(owner = o) INTO used, mine
    FROM lock_store.share WHERE name = n AND ends > t;
    IF p IS NULL OR used IS NULL OR mine OR (h.capacity = 2147483647) <> (c = 2147483647) THEN
        RETURN false;
    END IF;
    -- One that is suspended comes back when its client is seen, and may be the next.
    SELECT * INTO q FROM lock_store.place
    WHERE name = n AND (suspended IS NULL OR client = substr(o, 1, 16)) ORDER BY number LIMIT 1;
    IF NOT FOUND THEN
        RETURN used + p > c;
    END IF;
    RETURN coalesce(q.ends >= t AND q.seen >= t - interval '3 seconds'
        AND (h.capacity = 2147483647) = (q.capacity = 2147483647)
        AND used + q.permits > q.capacity, false);
END $$;

-- The common case of `acquire`, an exclusive lock without tokens that has no row. Who has places
-- has a row, so nobody is overtaken, and the unique name lets one of several in: the others wait
-- for its commit, and get false. Then `acquire` says the rest. Refused after `deadline`, as there.
CREATE OR REPLACE FUNCTION lock_store.acquire_first(
    n bytea, o bytea, lease bigint, deadline bigint
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
BEGIN
    INSERT INTO hold (name, owner, ends) VALUES (n, o, clock_timestamp() + span(lease))
    ON CONFLICT (name) DO NOTHING;
    -- It may have waited for another transaction, which was rolled back. `expect_in_time`, but
    -- without a call.
    IF FOUND AND clock_timestamp() > 'epoch'::timestamptz + span(deadline) THEN
        RAISE EXCEPTION USING ERRCODE = 'LK001', MESSAGE = 'the command came too late';
    END IF;
    RETURN FOUND;
END $$;

-- 0 busy, 1 granted, 2 conflict, 3 busy until a `lock_check` ends. `queue`: 0 barge, 1 respect,
-- 2 join. Refused after `deadline`, so that a command that was given up has an end.
CREATE OR REPLACE FUNCTION lock_store.acquire(
    n bytea, o bytea, p integer, c integer, lease bigint, first_lease bigint, wait bigint,
    fences integer, queue integer, instead_of bytea, deadline bigint,
    OUT code integer, OUT token bigint, OUT lim integer, OUT remaining bigint,
    OUT queued boolean, OUT holder bytea, OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    t timestamptz := clock_timestamp();
    limit_at timestamptz := 'epoch'::timestamptz + span(deadline);
    h hold;
    minted bigint := 0;
    used bigint;
    mine boolean;
    turn integer;
BEGIN
    code := 0;
    queued := false;
    PERFORM expect_in_time(limit_at);
    SELECT * INTO h FROM hold WHERE name = n;
    IF p IS NULL AND instead_of IS NULL AND NOT coalesce(h.special, false) THEN
        IF h.owner IS NULL THEN
            IF fences > 0 THEN
                -- A sweep may delete the row just now, and its floor is not seen here.
                minted := fences - 1
                    + greatest(h.last + 1, micros(t), (SELECT floor + 1 FROM meta));
            END IF;
            INSERT INTO hold AS old (name, owner, ends, last, token)
            VALUES (n, o, t + span(lease), minted, nullif(minted, 0))
            ON CONFLICT (name) DO UPDATE SET
                owner = o, ends = excluded.ends,
                last = CASE WHEN fences > 0
                            THEN greatest(old.last + fences, minted) ELSE old.last END,
                token = CASE WHEN fences > 0 THEN greatest(old.last + fences, minted) END
            WHERE old.owner IS NULL AND NOT old.special
            RETURNING old.token INTO minted;
            IF FOUND THEN
                PERFORM expect_in_time(limit_at);
                code := 1;
                token := minted - fences + 1;
                RETURN;
            END IF;
        END IF;
    END IF;
    -- Whoever can only wait does not lock the row: those who release it stand there.
    IF instead_of IS NULL AND queue > 0 THEN
        queued := EXISTS (SELECT 1 FROM place WHERE name = n AND owner = o);
    END IF;
    IF instead_of IS NULL AND (queue < 2 OR queued) AND is_full(h, n, o, p, c, t) THEN
        PERFORM expect_primary();
        IF queue = 2 THEN
            PERFORM look(n, substr(o, 1, 16), t);
        END IF;
        IF p IS NOT NULL AND h.capacity <> c THEN
            lim := h.capacity;
        END IF;
        SELECT * INTO remaining, holder FROM first_end(h, n, t);
        RETURN;
    END IF;

    -- Another request of this statement may have locked places by `look`. Whoever has the row may
    -- wait for those. So nobody waits for the row then, and all of them are repeated.
    IF queue = 2 AND pg_current_xact_id_if_assigned() IS NOT NULL THEN
        PERFORM 1 FROM hold WHERE name = n FOR NO KEY UPDATE NOWAIT;
    END IF;
    h := head(n);
    t := clock_timestamp();
    PERFORM expect_in_time(limit_at);
    IF EXISTS (SELECT 1 FROM latch WHERE name = n AND ends > t) THEN
        code := 2;
        RETURN;
    END IF;
    IF instead_of IS NOT NULL AND has(h, n, instead_of, NULL, NULL, t) THEN
        PERFORM expect_unchecked(n);
        UPDATE hold SET owner = NULL, token = NULL, ends = '-infinity' WHERE name = n;
        h.owner := NULL;
    END IF;
    IF queue = 2 THEN
        UPDATE place SET seen = t, suspended = NULL
        WHERE name = n AND client = substr(o, 1, 16)
          AND EXISTS (SELECT 1 FROM place mine WHERE mine.name = n AND mine.owner = o);
        queued := FOUND;
    ELSIF queue = 1 THEN
        queued := EXISTS (SELECT 1 FROM place WHERE name = n AND owner = o);
    END IF;
    DELETE FROM share WHERE name = n AND ends <= t;
    mine := has(h, n, o, p, c, t);
    IF h.owner IS NULL OR h.ends <= t THEN
        SELECT sum(permits) INTO used FROM share WHERE name = n;
        IF used IS NOT NULL AND h.capacity <> c THEN
            lim := h.capacity;
        END IF;
    END IF;
    IF NOT mine THEN
        IF h.owner IS NOT NULL AND h.ends > t THEN
            IF p IS NOT NULL THEN
                code := 2;
            END IF;
        ELSE
            IF used IS NOT NULL
               AND (p IS NULL OR (h.capacity = 2147483647) <> (c = 2147483647)) THEN
                code := 2;
            ELSIF queue = 0 THEN
                turn := 1;
            ELSE
                SELECT * INTO told, tokens, turn FROM hand_over(n, o, t, told, tokens);
                SELECT * INTO h FROM hold WHERE name = n;
                SELECT sum(permits) INTO used FROM share WHERE name = n;
                IF h.owner IS NOT NULL AND h.ends > t AND p IS NOT NULL
                   OR used IS NOT NULL
                   AND (p IS NULL OR (h.capacity = 2147483647) <> (c = 2147483647)) THEN
                    code := 2;
                END IF;
            END IF;
            IF code = 0 AND turn = 1 AND (used IS NULL OR used + p <= c) THEN
                mine := may_change(n);
                turn := CASE WHEN mine THEN 1 ELSE 2 END;
            END IF;
            IF turn = 2 THEN
                code := 3;
            END IF;
        END IF;
        IF code = 2 THEN
            PERFORM tidy(n, t);
            RETURN;
        END IF;
    END IF;
    IF mine THEN
        DELETE FROM place WHERE name = n AND owner = o;
        code := 1;
        token := enter(n, o, p, c, t + span(lease), fences, t);
        -- A hand-over may have stopped here, or left it to this one to go on.
        IF queued OR (p IS NOT NULL AND EXISTS (SELECT 1 FROM place WHERE name = n)) THEN
            SELECT * INTO told, tokens, turn FROM hand_over(n, NULL, t, told, tokens);
        END IF;
        PERFORM tidy(n, t);
        PERFORM expect_in_time(limit_at);
        RETURN;
    END IF;
    -- Its place may have been forgotten meanwhile.
    queued := queued AND EXISTS (SELECT 1 FROM place WHERE name = n AND owner = o);
    IF queue = 2 AND NOT queued THEN
        INSERT INTO place (
            name, number, owner, client, permits, capacity, first_lease, ends, tokens, seen
        ) VALUES (
            n, (SELECT coalesce(max(number), 0) + 1 FROM place WHERE name = n),
            o, substr(o, 1, 16), p, c, span(first_lease),
            CASE WHEN wait IS NULL THEN 'infinity'::timestamptz ELSE t + span(wait) END, fences, t
        );
        -- Suspended places of this client come back.
        UPDATE place SET seen = t, suspended = NULL
        WHERE name = n AND client = substr(o, 1, 16) AND suspended IS NOT NULL;
        queued := true;
    END IF;
    SELECT * INTO remaining, holder FROM first_end(h, n, t);
    PERFORM tidy(n, t);
    PERFORM expect_in_time(limit_at);
END $$;

-- All of them, or none: `code` is that of `acquire`, and `at` the number of the request that it is
-- about, from 1.
CREATE OR REPLACE FUNCTION lock_store.acquire_all(
    names bytea[], owners bytea[], leases bigint[], fences integer[], respects boolean[],
    deadline bigint,
    OUT code integer, OUT at integer, OUT granted bigint[], OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    limit_at timestamptz := 'epoch'::timestamptz + span(deadline);
    t timestamptz;
    h hold;
    i integer;
    token bigint;
    failed integer := 0;
    failed_code integer;
BEGIN
    -- Always in the same order, so that two of them don't wait for each other.
    FOR i IN SELECT u.i FROM unnest(names) WITH ORDINALITY u (name, i) ORDER BY u.name LOOP
        h := head(names[i]);
    END LOOP;
    t := clock_timestamp();
    FOR i IN 1 .. cardinality(names) LOOP
        IF EXISTS (SELECT 1 FROM latch WHERE name = names[i] AND ends > t) THEN
            failed := i;
            failed_code := 2;
            EXIT;
        END IF;
        SELECT * INTO h FROM hold WHERE name = names[i];
        DELETE FROM share WHERE name = names[i] AND ends <= t;
        IF EXISTS (SELECT 1 FROM share WHERE name = names[i]) THEN
            failed := i;
            failed_code := 2;
            EXIT;
        END IF;
        IF respects[i] AND (h.owner IS NULL OR h.ends <= t) THEN
            SELECT x.told, x.tokens INTO told, tokens
            FROM hand_over(names[i], NULL, t, told, tokens) x;
            SELECT * INTO h FROM hold WHERE name = names[i];
        END IF;
        IF h.owner IS NOT NULL AND h.ends > t AND h.owner <> owners[i]
           OR EXISTS (SELECT 1 FROM share WHERE name = names[i])
           OR NOT may_change(names[i]) THEN
            failed := i;
            failed_code := 0;
            EXIT;
        END IF;
    END LOOP;
    IF failed = 0 THEN
        FOR i IN 1 .. cardinality(names) LOOP
            token := enter(
                names[i], owners[i], NULL, NULL, t + span(leases[i]), fences[i], t
            );
            granted := granted || token;
        END LOOP;
        failed_code := 1;
    END IF;
    FOR i IN 1 .. cardinality(names) LOOP
        PERFORM tidy(names[i], t);
    END LOOP;
    PERFORM expect_in_time(limit_at);
    code := failed_code;
    at := failed;
END $$;

CREATE OR REPLACE FUNCTION lock_store.renew(
    n bytea, o bytea, p integer, c integer, lease bigint
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    h hold;
BEGIN
    IF p IS NULL THEN
        UPDATE hold SET ends = greatest(ends, clock_timestamp() + span(lease))
        WHERE name = n AND owner = o AND ends > clock_timestamp();
        RETURN FOUND;
    END IF;
    SELECT * INTO h FROM hold WHERE name = n;
    IF NOT FOUND OR NOT has(h, n, o, p, c, clock_timestamp()) THEN
        RETURN false;
    END IF;
    -- Whoever finds that it has ended deletes it, and so waits for this.
    UPDATE share SET ends = greatest(ends, clock_timestamp() + span(lease))
    WHERE name = n AND owner = o AND ends > clock_timestamp();
    RETURN FOUND;
END $$;

-- A new token for a hold. NULL: not held. 0: a latch is there.
CREATE OR REPLACE FUNCTION lock_store.fence(
    n bytea, o bytea, p integer, c integer
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    h hold := head(n);
    t timestamptz := clock_timestamp();
    minted bigint;
BEGIN
    IF EXISTS (SELECT 1 FROM latch WHERE name = n AND ends > t) THEN
        RETURN 0;
    END IF;
    IF NOT has(h, n, o, p, c, t) THEN
        PERFORM tidy(n, t);
        RETURN NULL;
    END IF;
    -- One that is open has the token before.
    PERFORM expect_unchecked(n);
    minted := mint(n, 1, t);
    IF p IS NULL THEN
        UPDATE hold SET token = minted WHERE name = n;
    ELSE
        UPDATE share SET token = minted WHERE name = n AND owner = o;
    END IF;
    RETURN minted;
END $$;

-- The common case of `release`: an exclusive lock without a token, for which nobody waits. No
-- `lock_check` has locked its row. If another transaction has, as to add a place, this waits for
-- that to end and looks at the row again. With a place the row is `special`: nothing is deleted
-- here, and `release` hands over.
-- If the lease has at most 30 s left, the commit does not wait for the disk. Then a crash of the
-- server may bring the hold back, and its lease ends it, as if the holder had crashed. The commit
-- of the next grant waits until both are on disk.
CREATE OR REPLACE FUNCTION lock_store.release_first(n bytea, o bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    setting text;
BEGIN
    DELETE FROM hold
    WHERE name = n AND owner = o AND ends > clock_timestamp() AND NOT special AND last = 0
    RETURNING CASE WHEN ends <= clock_timestamp() + interval '30 seconds'
                   THEN set_config('synchronous_commit', 'off', true) END INTO setting;
    RETURN FOUND;
END $$;

-- Ends a hold, of which the key stays taken for `keep`, and hands over.
CREATE OR REPLACE FUNCTION lock_store.release(
    n bytea, o bytea, p integer, c integer, keep bigint,
    OUT held boolean, OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    h hold;
    rest bytea;
    t timestamptz := clock_timestamp();
    turn integer;
BEGIN
    IF p IS NULL AND keep = 0 THEN
        -- Whether others or an open `lock_check` have the row is found out below.
        PERFORM 1 FROM hold WHERE name = n AND owner = o AND ends > t AND NOT special
        FOR UPDATE SKIP LOCKED;
        held := FOUND;
        IF held THEN
            DELETE FROM hold WHERE name = n AND last = 0;
            IF NOT FOUND THEN
                UPDATE hold SET owner = NULL, token = NULL, ends = '-infinity' WHERE name = n;
            END IF;
            RETURN;
        END IF;
    END IF;
    h := head(n);
    -- Its renewal may be being committed.
    PERFORM 1 FROM share WHERE name = n AND owner = o FOR UPDATE;
    t := clock_timestamp();
    held := has(h, n, o, p, c, t);
    IF held THEN
        PERFORM expect_unchecked(n);
        IF p IS NULL THEN
            UPDATE hold SET token = NULL,
                owner = CASE WHEN keep > 0 THEN o || '\x6b'::bytea END,
                ends = CASE WHEN keep > 0 THEN t + span(keep) ELSE '-infinity' END
            WHERE name = n;
        ELSIF keep > 0 THEN
            -- Of an owner's rests with one number of permits, the last one stays.
            SELECT o || '\x6b'::bytea || int4send(permits) INTO rest FROM share
            WHERE name = n AND owner = o;
            DELETE FROM share WHERE name = n AND owner = rest;
            UPDATE share SET token = NULL, owner = rest, ends = t + span(keep)
            WHERE name = n AND owner = o;
        ELSE
            DELETE FROM share WHERE name = n AND owner = o;
        END IF;
    END IF;
    SELECT * INTO told, tokens, turn FROM hand_over(n, NULL, t, told, tokens);
    PERFORM tidy(n, t);
END $$;

-- Gives back all but `rest` permits.
CREATE OR REPLACE FUNCTION lock_store.shrink(
    n bytea, o bytea, p integer, c integer, rest integer,
    OUT held boolean, OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    h hold := head(n);
    t timestamptz := clock_timestamp();
    turn integer;
BEGIN
    held := has(h, n, o, p, c, t);
    IF held THEN
        -- Others enter.
        PERFORM expect_unchecked(n);
        UPDATE share SET permits = least(permits, rest) WHERE name = n AND owner = o;
    ELSE
        held := has(h, n, o, rest, c, t);
    END IF;
    SELECT * INTO told, tokens, turn FROM hand_over(n, NULL, t, told, tokens);
    PERFORM tidy(n, t);
END $$;

-- Takes the owner out of the queue, and ends its hold if there is one. Waits for a command of the
-- same owner that is being carried out.
CREATE OR REPLACE FUNCTION lock_store.abandon(
    n bytea, o bytea, p integer, c integer,
    OUT held boolean, OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    h hold := head(n);
BEGIN
    DELETE FROM place WHERE name = n AND owner = o;
    UPDATE hold SET special = true WHERE name = n AND NOT special;
    SELECT * INTO held, told, tokens FROM release(n, o, p, c, 0);
END $$;

CREATE OR REPLACE FUNCTION lock_store.force_release(
    n bytea, OUT held boolean, OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    h hold := head(n);
    t timestamptz := clock_timestamp();
    turn integer;
BEGIN
    IF EXISTS (SELECT 1 FROM latch WHERE name = n AND ends > t) THEN
        RETURN;
    END IF;
    held := h.owner IS NOT NULL AND h.ends > t
        OR EXISTS (SELECT 1 FROM share WHERE name = n AND ends > t);
    PERFORM expect_unchecked(n);
    UPDATE hold SET owner = NULL, token = NULL, ends = '-infinity' WHERE name = n;
    DELETE FROM share WHERE name = n;
    SELECT * INTO told, tokens, turn FROM hand_over(n, NULL, t, told, tokens);
    PERFORM tidy(n, t);
END $$;

-- `code` 2: a latch. The holder is the one whose lease ends last. `taken`: the permits of all
-- holders, `of_all`: how many there are by the last holder's request.
CREATE OR REPLACE FUNCTION lock_store.inspect(
    n bytea, OUT code integer, OUT holder bytea, OUT permits integer, OUT remaining bigint,
    OUT holders bigint, OUT waiting bigint, OUT taken bigint, OUT of_all integer
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = lock_store, pg_temp AS $$
DECLARE
    t timestamptz := clock_timestamp();
BEGIN
    PERFORM expect_primary();
    code := 0;
    IF EXISTS (SELECT 1 FROM latch WHERE name = n AND ends > t) THEN
        code := 2;
        RETURN;
    END IF;
    SELECT x.owner, x.permits, micros(x.ends) - micros(t), x.holders, x.taken, x.capacity
    INTO holder, permits, remaining, holders, taken, of_all
    FROM (
        SELECT y.*, count(*) OVER () AS holders, sum(y.permits) OVER () AS taken FROM (
            SELECT h.owner, NULL::integer AS permits, h.ends, NULL::integer AS capacity FROM hold h
            WHERE h.name = n AND h.owner IS NOT NULL AND h.ends > t
            UNION ALL
            SELECT s.owner, s.permits, s.ends, (SELECT h.capacity FROM hold h WHERE h.name = n)
            FROM share s WHERE s.name = n AND s.ends > t
        ) y
    ) x ORDER BY x.ends DESC, x.owner DESC LIMIT 1;
    SELECT count(*) INTO waiting FROM place WHERE name = n;
END $$;

-- All holders, up to a thousand.
CREATE OR REPLACE FUNCTION lock_store.holders(
    n bytea, OUT code integer, OUT owners bytea[], OUT shares integer[]
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = lock_store, pg_temp AS $$
DECLARE
    t timestamptz := clock_timestamp();
BEGIN
    PERFORM expect_primary();
    code := 0;
    IF EXISTS (SELECT 1 FROM latch WHERE name = n AND ends > t) THEN
        code := 2;
        RETURN;
    END IF;
    SELECT coalesce(array_agg(x.owner), '{}'), coalesce(array_agg(x.permits), '{}')
    INTO owners, shares
    FROM (
        SELECT h.owner, 0 AS permits FROM hold h
        WHERE h.name = n AND h.owner IS NOT NULL AND h.ends > t
        UNION ALL
        SELECT s.owner, s.permits FROM share s WHERE s.name = n AND s.ends > t
        LIMIT 1000
    ) x;
END $$;

-- For use in a transaction of your own: fails unless the lock is held with this token. Until the
-- transaction ends, nobody else gets the lock, also if its lease ends meanwhile.
CREATE OR REPLACE FUNCTION lock_store.lock_check(n bytea, fencing_token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = lock_store, pg_temp AS $$
DECLARE
    has_row boolean;
    is_shared boolean;
BEGIN
    -- A statement of its own: what it waits for, the next one sees.
    PERFORM 1 FROM hold WHERE name = n FOR KEY SHARE;
    has_row := FOUND;
    is_shared := EXISTS (SELECT 1 FROM share
        WHERE name = n AND token = fencing_token AND ends > clock_timestamp());
    IF is_shared AND pg_catalog.current_setting('transaction_isolation') NOT LIKE 'read%' THEN
        -- The tables are as old as the transaction's snapshot there. A change of the one who holds
        -- a lock alone changes the row, and is noticed.
        RAISE EXCEPTION USING ERRCODE = 'LK003',
            MESSAGE =
                'lock_check of a lock that is shared needs the isolation level READ COMMITTED';
    END IF;
    IF NOT has_row THEN
        RAISE EXCEPTION USING ERRCODE = 'LK002',
            MESSAGE = format('there is no lock with a token whose full name is "%s"',
                encode(n, 'escape')),
            HINT = 'the full name is namespace, `:`, key, as Guard::full_name() gives it; if it is '
                'right, the lock was released long ago';
    END IF;
    IF NOT (is_shared OR EXISTS (SELECT 1 FROM hold
        WHERE name = n AND token = fencing_token AND octet_length(owner) = 24
          AND ends > clock_timestamp()))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'LK002',
            MESSAGE = 'the lock is not held with this fencing token any more',
            HINT = 'roll back, and acquire the lock again';
    END IF;
END $$;
CREATE OR REPLACE FUNCTION lock_store.lock_check(n text, fencing_token bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = lock_store, pg_temp
AS $$ SELECT lock_store.lock_check(convert_to(n, 'UTF8'), fencing_token) $$;

-- The bucket of a rate limiter, in nanoseconds. `left_over` is NULL if nothing was taken.
CREATE OR REPLACE FUNCTION lock_store.rate(
    n bytea, every bigint, burst bigint, wanted bigint, wait bigint,
    OUT delay bigint, OUT left_over bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    b rate;
    t bigint;
    frame bigint := every * burst;
    turns bigint;
    owed bigint;
BEGIN
    LOOP
        SELECT * INTO b FROM rate WHERE name = n FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO rate (name, at, turn, debt) VALUES (n, 0, 0, 0)
        ON CONFLICT (name) DO NOTHING;
    END LOOP;
    t := micros(clock_timestamp()) * 1000;
    -- Another rate may have been in force. At worst, the bucket was empty when the last taker
    -- passed.
    owed := greatest(least(b.debt, b.turn + frame) - greatest(t - b.at, 0), 0);
    turns := greatest(b.turn - greatest(t - b.at, 0), 0);
    delay := greatest(owed + every * wanted - frame, 0);
    IF delay > wait THEN
        -- If the clock was set back, the bucket would stay empty for that long. It counts from now.
        IF t < b.at THEN
            UPDATE rate SET at = t, turn = turns, debt = owed WHERE name = n;
        END IF;
        RETURN;
    END IF;
    owed := owed + every * wanted;
    left_over := greatest(frame - owed, 0) / every;
    IF wanted > 0 THEN
        UPDATE rate SET at = t, turn = greatest(turns, delay), debt = owed WHERE name = n;
    END IF;
END $$;

-- An exact limit, in microseconds. Passes within `share` have one line. `left_over` is NULL if
-- nothing was taken.
CREATE OR REPLACE FUNCTION lock_store.rate_at_most(
    n bytea, frame bigint, most bigint, wanted bigint, wait bigint, share bigint,
    OUT delay bigint, OUT left_over bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    l pass_log;
    t bigint;
    past bigint;
    moments bigint[];
    numbers integer[];
    size integer;
    taken bigint := wanted;
BEGIN
    LOOP
        SELECT * INTO l FROM pass_log WHERE name = n FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO pass_log (name, at, times, counts, ends) VALUES (n, 0, '{}', '{}', 0)
        ON CONFLICT (name) DO NOTHING;
    END LOOP;
    t := micros(clock_timestamp());
    past := greatest(t - l.at, 0);
    SELECT array_agg(x.moment - past ORDER BY x.line), array_agg(x.number ORDER BY x.line)
    INTO moments, numbers
    FROM unnest(l.times, l.counts) WITH ORDINALITY x (moment, number, line)
    WHERE x.moment - past > -frame;
    size := coalesce(array_length(moments, 1), 0);
    delay := greatest(moments[size], 0);
    FOR i IN REVERSE size..1 LOOP
        taken := taken + numbers[i];
        IF taken > most THEN
            delay := greatest(delay, moments[i] + frame);
            EXIT;
        END IF;
    END LOOP;
    IF delay > wait THEN
        -- If the clock was set back, all would be refused for that long. The log counts from now.
        IF t < l.at THEN
            UPDATE pass_log SET at = t, times = moments, counts = numbers,
                ends = t + greatest(moments[size], 0) + frame
            WHERE name = n;
        END IF;
        RETURN;
    END IF;
    left_over := CASE delay WHEN 0 THEN greatest(most - taken, 0) ELSE 0 END;
    IF wanted > 0 THEN
        IF moments[size] = delay OR delay - moments[size - 1] <= share THEN
            moments[size] := delay;
            numbers[size] := numbers[size] + wanted;
        ELSE
            moments[size + 1] := delay;
            numbers[size + 1] := wanted;
        END IF;
        UPDATE pass_log SET at = t, times = moments, counts = numbers, ends = t + delay + frame
        WHERE name = n;
    END IF;
END $$;

-- The state of a latch. `code`: 0 not set, 1 set, 2 it is a lock.
CREATE OR REPLACE FUNCTION lock_store.latch_look(
    n bytea, OUT code integer, OUT left_over bigint, OUT generation bigint, OUT opened bigint,
    OUT remaining bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = lock_store, pg_temp AS $$
DECLARE
    t timestamptz := clock_timestamp();
    l latch;
BEGIN
    PERFORM expect_primary();
    IF is_lock(n, t) THEN
        code := 2;
        RETURN;
    END IF;
    SELECT * INTO l FROM latch WHERE name = n AND ends > t;
    code := CASE WHEN FOUND THEN 1 ELSE 0 END;
    left_over := l.count;
    generation := l.generation;
    opened := l.opened;
    remaining := micros(l.ends) - micros(t);
END $$;

-- `code`: 0 set before, 1 set, 2 it is a lock, 3 untimely.
CREATE OR REPLACE FUNCTION lock_store.latch_set(
    n bytea, o bytea, valid_from bigint, valid_until bigint, counts bigint, ttl bigint,
    OUT code integer, OUT now_is bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    t timestamptz;
    l latch;
BEGIN
    PERFORM head(n);
    t := clock_timestamp();
    now_is := micros(t);
    SELECT * INTO l FROM latch WHERE name = n AND ends > t;
    -- Waits for a renewal that is not committed yet.
    DELETE FROM share WHERE name = n AND ends <= t;
    IF is_lock(n, t) THEN
        code := 2;
    ELSIF EXISTS (SELECT 1 FROM latch_call WHERE name = n AND owner = o AND ends > t) THEN
        code := 1;
    ELSIF now_is NOT BETWEEN valid_from AND valid_until THEN
        code := 3;
    ELSIF l.count > 0 THEN
        code := 0;
    ELSE
        INSERT INTO latch (name, count, generation, opened, ends)
        VALUES (
            n, counts, greatest(coalesce(l.generation, 0) + 1, now_is),
            coalesce(l.generation, 0), t + span(ttl)
        )
        ON CONFLICT (name) DO UPDATE SET
            count = excluded.count, generation = excluded.generation,
            opened = excluded.opened, ends = excluded.ends;
        PERFORM remember(n, o, counts, t);
        code := 1;
    END IF;
    PERFORM tidy(n, t);
END $$;

-- `code`: 0 not set, 1 counted or was open, 2 it is a lock, 3 untimely.
CREATE OR REPLACE FUNCTION lock_store.latch_count_down(
    n bytea, o bytea, valid_from bigint, valid_until bigint,
    OUT code integer, OUT left_over bigint, OUT now_is bigint, OUT told bytea[],
    OUT generation bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    t timestamptz;
    l latch;
BEGIN
    PERFORM head(n);
    t := clock_timestamp();
    now_is := micros(t);
    SELECT * INTO l FROM latch WHERE name = n AND ends > t;
    IF is_lock(n, t) THEN
        code := 2;
        RETURN;
    END IF;
    SELECT remains INTO left_over FROM latch_call WHERE name = n AND owner = o AND ends > t;
    IF FOUND THEN
        code := 1;
    ELSIF now_is NOT BETWEEN valid_from AND valid_until THEN
        code := 3;
    ELSIF l.name IS NULL THEN
        code := 0;
    ELSIF l.count = 0 THEN
        code := 1;
        left_over := 0;
    ELSE
        code := 1;
        left_over := l.count - 1;
        UPDATE latch SET count = left_over WHERE name = n;
        PERFORM remember(n, o, left_over, t);
        IF left_over = 0 THEN
            generation := l.generation;
            WITH gone AS (DELETE FROM latch_place WHERE name = n RETURNING *)
            SELECT array_agg(owner) INTO told FROM gone WHERE ends > t;
        END IF;
    END IF;
    PERFORM tidy(n, t);
END $$;

-- `latch_look`, and a place unless it is open. Whoever has one locks no row, and seldom writes.
CREATE OR REPLACE FUNCTION lock_store.latch_wait(
    n bytea, o bytea,
    OUT code integer, OUT left_over bigint, OUT generation bigint, OUT opened bigint,
    OUT remaining bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    t timestamptz := clock_timestamp();
BEGIN
    SELECT * INTO code, left_over, generation, opened, remaining FROM latch_look(n);
    IF code = 2 OR left_over = 0 OR EXISTS (
        SELECT 1 FROM latch_place
        WHERE name = n AND owner = o AND ends > t + interval '30 seconds'
    ) THEN
        RETURN;
    END IF;
    PERFORM head(n);
    t := clock_timestamp();
    SELECT * INTO code, left_over, generation, opened, remaining FROM latch_look(n);
    IF code = 0 OR code = 1 AND left_over > 0 THEN
        INSERT INTO latch_place (name, owner, ends) VALUES (n, o, t + interval '60 seconds')
        ON CONFLICT (name, owner) DO UPDATE SET ends = excluded.ends;
    END IF;
    PERFORM tidy(n, t);
END $$;

CREATE OR REPLACE FUNCTION lock_store.latch_leave(n bytea, o bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = lock_store, pg_temp
AS $$ DELETE FROM latch_place WHERE name = n AND owner = o $$;

-- A client that ends gives up its places, and what they held up goes to those behind them. The
-- places of a client that could not say so are suspended.
CREATE OR REPLACE FUNCTION lock_store.leave(
    which bytea, OUT told bytea[], OUT tokens bigint[]
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    n bytea;
    t timestamptz;
    turn integer;
BEGIN
    DELETE FROM latch_place WHERE substr(owner, 1, 16) = which;
    -- Always in the same order, so that two of them don't wait for each other.
    FOR n IN SELECT DISTINCT name FROM place WHERE client = which ORDER BY name LOOP
        PERFORM head(n);
        t := clock_timestamp();
        DELETE FROM place WHERE name = n AND client = which;
        SELECT x.told, x.tokens, x.turn INTO told, tokens, turn
        FROM hand_over(n, NULL, t, told, tokens) x;
        PERFORM tidy(n, t);
    END LOOP;
END $$;

-- Removes what has ended some time ago, a part of it each time. True if there is more: whoever is
-- told so goes on. For all others, there is nothing to do until so much time has passed again.
CREATE OR REPLACE FUNCTION lock_store.sweep() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = lock_store, pg_temp SET lock_timeout = '200ms'
-- A plan that was kept since the tables were empty compares each row with all that are removed.
SET plan_cache_mode = 'force_custom_plan' AS $$
DECLARE
    most CONSTANT integer := 5000;
    t timestamptz := clock_timestamp();
    old timestamptz := t - (SELECT keeps FROM meta);
    highest bigint;
    removed integer;
    more boolean := false;
    n bytea;
BEGIN
    PERFORM 1 FROM meta WHERE swept < old FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM rate WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM rate WHERE at + debt < micros(old) * 1000
        LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    more := more OR removed = most;
    DELETE FROM pass_log WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM pass_log WHERE ends < micros(old) LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    more := more OR removed = most;
    DELETE FROM latch_call WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM latch_call WHERE ends < t LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    more := more OR removed = most;
    DELETE FROM latch_place WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM latch_place WHERE ends < t LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    more := more OR removed = most;
    DELETE FROM latch WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM latch WHERE ends < t LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    more := more OR removed = most;
    -- Whoever waits is seen each second.
    DELETE FROM place WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM place WHERE seen < old LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    more := more OR removed = most;
    -- What is said of rows in other tables is looked at under the lock of the head row, in
    -- statements of their own: they see what was done before it was locked.
    removed := 0;
    FOR n IN
        SELECT name FROM hold h
        WHERE h.special AND (h.owner IS NULL OR h.ends < old)
          AND NOT EXISTS (SELECT 1 FROM place WHERE name = h.name)
          AND NOT EXISTS (SELECT 1 FROM share WHERE name = h.name AND ends > t)
          AND NOT EXISTS (SELECT 1 FROM latch WHERE name = h.name)
        LIMIT most / 5
    LOOP
        PERFORM 1 FROM hold WHERE name = n FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            removed := removed + 1;
            PERFORM tidy(n, t);
        END IF;
    END LOOP;
    more := more OR removed = most / 5;
    -- Tokens below the clock: the next ones are above them, or above the floor if the clock is set
    -- back. A row that is in use is left, as are those that have rows elsewhere: they are
    -- `special`, which is looked at again when the row is locked.
    WITH gone AS (
        DELETE FROM hold WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM hold h
            WHERE h.ends < old AND h.last < micros(old) AND NOT h.special
            LIMIT most FOR UPDATE SKIP LOCKED)) RETURNING last
    )
    SELECT max(last), count(*) INTO highest, removed FROM gone;
    more := more OR removed = most;
    UPDATE meta SET floor = greatest(floor, highest),
        swept = CASE WHEN more THEN swept ELSE t END;
    RETURN more;
END $$;

-- How many microseconds it is from one sweep to the next.
CREATE OR REPLACE FUNCTION lock_store.sweeps_each() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = lock_store, pg_temp
AS $$ SELECT (date_part('epoch', keeps) * 1000000)::bigint FROM meta $$;

-- Sends a client a message.
CREATE OR REPLACE FUNCTION lock_store.tell(client bytea, message text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = lock_store, pg_temp
AS $$ SELECT pg_notify('lock_' || encode(client, 'hex'), message) $$;

REVOKE ALL ON ALL TABLES IN SCHEMA lock_store FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA lock_store FROM PUBLIC;
COMMIT;
