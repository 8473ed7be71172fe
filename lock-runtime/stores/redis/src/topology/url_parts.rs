//! [`UrlParts`]: user, hosts and path of a URL. Each is checked on its own, so that an error can
//! name the part that can't be read. No message repeats the URL, which may contain a password.

use lock_store::ConfigError;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::config::{KEEPALIVE, KEEPALIVE_AGAIN};
use crate::server_text::remember;

/// The form of each kind of URL.
pub(super) const FORMS: &str = "\
    write `redis://[user:password@]host[:port][/db]`, \
    `redis+unix:///path/to/socket`, \
    `redis-sentinel://[user:password@]host[:port],host[:port],…/master-name[/db]`, \
    `redis-cluster://[user:password@]host[:port],host[:port],…`, \
    `redis-quorum://[user:password@]host[:port],host[:port],…[/db]`, \
    any but the socket with `rediss` for TLS, any with `valkey` in place of `redis`, \
    `sqlite:///path/to/file`, or `memory:`";

/// The parts of a URL that names hosts.
pub(super) struct UrlParts<'u> {
    is_tls: bool,
    /// `user:password@`, or nothing.
    user: &'u str,
    pub(super) hosts: Vec<&'u str>,
    pub(super) path: &'u str,
    /// True if the server's certificate is not verified.
    insecure: bool,
}

impl<'u> UrlParts<'u> {
    pub(super) fn of(rest: &'u str, is_tls: bool, insecure: bool) -> Result<Self, ConfigError> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(at);
        if user.split(':').next().unwrap_or_default().contains(',') {
            return Err(ConfigError::new(
                "the user in the store's URL has a `,`; write user and password once, before the \
                 first host, and `%2C` for a `,` in them",
            ));
        }
        let hosts: Vec<&str> = hosts.split(',').collect();
        for (at, host) in hosts.iter().enumerate() {
            check_host(host).map_err(|what| {
                let which = match hosts.len() {
                    1 => "host".to_owned(),
                    _ => format!("host number {}", at + 1),
                };
                ConfigError::new(format!("in the store's URL, the {which} {what}; {FORMS}"))
            })?;
        }
        Ok(Self {
            is_tls,
            user,
            hosts,
            path,
            insecure,
        })
    }

    /// The settings of each host, all with this database.
    pub(super) fn each(&self, db: &str) -> Result<Vec<ConnectionInfo>, ConfigError> {
        let hosts = self.hosts.iter();
        hosts.map(|host| self.server(self.user, host, db)).collect()
    }

    /// The settings of each host for another user, with a default port.
    pub(super) fn each_as(
        &self,
        user: &str,
        port: u16,
    ) -> Result<Vec<ConnectionInfo>, ConfigError> {
        let hosts = self.hosts.iter();
        let server = |host: &&str| self.server(user, &with_port(host, port), "");
        hosts.map(server).collect()
    }

    fn server(&self, user: &str, host: &str, db: &str) -> Result<ConnectionInfo, ConfigError> {
        let db = db.trim_matches('/');
        if !db.bytes().all(|byte| byte.is_ascii_digit()) || db.len() > 9 {
            return Err(ConfigError::new(format!(
                "in the store's URL, the database behind the last `/` is no number; {FORMS}"
            )));
        }
        let info = connection_info(&format!("redis://{user}{host}/{db}"))?;
        let addr = match info.addr() {
            // The crate itself need not speak TLS: `dial` does.
            ConnectionAddr::Tcp(host, port) if self.is_tls => ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: self.insecure,
                tls_params: None,
            },
            addr => addr.clone(),
        };
        Ok(info.set_addr(addr))
    }
}

/// One server's settings: RESP3 for push messages, TCP_NODELAY, and keepalive for firewalls that
/// drop quiet connections.
pub(super) fn connection_info(url: &str) -> Result<ConnectionInfo, ConfigError> {
    let info = url.into_connection_info().map_err(|error| {
        // These messages of the crate are constants. Those that could repeat a part of the URL do
        // not occur here.
        let words = error.to_string();
        let what = match words.as_str() {
            words if words.contains("wildcard") => {
                "the host is an address to listen on, and not one to connect to"
            }
            words if words.contains("UTF-8") => "the user or password, decoded, is no UTF-8",
            words if words.contains("database") => "the database is no number",
            words if words.contains("path") => "the path of the socket is missing",
            _ => "something can't be read",
        };
        ConfigError::new(format!("in the store's URL, {what}; {FORMS}"))
    })?;
    let redis = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3)
        // Saves one command at connecting, and one permission.
        .set_skip_set_lib_name();
    remember(&redis);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_AGAIN);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    Ok(info.set_redis_settings(redis).set_tcp_settings(tcp))
}

/// What is wrong with a host and its port.
fn check_host(text: &str) -> Result<(), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(address) => {
            let (address, behind) = address.split_once(']').ok_or("has a `[` without its `]`")?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("has no IPv6 address between `[` and `]`".to_owned());
            }
            (
                "",
                behind
                    .strip_prefix(':')
                    .or(Some(behind).filter(|it| !it.is_empty())),
            )
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(
                    "has several `:`; an IPv6 address stands in brackets, as `[::1]:6379`"
                        .to_owned(),
                );
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    // A single character reveals nothing of a password.
    let bad = |c: &char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if let Some(bad) = host.chars().find(bad) {
        return Err(format!("has a {bad:?}"));
    }
    // The redis crate would look up its escapes.
    if !host.is_ascii() {
        return Err(
            "has letters beyond ASCII; write the form of the name that begins with `xn--` \
             (Punycode), as `xn--kse-qla.de`"
                .to_owned(),
        );
    }
    if host.is_empty() && !text.starts_with('[') {
        return Err("is empty".to_owned());
    }
    match port.map(str::parse::<u16>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(Ok(0) | Err(_)) => Err(
            "has a port that is no number from 1 to 65535 (or it is a user and a password, and the \
             `@host` is missing)"
                .to_owned(),
        ),
    }
}

fn with_port(host: &str, port: u16) -> String {
    // In `[::1]`, colons do not separate a port.
    let after = host.rfind(']').map_or(host, |end| &host[end..]);
    match after.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_which_part_can_not_be_read_and_why() {
        for (rest, says) in [
            ("u:canary@h:port", "the host has a port that is no number"),
            ("u:canary@h:70000", "no number from 1 to 65535"),
            ("h1,h 2", "host number 2 has a ' '"),
            ("h1,,h2", "host number 2 is empty"),
            ("u:canary@", "the host is empty"),
            ("::1", "in brackets"),
            ("[::1", "without its `]`"),
            ("[h]", "no IPv6 address"),
            ("[::1]x", "no number from 1 to 65535"),
            ("h1,u:canary@h2", "once, before the first host"),
            ("user:canary", "the `@host` is missing"),
            ("u:canary@käse.de", "begins with `xn--`"),
            ("h1,käse.de:7", "host number 2 has letters beyond ASCII"),
        ] {
            let error = UrlParts::of(rest, false, false).map(drop).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(says), "{rest}: {said}");
            assert!(!said.contains("canary"), "{said}");
        }
        for (rest, says) in [
            ("u:canary@h/db", "the database"),
            ("h/-1", "the database"),
            ("h/1/2", "the database"),
            ("0.0.0.0/", "to listen on"),
            ("u:%ffcanary@h/", "no UTF-8"),
        ] {
            let parts = UrlParts::of(rest, false, false).unwrap();
            let said = parts.each(parts.path).map(drop).unwrap_err().to_string();
            assert!(said.contains(says), "{rest}: {said}");
            assert!(!said.contains("canary"), "{said}");
        }
        for rest in [
            "h",
            "h:1/",
            "u:p,w@h-1.x_y/3",
            "[::1]:7",
            "[::1]",
            "xn--kse-qla.de",
            "127.0.0.1:6379/0",
        ] {
            let parts = UrlParts::of(rest, false, false).unwrap();
            assert_eq!(parts.each(parts.path).unwrap().len(), 1, "{rest}");
        }
    }
}
