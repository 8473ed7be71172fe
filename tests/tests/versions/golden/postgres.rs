//! PostgreSQL: rows, what clients may call, and messages.

use std::future::poll_fn;

use lock_store::{Acquired, Busy, Queue};
use lock_testkit::{PostgresServer, eventually};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

use super::{by_numbers, by_words, expect_fixture, lines, messages, stored};
use crate::clients::{A, B, Clients, claim, owner};

const TABLES: [&str; 8] = [
    "hold",
    "share",
    "place",
    "latch",
    "latch_place",
    "latch_call",
    "rate",
    "pass_log",
];

/// The first column of the rows.
async fn texts(session: &Client, query: &str) -> Vec<String> {
    let rows = session.simple_query(query).await.unwrap();
    let text = |row: &SimpleQueryMessage| match row {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    rows.iter().filter_map(text).collect()
}

async fn columns(session: &Client, table: &str) -> Vec<(String, String)> {
    let query = format!(
        "SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
         WHERE attrelid = 'lock_store.{table}'::regclass AND attnum > 0 AND NOT attisdropped
         ORDER BY attnum"
    );
    let columns = texts(session, &query).await.into_iter();
    let columns = columns.map(|column| {
        let (name, kind) = column.split_once(' ').unwrap();
        (name.to_owned(), kind.to_owned())
    });
    columns.collect()
}

/// A line for each row.
async fn dump(session: &Client) -> Vec<String> {
    let mut lines = Vec::new();
    for table in TABLES {
        let columns = columns(session, table).await;
        let shown = columns.iter().map(|(name, kind)| {
            let value = match (name.as_str(), kind.as_str()) {
                ("name", _) => "quote_nullable(convert_from(name, 'UTF8'))".to_owned(),
                (_, "timestamp with time zone") => format!(
                    "CASE WHEN isfinite({name}) THEN lock_store.micros({name})::text
                     ELSE quote_nullable({name}::text) END"
                ),
                _ => format!("quote_nullable({name}::text)"),
            };
            format!("' {name}=' || {value}")
        });
        let shown: Vec<_> = shown.collect();
        let query = format!(
            "SELECT '{table}' || {} FROM lock_store.{table} ORDER BY 1",
            shown.join(" || ")
        );
        let rows = texts(session, &query).await;
        lines.extend(rows.iter().map(|row| by_words(row)));
    }
    lines
}

async fn load(session: &Client, lines: &[String]) {
    for line in lines {
        let line = by_numbers(line);
        let (table, values) = line.split_once(' ').unwrap();
        let values = values
            .split(' ')
            .map(|value| value.split_once('=').unwrap());
        let (names, values): (Vec<_>, Vec<_>) = values
            .map(|(name, value)| match (name, value.parse::<f64>()) {
                ("name", _) => (name, format!("convert_to({value}, 'UTF8')")),
                // Without quotes: a time.
                (_, Ok(micros)) => (name, format!("to_timestamp({micros} / 1000000.0)")),
                _ => (name, value.to_owned()),
            })
            .unzip();
        let insert = format!(
            "INSERT INTO lock_store.{table} ({}) VALUES ({})",
            names.join(", "),
            values.join(", ")
        );
        session.batch_execute(&insert).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_stored_in_postgresql_is_as_it_was() {
    let server = PostgresServer::start().await;
    let clients = Clients::of(&server).await;
    stored::leave(&clients).await;
    expect_fixture("postgres/stored.txt", &dump(&server.session().await).await);
}

/// Waits until client `B` hears. The verbs of a store alone do not ask again.
async fn until_hearing(clients: &Clients) {
    let held = || claim("l", owner(A, 1), None);
    clients.take(held(), 0).await;
    // A client that is not known to hear is told when to look again.
    eventually("it listens", async || {
        let asks = clients.acquire(claim("l", owner(B, 7), None), Queue::Respect, 0);
        matches!(asks.await, Ok(Acquired::Busy(Busy { look_in: None, .. })))
    })
    .await;
    clients.release(held(), std::time::Duration::ZERO).await;
}

#[tokio::test]
async fn what_was_stored_in_postgresql_is_understood() {
    let server = PostgresServer::start().await;
    let clients = Clients::of(&server).await;
    until_hearing(&clients).await;
    load(&server.session().await, &lines("postgres/stored.txt")).await;
    stored::find(&clients).await;
}

/// The tables, and the functions that clients may call.
#[tokio::test]
async fn the_functions_and_tables_of_postgresql_are_as_they_were() {
    let server = PostgresServer::start().await;
    let session = server.session().await;
    let mut lines = texts(
        &session,
        "SELECT proname || '(' || pg_get_function_arguments(oid) || ') RETURNS '
             || pg_get_function_result(oid)
         FROM pg_proc WHERE pronamespace = 'lock_store'::regnamespace AND prosecdef",
    )
    .await;
    lines.sort();
    for table in TABLES.into_iter().chain(["meta"]) {
        let columns = columns(&session, table).await.into_iter();
        let columns: Vec<_> = columns
            .map(|(name, kind)| format!("{name} {kind}"))
            .collect();
        lines.push(format!("{table}: {}", columns.join(", ")));
    }
    expect_fixture("postgres/functions_and_tables.txt", &lines);
}

/// What is notified on the channel of `B`, as long as the session is there.
async fn hear(server: &PostgresServer) -> (Client, UnboundedReceiver<String>) {
    let connected = tokio_postgres::connect(&server.url(), NoTls).await;
    let (session, mut connection) = connected.unwrap();
    let (hears, heard) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(said) = message
                && !said.payload().ends_with("proof")
                && hears.send(said.payload().to_owned()).is_err()
            {
                break;
            }
        }
    });
    let listen = format!("LISTEN lock_{:032x}", B.0);
    session.batch_execute(&listen).await.unwrap();
    (session, heard)
}

#[tokio::test]
async fn what_is_said_in_postgresql_is_as_it_was() {
    let server = PostgresServer::start().await;
    let (_session, mut heard) = hear(&server).await;
    let clients = Clients::of(&server).await;
    let mut said = Vec::new();
    for number in 0..messages::MESSAGES {
        messages::say(&clients, number).await;
        said.push(by_words_of_hex(&heard.recv().await.unwrap()));
    }
    expect_fixture("postgres/messages.txt", &said);
}

/// Tokens are hexadecimal there.
fn by_words_of_hex(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let token = u64::from_str_radix(word, 16)
            .ok()
            .filter(|_| word.len() < 16);
        let time = token.map(|token| by_words(&token.to_string()));
        time.filter(|time| time.starts_with('<'))
            .unwrap_or(word.to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}

fn by_numbers_of_hex(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.starts_with('<') {
        true => format!("{:x}", by_numbers(word).parse::<u64>().unwrap()),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn what_was_said_in_postgresql_is_understood() {
    let server = PostgresServer::start().await;
    let clients = Clients::of(&server).await;
    until_hearing(&clients).await;
    for line in lines("postgres/messages.txt") {
        let said = by_numbers_of_hex(&line);
        server
            .run(&format!("SELECT pg_notify('lock_{:032x}', '{said}')", B.0))
            .await;
    }
    messages::expect_heard(&clients).await;
}
