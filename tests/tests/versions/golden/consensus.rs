//! ZooKeeper and etcd: nodes and keys of locks, and messages between clients. What is stored hangs
//! on the sessions of clients, so that only others find it.

use std::time::Duration;

use lock_store::{Acquired, Busy, ClientId, ClientMessage, Holder, Permits, Queue, Released};
use lock_testkit::{EtcdCluster, EtcdGateway, ZooKeeperEnsemble, eventually};

use super::{by_numbers, by_words, expect_fixture, hex, lines, messages, stored, unhex};
use crate::clients::{A, B, Clients, READ, WRITE, by, claim, owner, permits};

type SeenLock = (&'static str, usize, usize, Option<Permits>, (ClientId, u64));

/// What others see of each key that [`stored::leave_locks`] has left: how many hold it and wait,
/// who is refused, and the last holder.
const FOUND: [SeenLock; 5] = [
    ("exclusive", 1, 0, None, (A, 1)),
    ("fenced", 1, 0, None, (A, 2)),
    ("waited", 1, 2, None, (A, 3)),
    ("read", 2, 1, READ, (B, 3)),
    ("permits", 2, 1, permits(2), (B, 5)),
];

/// Two others understand what was stored.
async fn find(clients: &Clients) {
    for (key, holders, waiting, share, (client, last)) in FOUND {
        let found = clients.inspect(key).await;
        assert_eq!((found.holders, found.waiting), (holders, waiting), "{key}");
        let holder = found.holder.map(|holder| holder.who());
        assert_eq!(holder, Some(Holder::Owner(owner(client, last))), "{key}");
        clients.is_busy(key, share).await;
    }
    clients.is_busy("read", WRITE).await;
    for (key, share) in [("kept", None), ("kept-permits", permits(4))] {
        clients.is_busy(key, share).await;
    }
    let rest = claim("kept-permits", owner(B, 91), permits(3));
    clients.take(rest, 0).await;
    // It is not that of these clients' sessions.
    let other = claim("exclusive", owner(B, 1), None);
    let released = clients.release(other, Duration::ZERO).await;
    assert_eq!(released, Released::NotHeld);
    let queued = claim("exclusive", owner(B, 92), None);
    let reply = clients.acquire(queued, Queue::Join, 0).await.unwrap();
    assert!(matches!(reply, Acquired::Busy(Busy { queued: true, .. })));
}

/// A line for each node: its path below the chroot, and its data.
pub(super) async fn nodes(servers: &ZooKeeperEnsemble) -> Vec<String> {
    let chroot = servers.chroot();
    let mut session = servers.session().await;
    let (mut lines, mut paths) = (Vec::new(), vec![chroot.clone()]);
    while let Some(path) = paths.pop() {
        for child in session.children(&path).await {
            let path = format!("{path}/{child}");
            let data = session.data(&path).await.unwrap_or_default();
            let data = String::from_utf8(data).unwrap();
            let shown = path.strip_prefix(&chroot).unwrap();
            lines.push(format!("{shown} = {}", by_words(&data)));
            paths.push(path);
        }
    }
    session.close().await;
    // A client listens whenever it gets to it.
    lines.retain(|line| !line.starts_with("/%mail"));
    lines.sort();
    lines
}

pub(super) async fn write_nodes(servers: &ZooKeeperEnsemble, lines: &[String]) {
    let mut session = servers.session().await;
    for line in lines {
        let (path, data) = line.split_once(" = ").unwrap();
        let path = format!("{}{path}", servers.chroot());
        session.create(&path, by_numbers(data).as_bytes()).await;
    }
    session.close().await;
}

#[tokio::test]
async fn what_is_stored_in_zookeeper_is_as_it_was() {
    let servers = ZooKeeperEnsemble::one().await;
    let clients = Clients::of(&servers).await;
    stored::leave_locks(&clients).await;
    expect_fixture("zookeeper/stored.txt", &nodes(&servers).await);
}

#[tokio::test]
async fn what_was_stored_in_zookeeper_is_understood() {
    let servers = ZooKeeperEnsemble::one().await;
    write_nodes(&servers, &lines("zookeeper/stored.txt")).await;
    find(&Clients::of(&servers).await).await;
}

/// The node of `B` for messages.
fn mailbox(servers: &ZooKeeperEnsemble) -> String {
    format!("{}/%mail/{:032x}", servers.chroot(), B.0)
}

#[tokio::test]
async fn what_is_said_in_zookeeper_is_as_it_was() {
    let servers = ZooKeeperEnsemble::one().await;
    let mailbox = mailbox(&servers);
    let mut session = servers.session().await;
    let all = format!("{}/%mail", servers.chroot());
    for path in [all, mailbox.clone(), format!("{mailbox}/here")] {
        session.create(&path, b"").await;
    }
    let clients = Clients::of(&servers).await;
    clients.b.close();
    let mut said = Vec::new();
    for message in messages::between_clients() {
        assert!(clients.a.tell(B, message, by()).await.unwrap());
        let mut names = session.children(&mailbox).await;
        names.retain(|name| name.starts_with("m-"));
        let [name] = &names[..] else {
            panic!("{names:?}")
        };
        let path = format!("{mailbox}/{name}");
        said.push(hex(&session.data(&path).await.unwrap()));
        session.delete(&path).await;
    }
    session.close().await;
    expect_fixture("zookeeper/messages.txt", &said);
}

#[tokio::test]
async fn what_was_said_in_zookeeper_is_understood() {
    let servers = ZooKeeperEnsemble::one().await;
    let clients = Clients::of(&servers).await;
    let mut session = servers.session().await;
    let here = format!("{}/here", mailbox(&servers));
    eventually("it listens", async || session.data(&here).await.is_some()).await;
    for (number, line) in lines("zookeeper/messages.txt").into_iter().enumerate() {
        let path = format!("{}/m-{number:010}", mailbox(&servers));
        session.create(&path, &unhex(&line)).await;
        expect_told(&clients, &messages::between_clients()[..=number]).await;
    }
    session.close().await;
}

/// `B` has been told these, and no others.
async fn expect_told(clients: &Clients, expected: &[ClientMessage]) {
    let told = || clients.heard_by_b.told.lock().unwrap().clone();
    eventually("it is told", async || told().len() >= expected.len()).await;
    assert_eq!(told(), expected);
}

/// A line for each key of the locks and its value. The revision that a kept one stands at is that
/// of this cluster.
async fn keys(servers: &EtcdCluster) -> Vec<String> {
    let below = format!("{}/", servers.prefix());
    let found = servers.gateway().await.below(&below).await.unwrap();
    let line = |(key, value): &(String, String)| {
        let key = key.strip_prefix(&below).unwrap();
        format!("{key} = {}", by_words(&without_revision(value)))
    };
    let mut lines: Vec<String> = found.iter().map(line).collect();
    // The number of a cluster is another one each time, and a client listens whenever it gets to
    // it.
    lines.retain(|line| !line.starts_with("lock/%/base") && !line.starts_with("%mail"));
    lines.sort();
    lines
}

fn without_revision(value: &str) -> String {
    match value.rsplit_once('~') {
        Some((before, place)) if place.len() < 8 => format!("{before}~REVISION"),
        _ => value.to_owned(),
    }
}

#[tokio::test]
async fn what_is_stored_in_etcd_is_as_it_was() {
    let servers = EtcdCluster::one().await;
    let clients = Clients::of(&servers).await;
    stored::leave_locks(&clients).await;
    expect_fixture("etcd/stored.txt", &keys(&servers).await);
}

#[tokio::test]
async fn what_was_stored_in_etcd_is_understood() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    for line in lines("etcd/stored.txt") {
        let (key, value) = line.split_once(" = ").unwrap();
        let value = by_numbers(value).replace("REVISION", "2");
        let key = format!("{}/{key}", servers.prefix());
        gateway.put(&key, &value).await.unwrap();
    }
    find(&Clients::of(&servers).await).await;
}

/// What the keys of `B` for messages begin with.
fn keys_for_messages(servers: &EtcdCluster) -> String {
    format!("{}/%mail/{:032x}/", servers.prefix(), B.0)
}

async fn letters(gateway: &EtcdGateway, below: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = gateway.bytes_below(below).await.unwrap();
    found.retain(|(key, _)| !key.ends_with("/here"));
    found
}

#[tokio::test]
async fn what_is_said_in_etcd_is_as_it_was() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let below = keys_for_messages(&servers);
    let clients = Clients::of(&servers).await;
    clients.b.close();
    gateway.put(&format!("{below}here"), "").await.unwrap();
    let mut said = Vec::new();
    for message in messages::between_clients() {
        assert!(clients.a.tell(B, message, by()).await.unwrap());
        let found = letters(&gateway, &below).await;
        let [(key, value)] = &found[..] else {
            panic!("{found:?}")
        };
        said.push(hex(value));
        gateway.delete(key).await.unwrap();
    }
    expect_fixture("etcd/messages.txt", &said);
}

#[tokio::test]
async fn what_was_said_in_etcd_is_understood() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let below = keys_for_messages(&servers);
    let clients = Clients::of(&servers).await;
    let here = format!("{below}here");
    eventually("it listens", async || {
        let found = gateway.below(&below).await.unwrap();
        found.iter().any(|(key, _)| *key == here)
    })
    .await;
    for (number, line) in lines("etcd/messages.txt").into_iter().enumerate() {
        let key = format!("{below}{number:016x}");
        let value = unhex(&line);
        gateway.put(&key, &value).await.unwrap();
        expect_told(&clients, &messages::between_clients()[..=number]).await;
    }
}
