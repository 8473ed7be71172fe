//! What a hand-over between processes costs at best: a command that writes the next holder and
//! tells it, the message, and a task that wakes up. Nobody asks, nobody is in a queue.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind};
use tokio::sync::{Mutex, mpsc};

use crate::plan;
use crate::worker::{Job, Library};

const HAND_ON: &str = "redis.call('set', KEYS[1], ARGV[1], 'PX', 30000) \
    return redis.call('publish', ARGV[1], '1')";

/// One process of those that hand on to each other in turn.
#[derive(Clone)]
pub(crate) struct Chain {
    connection: MultiplexedConnection,
    script: Arc<redis::Script>,
    messages: Arc<Mutex<mpsc::UnboundedReceiver<PushInfo>>>,
    next: Arc<str>,
}

impl Chain {
    pub(crate) async fn new(job: &Job) -> Self {
        let (tells, messages) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(tells.clone());
        let url = format!("{}?protocol=resp3", job.url);
        let client = redis::Client::open(url).expect("a URL");
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connection.await.expect("the server is up");
        let channel = |process: usize| format!("chain:{process}");
        let process: usize = job.process.parse().expect("a number");
        let subscribed = connection.subscribe(channel(process)).await;
        subscribed.expect("a subscription");
        if process == 0 {
            // The first holder.
            let first = PushInfo {
                kind: PushKind::Message,
                data: Vec::new(),
            };
            tells.send(first).expect("a receiver");
        }
        Self {
            connection,
            script: Arc::new(redis::Script::new(HAND_ON)),
            messages: Arc::new(Mutex::new(messages)),
            next: channel((process + 1) % plan::PROCESSES).into(),
        }
    }
}

impl Library for Chain {
    type Held = ();

    async fn acquire(&self, _: &str) {
        let mut messages = self.messages.lock().await;
        loop {
            let message = messages.recv().await.expect("a connection");
            if message.kind == PushKind::Message {
                return;
            }
        }
    }

    async fn release(&self, (): ()) {
        let mut connection = self.connection.clone();
        let told: i64 = self
            .script
            .key("bench")
            .arg(&*self.next)
            .invoke_async(&mut connection)
            .await
            .expect("the script");
        assert_eq!(told, 1, "the next process listens");
    }
}
