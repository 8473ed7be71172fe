//! The operations on locks, but for the [acquire of one](crate::acquire).

use lock_store::{
    Acquire, AcquiredAll, Answer, Claim, Failure, Fenced, FoundHolder, Instant, LockFound, LockKey,
    Permits, Queue, Release, Released, Renewal, Renewed, Replied, warn_of_renewal,
};
use tokio_postgres::Row;

use crate::apart::KeptRow;
use crate::batch::Batched;
use crate::news::Told;
use crate::rows::{EndFields, Read, Values, is_kept, micros, of_micros, owner_of, unsigned};
use crate::statement::{LINK, Param, Statement, owner, part, tokens};
use crate::store::{PostgresStore, read_first_row};
use crate::together::Together;

/// It names no owner: one that was given up must not end the hold of whoever is next.
const FORCE_RELEASE: &str = "SELECT lock_store.force_release($1) AS it
    FROM lock_store.expect_in_time('epoch'::timestamptz + $2 * interval '1 microsecond')";
const RELEASE: &str = "SELECT lock_store.release($1, $2, $3, $4, $5) AS it";
/// NULL if `release_first` ended the hold.
const RELEASE_PLAIN: &str = "SELECT CASE WHEN lock_store.release_first($1, $2) IS NOT TRUE \
     THEN lock_store.release($1, $2, $3, $4, $5) END AS it";

impl Batched for Release {
    type Reply = Released;

    fn together(store: &PostgresStore) -> &Together<Self, Released> {
        &store.releasing
    }

    async fn carry_out(
        store: &PostgresStore,
        requests: Vec<Self>,
        by: Instant,
    ) -> Replied<Vec<Released>> {
        if let [request] = requests.as_slice() {
            let mut params = of_claim(store.name(&request.claim.key), &request.claim);
            params.push(Param::long(micros(request.keep)));
            let is_plain = request.claim.permits.is_none() && request.keep.is_zero();
            let statement = Statement::new(if is_plain { RELEASE_PLAIN } else { RELEASE }, params);
            let read = if is_plain { ended_first } else { ended };
            let none = || (Released::NotHeld, Told::new());
            let answer = store
                .call(by, statement.for_many(), read_first_row(read, none))
                .await?;
            let released = store.notify_all_now(answer, by).await;
            return Ok(released.map(|released| vec![released]));
        }
        store.release_many(requests, by, KeptRow::IsAwaited).await
    }
}

/// The parameters that say which hold.
pub(crate) fn of_claim(name: Vec<u8>, claim: &Claim) -> Vec<Param> {
    let (count, of) = part(claim);
    vec![
        Param::bytes(name),
        Param::bytes(owner(claim.owner)),
        Param::Int(count),
        Param::Int(of),
    ]
}

/// The parameters that say which holds, beside their locks' names: owners, counts, capacities.
pub(crate) fn of_holds<'c>(claims: impl Iterator<Item = &'c Claim> + Clone) -> [Param; 3] {
    let (counts, capacities) = claims.clone().map(part).unzip();
    let owners = claims.map(|claim| owner(claim.owner)).collect();
    [
        Param::ManyBytes(owners),
        Param::ManyInts(counts),
        Param::ManyInts(capacities),
    ]
}

impl PostgresStore {
    pub(crate) fn notify_all<T>(&self, answer: Answer<(T, Told)>) -> Answer<T> {
        answer.map(|(value, told)| {
            self.notify_granted(told);
            value
        })
    }

    /// Notifies, and waits until all are told: the program may end after this.
    async fn notify_all_now<T>(&self, answer: Answer<(T, Told)>, by: Instant) -> Answer<T> {
        let (value, told) = answer.value;
        self.notify_granted_now(told, by).await;
        Answer::new(value, answer.link)
    }

    pub(crate) async fn acquire_together(
        &self,
        requests: Vec<Acquire>,
        by: Instant,
    ) -> Replied<AcquiredAll> {
        let all = requests.iter();
        let statement = Statement::new(
            "SELECT code, at, granted, told, tokens \
             FROM lock_store.acquire_all($1, $2, $3, $4, $5, $6)",
            vec![
                Param::ManyBytes(all.clone().map(|one| self.name(&one.claim.key)).collect()),
                Param::ManyBytes(all.clone().map(|one| owner(one.claim.owner)).collect()),
                Param::ManyLongs(all.clone().map(|one| micros(one.lease)).collect()),
                Param::ManyInts(all.clone().map(|one| Some(tokens(one))).collect()),
                Param::ManyBools(all.map(|one| one.queue == Queue::Respect).collect()),
                Param::Deadline,
            ],
        );
        let read = |row: Values<'_>| Ok((acquired_all(&row)?, row.grants()?));
        let none = || (AcquiredAll::Busy(0), Told::new());
        let answer = self.call(by, statement, read_first_row(read, none));
        Ok(self.notify_all(answer.await?))
    }

    pub(crate) async fn renew_holds(
        &self,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Replied<Vec<Renewed>> {
        let keys: Vec<_> = holds.iter().map(|hold| hold.claim.key.clone()).collect();
        let renew = |holds, kept| self.renew_many(holds, by, kept);
        let answer = self.together_or_apart(holds, by, renew).await?;
        let failures = keys.iter().zip(&answer.value);
        let mut failures = failures.filter_map(|(key, one)| Some((key, one.as_ref().err()?)));
        if let Some((key, failure)) = failures.next() {
            warn_of_renewal(key, failures.count(), &failure.error);
        }
        let of_each = |one: Result<_, _>| one.unwrap_or(Renewed::Unanswered);
        Ok(answer.map(|all| all.into_iter().map(of_each).collect()))
    }

    async fn renew_many(
        &self,
        holds: Vec<Renewal>,
        by: Instant,
        kept: KeptRow,
    ) -> Replied<Vec<Renewed>> {
        let all = holds.iter();
        let [owners, counts, capacities] = of_holds(all.clone().map(|hold| &hold.claim));
        let names = all.clone().map(|hold| self.name(&hold.claim.key));
        let statement = Statement::new(
            "SELECT at, held FROM (
                SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int[], $4::int[], $5::bigint[])
                    WITH ORDINALITY AS one (name, owner, count, capacity, lease, at)
                ORDER BY name, at
             ) AS sorted, LATERAL lock_store.renew(name, owner, count, capacity, lease) AS held",
            vec![
                Param::ManyBytes(names.collect()),
                owners,
                counts,
                capacities,
                Param::ManyLongs(all.map(|hold| micros(hold.lease)).collect()),
            ],
        );
        let read = |rows: &[Row]| -> Read<Vec<Renewed>> {
            let mut renewed = vec![Renewed::Unanswered; holds.len()];
            for row in rows.iter().map(Values) {
                let held: bool = row.get("held")?;
                if let Some(slot) = renewed.get_mut(place(&row)?) {
                    *slot = if held {
                        Renewed::Renewed
                    } else {
                        Renewed::Gone
                    };
                }
            }
            Ok(renewed)
        };
        self.call(by, kept.of(statement), read).await
    }

    pub(crate) async fn fence_hold(&self, claim: Claim, by: Instant) -> Replied<Fenced> {
        let params = of_claim(self.name(&claim.key), &claim);
        let statement = Statement::new("SELECT lock_store.fence($1, $2, $3, $4) AS token", params);
        let read = |row: Values<'_>| {
            Ok(match row.get::<Option<i64>>("token")? {
                None => Fenced::Gone,
                Some(0) => Fenced::Conflict,
                Some(token) => Fenced::Token(unsigned(token)),
            })
        };
        self.call(by, statement, read_first_row(read, || Fenced::Gone))
            .await
    }

    async fn release_many(
        &self,
        requests: Vec<Release>,
        by: Instant,
        kept: KeptRow,
    ) -> Replied<Vec<Released>> {
        let all = requests.iter();
        let [owners, counts, capacities] = of_holds(all.clone().map(|one| &one.claim));
        let statement = Statement::new(
            "SELECT at, held, told, tokens FROM (
                SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int[], $4::int[], $5::bigint[])
                    WITH ORDINALITY AS one (name, owner, count, capacity, keep, at)
                ORDER BY name, at
             ) AS sorted, LATERAL lock_store.release(name, owner, count, capacity, keep)",
            vec![
                Param::ManyBytes(all.clone().map(|one| self.name(&one.claim.key)).collect()),
                owners,
                counts,
                capacities,
                Param::ManyLongs(all.map(|one| micros(one.keep)).collect()),
            ],
        );
        let read = |rows: &[Row]| -> Read<(Vec<Released>, Told)> {
            let mut ended = vec![Released::NotHeld; requests.len()];
            let mut told = Told::new();
            for row in rows.iter().map(Values) {
                if let Some(slot) = ended.get_mut(place(&row)?) {
                    *slot = Released::of(row.get("held")?);
                }
                told.extend(row.grants()?);
            }
            Ok((ended, told))
        };
        let answer = self.call(by, kept.of(statement.for_many()), read).await?;
        Ok(self.notify_all_now(answer, by).await)
    }

    pub(crate) async fn release_holds(
        &self,
        mut requests: Vec<Release>,
        by: Instant,
    ) -> Replied<Vec<Released>> {
        for request in &requests {
            self.forget_place(request.claim.owner);
        }
        if requests.len() == 1
            && let Some(request) = requests.pop()
        {
            let name = self.name(&request.claim.key);
            let answer = self.together(name, request, by).await?;
            return Ok(answer.map(|released| vec![released]));
        }
        let release = |requests, kept| self.release_many(requests, by, kept);
        let answer = self.together_or_apart(requests, by, release).await?;
        let all = answer.value.into_iter().collect::<Result<_, _>>();
        // All of them are released again.
        let all = all.map_err(|mut failure: Failure| {
            failure.unknown = Some(LINK);
            failure
        })?;
        Ok(Answer::new(all, answer.link))
    }

    /// Carries out a statement that ends a hold, or a part of it.
    async fn end_claim(
        &self,
        sql: &'static str,
        params: Vec<Param>,
        by: Instant,
    ) -> Replied<Released> {
        let none = || (Released::NotHeld, Told::new());
        let answer = self.call(by, Statement::new(sql, params), read_first_row(ended, none));
        let answer = answer.await?;
        Ok(self.notify_all_now(answer, by).await)
    }

    pub(crate) async fn shrink_hold(
        &self,
        claim: Claim,
        permits: u32,
        by: Instant,
    ) -> Replied<Released> {
        let mut params = of_claim(self.name(&claim.key), &claim);
        params.push(Param::Int(Some(i32::try_from(permits).unwrap_or(i32::MAX))));
        let sql = "SELECT lock_store.shrink($1, $2, $3, $4, $5) AS it";
        self.end_claim(sql, params, by).await
    }

    pub(crate) async fn abandon_request(&self, request: Acquire, by: Instant) -> Replied<Released> {
        self.forget_place(request.claim.owner);
        let params = of_claim(self.name(&request.claim.key), &request.claim);
        let sql = "SELECT lock_store.abandon($1, $2, $3, $4) AS it";
        self.end_claim(sql, params, by).await
    }

    pub(crate) async fn inspect_lock(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<LockFound>> {
        let statement = Statement::new(
            "SELECT code, holder, permits, remaining, holders, waiting, taken, of_all \
             FROM lock_store.inspect($1)",
            vec![Param::bytes(self.name(&key))],
        );
        self.call(by, statement, read_first_row(inspection, || None))
            .await
    }

    pub(crate) async fn list_holders(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<Vec<FoundHolder>>> {
        let statement = Statement::new(
            "SELECT code, owners, shares FROM lock_store.holders($1)",
            vec![Param::bytes(self.name(&key))],
        );
        self.call(by, statement, read_first_row(holders, || None))
            .await
    }

    pub(crate) async fn force_free(&self, key: LockKey, by: Instant) -> Replied<Option<bool>> {
        let params = vec![Param::bytes(self.name(&key)), Param::Deadline];
        let statement = Statement::new(FORCE_RELEASE, params);
        let read = |row: Values<'_>| {
            let it: EndFields = row.get("it")?;
            Ok((it.was_held, it.granted))
        };
        let answer = self.call(by, statement, read_first_row(read, || (None, Told::new())));
        let answer = answer.await?;
        Ok(self.notify_all_now(answer, by).await)
    }
}

fn ended(row: Values<'_>) -> Read<(Released, Told)> {
    let it: EndFields = row.get("it")?;
    Ok((Released::of(it.was_held == Some(true)), it.granted))
}

/// The same of a statement that is NULL if `release_first` ended the hold.
fn ended_first(row: Values<'_>) -> Read<(Released, Told)> {
    match row.get::<Option<EndFields>>("it")? {
        Some(_) => ended(row),
        None => Ok((Released::of(true), Told::new())),
    }
}

/// The request that a row of a batch is about.
fn place(row: &Values<'_>) -> Read<usize> {
    let at: i64 = row.get("at")?;
    Ok(usize::try_from(at.saturating_sub(1)).unwrap_or(usize::MAX))
}

fn acquired_all(row: &Values<'_>) -> Read<AcquiredAll> {
    let at: i32 = row.get("at")?;
    let at = usize::try_from(at.saturating_sub(1)).unwrap_or(0);
    Ok(match row.get::<i32>("code")? {
        1 => {
            let tokens: Option<Vec<Option<i64>>> = row.get("granted")?;
            let tokens = tokens.unwrap_or_default().into_iter();
            AcquiredAll::granted(tokens.map(|token| token.map(unsigned)).collect())
        }
        2 => AcquiredAll::Conflict(at),
        _ => AcquiredAll::Busy(at),
    })
}

fn found(holder: &[u8], permits: Option<i32>) -> Option<FoundHolder> {
    owner_of(holder).map(|owner| FoundHolder::Owner {
        owner,
        kept: is_kept(holder),
        permits: permits.map(i32::unsigned_abs),
    })
}

fn holders(row: Values<'_>) -> Read<Option<Vec<FoundHolder>>> {
    if row.get::<i32>("code")? == 2 {
        return Ok(None);
    }
    let (owners, shares): (Vec<&[u8]>, Vec<i32>) = (row.get("owners")?, row.get("shares")?);
    let all = owners.into_iter().zip(shares);
    let all = all.filter_map(|(owner, share)| found(owner, (share > 0).then_some(share)));
    Ok(Some(all.collect()))
}

fn inspection(row: Values<'_>) -> Read<Option<LockFound>> {
    if row.get::<i32>("code")? == 2 {
        return Ok(None);
    }
    let waiting: i64 = row.get("waiting")?;
    let mut found = LockFound::free(usize::try_from(waiting).unwrap_or(0));
    if let Some(holder) = row.get::<Option<&[u8]>>("holder")? {
        found.holder = self::found(holder, row.get("permits")?);
        found.remaining = row.get::<Option<i64>>("remaining")?.map(of_micros);
        let holders: Option<i64> = row.get("holders")?;
        found.holders = usize::try_from(holders.unwrap_or(0)).unwrap_or(0);
        let taken = row.get::<Option<i64>>("taken")?;
        let of_all = row.get::<Option<i32>>("of_all")?;
        found.permits = taken.zip(of_all).map(|(taken, of_all)| Permits {
            count: u32::try_from(taken).unwrap_or(u32::MAX),
            of: u32::try_from(of_all).unwrap_or(0),
        });
    }
    Ok(Some(found))
}
