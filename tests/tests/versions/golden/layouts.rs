//! Locks as ShedLock and Curator keep them. Their parts that are others each time stand as patterns
//! in the fixtures: `TIME` as Java writes an instant, and `OWNER` as this library writes one.

use lock_runtime::{Layout, LockClient, LockClientBuilder};
use lock_testkit::{Backend, PostgresServer, ShedlockTable, TextBackend, ZooKeeperEnsemble};

use super::{by_numbers, consensus, expect_fixture, lines};

/// `0` stands for a digit, and `f` for one to the base of 16.
const TIME: &str = "0000-00-00T00:00:00.000Z";
const CLIENT: &str = "ffffffffffffffffffffffffffffffff-";
/// One of each, for who reads a fixture.
const A_TIME: &str = "2026-11-26T10:59:28.510Z";
const AN_OWNER: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1f";

/// What of the text is behind this pattern, if it begins with that.
fn behind<'t>(text: &'t str, pattern: &str) -> Option<&'t str> {
    let (begin, rest) = text.split_at_checked(pattern.len())?;
    let mut letters = begin.chars().zip(pattern.chars());
    let fits = letters.all(|(letter, wanted)| match wanted {
        '0' => letter.is_ascii_digit(),
        'f' => letter.is_ascii_hexdigit() && !letter.is_ascii_uppercase(),
        wanted => letter == wanted,
    });
    fits.then_some(rest)
}

/// The text with patterns for what is another each time.
fn by_patterns(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = behind(rest, TIME) {
            shown += "TIME";
            rest = after;
        } else if let Some(number) = behind(rest, CLIENT).filter(|number| !number.is_empty()) {
            shown += "OWNER";
            rest = number.trim_start_matches(|letter: char| letter.is_ascii_hexdigit());
        } else {
            shown.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    shown
}

/// A text that these patterns stand for.
fn by_example(text: &str) -> String {
    text.replace("TIME", A_TIME).replace("OWNER", AN_OWNER)
}

/// A client that says where it runs.
async fn client(builder: LockClientBuilder) -> LockClient {
    builder.name("vm:1").connect().await.unwrap()
}

/// Somebody holds it: the one of the fixture.
async fn expect_held(client: &LockClient, key: &str) {
    let held = client.lock(key).try_acquire().await.unwrap();
    assert!(held.is_none(), "{held:?}");
    let found = client.inspect(key).await.unwrap();
    let holder = format!("{:?}", found.holder);
    assert!(holder.contains(&AN_OWNER[..8]), "{holder}");
}

#[test]
fn patterns_stand_for_times_and_owners_and_for_nothing_else() {
    let text = format!("ADDED:{A_TIME}@vm:1:{AN_OWNER}:kept");
    assert_eq!(by_patterns(&text), "ADDED:TIME@vm:1:OWNER:kept");
    assert_eq!(by_example(&by_patterns(&text)), text);
    for other in [
        &A_TIME[1..],
        "2026-11-26 10:59:28.510",
        &AN_OWNER[1..],
        "käse",
    ] {
        assert_eq!(by_patterns(other), other);
    }
}

const SHEDLOCK: &str = "redis/shedlock.txt";
const KEY: &str = "job-lock:lock:exclusive";

async fn shedlock() -> (Backend, LockClient) {
    let backend = TextBackend::shedlock().await;
    let client = client(backend.builder()).await;
    (backend, client)
}

#[tokio::test]
async fn what_is_stored_in_redis_for_shedlock_is_as_it_was() {
    let (backend, client) = shedlock().await;
    let _guard = client.lock("exclusive").acquire().await.unwrap();
    let redis = backend.one_redis().unwrap();
    let keys = redis.keys("*").await;
    assert_eq!(keys, [KEY]);
    let text: String = redis.query(&["GET", KEY]).await;
    expect_fixture(SHEDLOCK, &[format!("{KEY} {}", by_patterns(&text))]);
}

#[tokio::test]
async fn what_was_stored_in_redis_for_shedlock_is_understood() {
    let (backend, client) = shedlock().await;
    for line in lines(SHEDLOCK) {
        let (key, text) = line.split_once(' ').unwrap();
        let set = ["SET", key, &by_example(text), "PX", "60000"];
        backend.one_redis().unwrap().command(&set).await;
    }
    expect_held(&client, "exclusive").await;
}

const ROW: &str = "postgres/shedlock.txt";

async fn table() -> (PostgresServer, LockClient) {
    let server = ShedlockTable::server().await;
    let builder = LockClient::builder().url(server.app_url());
    let client = client(builder.layout(Layout::ShedLock).namespace("lock")).await;
    (server, client)
}

#[tokio::test]
async fn what_is_stored_in_shedlocks_table_is_as_it_was() {
    let (server, client) = table().await;
    let _guard = client.lock("exclusive").acquire().await.unwrap();
    let row = "SELECT name || ' ' || locked_by || ' ' || (lock_until - locked_at) || ' ' || \
        (abs(extract(epoch FROM locked_at - timezone('utc', now()))) < 20) FROM shedlock";
    let session = server.session().await;
    let row: String = session.query_one(row, &[]).await.unwrap().get(0);
    expect_fixture(ROW, &[by_patterns(&row)]);
}

#[tokio::test]
async fn what_was_stored_in_shedlocks_table_is_understood() {
    let (server, client) = table().await;
    for line in lines(ROW) {
        let line = by_example(&line);
        let parts: Vec<&str> = line.split(' ').collect();
        let insert = format!(
            "INSERT INTO shedlock (name, locked_by, locked_at, lock_until) VALUES ('{}', '{}', \
             timezone('utc', now()), timezone('utc', now()) + '{}')",
            parts[0], parts[1], parts[2]
        );
        server.run(&insert).await;
    }
    expect_held(&client, "exclusive").await;
}

const CURATOR: &str = "zookeeper/curator.txt";

async fn ensemble() -> (ZooKeeperEnsemble, LockClient) {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("?tick=500ms&session=120s&layout=curator");
    let client = client(LockClient::builder().url(url).namespace("lock")).await;
    (servers, client)
}

#[tokio::test]
async fn what_is_stored_for_curator_is_as_it_was() {
    let (servers, client) = ensemble().await;
    let _guard = client.lock("exclusive").acquire().await.unwrap();
    let _fenced = client.lock("fenced").fenced().acquire().await.unwrap();
    let nodes = consensus::nodes(&servers).await;
    let nodes: Vec<String> = nodes.iter().map(|node| by_patterns(node)).collect();
    expect_fixture(CURATOR, &nodes);
}

#[tokio::test]
async fn what_was_stored_for_curator_is_understood() {
    let (servers, client) = ensemble().await;
    let nodes = lines(CURATOR);
    let nodes: Vec<String> = nodes.iter().map(|it| by_numbers(&by_example(it))).collect();
    consensus::write_nodes(&servers, &nodes).await;
    expect_held(&client, "exclusive").await;
    let base = nodes.iter().find_map(|node| node.split_once("%base = "));
    let base: u64 = base.unwrap().1.parse().unwrap();
    let fenced = client.lock("free").fenced().acquire().await.unwrap();
    let token: u64 = fenced.fencing_token().unwrap().into();
    assert!(token > base, "{token} and {base}");
}
