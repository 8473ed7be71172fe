//! What the `redis-server` in the PATH can do. It is the one of `tests/run`, unless
//! `tests/long/run servers` runs a test on another.

use std::process::Command;
use std::sync::OnceLock;

/// The first two numbers of the server's version: not every version has each rule and setting.
#[must_use]
pub fn redis_version() -> (u32, u32) {
    static ANSWER: OnceLock<(u32, u32)> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let text = output(&["--version"]);
        // "Redis server v=7.0.15 sha=…"
        let numbers = text.split("v=").nth(1).unwrap_or_default().split('.');
        let mut numbers = numbers.map_while(|number| number.parse().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    })
}

/// Whether the server is of this version or a later one. If not, the test that asks ends here, and
/// says so.
#[must_use]
pub fn server_is_at_least(major: u32) -> bool {
    let is = redis_version().0 >= major;
    if !is {
        eprintln!("skipped: redis-server is older than {major}");
    }
    is
}

/// Whether the server can be asked while `DEBUG RELOAD` loads slowly: not before 7, and 8.2.3 ends
/// with an assertion of its own then (`networking.c:2094`).
#[must_use]
pub fn server_reloads_slowly() -> bool {
    let is = matches!(redis_version(), (7 | 9.., _));
    if !is {
        eprintln!("skipped: this redis-server can't be asked during a slow reload");
    }
    is
}

/// Whether the server was built with TLS. If not, the test that asks ends here, and says so.
#[must_use]
pub fn server_speaks_tls() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    let speaks = *ANSWER.get_or_init(|| {
        // Without a certificate it ends at once. One without TLS has another reason to.
        output(&["--port", "0", "--tls-port", "1"]).contains("Failed to configure TLS")
    });
    if !speaks {
        eprintln!("skipped: redis-server was built without TLS");
    }
    speaks
}

fn output(arguments: &[&str]) -> String {
    let output = Command::new("redis-server").args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("redis-server is needed and cannot be run ({error}); `bash tests/run` installs it")
    });
    String::from_utf8_lossy(&output.stdout).into_owned()
}
