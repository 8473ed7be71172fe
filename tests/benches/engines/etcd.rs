//! etcd, as somebody would write it who needs a lock now, over the crate that this library uses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use lock_testkit::EtcdCluster;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::Place;
use crate::worker::{Counts, Order, Running, Work, runtime};

pub(crate) const SCHEME: &str = "etcd://";

/// Who polls waits so long between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Of the lease under which the keys are, in seconds: longer than a measurement.
const LEASE: u64 = 60;
const LEASE_ID: u64 = 7;

/// One server.
#[derive(Debug)]
pub(crate) struct Cluster {
    servers: EtcdCluster,
    _runtime: Runtime,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let runtime = runtime();
        let servers = runtime.block_on(EtcdCluster::one());
        Self {
            servers,
            _runtime: runtime,
        }
    }
}

impl Place for Cluster {
    fn url(&self) -> String {
        self.servers.url("")
    }
}

/// A message of protobuf.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

/// A connection.
#[derive(Clone)]
struct Channel {
    send: SendRequest<Bytes>,
    host: String,
}

impl Channel {
    async fn open(host: &str) -> Self {
        let stream = TcpStream::connect(host).await.expect("the server");
        stream.set_nodelay(true).expect("an option of TCP");
        let (send, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let host = host.to_owned();
        Self { send, host }
    }

    async fn call(&self, path: &str, message: Message) -> Vec<u8> {
        let mut framed = vec![0];
        framed.extend(
            u32::try_from(message.0.len())
                .expect("a short one")
                .to_be_bytes(),
        );
        framed.extend(message.0);
        let request = http::Request::post(format!("http://{}/etcdserverpb.{path}", self.host))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .expect("a request");
        let mut send = self.send.clone().ready().await.expect("the connection");
        let (reply, mut body) = send.send_request(request, false).expect("the connection");
        body.send_data(framed.into(), true).expect("the connection");
        let mut body = reply.await.expect("an answer").into_body();
        let mut all = Vec::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.expect("an answer");
            let _ = body.flow_control().release_capacity(chunk.len());
            all.extend(chunk);
        }
        let trailers = body.trailers().await.expect("an answer");
        let status = trailers.as_ref().and_then(|it| it.get("grpc-status"));
        assert_eq!(
            status.map(|status| status.as_bytes()),
            Some(&b"0"[..]),
            "{path}"
        );
        all.split_off(5)
    }

    async fn grant(&self, id: u64) {
        let grant = Message::default().number(1, LEASE).number(2, id);
        self.call("Lease/LeaseGrant", grant).await;
    }

    /// Makes a key under a lease. False if it was there.
    async fn put_if_absent(&self, key: &[u8], lease: u64) -> bool {
        // It was made by revision 0, which is none.
        let absent = Message::default().number(2, 1).bytes(3, key).number(5, 0);
        let put = Message::default().bytes(1, key).number(3, lease);
        let put = Message::default().bytes(2, &put.0);
        let txn = Message::default().bytes(1, &absent.0).bytes(2, &put.0);
        let reply = self.call("KV/Txn", txn).await;
        // Behind the header is whether it succeeded.
        let header = usize::from(reply.get(1).copied().unwrap_or(0)) + 2;
        reply.get(header..header + 2) == Some(&[2 << 3, 1])
    }

    async fn delete(&self, key: &[u8]) {
        let delete = Message::default().bytes(1, key);
        self.call("KV/DeleteRange", delete).await;
    }
}

/// `loop` and `poll`: a transaction that makes a key under a lease if it is not there, and its
/// deletion. If it is there, it is tried again after a pause.
pub(crate) fn by_hand(order: &Order, counts: &Arc<Counts>) -> Work {
    let runtime = runtime();
    let place = order.place.strip_prefix(SCHEME).expect("the scheme");
    let (host, prefix) = place.split_once('/').expect("a prefix");
    // Each process has its own lease.
    let lease = LEASE_ID + u64::from(std::process::id());
    let channel = runtime.block_on(async {
        let channel = Channel::open(host).await;
        channel.grant(lease).await;
        channel
    });
    let prefix = prefix.to_owned();
    let (order, counts) = (order.clone(), Arc::clone(counts));
    Work::new(move || {
        let mut tasks = JoinSet::new();
        for task in 0..order.tasks {
            let key = format!("{prefix}/by-hand/{}", order.key(task));
            let (channel, counts) = (channel.clone(), Arc::clone(&counts));
            let work = async move {
                while counts.goes_on() {
                    if channel.put_if_absent(key.as_bytes(), lease).await {
                        channel.delete(key.as_bytes()).await;
                        counts.count(task);
                    } else {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            };
            tasks.spawn_on(work, runtime.handle());
        }
        Running::new(move || {
            runtime.block_on(tasks.join_all());
        })
    })
}
