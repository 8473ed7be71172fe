//! The injection of each fault, and its end.

use std::time::Duration;

use super::Fault;
use super::fault::Place;
use super::service::Service;
use crate::Proxy;
use crate::history::Effect;
use crate::monotonic_nanos;
use crate::seeded::Seeded;

impl Service {
    /// Injects one fault, from its beginning to its end.
    pub(super) async fn inject(&self, fault: Fault, random: &mut Seeded) {
        let (at, stands_still, is_away) = self.aim(random).await;
        let mut from = monotonic_nanos();
        let effect = match fault {
            Fault::ClientStop => self.stop_client(random).await,
            Fault::ClientKill => self.kill_client(random, &mut from).await,
            Fault::LoseData | Fault::Evict => Effect::DataLost,
            Fault::ClockAhead | Fault::ClockBehind => Effect::ClockMoved,
            _ => Effect::Other,
        };
        match fault {
            Fault::ClientStop | Fault::ClientKill | Fault::Failover => {}
            Fault::ClockAhead | Fault::ClockBehind => {
                if !self.move_clock(fault, random).await {
                    return;
                }
            }
            Fault::ServerStop => {
                self.server.pause(at);
                tokio::time::sleep(stands_still).await;
                self.server.resume(at);
            }
            Fault::ServerKill => {
                self.server.kill(at);
                tokio::time::sleep(is_away).await;
                self.server.restart(at).await;
            }
            Fault::ServerRestart => {
                self.server.stop(at).await;
                tokio::time::sleep(is_away).await;
                self.server.restart(at).await;
            }
            Fault::LoseData => {
                let redis = self.server.redis().expect("only Redis forgets");
                redis.lose_data().await;
            }
            Fault::KillNormal => self.server.end_connections(at).await,
            Fault::KillSubscribers => self.ask(at, &["CLIENT", "KILL", "TYPE", "pubsub"]).await,
            Fault::ScriptFlush => self.ask(at, &["SCRIPT", "FLUSH"]).await,
            Fault::ClientPause => {
                let pause = random.millis(50, 1500);
                let of = *random.pick(&["ALL", "WRITE"]);
                let millis = pause.as_millis().to_string();
                self.ask(at, &["CLIENT", "PAUSE", &millis, of]).await;
                tokio::time::sleep(pause).await;
            }
            Fault::DebugSleep => {
                let seconds = random.millis(50, 1500).as_secs_f64().to_string();
                self.ask(at, &["DEBUG", "SLEEP", &seconds]).await;
            }
            Fault::OutOfMemory => {
                self.ask(at, &["CONFIG", "SET", "maxmemory", "1"]).await;
                tokio::time::sleep(random.millis(50, 1500)).await;
                self.ask(at, &["CONFIG", "SET", "maxmemory", "0"]).await;
            }
            Fault::Evict => self.evict(at, random).await,
            _ => self.disturb_network(fault, random).await,
        }
        self.note(fault, from, effect);
        if fault.place() == Place::Server
            && let Some(redis) = self.server.redis()
        {
            redis.until_settled().await;
            self.note_failovers().await;
        }
    }

    /// A server, and how long it stands still or is away. Where others can take over, half of the
    /// faults meet a master for long enough.
    async fn aim(&self, random: &mut Seeded) -> (usize, Duration, Duration) {
        let masters = match self.server.redis() {
            Some(redis) => redis.masters_at().await,
            None => Vec::new(),
        };
        if !masters.is_empty() && random.chance(50) {
            let at = *random.pick(&masters);
            return (at, random.millis(2500, 4000), random.millis(2500, 6000));
        }
        let at = random.below(self.server.count());
        (at, random.millis(50, 2500), random.millis(0, 800))
    }

    /// Ends all faults.
    pub(super) async fn heal(&self) {
        for proxy in &self.proxies {
            quiet(proxy);
        }
        if let Some(clock) = &self.clock {
            clock.shift(0);
        }
        let redis = self.server.redis().map_or(0, |redis| redis.servers().len());
        for at in 0..redis {
            self.ask(at, &["CONFIG", "SET", "maxmemory", "0"]).await;
        }
    }

    /// Panics if the command is refused: a refused command is no fault, and must not count as one.
    async fn ask(&self, at: usize, words: &[&str]) {
        self.server.redis_server(at).command(words).await;
    }

    async fn stop_client(&self, random: &mut Seeded) -> Effect {
        let mut slots = self.slots.lock().await;
        let at = random.below(slots.len());
        slots[at].process.pause();
        tokio::time::sleep(random.millis(50, 3000)).await;
        slots[at].process.resume();
        Effect::Stopped {
            process: slots[at].number,
        }
    }

    async fn kill_client(&self, random: &mut Seeded, from: &mut u64) -> Effect {
        let mut slots = self.slots.lock().await;
        let at = random.below(slots.len());
        let slot = &mut slots[at];
        *from = monotonic_nanos();
        slot.process.kill();
        self.hear(slot);
        let process = slot.number;
        *slot = self.worker(at, random).await;
        Effect::Killed { process }
    }

    async fn disturb_network(&self, fault: Fault, random: &mut Seeded) {
        // Choose the network of one client, of some, or of all.
        let some = 1 + random.below(self.proxies.len());
        let all: Vec<&Proxy> = self.proxies.iter().collect();
        let mut chosen = random.shuffled(&all);
        chosen.truncate(some);
        let (late, lasts) = (random.millis(1, 400), random.millis(50, 2000));
        for proxy in &chosen {
            match fault {
                Fault::Delay => proxy.delay(late),
                Fault::DelayReplies => proxy.delay_replies(late),
                Fault::Freeze => proxy.freeze(),
                Fault::DropReplies => proxy.drop_replies(true),
                Fault::CutAfterRequest if !self.can_have(Fault::ScriptFlush) => {
                    proxy.cut_after_next_request();
                }
                Fault::CutAfterRequest => match random.below(3) {
                    0 => proxy.cut_after_next("SET"),
                    1 => proxy.cut_after_next("EVALSHA"),
                    _ => proxy.cut_after_next_request(),
                },
                Fault::Refuse => {
                    proxy.refuse(true);
                    proxy.cut();
                }
                _ => proxy.cut(),
            }
        }
        if fault == Fault::Cut || fault == Fault::CutAfterRequest {
            return;
        }
        tokio::time::sleep(lasts).await;
        for proxy in chosen {
            // The lost replies stay lost: no later reply may pass over the same connection.
            if fault == Fault::DropReplies {
                proxy.refuse(true);
                proxy.cut();
            }
            quiet(proxy);
        }
    }

    /// Leaves too little memory for all keys, with a policy that evicts.
    async fn evict(&self, at: usize, random: &mut Seeded) {
        let information: String = self
            .server
            .redis_server(at)
            .query(&["INFO", "memory"])
            .await;
        let used = information
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        let used: u64 = used.and_then(|used| used.trim().parse().ok()).unwrap_or(0);
        let policy = *random.pick(&[
            "allkeys-lru",
            "allkeys-random",
            "volatile-lru",
            "volatile-ttl",
        ]);
        self.ask(at, &["CONFIG", "SET", "maxmemory-policy", policy])
            .await;
        let limit = (used + 20_000).to_string();
        self.ask(at, &["CONFIG", "SET", "maxmemory", &limit]).await;
        let junk = "x".repeat(2000);
        for number in 0..30 {
            // Refused when nothing is left to evict.
            let words = ["SET", &format!("junk:{number}"), &junk];
            let _ = self.server.redis_server(at).try_command(&words).await;
        }
        tokio::time::sleep(random.millis(0, 500)).await;
        self.ask(at, &["CONFIG", "SET", "maxmemory", "0"]).await;
        self.ask(at, &["CONFIG", "SET", "maxmemory-policy", "noeviction"])
            .await;
        for number in 0..30 {
            self.ask(at, &["DEL", &format!("junk:{number}")]).await;
        }
    }

    /// Returns false if there is no movable clock.
    async fn move_clock(&self, fault: Fault, random: &mut Seeded) -> bool {
        let Some(clock) = &self.clock else {
            return false;
        };
        // Redis ends leases by its wall clock. If a client died while the clock was ahead, its lock
        // stays that much longer. This must be less than the patience of the requests at the end.
        let by = random.millis(100, 8_000).as_millis();
        let by = i64::try_from(by).unwrap_or(0);
        let by = if fault == Fault::ClockAhead { by } else { -by };
        clock.shift(by);
        let before = wall_millis();
        let (seconds, micros): (i64, i64) = self.server.redis_server(0).query(&["TIME"]).await;
        let shown = seconds * 1000 + micros / 1000 - by;
        assert!(
            (before - 10..=wall_millis() + 10).contains(&shown),
            "the server's clock was to be moved by {by} ms and was not"
        );
        tokio::time::sleep(random.millis(100, 2000)).await;
        clock.shift(0);
        // Wait until what the server began on the moved clock has ended.
        tokio::time::sleep(Duration::from_millis(20)).await;
        true
    }
}

/// This process's wall clock, in milliseconds.
fn wall_millis() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("it is after 1970").as_millis();
    i64::try_from(now).expect("it is before the year 292 million")
}

fn quiet(proxy: &Proxy) {
    proxy.delay(Duration::ZERO);
    proxy.thaw();
    proxy.drop_replies(false);
    proxy.refuse(false);
}
