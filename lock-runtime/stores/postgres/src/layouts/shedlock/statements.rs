//! The statements. A row stays when its lock is free: then its `lock_until` has passed.
//!
//! Times are in UTC, as ShedLock writes them. `now` is the beginning of a statement that may have
//! waited for a row since then: so a lease is never counted from later than that. Whether the
//! statement comes too late, or the hold has ended, is asked once the row is locked, of
//! `clock_timestamp()`. The `WHERE` of an `UPDATE` would not do: it is read again only if who had
//! the row has changed it. That of `DO UPDATE` is read when the row is locked, and so is what is
//! asked of rows that a `WITH` has locked. Only an insert that waited for another one, which was
//! rolled back, is not asked again: it may come as much too late as it waits for a row at most.
//!
//! No statement waits long for a row that somebody has locked: its connection would be lost to all
//! other jobs. The limit is set in the statement's own transaction, since behind a pooler the
//! session is not the client's.

/// `$1` name, `$2` owner, `$3` lease in µs, `$4` deadline, `$5` for how many ms it waits for the
/// row. `is_taken`; if not, the holder before the statement, the rest of its time, and whether the
/// statement came too late. A row that another owner holds is not locked: those who renew and
/// release it stand there, and whoever has it locked keeps nobody from knowing that it is held.
pub(super) const ACQUIRE: &str = "
    WITH taken AS (
        INSERT INTO shedlock AS held (name, lock_until, locked_at, locked_by)
        SELECT convert_from($1, 'UTF8'), now + $3::bigint * interval '1 microsecond', now,
            ($2::text[])[1]
        FROM (SELECT timezone('utc', clock_timestamp()) AS now,
            set_config('lock_timeout', $5::bigint::text, true)) AS t
        WHERE date_part('epoch', clock_timestamp()) * 1000000 <= $4 AND NOT EXISTS (
            SELECT FROM shedlock AS other
            WHERE other.name = convert_from($1, 'UTF8') AND other.lock_until > now
                AND other.locked_by <> ($2::text[])[1])
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

/// What is done to several holds.
pub(super) struct ForMany {
    /// For a while, for each row that somebody has locked.
    pub(super) waiting: &'static str,
    /// Leaves those out.
    pub(super) skipping: &'static str,
}

/// `$1` names, `$2` owners, `$3` a number for each, `$4` for how many ms it waits for a row. The
/// places of those that were held, and whether it is done. One whose time is over at the beginning
/// is met all the same: its renewal may be being committed.
macro_rules! for_many {
    ($set:literal) => {
        ForMany {
            waiting: for_many!($set, ""),
            skipping: for_many!($set, "SKIP LOCKED"),
        }
    };
    ($set:literal, $skip:literal) => {
        concat!(
            "
    WITH asked AS (
        SELECT convert_from(key, 'UTF8') AS key, owner, number, at, now
        FROM (SELECT timezone('utc', clock_timestamp()) AS now,
                set_config('lock_timeout', $4::bigint::text, true)) AS t,
            unnest($1::bytea[], $2::text[], $3::bigint[])
                WITH ORDINALITY AS one (key, owner, number, at)
    ), locked AS (
        SELECT asked.*, lock_until
        FROM asked JOIN shedlock ON name = key AND locked_by = owner
        ORDER BY name
        FOR NO KEY UPDATE OF shedlock ",
            $skip,
            "
    ), done AS (
        UPDATE shedlock AS held SET ",
            $set,
            "
        FROM locked
        WHERE name = key AND locked_by = owner
            AND locked.lock_until > timezone('utc', clock_timestamp())
        RETURNING at
    )
    SELECT at, at IN (SELECT at FROM done) AS is_done
    FROM asked JOIN shedlock ON name = key AND locked_by = owner
        AND (lock_until > now OR at IN (SELECT at FROM done) OR at NOT IN (SELECT at FROM locked))"
        )
    };
}

/// The numbers are leases in µs.
pub(super) const RENEW: ForMany =
    for_many!("lock_until = greatest(held.lock_until, now + number * interval '1 microsecond')");

/// The numbers say for how many µs each stays taken.
pub(super) const RELEASE: ForMany = for_many!(
    "lock_until = now + number * interval '1 microsecond',
            locked_by = CASE WHEN number > 0 THEN owner || ':kept' ELSE owner END"
);

/// `$1` name, `$2` owner, `$3` for how many ms it waits for the row. A row if it was held. An
/// acquire that is being committed is waited for: no other sees it yet. So a row that was not there
/// is there then, and over. Where another owner is seen to hold, there is none: it would have taken
/// a row that was over.
pub(super) const ABANDON: &str = "
    INSERT INTO shedlock AS held (name, lock_until, locked_at, locked_by)
    SELECT convert_from($1, 'UTF8'), now, now, ($2::text[])[1]
    FROM (SELECT timezone('utc', clock_timestamp()) AS now,
        set_config('lock_timeout', $3::bigint::text, true)) AS t
    WHERE NOT EXISTS (
        SELECT FROM shedlock AS other
        WHERE other.name = convert_from($1, 'UTF8') AND other.lock_until > now
            AND other.locked_by <> ($2::text[])[1])
    ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', clock_timestamp())
    WHERE held.locked_by = excluded.locked_by
        AND held.lock_until > timezone('utc', clock_timestamp())
    RETURNING lock_until > locked_at AS is_held";

/// `$1` name. The holder and the rest of its time, if it is held.
pub(super) const INSPECT: &str = "
    SELECT locked_by,
        (date_part('epoch', lock_until - now) * 1000000)::bigint AS remaining
    FROM shedlock, (SELECT timezone('utc', clock_timestamp()) AS now) AS t
    WHERE name = convert_from($1, 'UTF8') AND lock_until > now";

/// `$1` name, `$2` for how many ms it waits for the row, `$3` deadline: it names no owner, and if
/// it was given up, must not end the hold of whoever is next. Whether it was held, and whether the
/// statement came too late.
pub(super) const FORCE: &str = "
    WITH locked AS (
        SELECT name, lock_until, now
        FROM (SELECT timezone('utc', clock_timestamp()) AS now,
            set_config('lock_timeout', $2::bigint::text, true)) AS t, shedlock
        WHERE name = convert_from($1, 'UTF8') AND lock_until > now
        FOR NO KEY UPDATE OF shedlock
    ), done AS (
        UPDATE shedlock AS held SET lock_until = now
        FROM locked
        WHERE held.name = locked.name AND locked.lock_until > timezone('utc', clock_timestamp())
            AND date_part('epoch', clock_timestamp()) * 1000000 <= $3
        RETURNING 1
    )
    SELECT EXISTS (SELECT FROM done) AS is_done,
        date_part('epoch', clock_timestamp()) * 1000000 > $3 AS is_late";

pub(super) const PING: &str = "SELECT pg_catalog.pg_is_in_recovery() AS is_standby";
