//! Latches and rate limiters.

use std::time::Duration;

use lock_store::rules::PassLog;
use lock_store::{
    Answer, Instant, LatchCall, LatchCounted, LatchFound, LatchSet, LatchState, LockKey,
    RateRequest, Rated, Replied, nanos,
};

use crate::rows::{Read, Values, micros, of_micros, owner_of, unsigned};
use crate::statement::{Param, Statement, owner};
use crate::store::{PostgresStore, read_first_row};

fn count(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The key, the owner, and when the attempt is valid.
fn of_call(name: Vec<u8>, call: &LatchCall) -> Vec<Param> {
    let valid = call.valid();
    let time = |micros: u64| Param::long(i64::try_from(micros).unwrap_or(i64::MAX));
    vec![
        Param::bytes(name),
        Param::bytes(owner(call.owner)),
        time(*valid.start()),
        time(*valid.end()),
    ]
}

impl PostgresStore {
    pub(crate) async fn ask_rate(&self, request: RateRequest, by: Instant) -> Replied<Rated> {
        let key = Param::bytes(self.name(&request.key));
        let (most, wanted) = (
            Param::long(request.burst.into()),
            Param::long(request.tokens.into()),
        );
        let time: fn(u64) -> Duration;
        let statement = if let Some(window) = request.window {
            time = Duration::from_micros;
            let share = PassLog::share(request.burst, window);
            Statement::new(
                "SELECT delay, left_over FROM lock_store.rate_at_most($1, $2, $3, $4, $5, $6)",
                vec![
                    key,
                    Param::long(micros(window)),
                    most,
                    wanted,
                    Param::long(nanos(request.wait) / 1_000),
                    Param::long(micros(share)),
                ],
            )
        } else {
            time = Duration::from_nanos;
            let (interval, wait) = (nanos(request.interval), nanos(request.wait));
            Statement::new(
                "SELECT delay, left_over FROM lock_store.rate($1, $2, $3, $4, $5)",
                vec![key, Param::long(interval), most, wanted, Param::long(wait)],
            )
        };
        let read = |row: Values<'_>| {
            let delay = time(unsigned(row.get("delay")?));
            let left: Option<i64> = row.get("left_over")?;
            Ok(left.map_or(Rated::Limited { retry_after: delay }, |left| {
                let left = count(left);
                Rated::Passed { delay, left }
            }))
        };
        self.call(by, statement, read_first_row(read, || Rated::Conflict))
            .await
    }

    pub(crate) async fn set_latch(
        &self,
        call: LatchCall,
        counts: u32,
        ttl: Duration,
        by: Instant,
    ) -> Replied<LatchSet> {
        let mut params = of_call(self.name(&call.key), &call);
        params.extend([Param::long(counts.into()), Param::long(micros(ttl))]);
        let sql = "SELECT code, now_is FROM lock_store.latch_set($1, $2, $3, $4, $5, $6)";
        let read = |row: Values<'_>| {
            Ok(match row.get::<i32>("code")? {
                0 => LatchSet::SetBefore,
                1 => LatchSet::Set,
                2 => LatchSet::Conflict,
                _ => LatchSet::Untimely {
                    now: unsigned(row.get("now_is")?),
                },
            })
        };
        let statement = Statement::new(sql, params);
        self.call(by, statement, read_first_row(read, || LatchSet::Conflict))
            .await
    }

    pub(crate) async fn count_down_latch(
        &self,
        call: LatchCall,
        by: Instant,
    ) -> Replied<LatchCounted> {
        let params = of_call(self.name(&call.key), &call);
        let statement = Statement::new(
            "SELECT code, left_over, now_is, told, generation \
             FROM lock_store.latch_count_down($1, $2, $3, $4)",
            params,
        );
        let read = |row: Values<'_>| {
            let counted = match row.get::<i32>("code")? {
                0 => LatchCounted::NotSet,
                1 => LatchCounted::Left(count(row.get("left_over")?)),
                2 => LatchCounted::Conflict,
                _ => LatchCounted::Untimely {
                    now: unsigned(row.get("now_is")?),
                },
            };
            let generation: Option<i64> = row.get("generation")?;
            let owners: Option<Vec<&[u8]>> = row.get("told")?;
            let owners = owners.unwrap_or_default().into_iter();
            let told = owners.filter_map(owner_of);
            let told = told.map(|owner| (owner, generation.map(unsigned)));
            Ok((counted, told.collect::<Vec<_>>()))
        };
        let none = || (LatchCounted::NotSet, Vec::new());
        let answer = self.call(by, statement, read_first_row(read, none)).await?;
        let (counted, told) = answer.value;
        self.notify_granted_now(told, by).await;
        Ok(Answer::new(counted, answer.link))
    }

    pub(crate) async fn look_at_latch(&self, key: LockKey, by: Instant) -> Replied<LatchFound> {
        let params = vec![Param::bytes(self.name(&key))];
        let look = Statement::new("SELECT * FROM lock_store.latch_look($1)", params);
        self.call(by, look, read_first_row(found, || LatchFound::NotSet))
            .await
    }

    pub(crate) async fn wait_at_latch(&self, place: LatchCall, by: Instant) -> Replied<LatchFound> {
        self.note_wait();
        let name = Param::bytes(self.name(&place.key));
        let params = vec![name, Param::bytes(owner(place.owner))];
        let wait = Statement::new("SELECT * FROM lock_store.latch_wait($1, $2)", params);
        self.call(by, wait, read_first_row(found, || LatchFound::NotSet))
            .await
    }

    pub(crate) async fn leave_latch(&self, place: LatchCall, by: Instant) -> Replied<()> {
        let params = vec![
            Param::bytes(self.name(&place.key)),
            Param::bytes(owner(place.owner)),
        ];
        let statement = Statement::new("SELECT lock_store.latch_leave($1, $2)", params);
        self.call(by, statement, |_| Ok(())).await
    }
}

fn found(row: Values<'_>) -> Read<LatchFound> {
    Ok(match row.get::<i32>("code")? {
        0 => LatchFound::NotSet,
        1 => {
            let generation = unsigned(row.get("generation")?);
            let mut state = LatchState::new(count(row.get("left_over")?), generation);
            state.opened = unsigned(row.get("opened")?);
            state.remaining = Some(of_micros(row.get("remaining")?));
            LatchFound::Is(state)
        }
        _ => LatchFound::Conflict,
    })
}
