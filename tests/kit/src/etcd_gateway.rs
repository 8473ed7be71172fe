//! etcd's gateway for JSON, by which tests look into a server.

use std::io;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A user of one server's gateway.
#[derive(Clone, Debug)]
pub struct EtcdGateway {
    port: u16,
    token: Option<String>,
}

/// Base64, in which the gateway has keys and values.
fn encoded(text: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(text)
}

fn decoded(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).expect("base64")
}

/// The first key after those that begin so.
fn end_of(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    let last = end.pop().expect("a prefix");
    end.push(char::from_u32(u32::from(last) + 1).expect("a letter"));
    end
}

impl EtcdGateway {
    /// Nobody, at the server with this port.
    #[must_use]
    pub fn at(port: u16) -> Self {
        Self { port, token: None }
    }

    /// This user.
    ///
    /// # Errors
    /// If the server does not answer, or does not let it in.
    pub async fn log_in(&self, name: &str, password: &str) -> io::Result<Self> {
        let body = json!({ "name": name, "password": password });
        let reply = self.ask("auth/authenticate", &body).await?;
        let token = reply["token"].as_str().map(str::to_owned);
        Ok(Self {
            port: self.port,
            token,
        })
    }

    /// The number of leases that there are.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn leases(&self) -> io::Result<usize> {
        let reply = self.ask("lease/leases", &json!({})).await?;
        Ok(reply["leases"].as_array().map_or(0, Vec::len))
    }

    /// What the server replies to a request.
    ///
    /// # Errors
    /// If the server does not answer within two seconds, or refuses.
    pub async fn ask(&self, path: &str, body: &Value) -> io::Result<Value> {
        let asked = tokio::time::timeout(Duration::from_secs(2), self.try_ask(path, body));
        asked
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn try_ask(&self, path: &str, body: &Value) -> io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let body = body.to_string();
        let token = match &self.token {
            Some(token) => format!("Authorization: {token}\r\n"),
            None => String::new(),
        };
        let request = format!(
            "POST /v3/{path} HTTP/1.0\r\nContent-Type: application/json\r\n{token}Content-Length: \
             {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let first = head.lines().next().unwrap_or_default();
        if !first.contains(" 200 ") {
            return Err(io::Error::other(format!("{path}: {first}: {body}")));
        }
        serde_json::from_str(body).map_err(io::Error::other)
    }

    /// All keys that begin so, with their values.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn below(&self, prefix: &str) -> io::Result<Vec<(String, String)>> {
        let found = self.bytes_below(prefix).await?.into_iter();
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        Ok(found.map(|(key, value)| (key, text(value))).collect())
    }

    /// The same, where values need not be texts.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn bytes_below(&self, prefix: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
        let body = json!({ "key": encoded(prefix), "range_end": encoded(end_of(prefix)) });
        let reply = self.ask("kv/range", &body).await?;
        let bytes = |kv: &Value, name: &str| decoded(kv[name].as_str().unwrap_or_default());
        let key = |kv: &Value| String::from_utf8_lossy(&bytes(kv, "key")).into_owned();
        let found = reply["kvs"].as_array().cloned().unwrap_or_default();
        Ok(found
            .iter()
            .map(|kv| (key(kv), bytes(kv, "value")))
            .collect())
    }

    /// The lease of a key. `None`, if there is no such key, or it has none.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn lease_of(&self, key: &str) -> io::Result<Option<String>> {
        let reply = self
            .ask("kv/range", &json!({ "key": encoded(key) }))
            .await?;
        Ok(reply["kvs"][0]["lease"].as_str().map(str::to_owned))
    }

    /// Writes a key.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn put(&self, key: &str, value: impl AsRef<[u8]>) -> io::Result<Value> {
        let body = json!({ "key": encoded(key), "value": encoded(value) });
        self.ask("kv/put", &body).await
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn delete(&self, key: &str) -> io::Result<Value> {
        self.ask("kv/deleterange", &json!({ "key": encoded(key) }))
            .await
    }

    /// Allows a role everything below a prefix, and no more.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn grant(&self, role: &str, prefix: &str) -> io::Result<Value> {
        let perm = json!({
            "permType": "READWRITE",
            "key": encoded(prefix),
            "range_end": encoded(end_of(prefix)),
        });
        let body = json!({ "name": role, "perm": perm });
        self.ask("auth/role/grant", &body).await
    }
}
