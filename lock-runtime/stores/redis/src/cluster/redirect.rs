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
use super::slot_map::is_host;
use crate::errors;
use crate::topology::address::ServerAddress;
use crate::transport::connection::Exchanged;
use crate::transport::script_or_command::Request;

/// The first pause before a redirected command is sent again. Each further pause is twice as long.
const REDIRECT_PAUSE: Duration = Duration::from_millis(5);

/// The node to send a command to instead.
enum Redirect {
    /// The slot has moved there.
    Moved(Arc<ServerAddress>),
    /// This key may already be there.
    Ask(Arc<ServerAddress>),
    /// There is such a node, and its address is not said.
    Elsewhere,
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
    ) -> Result<Exchanged, Failure> {
        let clock = &self.context.clock;
        let mut address = self.owner(slot, by).await?;
        let (mut asking, mut pause) = (false, Duration::ZERO);
        loop {
            let node = self.node(&address).map_err(Failure::without_effect)?;
            let answer = node.exchange(by, request, asking).await;
            let answered = answer.inspect_err(|_| {
                // By the next request, another node may have its slots.
                self.learn_soon();
            })?;
            let Err(error) = &answered.result else {
                return Ok(answered);
            };
            let Some(redirect) = self.redirect(error, &address) else {
                if errors::is_cluster_down(error) {
                    self.learn_soon();
                }
                return Ok(answered);
            };
            if let (Redirect::TryAgain, true) = (&redirect, request.is_divisible()) {
                return Ok(answered);
            }
            let now = clock.now();
            if now + pause >= by {
                return match redirect {
                    Redirect::TryAgain => Ok(answered),
                    _ => Err(Failure::without_effect(errors::moving(error))),
                };
            }
            if !pause.is_zero() {
                clock.sleep_until(now + pause).await;
            }
            pause = (2 * pause).max(REDIRECT_PAUSE);
            asking = matches!(redirect, Redirect::Ask(_));
            address = self.follow(redirect, slot, by).await?;
        }
    }

    /// Where to send the command next.
    async fn follow(
        &self,
        redirect: Redirect,
        slot: u16,
        by: Instant,
    ) -> Result<Arc<ServerAddress>, Failure> {
        match redirect {
            Redirect::Ask(to) => Ok(to),
            Redirect::Moved(to) => {
                self.note_moved(slot, &to);
                Ok(to)
            }
            Redirect::Elsewhere => self.next_owner(slot, by).await,
            // Ask the slot's owner in the map: it may have all keys by now, or may still have them.
            Redirect::TryAgain => self.owner(slot, by).await,
        }
    }

    fn redirect(&self, error: &RedisError, asked: &ServerAddress) -> Option<Redirect> {
        if errors::is_try_again(error) {
            return Some(Redirect::TryAgain);
        }
        let is_ask = match error.kind() {
            ErrorKind::Server(ServerErrorKind::Ask) => true,
            ErrorKind::Server(ServerErrorKind::Moved) => false,
            _ => return None,
        };
        let to = error
            .redirect_node()
            .and_then(|(addr, _)| ServerAddress::read(addr))
            .filter(|to| to.port != 0)
            .and_then(|ServerAddress { host, port }| {
                let host = Some(host.as_str()).filter(|host| is_host(host));
                self.redirected(host, port, asked)
            });
        Some(match to {
            None => Redirect::Elsewhere,
            Some(to) if is_ask => Redirect::Ask(to),
            Some(to) => Redirect::Moved(to),
        })
    }
}
