//! Locks on a majority of independent Redis servers.
//!
//! After the Redis documentation, *Distributed locks with Redis*, "The Redlock algorithm". It
//! answers the criticism in Martin Kleppmann's *How to do distributed locking*: holds have rising
//! fencing tokens, and a server that may have forgotten a grant does not count. There are `n`
//! servers that know nothing of each other. Any `n / 2 + 1` of them decide, and any two majorities
//! have a server in common.
//!
//! # The protocol
//! - **Take.** A round asks every server at once for its part of the lock: to write the round's
//!   owner token with the lease, if no other token is there. The lock is granted as soon as a
//!   majority has done so. A dead or slow server costs no time then. If its part comes later, it is
//!   ended with the rest.
//! - **Validity** is the engine's for every store: counted from before the first command was sent,
//!   less 1 % of the lease and 2 ms for clocks that run at different rates. Each server's part
//!   lasts longer.
//! - **One owner token for each round.** A round that got no majority is ended on every server that
//!   may have its token. This goes on in the background until it is sure, while the next round is
//!   under way. If both had the same token, a late end of the first could end the second's grant.
//! - **Split votes.** Several rounds can have parts and none a majority. Each gives its parts back
//!   and tries again after a random pause, which grows. Replies name the holder, which tells a
//!   split vote from a busy lock. If some servers do not answer, a part elsewhere can mean either:
//!   an owner that is met in several rounds in a row has the lock.
//! - **Release** goes to all servers, whatever they replied before. It is repeated until each has
//!   surely done it or the lease is over.
//! - **Renewal** counts when a majority has renewed. The hold is gone when a majority no longer
//!   can. What is left of it keeps others out until its owner, who has been told, releases it, or
//!   until the lease ends.
//! - **A restarted server** may have forgotten what it granted. It does not count until the longest
//!   possible lease has passed: by the clock of a client that knew it before, and by its own uptime
//!   for others. It does everything else. No lease is longer than that.
//! - **Waiting.** There is no queue: no server knows whose turn it is on all of them. Each server
//!   publishes the end of a hold. A waiting client tries when a majority has told it, in a random
//!   slot. The more clients wait, the more slots there are. A lost message costs a poll.
//!
//! # Fencing tokens
//! The highest of the servers' counters, read together with their parts, is not enough. A server
//! whose lease ended in between, or whose reply was lost, can have proposed the same number to two
//! rounds. So there are two phases:
//! 1. *Collect*: with its part, each server proposes the next number of its counter, and keeps
//!    nothing yet. The number is at least the server's clock, so that tokens rise even if counters
//!    were lost. The token is the highest that a majority proposed.
//! 2. *Confirm*: each server keeps the token, **if** the round still has its part **and** the
//!    counter is below the token. The grant counts when a majority has kept it.
//!
//! Unique: one server has confirmed both of any two grants, and kept the second above the first.
//! Rising: a round that begins after a grant collects from a server that confirmed it. Neither
//! depends on any clock. The time floor covers a server that restarts without its counter: tokens
//! then rise as long as the servers' clocks differ by less than the time for which the server does
//! not count.
//!
//! `tests/simulation/tests/models/quorum.rs` checks every order of this with three servers.
//!
//! # What can't be done
//! Four things are refused: locks in shares (three holders on three servers each can all have two
//! of them), strict order of arrival, rate limiters and latches. Each needs a count or an order
//! that every server would keep differently.

mod acquire;
mod contract;
mod ends;
mod fence;
mod health;
mod hints;
mod inspect;
mod majority;
mod release;
mod renew;
mod round;
pub(crate) mod store;
mod votes;
