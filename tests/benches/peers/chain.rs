//! What a hand-over between processes costs at best: a command that writes the next holder and
//! tells it, the message, and a task that wakes up. Nobody asks, nobody is in a queue.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind};
use tokio::sync::{Mutex, mpsc};

use crate::plan;
use crate::worker::{Job, Library};

const HAND_OVER: &str = "redis.call('set', KEYS[1], ARGV[1], 'PX', 30000) \
    return redis.call('publish', ARGV[1], '1')";

/// One process of a ring in which each hands over to the next.
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
        let chain = Self {
            connection,
            script: Arc::new(redis::Script::new(HAND_OVER)),
            messages: Arc::new(Mutex::new(messages)),
            next: channel((process + 1) % plan::PROCESSES).into(),
        };
        tokio::spawn(chain.clone().hand_over_when_idle());
        chain
    }

    /// The processes do not end at the same instant, and one that has ended must not keep it.
    async fn hand_over_when_idle(self) {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let is_told = self.messages.try_lock().is_ok_and(|mut messages| {
                let message = messages.try_recv();
                message.is_ok_and(|message| message.kind == PushKind::Message)
            });
            if is_told {
                self.release(()).await;
            }
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
        let _: i64 = self
            .script
            .key("bench")
            .arg(&*self.next)
            .invoke_async(&mut connection)
            .await
            .expect("the script");
    }
}
