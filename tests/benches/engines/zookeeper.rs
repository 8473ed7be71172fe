//! ZooKeeper, as somebody would write it who needs a lock now.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_testkit::ZooKeeperEnsemble;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::Place;
use crate::worker::{Counts, Order, Running, Work, runtime};

pub(crate) const SCHEME: &str = "zookeeper://";

/// Who polls waits so long between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const PERSISTENT: i32 = 0;
const EPHEMERAL: i32 = 1;
const NODE_EXISTS: i32 = -110;

/// A server that writes each transaction to the file system before it answers.
#[derive(Debug)]
pub(crate) struct Ensemble {
    servers: ZooKeeperEnsemble,
    _runtime: Runtime,
}

impl Ensemble {
    pub(crate) fn new() -> Self {
        let runtime = runtime();
        // They come behind the tests' own, and count.
        let arguments = ["-Xmx512m", "-Dzookeeper.forceSync=yes"].map(str::to_owned);
        let servers = runtime.block_on(ZooKeeperEnsemble::of(1, "", &arguments));
        Self {
            servers,
            _runtime: runtime,
        }
    }
}

impl Place for Ensemble {
    fn url(&self) -> String {
        self.servers.url("?tick=500ms&session=20s")
    }
}

/// A session over one connection. Requests that come together are written together.
struct Session(mpsc::UnboundedSender<(Vec<u8>, oneshot::Sender<i32>)>);

type Waiting = Arc<Mutex<VecDeque<oneshot::Sender<i32>>>>;

fn text(message: &mut Vec<u8>, text: &[u8]) {
    let length = i32::try_from(text.len()).expect("a short text");
    message.extend(length.to_be_bytes());
    message.extend(text);
}

impl Session {
    async fn open(host: &str) -> Self {
        let mut stream = TcpStream::connect(host).await.expect("the server");
        stream.set_nodelay(true).expect("an option of TCP");
        let mut hello = Vec::new();
        hello.extend(0_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        hello.extend(20_000_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        text(&mut hello, &[0; 16]);
        let mut framed = Vec::new();
        text(&mut framed, &hello);
        stream.write_all(&framed).await.expect("the server");
        message(&mut stream).await.expect("a session");
        let (read, write) = stream.into_split();
        let (calls, requests) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        tokio::spawn(write_all(write, requests, Arc::clone(&waiting)));
        tokio::spawn(read_all(read, waiting));
        Self(calls)
    }

    /// The server's number for what is wrong, or zero.
    async fn ask(&self, verb: i32, body: &[u8]) -> i32 {
        let mut request = vec![0, 0, 0, 1];
        request.extend(verb.to_be_bytes());
        request.extend(body);
        let (replied, reply) = oneshot::channel();
        self.0.send((request, replied)).expect("the connection");
        reply.await.expect("an answer")
    }

    /// False if the node was there.
    async fn create(&self, path: &str, kind: i32) -> bool {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        text(&mut body, b"");
        body.extend(1_i32.to_be_bytes());
        body.extend(31_i32.to_be_bytes());
        text(&mut body, b"world");
        text(&mut body, b"anyone");
        body.extend(kind.to_be_bytes());
        let error = self.ask(CREATE, &body).await;
        assert!(matches!(error, 0 | NODE_EXISTS), "{error}");
        error == 0
    }

    async fn delete(&self, path: &str) {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        body.extend((-1_i32).to_be_bytes());
        assert_eq!(self.ask(DELETE, &body).await, 0);
    }
}

async fn message(read: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<Vec<u8>> {
    let length = usize::try_from(read.read_i32().await?).unwrap_or(0);
    let mut message = vec![0; length];
    read.read_exact(&mut message).await?;
    Ok(message)
}

async fn write_all(
    mut write: OwnedWriteHalf,
    mut requests: mpsc::UnboundedReceiver<(Vec<u8>, oneshot::Sender<i32>)>,
    waiting: Waiting,
) {
    let mut bytes = Vec::new();
    while let Some(first) = requests.recv().await {
        let mut next = Some(first);
        while let Some((request, replied)) = next {
            text(&mut bytes, &request);
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push_back(replied);
            next = requests.try_recv().ok();
        }
        write.write_all(&bytes).await.expect("the server");
        bytes.clear();
    }
}

async fn read_all(read: OwnedReadHalf, waiting: Waiting) {
    let mut read = tokio::io::BufReader::new(read);
    while let Ok(reply) = message(&mut read).await {
        let error = reply.get(12..16).and_then(|error| error.try_into().ok());
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let replied = waiting.pop_front().expect("a question");
        let _ = replied.send(error.map_or(-1, i32::from_be_bytes));
    }
}

/// `loop` and `poll`: an ephemeral node that is made and deleted again. If it is there, it is tried
/// again after a pause.
pub(crate) fn by_hand(order: &Order, counts: &Arc<Counts>) -> Work {
    let runtime = runtime();
    let place = order.place.strip_prefix(SCHEME).expect("the scheme");
    let place = place.split('?').next().unwrap_or_default();
    let (host, chroot) = place.split_once('/').expect("a chroot");
    let parent = format!("/{chroot}/by-hand");
    let session = runtime.block_on(async {
        let session = Session::open(host).await;
        session.create(&parent, PERSISTENT).await;
        Arc::new(session)
    });
    let (order, counts) = (order.clone(), Arc::clone(counts));
    Work::new(move || {
        let mut tasks = JoinSet::new();
        for task in 0..order.tasks {
            let path = format!("{parent}/{}", order.key(task));
            let (session, counts) = (Arc::clone(&session), Arc::clone(&counts));
            let work = async move {
                while counts.goes_on() {
                    if session.create(&path, EPHEMERAL).await {
                        session.delete(&path).await;
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
