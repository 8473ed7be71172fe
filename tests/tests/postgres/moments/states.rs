//! The rows of locks as lines of text: a name, a table, and the columns below with `|` between. An
//! owner is as `a1`, perhaps with more digits behind; a time is in microseconds after `NOW`.

use std::cell::Cell;

use lock_testkit::eventually;
use tokio_postgres::Client;

use super::{CLIENTS, Moments, NOW, REQUESTS, digits, owner};

/// The columns of each table, and those that follow from them or matter to nobody here.
const TABLES: [(&str, &str, &str); 5] = [
    ("hold", "owner|ends|last|token|special|capacity", ""),
    ("share", "owner|permits|token|ends", ""),
    (
        "place",
        "number|owner|permits|capacity|first_lease|ends|tokens|seen|suspended",
        "client",
    ),
    ("latch", "count|ends", "generation, opened"),
    ("latch_place", "owner|ends", ""),
];

/// Other locks, which no call on `k` reads or changes: what is held, what is over, what is free,
/// a latch, shares, and a queue.
const OTHERS: [&str; 16] = [
    "e hold a1|900|0|88|f|7",
    "f hold b1|-5|7|7|f|",
    "g hold ||0||t|",
    "h hold ||0||f|",
    "i hold ||0||t|",
    "i latch 1|900",
    "j hold ||0||t|2147483647",
    "j share a1|5|77|900",
    "j share b1|1||-5",
    "j share a16b00000002|2||900",
    "j place 1|d1|||10||0|0|",
    "j place 2|b1|||10||0|0|-70000000",
    "j place 3|c1|||10||0|0|-70000000",
    "j place 4|a1|||10||0|0|",
    "j place 5|b2|||10|-5|0|0|",
    "j latch_place a1|900",
];

/// A column's value in SQL.
fn value(table: &str, column: &str, text: &str) -> String {
    match (column, text) {
        ("owner", text) if !text.is_empty() => {
            let (client, request) = (text.as_bytes()[0].into(), text.as_bytes()[1] - b'0');
            format!("'\\x{}{}'", digits(client, request), &text[2..])
        }
        ("ends", "") if table == "hold" => "'-infinity'".to_owned(),
        ("ends", "") => "'infinity'".to_owned(),
        (_, "") => "NULL".to_owned(),
        ("ends" | "seen" | "suspended", text) => {
            format!("to_timestamp({NOW}) + {text} * interval '1 microsecond'")
        }
        ("first_lease", text) => format!("{text} * interval '1 microsecond'"),
        (_, text) => format!("'{text}'"),
    }
}

/// The statement that makes this line's row.
fn insert(line: &str) -> String {
    let (name, rest) = line.split_once(' ').unwrap();
    let (table, texts) = rest.split_once(' ').unwrap();
    let (_, columns, more) = TABLES.into_iter().find(|(its, ..)| *its == table).unwrap();
    let mut values: Vec<String> = columns
        .split('|')
        .zip(texts.split('|'))
        .map(|(column, text)| value(table, column, text))
        .collect();
    match more {
        "client" => values.push(format!("substr({}::bytea, 1, 16)", values[1])),
        "" => {}
        _ => values.extend(["0".to_owned(), "0".to_owned()]),
    }
    let comma = if more.is_empty() { "" } else { ", " };
    format!(
        "INSERT INTO lock_store.{table} (name, {}{comma}{more}) VALUES ('{name}', {});",
        columns.replace('|', ", "),
        values.join(", ")
    )
}

/// The query for the lines of a table.
fn lines_of((table, columns, _): (&str, &str, &str)) -> String {
    let texts = columns.split('|').map(|column| {
        let text = match column {
            "ends" | "seen" | "suspended" => format!("after({column})"),
            "first_lease" => "micros('epoch'::timestamptz + first_lease)".to_owned(),
            "special" => "CASE WHEN special THEN 't' ELSE 'f' END".to_owned(),
            column => column.to_owned(),
        };
        format!("coalesce({text}::text, '')")
    });
    let texts = texts.collect::<Vec<_>>().join(", ");
    format!(
        "SELECT concat(encode(name, 'escape'), ' {table} ', concat_ws('|', {texts})) FROM {table}"
    )
}

fn sorted<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    lines.sort();
    lines
}

impl Moments {
    /// From now on these are all rows.
    pub(super) async fn set(&self, lines: impl IntoIterator<Item = &str>) {
        let mut statements = String::new();
        for (table, ..) in TABLES {
            statements += &format!("DELETE FROM lock_store.{table};");
        }
        lines
            .into_iter()
            .for_each(|line| statements += &insert(line));
        self.run(&statements).await;
    }

    /// All rows.
    pub(super) async fn lines(&self) -> Vec<String> {
        let queries = TABLES.map(lines_of).join(" UNION ALL ");
        let lines = self.query(&queries).await;
        sorted(lines.iter().map(String::as_str))
    }

    /// What a call says, in which an owner is as `@a1`.
    pub(super) async fn say(&self, call: &str) -> String {
        self.call(with_owners(call)).await
    }

    /// What a call says if these are the rows of `k`, and which it leaves there. It leaves other
    /// locks as they are.
    pub(super) async fn check(&self, before: &[&str], call: &str, said: &str, left: &[&str]) {
        self.set(OTHERS.into_iter().chain(before.iter().copied()))
            .await;
        assert_eq!(self.say(call).await, said, "{call} with {before:?}");
        let all = sorted(OTHERS.into_iter().chain(left.iter().copied()));
        assert_eq!(self.lines().await, all, "{call} with {before:?}");
    }

    /// Another session, in a transaction that has carried out these statements.
    pub(super) async fn begin(&self, statements: &str) -> Client {
        let other = self.server.session().await;
        let now = format!("SET moment.now = '{NOW}'; SET search_path = lock_store; BEGIN;");
        let statements = now + &with_owners(statements);
        other.batch_execute(&statements).await.unwrap();
        other
    }

    /// What a call says that waits until such a transaction is committed.
    pub(super) async fn say_after(&self, statements: &str, call: &str) -> String {
        let function = call.split('(').next().unwrap();
        self.run(&format!(
            "ALTER FUNCTION lock_store.{function} SET lock_timeout = '20s'"
        ))
        .await;
        let other = self.begin(statements).await;
        let has_said = Cell::new(false);
        let says = async {
            let said = self.say(call).await;
            has_said.set(true);
            said
        };
        let goes_on = async {
            let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
            eventually("it waits", async || {
                has_said.get() || self.server.number(waiting).await > 0
            })
            .await;
            other.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(says, goes_on).0
    }
}

fn with_owners(call: &str) -> String {
    let mut call = call.to_owned();
    for client in CLIENTS {
        for request in REQUESTS {
            let name = format!("{client}{request}");
            call = call.replace(&format!("@{name}"), &owner(&name));
        }
    }
    call
}
