//! One connection through the proxy: bytes in order, each with its delay.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::network::{Network, State};
use super::protocol::Requests;
use crate::resp::CompleteRequest;

const CHUNK: usize = 16 * 1024;
/// The number of chunks under way in one direction. Beyond that, the sender is slowed down, as in a
/// network.
const UNDER_WAY: usize = 64;
/// Before a server that does not listen is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// Passes bytes both ways until both directions have ended or the connection is cut.
pub(super) async fn serve(
    client: std::net::TcpStream,
    target: SocketAddr,
    id: u64,
    network: &Network,
) -> io::Result<()> {
    client.set_nonblocking(true)?;
    let client = TcpStream::from_std(client)?;
    let server = reach(target, network).await?;
    // Otherwise the proxy would add its own delays.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = Passage {
        id,
        network,
        requests: Some(network.protocol.requests()),
    };
    let replies = Passage {
        id,
        network,
        requests: None,
    };
    let was_cut = tokio::select! {
        _ = async {
            // Each direction ends on its own: a request under way arrives, even if its sender no
            // longer waits for the reply.
            tokio::join!(
                requests.run(&mut from_client, &mut to_server),
                replies.run(&mut from_server, &mut to_client),
            )
        } => false,
        () = network.wait_for(|state| !state.open.contains(&id)) => true,
    };
    drop((from_client, to_client));
    if was_cut {
        // Closing with unread replies would reset the connection, and the server could lose
        // requests that were forwarded. So read until the server closes as well.
        to_server.shutdown().await?;
        tokio::io::copy(&mut from_server, &mut tokio::io::sink()).await?;
    }
    Ok(())
}

async fn reach(target: SocketAddr, network: &Network) -> io::Result<TcpStream> {
    let by = Instant::now() + network.state.borrow().patience;
    loop {
        match TcpStream::connect(target).await {
            Err(_) if Instant::now() < by => tokio::time::sleep(PAUSE).await,
            connected => return connected,
        }
    }
}

/// One direction of a connection.
struct Passage<'a> {
    id: u64,
    network: &'a Network,
    /// Present towards the server: finds the requests among the bytes.
    requests: Option<Requests>,
}

/// The outcome of an attempt to pass bytes on.
enum Attempt {
    Passed(usize),
    /// Not now: the network is frozen.
    Frozen,
    /// The receiver can't take more at the moment.
    Full,
    Broken(io::Error),
}

impl Passage<'_> {
    async fn run(self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel(UNDER_WAY);
        // Read on while earlier bytes are under way: a delay must not limit the throughput.
        let read = async move {
            loop {
                let mut chunk = Vec::with_capacity(CHUNK);
                // A connection that breaks ends as well. What it sent before still arrives.
                let Ok(1..) = from.read_buf(&mut chunk).await else {
                    return;
                };
                if sender.send((Instant::now(), chunk)).await.is_err() {
                    return;
                }
            }
        };
        let deliver = self.deliver(receiver, to);
        tokio::pin!(read, deliver);
        tokio::select! {
            result = &mut deliver => result,
            () = read => deliver.await,
        }
    }

    async fn deliver(
        mut self,
        mut chunks: mpsc::Receiver<(Instant, Vec<u8>)>,
        to: &mut OwnedWriteHalf,
    ) -> io::Result<()> {
        while let Some((read_at, chunk)) = chunks.recv().await {
            let delay = self.delay(&self.network.state.borrow());
            if !delay.is_zero() {
                sleep_until(read_at + delay).await;
            }
            self.forward(&chunk, to).await?;
        }
        // The sender is done. Tell the receiver, but not earlier than allowed.
        self.network.wait_for(|state| !state.frozen).await;
        to.shutdown().await
    }

    fn delay(&self, state: &State) -> Duration {
        if self.requests.is_some() {
            state.delay_requests
        } else {
            state.delay_replies
        }
    }

    async fn forward(&mut self, chunk: &[u8], to: &OwnedWriteHalf) -> io::Result<()> {
        let mut requests = match &mut self.requests {
            Some(parser) => parser.read(chunk),
            None => Vec::new(),
        };
        let mut passed = 0;
        while passed < chunk.len() {
            let attempt = self
                .network
                .change_quietly(|state| self.attempt(state, chunk, passed, &mut requests, to));
            match attempt {
                Attempt::Passed(count) => passed += count,
                Attempt::Frozen => self.network.wait_for(|state| !state.frozen).await,
                Attempt::Full => to.writable().await?,
                Attempt::Broken(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Forwards what may pass, counts it, and removes the passed requests from `requests`. The
    /// second value is true if others must check the state again.
    fn attempt(
        &self,
        state: &mut State,
        chunk: &[u8],
        passed: usize,
        requests: &mut Vec<CompleteRequest>,
        to: &OwnedWriteHalf,
    ) -> (Attempt, bool) {
        if !state.open.contains(&self.id) {
            let cut = io::Error::from(io::ErrorKind::ConnectionAborted);
            return (Attempt::Broken(cut), false);
        }
        if state.frozen {
            return (Attempt::Frozen, false);
        }
        let towards_server = self.requests.is_some();
        if !towards_server && (state.drop_replies || state.deaf.contains(&self.id)) {
            state.deaf.insert(self.id);
            return (Attempt::Passed(chunk.len() - passed), false);
        }
        let last = requests.iter().find(|request| {
            let cut_after = state.cut_after.as_ref();
            cut_after.is_some_and(|cut| cut.matches(&request.command))
        });
        let is_last = last.is_some();
        let end = last.map_or(chunk.len(), |request| request.end);
        let count = match to.try_write(&chunk[passed..end]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return (Attempt::Full, false);
            }
            Err(error) => return (Attempt::Broken(error), false),
        };
        let written = passed + count;
        if !towards_server {
            state.bytes_to_client += count as u64;
            return (Attempt::Passed(count), false);
        }
        state.bytes_to_server += count as u64;
        let through = requests.partition_point(|request| request.end <= written);
        for request in requests.drain(..through) {
            *state.requests.entry(request.command).or_default() += 1;
        }
        let cut = is_last && written == end;
        if cut {
            state.cut_after = None;
            state.open.remove(&self.id);
        }
        (Attempt::Passed(count), cut)
    }
}
