//! The faults, and which of them a lock must survive.

use std::fmt;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// SIGSTOP of a client, SIGCONT later.
    ClientStop,
    /// SIGKILL of a client. Another takes its place.
    ClientKill,
    /// The network of some clients is slow in both directions.
    Delay,
    /// Replies are late: the server has done what the client still waits for.
    DelayReplies,
    /// Connections are cut.
    Cut,
    /// Nothing passes, and nothing is closed.
    Freeze,
    /// Requests arrive, replies are lost.
    DropReplies,
    /// A request arrives, and its connection is cut before the reply.
    CutAfterRequest,
    /// New connections are closed at once, after a cut.
    Refuse,
    /// SIGSTOP of the server, SIGCONT later.
    ServerStop,
    /// SIGKILL of the server. It comes back with its data.
    ServerKill,
    /// SIGTERM of the server. It comes back with its data.
    ServerRestart,
    /// The server ends the clients' connections (`CLIENT KILL TYPE normal`).
    KillNormal,
    /// `CLIENT KILL TYPE pubsub`.
    KillSubscribers,
    /// `CLIENT PAUSE`, of all commands or of writes.
    ClientPause,
    /// `DEBUG SLEEP`.
    DebugSleep,
    /// `SCRIPT FLUSH`.
    ScriptFlush,
    /// Memory is full, and nothing may be evicted.
    OutOfMemory,
    /// SIGKILL of the server, which comes back without data; on a quorum, all servers are emptied.
    LoseData,
    /// Memory is full, and keys are evicted.
    Evict,
    /// Another server took the place of a master: the work of other faults.
    Failover,
    /// Servers that are copies of each other differ for good: the work of other faults, and of
    /// ZooKeeper (seen in 3.8.0 only).
    Differ,
    /// The server's wall clock is ahead for a while.
    ClockAhead,
    /// The server's wall clock is behind for a while.
    ClockBehind,
}

/// The place where a fault acts. Faults in different places can come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Client,
    Network,
    Server,
}

impl Fault {
    /// Faults that a lock must survive: no two holders at once, in any combination of these.
    pub const IN_MODEL: [Self; 18] = [
        Self::ClientStop,
        Self::ClientKill,
        Self::Delay,
        Self::DelayReplies,
        Self::Cut,
        Self::Freeze,
        Self::DropReplies,
        Self::CutAfterRequest,
        Self::Refuse,
        Self::ServerStop,
        Self::ServerKill,
        Self::ServerRestart,
        Self::KillNormal,
        Self::KillSubscribers,
        Self::ClientPause,
        Self::DebugSleep,
        Self::ScriptFlush,
        Self::OutOfMemory,
    ];
    /// The store forgets what it acknowledged. Then two holders are possible, but not for a
    /// resource that checks tokens.
    pub const DATA_LOST: [Self; 2] = [Self::LoseData, Self::Evict];
    /// The store's clock jumps. The same holds.
    pub const CLOCK_MOVED: [Self; 2] = [Self::ClockAhead, Self::ClockBehind];

    /// True if a lock must survive it.
    #[must_use]
    pub fn is_in_model(self) -> bool {
        Self::IN_MODEL.contains(&self)
    }

    /// Whether it is one of clients and networks, whatever server there is.
    pub(super) fn is_anywhere(self) -> bool {
        self.place() != Place::Server
    }

    /// Whether it is the work of others, within their time.
    pub(super) fn is_of_others(self) -> bool {
        matches!(self, Self::Failover | Self::Differ)
    }

    pub(super) fn is_of_network(self) -> bool {
        self.place() == Place::Network
    }

    pub(super) fn place(self) -> Place {
        match self {
            Self::ClientStop | Self::ClientKill => Place::Client,
            Self::Delay
            | Self::DelayReplies
            | Self::Cut
            | Self::Freeze
            | Self::DropReplies
            | Self::CutAfterRequest
            | Self::Refuse => Place::Network,
            _ => Place::Server,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ClientStop => "SIGSTOP of a client",
            Self::ClientKill => "SIGKILL of a client",
            Self::Delay => "slow network",
            Self::DelayReplies => "late replies",
            Self::Cut => "connections cut",
            Self::Freeze => "frozen network",
            Self::DropReplies => "lost replies",
            Self::CutAfterRequest => "cut before the reply",
            Self::Refuse => "connections refused",
            Self::ServerStop => "SIGSTOP of the server",
            Self::ServerKill => "SIGKILL of the server, data kept",
            Self::ServerRestart => "restart of the server, data kept",
            Self::KillNormal => "connections ended by the server",
            Self::KillSubscribers => "CLIENT KILL pubsub",
            Self::ClientPause => "CLIENT PAUSE",
            Self::DebugSleep => "DEBUG SLEEP",
            Self::ScriptFlush => "SCRIPT FLUSH",
            Self::OutOfMemory => "out of memory",
            Self::LoseData => "data lost",
            Self::Evict => "eviction",
            Self::Failover => "a replica took over",
            Self::Differ => "members that differ",
            Self::ClockAhead => "server's clock ahead",
            Self::ClockBehind => "server's clock behind",
        })
    }
}
