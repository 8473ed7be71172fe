//! `MOVED`, `ASK` and `TRYAGAIN`: a command goes to the node that the map names, and from there
//! follows its slot.
//!
//! Redirects are followed within the command's time, at growing intervals. A redirect means that
//! nothing was carried out, so no command that had an effect is ever sent twice. The engine repeats
//! commands that fail otherwise, as with one server.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Failure, Instant};
use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::nodes::Cluster;
use crate::errors::{self, without_effect};
use crate::topology::server::ServerAddress;
use crate::transport::connection::Answered;
use crate::transport::request::Request;

/// The first pause before a redirected command is sent again. Each further pause is twice as long.
const REDIRECT_PAUSE: Duration = Duration::from_millis(5);

/// The node to send a command to instead.
enum Redirect {
    /// The slot has moved there.
    Moved(ServerAddress),
    /// This key may already be there.
    Ask(ServerAddress),
    /// The keys of the lock are not all on one node at the moment.
    TryAgain,
}

impl Cluster {
    /// Sends a request to the node that has the slot, and follows redirects.
    pub(crate) async fn exchange(
        &self,
        slot: u16,
        by: Instant,
        request: &Request,
    ) -> Result<Answered, Failure> {
        let clock = &self.context.clock;
        let mut address = self.owner(slot, by).await?;
        let (mut asking, mut pause) = (false, Duration::ZERO);
        loop {
            let node = self.node(&address).map_err(without_effect)?;
            let answer = node.exchange(node.link(), by, request, asking).await;
            let answered = answer.inspect_err(|_| {
                // By the next request, another node may have its slots.
                self.learn_soon();
            })?;
            let Err(error) = &answered.result else {
                return Ok(answered);
            };
            let Some(redirect) = Redirect::of(error, &address) else {
                if errors::is_cluster_down(error) {
                    self.learn_soon();
                }
                return Ok(answered);
            };
            let now = clock.now();
            if let (Redirect::TryAgain, true) = (&redirect, request.is_divisible()) {
                self.moves(slot, now);
                return Ok(answered);
            }
            if now + pause >= by {
                return Ok(answered);
            }
            if !pause.is_zero() {
                clock.sleep_until(now + pause).await;
            }
            pause = (2 * pause).max(REDIRECT_PAUSE);
            match redirect {
                Redirect::Moved(to) => (address, asking) = (self.moved(slot, to), false),
                Redirect::Ask(to) => {
                    self.moves(slot, now);
                    (address, asking) = (Arc::new(to), true);
                }
                // Ask the slot's owner in the map: it may have all keys by now, or may still have
                // them.
                Redirect::TryAgain => {
                    self.moves(slot, now);
                    (address, asking) = (self.owner(slot, by).await?, false);
                }
            }
        }
    }
}

impl Redirect {
    fn of(error: &RedisError, asked: &ServerAddress) -> Option<Self> {
        if errors::is_try_again(error) {
            return Some(Self::TryAgain);
        }
        let (addr, _) = error.redirect_node()?;
        let (host, port) = addr.rsplit_once(':')?;
        // An empty host means the node that was asked.
        let host = if host.is_empty() { &asked.host } else { host };
        let to = ServerAddress {
            host: host.to_owned(),
            port: port.parse().ok()?,
        };
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Ask) => Some(Self::Ask(to)),
            _ => Some(Self::Moved(to)),
        }
    }
}
