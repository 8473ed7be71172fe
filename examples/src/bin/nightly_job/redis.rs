//! A Redis for this run alone, if there is the program but no running server.

use std::error::Error;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lock_runtime::LockClient;
use tempfile::TempDir;

const START: Duration = Duration::from_secs(10);

/// A private `redis-server`: it listens on a socket in a folder of its own, and on no port. It ends
/// when this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    folder: TempDir,
}

impl Server {
    /// Returns when the server answers. `otherwise` says what to do without the program.
    pub(crate) async fn start(otherwise: &str) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let started = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(folder.path())
            .arg("--unixsocket")
            .arg(folder.path().join("socket"))
            .stdout(Stdio::null())
            .spawn();
        let process = started.map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!(
                "there is no redis-server here to start: install one (apt-get install \
                 redis-server, brew install redis){otherwise}"
            ),
            _ => format!("redis-server does not start: {error}"),
        })?;
        let mut server = Self { process, folder };
        let give_up = Instant::now() + START;
        while let Err(error) = LockClient::builder().url(server.url()).connect().await {
            if let Some(status) = server.process.try_wait()? {
                return Err(format!("redis-server ended at once ({status})").into());
            }
            if Instant::now() > give_up {
                return Err(error.into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
