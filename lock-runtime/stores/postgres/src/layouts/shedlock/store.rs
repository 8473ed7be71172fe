//! [`ShedLockTable`]: the contract, on the table.

use std::sync::Arc;

use lock_store::{
    Acquire, Acquired, Answer, Busy, Capabilities, Claim, Failure, ForeignNames, FoundHolder,
    Holder, Instant, LockFound, LockKey, Owner, Release, Released, Renewal, Renewed, Replied,
    Store, StoreError, StoreFuture, escaped, warn_of_renewal,
};
use tokio_postgres::Row;

use super::greeting::{CREATE, GRANT};
use super::statements::{ABANDON, ACQUIRE, FORCE, ForMany, INSPECT, PING, RELEASE, RENEW};
use crate::errors::{contended, is_of_kept_row, of_late, of_standby};
use crate::rows::{Read, Values, micros, of_micros};
use crate::statement::{LINK, Param, Statement};
use crate::store::{LOCKED_PAUSE, LOCKED_TRY, PostgresStore, WAITS_FOR_ROW, read_first_row};

/// Who a client says that it is takes no more of `locked_by`, which also has the owner.
const LONGEST_HOST: usize = 64;

pub(crate) struct ShedLockTable {
    store: Arc<PostgresStore>,
    /// What stands before the owner, where ShedLock writes its host.
    host: String,
    names: ForeignNames,
}

lock_store::show!(ShedLockTable as it: store = it.store);

impl ShedLockTable {
    pub(crate) fn new(store: Arc<PostgresStore>, name: &str) -> Self {
        let host = name.chars().take(LONGEST_HOST).collect();
        let names = ForeignNames::default();
        Self { store, host, names }
    }

    /// As it stands in `locked_by`.
    fn owner(&self, owner: Owner) -> String {
        format!("{}:{owner}", self.host)
    }

    fn holder(&self, locked_by: &str) -> FoundHolder {
        FoundHolder::of_shedlock(locked_by).unwrap_or_else(|| {
            let found = FoundHolder::Foreign(format!("ShedLock on {}", escaped(locked_by)));
            self.names.note(&found);
            found
        })
    }

    /// For how many milliseconds a statement waits for a row: as the functions of the native layout
    /// do, or half of what is left if that is less. Not 0, which would be for ever.
    fn waits_for_row(&self, by: Instant) -> Param {
        let left = by.saturating_duration_since(self.store.pool.clock.now());
        let waits = (left / 2).min(WAITS_FOR_ROW).as_millis().max(1);
        Param::long(i64::try_from(waits).unwrap_or(i64::MAX))
    }

    /// Carries out a statement for some of the claims, each of which has a number: the places of
    /// those that were held, and for which it is done.
    async fn ask_many(
        &self,
        sql: &'static str,
        claims: &[(&Claim, i64)],
        asked: &[usize],
        by: Instant,
    ) -> Replied<Vec<(usize, bool)>> {
        let (mut names, mut owners, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (claim, number) in asked.iter().filter_map(|at| claims.get(*at)) {
            names.push(self.store.name(&claim.key));
            owners.push(self.owner(claim.owner));
            numbers.push(*number);
        }
        let params = vec![
            Param::ManyBytes(names),
            Param::ManyTexts(owners),
            Param::ManyLongs(numbers),
            self.waits_for_row(by),
        ];
        let statement = Statement::new(sql, params);
        let statement = match claims {
            [_] => statement,
            _ => statement.once(),
        };
        let read = |rows: &[Row]| -> Read<Vec<(usize, bool)>> {
            let mut found = Vec::new();
            for row in rows.iter().map(Values) {
                let at: i64 = row.get("at")?;
                let at = usize::try_from(at.saturating_sub(1)).ok();
                if let Some(at) = at.and_then(|at| asked.get(at)) {
                    found.push((*at, row.get("is_done")?));
                }
            }
            Ok(found)
        };
        self.call(by, statement, read).await
    }

    /// Whether each of the claims was held, and it is done. `None` for one whose row somebody else
    /// keeps: the others don't wait for that one, and it has this error. If it is done for none,
    /// that is the answer.
    async fn do_all(
        &self,
        sql: &ForMany,
        claims: &[(&Claim, i64)],
        by: Instant,
    ) -> Replied<(Vec<Option<bool>>, Option<StoreError>)> {
        let (store, clock) = (&self.store, &self.store.pool.clock);
        let mut outcomes = vec![None; claims.len()];
        let mut left: Vec<usize> = (0..claims.len()).collect();
        let mut is_told = claims.len() > 1 && store.goes_apart(by);
        let mut kept = contended(store.server());
        let mut took = store.last_kept_took();
        let failure = loop {
            if !std::mem::take(&mut is_told) {
                let began = clock.now();
                match self.ask_many(sql.waiting, claims, &left, by).await {
                    Ok(found) => {
                        note(&mut outcomes, &left, &found.value);
                        return Ok(Answer::new((outcomes, None), LINK));
                    }
                    Err(failure) if !is_of_kept_row(&failure) || claims.len() < 2 => break failure,
                    Err(failure) => kept = failure.error,
                }
                took = clock.now() - began;
                store.note_kept_row(took);
                if clock.now() + took.saturating_sub(WAITS_FOR_ROW) > by {
                    break Failure::without_effect(kept);
                }
            }
            let found = match self.ask_many(sql.skipping, claims, &left, by).await {
                Ok(found) => found,
                Err(failure) => break failure,
            };
            let is_locked = |at: &usize| found.value.contains(&(*at, false));
            let (locked, free): (Vec<_>, Vec<_>) = left.iter().copied().partition(is_locked);
            note(&mut outcomes, &free, &found.value);
            left = locked;
            if left.is_empty() {
                return Ok(Answer::new((outcomes, None), LINK));
            }
            store.note_kept_row(took);
            if clock.now() + LOCKED_TRY.max(LOCKED_PAUSE + took) > by {
                break Failure::without_effect(kept);
            }
            clock.sleep_until(clock.now() + LOCKED_PAUSE).await;
        };
        match left.len() < claims.len() {
            true => Ok(Answer::new((outcomes, Some(failure.error)), LINK)),
            false => Err(failure),
        }
    }

    async fn call<T>(
        &self,
        by: Instant,
        statement: Statement,
        read: impl Fn(&[Row]) -> Read<T>,
    ) -> Replied<T> {
        let reply = self.store.call(by, statement, read).await;
        reply.map_err(|mut failure| {
            // The table was dropped meanwhile, or a right taken away.
            let advice = [("(42P01)", CREATE), ("(42501)", GRANT)];
            for (code, advice) in advice {
                if failure.error.detail().contains(code) {
                    failure.error = failure.error.advise(advice);
                    break;
                }
            }
            failure
        })
    }

    async fn take(&self, request: Acquire, by: Instant) -> Replied<Acquired> {
        let claim = &request.claim;
        let look_in = |remaining| Some(self.store.next_look_in(claim.owner, remaining));
        if let Some(owner) = request.instead_of {
            let before = Claim::new(claim.key.clone(), owner, None);
            let ended = self
                .end(vec![Release::new(before, Default::default())], by)
                .await?;
            // Other processes have their turn: they ask until this one asks again.
            if ended.value.contains(&Released::Released) {
                let mut busy = Busy::new(None, false);
                busy.look_in = look_in(None);
                return Ok(Answer::new(Acquired::Busy(busy), LINK));
            }
        }
        let params = vec![
            Param::bytes(self.store.name(&claim.key)),
            Param::ManyTexts(vec![self.owner(claim.owner)]),
            Param::long(micros(request.lease)),
            Param::Deadline,
            self.waits_for_row(by),
        ];
        let read = |row: Values<'_>| {
            if row.get("is_taken")? {
                return Ok(Some(Acquired::granted(None)));
            }
            if row.get("is_late")? {
                return Ok(None);
            }
            // It may have changed hands since the statement began.
            let remaining: Option<i64> = row.get("remaining")?;
            let remaining = remaining.filter(|left| *left > 0).map(of_micros);
            let mut busy = Busy::new(remaining, false);
            if remaining.is_some() {
                let holder = row.get::<Option<&str>>("locked_by")?;
                busy.holder = holder.map(|holder| self.holder(holder).who());
            }
            busy.look_in = look_in(remaining);
            Ok(Some(Acquired::Busy(busy)))
        };
        let statement = Statement::new(ACQUIRE, params);
        self.call_in_time(by, statement, read).await
    }

    /// Carries out a statement that has a deadline. It came after that if `read` says `None`.
    async fn call_in_time<T>(
        &self,
        by: Instant,
        statement: Statement,
        read: impl Fn(Values<'_>) -> Read<Option<T>>,
    ) -> Replied<T> {
        let read = read_first_row(read, || None);
        let mut is_repeated = false;
        loop {
            let answer = self.call(by, statement.clone(), &read).await?;
            if let Some(value) = answer.value {
                return Ok(Answer::new(value, answer.link));
            }
            // With time left, the server's clock was set since the connection began.
            let pool = &self.store.pool;
            if is_repeated || pool.clock.now() >= by {
                return Err(Failure::without_effect(of_late(self.store.server())));
            }
            is_repeated = true;
            pool.retire_all();
        }
    }

    async fn extend(&self, holds: Vec<Renewal>, by: Instant) -> Replied<Vec<Renewed>> {
        let all = holds.iter().map(|hold| (&hold.claim, micros(hold.lease)));
        let all: Vec<_> = all.collect();
        let answer = self.do_all(&RENEW, &all, by).await?;
        let (outcomes, error) = &answer.value;
        let left = holds.iter().zip(outcomes);
        let mut left = left.filter(|(_, outcome)| outcome.is_none());
        if let (Some(error), Some((hold, _))) = (error, left.next()) {
            warn_of_renewal(&hold.claim.key, left.count(), error);
        }
        let renewed = |outcome| match outcome {
            Some(true) => Renewed::Renewed,
            Some(false) => Renewed::Gone,
            None => Renewed::Unanswered,
        };
        Ok(answer.map(|(all, _)| all.into_iter().map(renewed).collect()))
    }

    async fn end(&self, holds: Vec<Release>, by: Instant) -> Replied<Vec<Released>> {
        let all = holds.iter().map(|hold| (&hold.claim, micros(hold.keep)));
        let all: Vec<_> = all.collect();
        let answer = self.do_all(&RELEASE, &all, by).await?;
        let (all, error) = answer.value;
        let released = |outcome| match outcome {
            Some(true) => Ok(Released::Released),
            Some(false) => Ok(Released::NotHeld),
            // All of them are released again.
            None => {
                let error = error.clone();
                let error = error.unwrap_or_else(|| contended(self.store.server()));
                Err(Failure::unknown(error, LINK))
            }
        };
        let all: Result<_, _> = all.into_iter().map(released).collect();
        Ok(Answer::new(all?, answer.link))
    }

    fn about(&self, sql: &'static str, key: &LockKey) -> Statement {
        Statement::new(sql, vec![Param::bytes(self.store.name(key))])
    }
}

/// Notes what a statement about some of the claims has `found`: what it does not name was not held.
fn note(outcomes: &mut [Option<bool>], asked: &[usize], found: &[(usize, bool)]) {
    for at in asked {
        if let Some(outcome) = outcomes.get_mut(*at) {
            *outcome = Some(found.contains(&(*at, true)));
        }
    }
}

impl Store for ShedLockTable {
    lock_store::boxed! { acquire: take, renew: extend, release: end }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let claim = request.claim;
            let params = vec![
                Param::bytes(self.store.name(&claim.key)),
                Param::ManyTexts(vec![self.owner(claim.owner)]),
                self.waits_for_row(by),
            ];
            let read = |row: Values<'_>| Ok(Released::of(row.get("is_held")?));
            let read = read_first_row(read, || Released::NotHeld);
            let abandoned = self.call(by, Statement::new(ABANDON, params), read).await;
            let Err(failure) = &abandoned else {
                return abandoned;
            };
            if failure.unknown.is_some() || failure.error.kind().is_transient() {
                return abandoned;
            }
            // No row can be made: a longer name than its column has, no right, a trigger. Then the
            // acquire has made none, too.
            let end = Release::new(claim, Default::default());
            let ended = self.end(vec![end], by).await?;
            let of_one = |all: Vec<Released>| all.first().copied().unwrap_or(Released::NotHeld);
            Ok(ended.map(of_one))
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        Box::pin(async move {
            let read = |row: Values<'_>| {
                let remaining = of_micros(row.get("remaining")?);
                let holder = self.holder(row.get("locked_by")?);
                Ok(Some(LockFound::held(holder, Some(remaining), 0)))
            };
            let statement = self.about(INSPECT, &key);
            let none = || Some(LockFound::free(0));
            self.call(by, statement, read_first_row(read, none)).await
        })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let name = Param::bytes(self.store.name(&key));
            let statement =
                Statement::new(FORCE, vec![name, self.waits_for_row(by), Param::Deadline]);
            let read = |row: Values<'_>| {
                let (is_done, is_late): (bool, bool) = (row.get("is_done")?, row.get("is_late")?);
                Ok((is_done || !is_late).then_some(Some(is_done)))
            };
            self.call_in_time(by, statement, read).await
        })
    }

    fn foreign_name(&self, holder: Holder) -> Option<String> {
        self.names.of(holder)
    }

    fn capabilities(&self) -> Capabilities {
        let of_postgres = self.store.capabilities();
        let mut can = Capabilities::none("the layout `shedlock`");
        can.namespaces = true;
        can.carried_out_within = of_postgres.carried_out_within;
        can.fails_over = of_postgres.fails_over;
        can
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let statement = Statement::new(PING, Vec::new());
            let read = |row: Values<'_>| row.get("is_standby");
            let answer = self
                .call(by, statement, read_first_row(read, || false))
                .await?;
            match answer.value {
                false => Ok(answer.map(drop)),
                true => Err(Failure::without_effect(of_standby(self.store.server()))),
            }
        })
    }

    lock_store::delegate! {
        await_connection is_connected servers log_findings link close is_closed
    }
}
