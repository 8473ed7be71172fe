//! [`Staggered`]: attempts to connect at one of several addresses, after RFC 8305 ("happy
//! eyeballs"), so that a silent one keeps no other from being tried.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::clock::Clock;
use crate::instant::Instant;
use crate::mutex::Mutex;

/// How long an attempt has for itself at most before the next one begins, as RFC 8305 recommends.
const STAGGER: Duration = Duration::from_millis(250);

/// Which of several addresses worked last.
#[derive(Debug)]
pub struct Staggered<A>(Mutex<Option<A>>);

impl<A> Default for Staggered<A> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

/// Attempts under way, each with the place of its address in the list.
type Running<F> = Vec<(usize, Pin<Box<F>>)>;

impl<A: Clone + PartialEq> Staggered<A> {
    /// The first attempt that succeeds. The address that worked last begins; the others follow in
    /// their order, each when the one before has failed or has had 250 ms (less, if all would not
    /// begin within the limit).
    ///
    /// An attempt should count as a success when it is known that the address is the right one: the
    /// server has answered, and has the role that is needed. It brings its own time limit, which
    /// begins with it. Among those that succeed within one stagger, the first in the list wins: so
    /// clients agree.
    ///
    /// # Errors
    /// The errors of all attempts, as they came; none for an empty list.
    ///
    /// # Cancel safety
    /// If the future is dropped, so are the attempts.
    pub async fn connect<T, E, F>(
        &self,
        addresses: Vec<A>,
        limit: Duration,
        clock: &Clock,
        attempt: impl Fn(A) -> F,
    ) -> Result<T, Vec<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut waiting = self.sorted(&addresses).into_iter();
        let (mut running, mut errors) = (Running::new(), Vec::new());
        let parts = u32::try_from(addresses.len() + 1).unwrap_or(u32::MAX);
        let stagger = STAGGER.min(limit / parts);
        loop {
            match waiting.next() {
                Some(at) => running.push((at, Box::pin(attempt(addresses[at].clone())))),
                None if running.is_empty() => return Err(errors),
                None => {}
            }
            let until = clock.now() + stagger;
            match clock.by(until, next(&mut running)).await {
                Some((at, Ok(found))) => {
                    let (at, found) = first_of((at, found), running, clock, until).await;
                    *self.0.lock() = Some(addresses[at].clone());
                    return Ok(found);
                }
                Some((_, Err(error))) => errors.push(error),
                None => {}
            }
        }
    }

    /// The places in the list, with that of the address that worked last in front.
    fn sorted(&self, addresses: &[A]) -> Vec<usize> {
        let last = self.0.lock();
        let mut places: Vec<usize> = (0..addresses.len()).collect();
        places.sort_by_key(|at| Some(&addresses[*at]) != last.as_ref());
        places
    }
}

/// What was found, or what an earlier one in the list brings until then.
async fn first_of<T, E, F>(
    mut found: (usize, T),
    mut running: Running<F>,
    clock: &Clock,
    until: Instant,
) -> (usize, T)
where
    F: Future<Output = Result<T, E>>,
{
    loop {
        running.retain(|(at, _)| *at < found.0);
        if running.is_empty() {
            return found;
        }
        match clock.by(until, next(&mut running)).await {
            Some((at, Ok(earlier))) => found = (at, earlier),
            Some((_, Err(_))) => {}
            None => return found,
        }
    }
}

/// The next one that ends.
async fn next<F: Future>(running: &mut Running<F>) -> (usize, F::Output) {
    poll_fn(|cx| {
        let mut all = running.iter_mut().enumerate();
        let ended = all.find_map(|(place, (_, one))| match one.as_mut().poll(cx) {
            Poll::Ready(output) => Some((place, output)),
            Poll::Pending => None,
        });
        match ended {
            Some((place, output)) => Poll::Ready((running.remove(place).0, output)),
            None => Poll::Pending,
        }
    })
    .await
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use tokio::runtime::Handle;

    use super::*;

    /// After this many milliseconds.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Server {
        Answers(u64),
        Refuses(u64),
        Silent,
    }

    async fn ask(server: Server) -> Result<Server, &'static str> {
        let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
        match server {
            Server::Answers(ms) => wait(ms).await,
            Server::Refuses(ms) => {
                wait(ms).await;
                return Err("refused");
            }
            Server::Silent => {
                wait(1000).await;
                return Err("silent");
            }
        }
        Ok(server)
    }

    use Server::{Answers, Refuses, Silent};

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_keeps_no_other_from_being_tried() {
        let clock = Clock::simulated(Handle::current());
        for (servers, wanted, after) in [
            (vec![Answers(3), Answers(1)], Ok(Answers(3)), 3),
            // At once after a refusal.
            (vec![Refuses(2), Answers(1)], Ok(Answers(1)), 3),
            // Nothing earlier is left to wait for, or it does not come within the stagger.
            (vec![Refuses(300), Answers(100)], Ok(Answers(100)), 350),
            (vec![Silent, Answers(1)], Ok(Answers(1)), 500),
            (vec![Silent, Silent, Answers(1)], Ok(Answers(1)), 750),
            // Both are good: the order of the list decides.
            (vec![Answers(300), Answers(1)], Ok(Answers(300)), 300),
            (
                vec![Refuses(1), Silent],
                Err(vec!["refused", "silent"]),
                1001,
            ),
            (vec![], Err(vec![]), 0),
        ] {
            let began = clock.now();
            let found = Staggered::default();
            let found = found.connect(servers.clone(), LIMIT, &clock, ask).await;
            assert_eq!(found, wanted, "{servers:?}");
            let took = clock.now() - began;
            assert_eq!(took.as_millis(), after, "{servers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_addresses_are_tried_within_the_limit() {
        let clock = Clock::simulated(Handle::current());
        let mut servers = vec![Silent; 9];
        servers.push(Answers(1));
        let began = clock.now();
        let limit = Duration::from_millis(1100);
        let found = Staggered::default();
        let found = found.connect(servers, limit, &clock, ask).await;
        assert_eq!(found, Ok(Answers(1)));
        assert!(clock.now() - began < limit);
    }

    #[tokio::test(start_paused = true)]
    async fn what_worked_last_is_tried_first() {
        let clock = Clock::simulated(Handle::current());
        let servers = Staggered::default();
        for after in [500, 1] {
            let began = clock.now();
            let found = servers
                .connect(vec![Silent, Answers(1)], LIMIT, &clock, ask)
                .await;
            assert_eq!(found, Ok(Answers(1)));
            assert_eq!((clock.now() - began).as_millis(), after);
        }
        // It is not in the list any more.
        let found = servers.connect(vec![Answers(2)], LIMIT, &clock, ask).await;
        assert_eq!(found, Ok(Answers(2)));
    }
}
