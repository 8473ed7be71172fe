//! The start of a server: its settings, command line and port.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};

use super::RedisServer;
use crate::Port;

/// Settings of a [`RedisServer`] before its start.
///
/// # Default
///
/// - no persistence
/// - no password
/// - no Unix socket
#[derive(Debug, Clone, Default)]
pub struct RedisServerBuilder {
    settings: Settings,
}

impl RedisServerBuilder {
    /// Adds one word to the command line, after those of the harness:
    /// `.arg("--maxmemory").arg("1mb")`. For the password use [`password`](Self::password), since
    /// the harness needs to know it.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.settings.args.push(arg.into());
        self
    }

    /// Sets a variable in the server's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.settings.environment.push((name.into(), value.into()));
        self
    }

    /// Writes every command to disk before the reply. Then data survives a
    /// [`restart`](RedisServer::restart), even after a [`kill`](RedisServer::kill).
    #[must_use]
    pub fn appendonly(mut self, appendonly: bool) -> Self {
        self.settings.appendonly = appendonly;
        self
    }

    /// The password of the default user. It goes into [`url`](RedisServer::url) unescaped, so it
    /// must not have characters that need an escape there.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.settings.password = Some(password.into());
        self
    }

    /// Also listens on a Unix socket: [`socket_path`](RedisServer::socket_path).
    #[must_use]
    pub fn unix_socket(mut self, unix_socket: bool) -> Self {
        self.settings.unix_socket = unix_socket;
        self
    }

    /// Makes it a node of a cluster that is not formed yet.
    #[must_use]
    pub fn cluster_node(self) -> Self {
        let bus = Port::free();
        let node = self.arg("--cluster-enabled").arg("yes");
        node.port("--cluster-port", &bus)
    }

    /// Another port on which it listens, with the option that says so, such as `--tls-port`.
    #[must_use]
    pub fn port(mut self, option: &str, port: &Port) -> Self {
        self.settings.ports.push(port.clone());
        self.arg(option).arg(port.to_string())
    }

    /// Makes it a sentinel, which keeps its configuration in its own file.
    #[must_use]
    pub fn sentinel(mut self, configuration: String) -> Self {
        self.settings.sentinel = Some(configuration);
        self
    }

    /// Starts the server. Returns when it answers.
    ///
    /// # Panics
    ///
    /// If it does not start. The message contains its log.
    pub async fn start(self) -> RedisServer {
        RedisServer::start_with(self.settings).await
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    args: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    appendonly: bool,
    pub(super) password: Option<String>,
    pub(super) unix_socket: bool,
    sentinel: Option<String>,
    /// Beside its own, such as that of a cluster's node for the others.
    ports: Vec<Port>,
}

impl Settings {
    pub(super) fn arguments(&self, port: u16, folder: &Path, debug: bool) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if let Some(configuration) = &self.sentinel {
            let file = folder.join("sentinel.conf");
            // The sentinel writes there what it learns, and a restart must find that again.
            if !file.exists() {
                fs::write(&file, configuration).expect("the configuration can be written");
            }
            arguments.extend([file.into(), "--sentinel".into()]);
        }
        let mut set = |name: &str, value: OsString| {
            arguments.push(format!("--{name}").into());
            arguments.push(value);
        };
        set("bind", "127.0.0.1".into());
        set("port", port.to_string().into());
        set("dir", folder.into());
        set("daemonize", "no".into());
        if self.sentinel.is_none() {
            set("save", "".into());
        }
        if self.appendonly {
            set("appendonly", "yes".into());
            // With the default, a reply can be ahead of the file for up to two seconds.
            set("appendfsync", "always".into());
        }
        if let Some(password) = &self.password {
            set("requirepass", password.into());
        }
        if self.unix_socket {
            set("unixsocket", socket_path(folder).into());
        }
        if debug {
            set("enable-debug-command", "local".into());
        }
        arguments.extend(self.args.iter().cloned());
        arguments
    }

    /// A client that sends nothing on its own but the password.
    pub(super) fn client(&self, port: u16) -> redis::Client {
        let mut session = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(password) = &self.password {
            session = session.set_password(password);
        }
        let info = ConnectionAddr::Tcp("127.0.0.1".to_owned(), port)
            .into_connection_info()
            .expect("an address is valid connection information")
            .set_redis_settings(session);
        redis::Client::open(info).expect("an address is valid connection information")
    }
}

pub(super) fn socket_path(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}
