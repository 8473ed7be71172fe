//! The processes, and what they say.

use std::error::Error;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::args::URL_VARIABLE;
use crate::line::{Line, What};
use crate::mailbox::Mailbox;
use crate::network::Network;

/// Most of it is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// One of the replicas, with a network of its own.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) process: Child,
    pub(crate) network: Network,
}

#[derive(Debug)]
pub(crate) struct Replicas {
    pub(crate) all: Vec<Replica>,
    said: UnboundedReceiver<(usize, String)>,
    pub(crate) mailbox: Mailbox,
}

impl Replicas {
    pub(crate) async fn start(redis: &Path, number: usize) -> Result<Self, Box<dyn Error>> {
        let (says, said) = unbounded_channel();
        let mut all = Vec::new();
        for replica in 0..number {
            let network = Network::to(redis).await?;
            let mut process = Command::new(std::env::current_exe()?)
                .arg("replica")
                .env(URL_VARIABLE, network.url())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            if let Some(lines) = process.stdout.take() {
                tokio::spawn(listen(replica, lines, says.clone()));
            }
            all.push(Replica { process, network });
        }
        let mailbox = Mailbox::default();
        Ok(Self { all, said, mailbox })
    }

    /// The next replica that says this, of these. What all of them say goes to the mailbox.
    pub(crate) async fn next(
        &mut self,
        what: What,
        of: impl Fn(usize) -> bool,
    ) -> Result<usize, Box<dyn Error>> {
        let heard = async {
            while let Some((replica, line)) = self.said.recv().await {
                let line: Line = line.parse()?;
                self.mailbox.note(line);
                if line.what == what && of(replica) {
                    return Ok(replica);
                }
            }
            Err("no replica is left".into())
        };
        let waited = tokio::time::timeout(PATIENCE, heard).await;
        waited.map_err(|_| format!("no replica has said {what:?} for {PATIENCE:?}"))?
    }

    /// Lets all of them end in good order.
    pub(crate) async fn end(mut self) -> Result<Mailbox, Box<dyn Error>> {
        for replica in &mut self.all {
            replica.process.wait().await?; // Closes its stdin first, which ends it.
        }
        self.all.clear();
        while let Some((_, line)) = self.said.recv().await {
            self.mailbox.note(line.parse()?);
        }
        Ok(self.mailbox)
    }
}

async fn listen(replica: usize, lines: ChildStdout, says: UnboundedSender<(usize, String)>) {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // There is no listener any more once all is over.
        let _ = says.send((replica, line));
    }
}
