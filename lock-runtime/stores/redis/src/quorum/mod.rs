//! Locks on a majority of independent Redis servers.
//!
//! After the Redis documentation, *Distributed locks with Redis*, "The Redlock algorithm", with its
//! criticism (Martin Kleppmann, *How to do distributed locking*) taken seriously: holds have
//! fencing tokens that rise, and a server that may have forgotten what it granted does not count.
//! There are `n` servers that know nothing of each other; any `n / 2 + 1` of them decide, and any
//! two majorities have a server in common.
//!
//! # The protocol
//! - **Take.** A round asks every server at once for its part of the lock: to write the round's
//!   owner token with the lease, if no other is there. It is granted as soon as a majority has done
//!   so; a server that is dead or slow costs nothing then, and its part, if it comes later, is
//!   ended with the rest.
//! - **Validity** is that of the engine for every store: counted from before the first command was
//!   sent, and cut by 1 % of the lease and 2 ms for clocks that run at different rates. Each
//!   server's part lasts longer.
//! - **One owner token for each round.** A round that got no majority is ended on every server that
//!   may have its token, in the background until that is sure, while the next round is under way.
//!   If both had the same token, a late end of the first could end the second's grant.
//! - **Split votes.** Several rounds can have parts and none a majority. Each gives its parts back
//!   and tries again after a random pause, ever longer. Replies name the holder, which tells a
//!   split vote from a busy lock. Where servers say nothing, a part elsewhere can be either: an
//!   owner that is met in several rounds in a row has the lock.
//! - **Release** goes to all servers, whatever they said before, and is repeated until each has
//!   surely done it or the lease is over.
//! - **Renewal** counts when a majority has renewed, and the hold is gone when a majority no longer
//!   can.
//! - **A server that was restarted** may have forgotten what it granted. It does not count before
//!   the longest lease there is has passed, by the clock of a client that knew it before, and by
//!   its own uptime for others; it does everything else. No lease is longer than that.
//! - **Waiting.** There is no queue: no server knows whose turn it is in all of them. Each server
//!   publishes the end of a hold. Waiting clients try when a majority has told them, each in a
//!   random slot; the more clients wait, the more slots there are. A lost message costs a poll.
//!
//! # Fencing tokens
//! The highest of counters that the servers keep, taken together with their parts, is not enough: a
//! server whose lease ended in between, or whose reply was lost, can have proposed the same number
//! to two. So there are two phases:
//! 1. *Collect*: with its part, each server proposes the next number of its counter (at least its
//!    clock, so that tokens rise also where counters were lost), and keeps nothing yet. The token
//!    is the highest that a majority proposed.
//! 2. *Confirm*: each server keeps the token, **if** the round still has its part **and** the
//!    counter is below it. The grant counts when a majority has.
//!
//! Unique: two grants have been confirmed by one server in common, which kept the second above the
//! first. Rising: a round that begins after a grant collects from a server that had confirmed it.
//! Neither depends on any clock. The time floor covers a server that restarts without its counter:
//! tokens then rise as long as the servers' clocks differ by less than the time for which the
//! server does not count.
//!
//! `tests/simulation/tests/models/quorum.rs` goes through every order of this with three
//! servers.
//!
//! # What can't be done
//! Locks in shares (three users on three servers each can all have two of them), strict order of
//! arrival, rate limiters and latches, which are counts that every server would keep differently.
//! They are refused.

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
