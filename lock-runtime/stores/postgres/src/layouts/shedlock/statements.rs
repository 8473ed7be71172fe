//! The statements. A row stays when its lock is free: then its `lock_until` has passed.
//!
//! Times are in UTC, as ShedLock writes them. `now` is the beginning of a statement that may have
//! waited for a row since then: so a lease is never counted from later than that. Whether the
//! statement comes too late, or the hold has ended, is asked once the row is locked, of
//! `clock_timestamp()`. The `WHERE` of an `UPDATE` would not do: it is read again only if who had
//! the row has changed it. That of `DO UPDATE` is read when the row is locked, and so is what is
//! asked of rows that a `WITH` has locked.

/// `$1` name, `$2` owner, `$3` lease in µs, `$4` deadline. `is_taken`; if not, the holder before
/// the statement, the rest of its time, and whether the statement came too late.
pub(super) const ACQUIRE: &str = "
    WITH taken AS (
        INSERT INTO shedlock AS held (name, lock_until, locked_at, locked_by)
        SELECT convert_from($1, 'UTF8'), now + $3::bigint * interval '1 microsecond', now,
            ($2::text[])[1]
        FROM (SELECT timezone('utc', clock_timestamp()) AS now) AS t
        WHERE date_part('epoch', clock_timestamp()) * 1000000 <= $4
        ON CONFLICT (name) DO UPDATE SET
            lock_until = CASE WHEN held.locked_by = excluded.locked_by
                THEN greatest(held.lock_until, excluded.lock_until) ELSE excluded.lock_until END,
            locked_at = excluded.locked_at, locked_by = excluded.locked_by
        WHERE (held.lock_until <= excluded.locked_at OR held.locked_by = excluded.locked_by)
            AND date_part('epoch', clock_timestamp()) * 1000000 <= $4
        RETURNING 1
    )
    SELECT EXISTS (SELECT FROM taken) AS is_taken, held.locked_by,
        (date_part('epoch', held.lock_until - timezone('utc', clock_timestamp())) * 1000000)::bigint
            AS remaining,
        date_part('epoch', clock_timestamp()) * 1000000 > $4 AS is_late
    FROM (SELECT) AS one LEFT JOIN shedlock AS held ON held.name = convert_from($1, 'UTF8')";

/// `$1` names, `$2` owners, `$3` leases in µs. The places of those that are held.
pub(super) const RENEW: &str = "
    WITH locked AS (
        SELECT held.name, lock_until, owner, now, lease, at
        FROM (SELECT timezone('utc', clock_timestamp()) AS now) AS t,
            unnest($1::bytea[], $2::text[], $3::bigint[])
                WITH ORDINALITY AS one (key, owner, lease, at),
            shedlock AS held
        WHERE held.name = convert_from(key, 'UTF8') AND locked_by = owner AND lock_until > now
        ORDER BY held.name
        FOR NO KEY UPDATE OF held
    )
    UPDATE shedlock AS held
    SET lock_until = greatest(held.lock_until, now + lease * interval '1 microsecond')
    FROM locked
    WHERE held.name = locked.name AND locked_by = owner
        AND locked.lock_until > timezone('utc', clock_timestamp())
    RETURNING at";

/// `$1` names, `$2` owners, `$3` for how many µs each stays taken. The places of those that were
/// held.
pub(super) const RELEASE: &str = "
    WITH locked AS (
        SELECT held.name, lock_until, owner, now, keep, at
        FROM (SELECT timezone('utc', clock_timestamp()) AS now) AS t,
            unnest($1::bytea[], $2::text[], $3::bigint[])
                WITH ORDINALITY AS one (key, owner, keep, at),
            shedlock AS held
        WHERE held.name = convert_from(key, 'UTF8') AND locked_by = owner AND lock_until > now
        ORDER BY held.name
        FOR NO KEY UPDATE OF held
    )
    UPDATE shedlock AS held
    SET lock_until = now + keep * interval '1 microsecond',
        locked_by = CASE WHEN keep > 0 THEN owner || ':kept' ELSE owner END
    FROM locked
    WHERE held.name = locked.name AND locked_by = owner
        AND locked.lock_until > timezone('utc', clock_timestamp())
    RETURNING at";

/// `$1` name. The holder and the rest of its time, if it is held.
pub(super) const INSPECT: &str = "
    SELECT locked_by,
        (date_part('epoch', lock_until - now) * 1000000)::bigint AS remaining
    FROM shedlock, (SELECT timezone('utc', clock_timestamp()) AS now) AS t
    WHERE name = convert_from($1, 'UTF8') AND lock_until > now";

/// `$1` name. A row if it was held.
pub(super) const FORCE: &str = "
    WITH locked AS (
        SELECT name, lock_until, now
        FROM (SELECT timezone('utc', clock_timestamp()) AS now) AS t, shedlock
        WHERE name = convert_from($1, 'UTF8') AND lock_until > now
        FOR NO KEY UPDATE OF shedlock
    )
    UPDATE shedlock AS held SET lock_until = now
    FROM locked
    WHERE held.name = locked.name AND locked.lock_until > timezone('utc', clock_timestamp())
    RETURNING 1";

pub(super) const PING: &str = "SELECT pg_catalog.pg_is_in_recovery() AS is_standby";
