//! PostgreSQL, as somebody would write it who needs a lock now.

use std::sync::Arc;
use std::time::Duration;

use lock_testkit::PostgresServer;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use crate::Place;
use crate::worker::{Counts, Order, Running, Work, runtime};

/// Who polls waits so long between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// As many connections as this library uses.
const CONNECTIONS: usize = 8;

/// A server on the disk of the temporary folder, which writes each commit there.
#[derive(Debug)]
pub(crate) struct Database {
    server: PostgresServer,
    // The server's connections belong to it.
    _runtime: Runtime,
}

impl Database {
    pub(crate) fn new() -> Self {
        let runtime = runtime();
        let server = runtime.block_on(async {
            let server = PostgresServer::on_disk().await;
            server
                .run(
                    "CREATE TABLE lock (
                        name text PRIMARY KEY, owner text NOT NULL, ends timestamptz NOT NULL
                     ); GRANT ALL ON lock TO app;
                     CREATE TABLE shedlock (
                        name text PRIMARY KEY, lock_until timestamptz NOT NULL,
                        locked_at timestamptz NOT NULL, locked_by text NOT NULL
                     ); GRANT ALL ON shedlock TO app",
                )
                .await;
            server
        });
        Self {
            server,
            _runtime: runtime,
        }
    }
}

impl Place for Database {
    fn url(&self) -> String {
        self.server.app_url()
    }
}

/// How somebody takes a lock, and gives it back.
#[derive(Clone, Copy)]
struct ByHand {
    take: &'static str,
    give_back: &'static str,
    /// The lock belongs to the session.
    of_session: bool,
}

impl ByHand {
    fn of(library: &str) -> Self {
        match library {
            "advisory" => Self {
                take: "SELECT pg_try_advisory_lock(hashtextextended($1 || left($2, 0), 0))",
                give_back: "SELECT pg_advisory_unlock(hashtextextended($1 || left($2, 0), 0))",
                of_session: true,
            },
            "session" => Self {
                take: "SELECT pg_advisory_lock(hashtextextended($1 || left($2, 0), 0))::text = ''",
                give_back: "SELECT pg_advisory_unlock(hashtextextended($1 || left($2, 0), 0))",
                of_session: true,
            },
            "shedlock" => Self {
                take: "INSERT INTO shedlock AS s (name, lock_until, locked_at, locked_by)
                       VALUES ($1, clock_timestamp() + interval '30 s', clock_timestamp(), $2)
                       ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until,
                           locked_at = excluded.locked_at, locked_by = excluded.locked_by
                       WHERE s.lock_until <= clock_timestamp() RETURNING true",
                give_back: "UPDATE shedlock SET lock_until = clock_timestamp()
                            WHERE name = $1 AND locked_by = $2",
                of_session: false,
            },
            _ => Self {
                take: "INSERT INTO lock AS l (name, owner, ends)
                       VALUES ($1, $2, clock_timestamp() + interval '30 s')
                       ON CONFLICT (name) DO UPDATE
                           SET owner = excluded.owner, ends = excluded.ends
                       WHERE l.ends <= clock_timestamp() RETURNING true",
                give_back: "DELETE FROM lock WHERE name = $1 AND owner = $2",
                of_session: false,
            },
        }
    }
}

/// A session, and what it asks again and again.
struct Session {
    client: Client,
    take: Statement,
    give_back: Statement,
}

impl Session {
    async fn open(url: &str, by_hand: ByHand) -> Self {
        let (client, driver) = tokio_postgres::connect(url, NoTls)
            .await
            .expect("the server");
        tokio::spawn(driver);
        let ByHand {
            take, give_back, ..
        } = by_hand;
        Self {
            take: client.prepare(take).await.expect("a statement"),
            give_back: client.prepare(give_back).await.expect("a statement"),
            client,
        }
    }

    async fn take(&self, key: &str, owner: &str) -> bool {
        let rows = self
            .client
            .query(&self.take, &[&key, &owner])
            .await
            .expect("an answer");
        rows.first().is_some_and(|row| row.get(0))
    }

    async fn give_back(&self, key: &str, owner: &str) {
        let done = self.client.query(&self.give_back, &[&key, &owner]).await;
        done.expect("an answer");
    }
}

/// `loop` and `poll`: an upsert that is refused while another's lease lasts, and a delete, over as
/// many connections as this library has. `shedlock`: the same with ShedLock's statements, which
/// keep the row. `advisory`: `pg_try_advisory_lock`, and `session`: `pg_advisory_lock`, which waits
/// in the server. Both need a session for each task.
pub(crate) fn by_hand(library: &str, order: &Order, counts: &Arc<Counts>) -> Work {
    let runtime = runtime();
    let by_hand = ByHand::of(library);
    let connections = if by_hand.of_session {
        order.tasks
    } else {
        CONNECTIONS
    };
    let sessions: Vec<Arc<Session>> = runtime.block_on(async {
        let mut sessions = Vec::new();
        for _ in 0..connections {
            sessions.push(Arc::new(Session::open(&order.place, by_hand).await));
        }
        sessions
    });
    let (order, counts) = (order.clone(), Arc::clone(counts));
    Work::new(move || {
        let mut tasks = JoinSet::new();
        for task in 0..order.tasks {
            let session = Arc::clone(&sessions[task % sessions.len()]);
            let (counts, key) = (Arc::clone(&counts), order.key(task));
            let owner = format!("{}-{task}", std::process::id());
            let work = async move {
                while counts.goes_on() {
                    while !session.take(&key, &owner).await {
                        if !counts.goes_on() {
                            return;
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                    session.give_back(&key, &owner).await;
                    counts.count(task);
                }
            };
            tasks.spawn_on(work, runtime.handle());
        }
        Running::new(move || {
            runtime.block_on(tasks.join_all());
        })
    })
}
