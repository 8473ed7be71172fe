//! What single functions say and write, at a time that the test sets: their boundaries, which a
//! server's own clock does not meet.

mod acquire;
mod ends;
mod latches;
mod looks;
mod rates;
mod states;
mod sweeps;
mod turns;

use std::fmt::Display;

use lock_testkit::PostgresServer;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The time, in seconds since 1970: some time in 2027.
const NOW: i64 = 1_800_000_000;

/// From here on, the functions read the setting `moment.now` instead of the clock.
pub(super) const SET_CLOCK: &str = "
    CREATE SCHEMA set_clock;
    CREATE FUNCTION set_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
    $$ SELECT coalesce(
        pg_catalog.to_timestamp(pg_catalog.current_setting('moment.now', true)::numeric),
        pg_catalog.clock_timestamp()) $$;
    -- Microseconds after `NOW`; nothing of an infinite time.
    CREATE FUNCTION set_clock.after(t timestamptz) RETURNS bigint LANGUAGE sql AS
    $$ SELECT CASE WHEN isfinite(t) THEN lock_store.micros(t) - 1800000000000000 END $$;
    DO $$
    DECLARE
        f regprocedure;
    BEGIN
        FOR f IN SELECT oid FROM pg_proc
                 WHERE pronamespace = 'lock_store'::regnamespace AND proconfig IS NOT NULL LOOP
            EXECUTE format(
                'ALTER FUNCTION %s
                    SET search_path = set_clock, lock_store, pg_catalog, pg_temp', f);
        END LOOP;
    END $$;
    SET search_path = set_clock, lock_store, pg_catalog;
    SET timezone = 'UTC';
    SET statement_timeout = '20s'";

/// The clients that replies name by a letter.
const CLIENTS: [char; 4] = ['a', 'b', 'c', 'd'];
/// The numbers of their requests.
const REQUESTS: std::ops::RangeInclusive<u8> = 1..=6;

/// The digits of an owner, as `a1`: a client's 16 bytes, and 8 of a request's number.
fn digits(client: char, request: u8) -> String {
    let (client, request) = (format!("{client}{client}"), format!("{request:02x}"));
    client.repeat(16) + &request.repeat(8)
}

/// An owner in SQL.
fn owner(name: &str) -> String {
    let (client, request) = name.split_at(1);
    let client = client.chars().next().unwrap();
    format!("'\\x{}'::bytea", digits(client, request.parse().unwrap()))
}

/// A reply with the short names of owners.
fn short(reply: &str) -> String {
    let mut short = reply
        .replace("\\\\x", "")
        .replace("\\x", "")
        .replace('"', "");
    for client in CLIENTS {
        for request in REQUESTS {
            short = short.replace(&digits(client, request), &format!("{client}{request}"));
        }
    }
    short
}

struct Moments {
    server: PostgresServer,
    session: Client,
}

impl Moments {
    async fn new() -> Self {
        let server = PostgresServer::start_alike().await;
        let session = server.session().await;
        session.batch_execute(SET_CLOCK).await.unwrap();
        let moments = Self { server, session };
        moments.at(0).await;
        moments
    }

    /// It is so many microseconds after [`NOW`].
    async fn at(&self, micros: i64) {
        let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let now = format!("{}.{rest:06}", NOW + seconds);
        self.run(&format!("SET moment.now = '{now}'")).await;
    }

    async fn run(&self, statements: &str) {
        self.session.batch_execute(statements).await.unwrap();
    }

    /// The columns of all rows, as text with `|` between; an error is its SQLSTATE. Owners have
    /// short names, as `a1`.
    async fn query(&self, query: &str) -> Vec<String> {
        match self.session.simple_query(query).await {
            Err(error) => vec![error.code().unwrap().code().to_owned()],
            Ok(said) => {
                let rows = said.iter().filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                });
                let text = |row: &tokio_postgres::SimpleQueryRow| {
                    let columns = (0..row.len()).map(|at| row.get(at).unwrap_or(""));
                    short(&columns.collect::<Vec<_>>().join("|"))
                };
                rows.map(text).collect()
            }
        }
    }

    /// What a call of a function says.
    async fn call(&self, call: impl Display) -> String {
        self.query(&format!("SELECT * FROM lock_store.{call}"))
            .await
            .concat()
    }

    /// These columns of a table's rows, in the order of the first; a time is `after(ends)`.
    async fn rows(&self, columns: &str, table: &str) -> Vec<String> {
        self.query(&format!(
            "SELECT {columns} FROM lock_store.{table} ORDER BY 1"
        ))
        .await
    }
}
