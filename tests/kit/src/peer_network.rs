//! The network between the members of a cluster, of which one can be cut off.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Proxy;

/// From which member to which.
type Direction = (usize, usize);

/// A proxy for each direction and each port of a member.
///
/// A member that is cut off keeps its clients, and its connections to the others stay open: no byte
/// passes, as when a cable was pulled.
#[derive(Debug)]
pub struct PeerNetwork {
    proxies: Arc<HashMap<Direction, Vec<Proxy>>>,
    /// Those that find out who connects.
    routers: JoinSet<()>,
    members: usize,
}

/// How long a leader that was elected may take to listen.
const LEADER_COMES: Duration = Duration::from_secs(5);

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

impl PeerNetwork {
    /// Between members with these ports.
    pub(crate) async fn new(ports: &[Vec<u16>]) -> Self {
        let mut proxies = HashMap::new();
        for (to, own) in ports.iter().enumerate() {
            for from in 0..ports.len() {
                let mut pair = Vec::new();
                for port in own {
                    pair.push(Proxy::start_unread(local(*port)).await);
                }
                proxies.insert((from, to), pair);
            }
        }
        Self {
            proxies: Arc::new(proxies),
            routers: JoinSet::new(),
            members: ports.len(),
        }
    }

    /// Where ZooKeeper's members find the two ports of others, by which they follow and elect.
    ///
    /// Who connects for an election says where it listens itself, and a member of a higher number
    /// closes the connection and connects there: beside the proxies, so that one that is cut off
    /// would be heard in elections, and be followed by members that can't reach it. So what is said
    /// is put right on the way.
    ///
    /// Who follows asks a leader that does not listen yet again. A proxy that took the connection
    /// and closed it would end the election: the next comes when the leader has waited in vain.
    pub(crate) async fn zookeeper_ports(&mut self) -> HashMap<Direction, Vec<u16>> {
        let mut fronts = Vec::new();
        let mut ports = HashMap::new();
        for (direction, pair) in self.proxies.iter() {
            let listener = TcpListener::bind(local(0)).await;
            let listener = listener.expect("a port is free");
            pair[0].wait_for_server(LEADER_COMES);
            let elect = listener.local_addr().expect("it listens").port();
            ports.insert(*direction, vec![pair[0].addr().port(), elect]);
            fronts.push((*direction, listener, pair[1].addr()));
        }
        for ((from, to), listener, proxy) in fronts {
            let own = ports[&(to, from)][1];
            self.routers.spawn(async move {
                let mut connections = JoinSet::new();
                while let Ok((client, _)) = listener.accept().await {
                    connections.spawn(pass_election(client, proxy, own));
                }
            });
        }
        ports
    }

    /// Listens for etcd members that know others by one port for all, and say who they are: a
    /// request names the port of its sender. Requests without a name pass as the member's own.
    ///
    /// These ports.
    pub(crate) async fn route(&mut self) -> Vec<u16> {
        let mut listeners = Vec::new();
        for _ in 0..self.members {
            let listener = TcpListener::bind(local(0)).await;
            listeners.push(listener.expect("a port is free"));
        }
        let port = |listener: &TcpListener| listener.local_addr().expect("it listens").port();
        let known: Vec<u16> = listeners.iter().map(port).collect();
        for (to, listener) in listeners.into_iter().enumerate() {
            let (proxies, known) = (Arc::clone(&self.proxies), known.clone());
            self.routers.spawn(async move {
                let mut connections = JoinSet::new();
                while let Ok((mut client, _)) = listener.accept().await {
                    let (proxies, known) = (Arc::clone(&proxies), known.clone());
                    connections.spawn(async move {
                        let from = sender(&client, &known).await.unwrap_or(to);
                        let proxy = proxies[&(from, to)][0].addr();
                        if let Ok(mut server) = TcpStream::connect(proxy).await {
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                        }
                    });
                }
            });
        }
        known
    }

    fn with(&self, member: usize) -> impl Iterator<Item = &Proxy> {
        let of_it = move |(direction, _): &(&Direction, &Vec<Proxy>)| {
            direction.0 == member || direction.1 == member
        };
        let pairs = self.proxies.iter().filter(of_it);
        pairs.flat_map(|(_, proxies)| proxies)
    }

    /// No byte passes between this member and the others.
    pub fn isolate(&self, member: usize) {
        self.with(member).for_each(Proxy::freeze);
    }

    /// Ends that. What was sent meanwhile arrives.
    pub fn rejoin(&self, member: usize) {
        self.with(member).for_each(Proxy::thaw);
    }
}

/// Passes what two of ZooKeeper's members say in elections. The first listens at this port.
async fn pass_election(mut client: TcpStream, to: SocketAddr, own: u16) -> std::io::Result<()> {
    // Its version, its number, and the length of its address.
    let mut head = [0; 20];
    client.read_exact(&mut head).await?;
    let mut address = vec![0; usize::from(head[19])];
    client.read_exact(&mut address).await?;
    let address = local(own).to_string();
    head[19] = u8::try_from(address.len()).expect("it is short");
    let mut server = TcpStream::connect(to).await?;
    server.write_all(&head).await?;
    server.write_all(address.as_bytes()).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Which of the members with these ports sends this request of etcd's.
async fn sender(client: &TcpStream, known: &[u16]) -> Option<usize> {
    let mut head = vec![0; 4096];
    loop {
        client.readable().await.ok()?;
        let len = client.peek(&mut head).await.ok()?;
        let text = String::from_utf8_lossy(&head[..len]);
        if len == 0 || len == head.len() || text.contains("\r\n\r\n") {
            let header = "x-peerurls: ";
            let mut lines = text.lines().map(str::to_ascii_lowercase);
            let urls = lines.find_map(|line| line.strip_prefix(header).map(str::to_owned))?;
            let port = urls.rsplit(':').next()?.trim().parse::<u16>().ok()?;
            return known.iter().position(|one| *one == port);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
