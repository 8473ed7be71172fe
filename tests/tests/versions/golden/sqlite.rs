//! SQLite: the tables and their rows, and datagrams.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use lock_testkit::SqliteFile;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{
    LONGEST, by_numbers, by_words, expect_fixture, hex, lines, messages, rounded, stored, unhex,
};
use crate::clients::{B, Clients};

const TABLES: [&str; 8] = [
    "hold",
    "place",
    "fence",
    "rate",
    "pass_log",
    "latch",
    "latch_place",
    "call",
];
/// Columns with nanoseconds of boot time.
const BOOT_TIMES: [&str; 4] = ["ends", "heard", "suspended", "at"];

/// How long ago the machine was started.
fn boot_seconds() -> f64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    uptime.split(' ').next().unwrap().parse().unwrap()
}

fn shown(column: &str, value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) if BOOT_TIMES.contains(&column) => {
            let from_now = number as f64 / 1e9 - boot_seconds();
            match from_now.abs() < LONGEST {
                true => format!("<boot{:+}s>", rounded(from_now)),
                false => number.to_string(),
            }
        }
        ValueRef::Integer(number) => by_words(&number.to_string()),
        ValueRef::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => format!("x'{}'", hex(bytes)),
        ValueRef::Real(_) => panic!("{column} is no whole number"),
    }
}

/// A line for each row.
fn dump(connection: &Connection) -> Vec<String> {
    let mut lines = Vec::new();
    for table in TABLES {
        let mut all = connection
            .prepare(&format!("SELECT * FROM {table}"))
            .unwrap();
        let columns: Vec<String> = all.column_names().iter().map(|&name| name.into()).collect();
        let mut rows = all.query(()).unwrap();
        let mut of_table = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let values = columns.iter().map(|column| {
                let value = row.get_ref(column.as_str()).unwrap();
                format!(" {column}={}", shown(column, value))
            });
            of_table.push(format!("{table}{}", values.collect::<String>()));
        }
        of_table.sort();
        lines.extend(of_table);
    }
    lines
}

fn load(connection: &Connection, lines: &[String]) {
    for line in lines {
        let (table, values) = line.split_once(' ').unwrap();
        let values = values
            .split(' ')
            .map(|value| value.split_once('=').unwrap());
        let (names, values): (Vec<_>, Vec<_>) = values
            .map(|(name, value)| match value.strip_prefix("<boot") {
                Some(time) => {
                    let time: f64 = time.trim_end_matches("s>").parse().unwrap();
                    (name, format!("{:.0}", (boot_seconds() + time) * 1e9))
                }
                None => (name, by_numbers(value)),
            })
            .unzip();
        let (names, values) = (names.join(", "), values.join(", "));
        let insert = format!("INSERT INTO {table} ({names}) VALUES ({values})");
        connection.execute(&insert, ()).unwrap();
    }
}

#[tokio::test]
async fn what_is_stored_in_sqlite_is_as_it_was() {
    let file = SqliteFile::new();
    let clients = Clients::of(&file).await;
    stored::leave(&clients).await;
    expect_fixture("sqlite/stored.txt", &dump(&file.connection()));
}

#[tokio::test]
async fn what_was_stored_in_sqlite_is_understood() {
    let file = SqliteFile::new();
    // The sessions of the rows.
    let clients = Clients::of(&file).await;
    load(&file.connection(), &lines("sqlite/stored.txt"));
    stored::find(&clients).await;
}

#[tokio::test]
async fn the_tables_of_sqlite_are_as_they_were() {
    let file = SqliteFile::new();
    let _clients = Clients::of(&file).await;
    let connection = file.connection();
    let number = |pragma: &str| {
        let number = connection.query_row(pragma, (), |row| row.get::<_, i64>(0));
        format!("{pragma} = {}", number.unwrap())
    };
    let mut all = vec![
        number("PRAGMA application_id"),
        number("PRAGMA user_version"),
    ];
    let made = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name";
    let mut made = connection.prepare(made).unwrap();
    let made = made.query_map((), |row| row.get::<_, String>(0)).unwrap();
    for one in made {
        all.extend(
            one.unwrap()
                .lines()
                .map(|line| line.trim_start().to_owned()),
        );
    }
    expect_fixture("sqlite/tables.txt", &all);
}

/// The socket of `B`.
fn socket(file: &SqliteFile) -> PathBuf {
    let query = format!("SELECT file FROM client WHERE client = x'{:032x}'", B.0);
    let folder = format!("{}-clients", file.path().display());
    PathBuf::from(folder)
        .join(file.text(&query))
        .with_extension("sock")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_in_sqlite_is_as_it_was() {
    let file = SqliteFile::new();
    let clients = Clients::of(&file).await;
    // In the place of that client's own.
    std::fs::remove_file(socket(&file)).unwrap();
    let hears = UnixDatagram::bind(socket(&file)).unwrap();
    hears
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut said = Vec::new();
    for number in 0..messages::MESSAGES {
        messages::say(&clients, number).await;
        let mut datagram = [0; 1024];
        let length = hears.recv(&mut datagram).unwrap();
        said.push(by_words_of_bytes(&datagram[..length]));
    }
    expect_fixture("sqlite/messages.txt", &said);
}

/// A grant ends with a token of eight bytes.
const TOKEN: usize = 8;

fn by_words_of_bytes(datagram: &[u8]) -> String {
    let (before, token) = datagram.split_at(datagram.len() - TOKEN);
    let token = u64::from_be_bytes(token.try_into().unwrap());
    let time = by_words(&token.to_string());
    match time.starts_with('<') {
        true => hex(before) + &time,
        false => hex(datagram),
    }
}

fn bytes_by_numbers(line: &str) -> Vec<u8> {
    match line.find('<') {
        Some(at) => {
            let (before, time) = line.split_at(at);
            let token: u64 = by_numbers(time).parse().unwrap();
            [unhex(before), token.to_be_bytes().to_vec()].concat()
        }
        None => unhex(line),
    }
}

#[tokio::test]
async fn what_was_said_in_sqlite_is_understood() {
    let file = SqliteFile::new();
    let clients = Clients::of(&file).await;
    let says = UnixDatagram::unbound().unwrap();
    for line in lines("sqlite/messages.txt") {
        says.send_to(&bytes_by_numbers(&line), socket(&file))
            .unwrap();
    }
    messages::expect_heard(&clients).await;
}
