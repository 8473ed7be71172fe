//! The acquire of one key: alone, or with others of its client.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lock_store::timing::{FALLBACK_POLL, backoff};
use lock_store::{
    Acquire, Acquired, Answer, Busy, Failure, Granted, Instant, Owner, Queue, Replied,
};
use tokio_postgres::Row;

use crate::batch::Batched;
use crate::locks::{of_claim, of_holds};
use crate::news::Told;
use crate::rows::{AcquireFields, Read, Values, holder_of, micros, of_micros, unsigned};
use crate::statement::{Param, Statement, owner, tokens};
use crate::store::{PostgresStore, read_first_row};
use crate::together::Together;

/// This long after its end, a lease is over for sure.
const LEASE_IS_OVER: Duration = Duration::from_millis(1);
/// A request that has not asked for this long does not ask any more.
const FORGETS: Duration = Duration::from_secs(10);

const ACQUIRE: &str =
    "SELECT lock_store.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS it";
/// NULL if `acquire_first` got the lock.
const ACQUIRE_PLAIN: &str = "SELECT CASE \
     WHEN lock_store.acquire_first($1, $2, $5, $11) IS NOT TRUE \
     THEN lock_store.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) END AS it";

impl Batched for Acquire {
    type Reply = Acquired;

    fn together(store: &PostgresStore) -> &Together<Self, Acquired> {
        &store.acquiring
    }

    /// Several that have or want places in the queue of one key. Those that want one come first:
    /// they wait for the row, and whoever has that may wait for places, which are locked when they
    /// are seen. If nobody gets the lock, a crash may undo it: the row is not kept from others
    /// until it is on disk.
    async fn carry_out(
        store: &PostgresStore,
        requests: Vec<Self>,
        by: Instant,
    ) -> Replied<Vec<Acquired>> {
        let order = store.placed.new_first(&requests);
        let all = order.iter().filter_map(|at| requests.get(*at));
        let [owners, counts, capacities] = of_holds(all.clone().map(|one| &one.claim));
        let name = requests.first().map(|one| store.name(&one.claim.key));
        let wait = |one: &Acquire| one.wait.map_or(i64::MAX, micros);
        let statement = Statement::new(
            "SELECT it, CASE WHEN bool_and((it).code IN (0, 3) AND (it).told IS NULL) OVER () \
                     THEN set_config('synchronous_commit', 'off', true) END \
             FROM (SELECT lock_store.acquire($1, owner, count, capacity, lease, first_lease, \
                     nullif(wait, 9223372036854775807), tokens, 2, NULL, $9) AS it \
                 FROM unnest($2::bytea[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], \
                     $7::bigint[], $8::int[]) \
                     AS one (owner, count, capacity, lease, first_lease, wait, tokens) \
                 OFFSET 0) AS many",
            vec![
                Param::Bytes(name),
                owners,
                counts,
                capacities,
                Param::ManyLongs(all.clone().map(|one| micros(one.lease)).collect()),
                Param::ManyLongs(all.clone().map(|one| micros(one.first_lease)).collect()),
                Param::ManyLongs(all.clone().map(wait).collect()),
                Param::ManyInts(all.map(|one| Some(tokens(one))).collect()),
                Param::Deadline,
            ],
        );
        let read = |rows: &[Row]| -> Read<(Vec<Option<Acquired>>, Told)> {
            let (mut acquired, mut told) = (vec![None; order.len()], Vec::new());
            for (row, at) in rows.iter().map(Values).zip(&order) {
                if let (Some(request), Some(slot)) = (requests.get(*at), acquired.get_mut(*at)) {
                    let (one, granted) = store.acquired(row.get("it")?, request);
                    *slot = Some(one);
                    told.extend(granted);
                }
            }
            Ok((acquired, told))
        };
        let answer = store.call(by, statement.for_many(), read);
        let Answer { value, link, .. } = store.notify_all(answer.await?);
        let all = value.into_iter().collect::<Option<_>>();
        // Nobody knows what became of a request without a row.
        let all = all.ok_or_else(|| Failure::unknown(store.silence(), link))?;
        Ok(Answer::new(all, link))
    }
}

fn queue(request: &Acquire) -> i32 {
    match request.queue {
        Queue::Barge => 0,
        Queue::Respect => 1,
        Queue::Join => 2,
    }
}

impl PostgresStore {
    pub(crate) async fn acquire_one(&self, request: Acquire, by: Instant) -> Replied<Acquired> {
        if request.queue == Queue::Join {
            self.note_wait();
        }
        if request.queue == Queue::Join && request.instead_of.is_none() {
            let name = self.name(&request.claim.key);
            return self.together(name, request, by).await;
        }
        let mut params = of_claim(self.name(&request.claim.key), &request.claim);
        params.extend([
            Param::long(micros(request.lease)),
            Param::long(micros(request.first_lease)),
            Param::Long(request.wait.map(micros)),
            Param::Int(Some(tokens(&request))),
            Param::Int(Some(queue(&request))),
            Param::Bytes(request.instead_of.map(owner)),
            Param::Deadline,
        ]);
        let is_plain =
            request.claim.permits.is_none() && request.tokens == 0 && request.instead_of.is_none();
        let statement = Statement::new(if is_plain { ACQUIRE_PLAIN } else { ACQUIRE }, params);
        let read = |row: Values<'_>| {
            Ok(match row.get("it")? {
                Some(it) => self.acquired(it, &request),
                None if is_plain => (Acquired::Granted(Granted::new(None, 0)), Told::new()),
                // No answer at all.
                None => self.acquired(row.get("it")?, &request),
            })
        };
        let none = || (Acquired::busy(None, false), Told::new());
        let answer = self.call(by, statement, read_first_row(read, none));
        Ok(self.notify_all(answer.await?))
    }

    /// A request was granted, or ends without.
    pub(crate) fn forget_place(&self, owner: Owner) {
        if self.has_waited.load(Ordering::Relaxed) {
            self.placed.forget(owner);
        }
    }

    fn acquired(&self, it: AcquireFields<'_>, request: &Acquire) -> (Acquired, Told) {
        match it.queued && it.code != 1 {
            true => self.placed.note(request.claim.owner, self.pool.clock.now()),
            false => self.forget_place(request.claim.owner),
        }
        let limit = it.limit.and_then(|limit| u32::try_from(limit).ok());
        let acquired = match it.code {
            1 => {
                let mut granted = Granted::new(it.token.map(unsigned), request.tokens);
                granted.limit = limit;
                Acquired::Granted(granted)
            }
            2 => Acquired::Conflict,
            code => {
                let mut busy = Busy::new(it.remaining.map(of_micros), it.queued);
                busy.holder = it.holder.and_then(holder_of);
                busy.limit = limit;
                if code == 3 || !self.hearing.borrow().is_proved() {
                    busy.look_in = Some(self.next_look_in(request.claim.owner, busy.remaining));
                }
                Acquired::Busy(busy)
            }
        };
        (acquired, it.granted)
    }

    /// How soon a request asks again where nothing tells of the end: an open `lock_check`, or
    /// nobody listens.
    pub(crate) fn next_look_in(&self, owner: Owner, remaining: Option<Duration>) -> Duration {
        let now = self.pool.clock.now();
        let mut looks = self.looks.lock();
        looks.sweep(|(_, last)| now < *last + FORGETS);
        let (times, last) = looks.entry(owner).or_insert((0, now));
        (*times, *last) = (times.saturating_add(1), now);
        let until_free = remaining.map_or(FALLBACK_POLL, |left| left + LEASE_IS_OVER);
        backoff(*times).min(FALLBACK_POLL).min(until_free)
    }
}
