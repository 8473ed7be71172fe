//! Ports of the tests' servers.

use std::fmt;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// They are below the range that systems use for outgoing connections (Linux: from 32768, macOS:
/// from 49152). So no client can take one while its server is down.
const FIRST: u32 = 5_500;
const COUNT: u32 = 26_500;

/// A TCP port of the loopback interface that no other test takes while this value lives, whether in
/// this process or another. Its clones are the same port.
///
/// Servers are started by number, and one that finds its port taken ends. Whoever then asked that
/// port would ask the server of another test. The claim is the UDP port of the same number, which
/// no server here uses: the system gives it to one process, and takes it back when that ends.
#[derive(Clone, Debug)]
pub struct Port {
    number: u16,
    _claim: Arc<UdpSocket>,
}

impl Port {
    /// A free one.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn free() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Test processes that run in parallel start far from each other.
        let offset = std::process::id().wrapping_mul(251);
        for _ in 0..COUNT {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = u16::try_from(FIRST + offset.wrapping_add(step) % COUNT)
                .expect("the range ends below 65536");
            let address = (Ipv4Addr::LOCALHOST, number);
            if let Ok(claim) = UdpSocket::bind(address)
                && TcpListener::bind(address).is_ok()
            {
                return Self {
                    number,
                    _claim: Arc::new(claim),
                };
            }
        }
        panic!("no free port among {COUNT} from {FIRST} on");
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
