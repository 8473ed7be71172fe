//! The sockets: each client receives on one of its own, and sends from a nameless one.
//!
//! All that goes through them are hints. What is lost costs time: a waiter asks again each second.

use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::path::Path;
use std::sync::{Arc, Weak};

use lock_store::{Clock, HandedOver, Link, Listener, Namespace, Trust};
use tokio::net::UnixDatagram;
use tokio::sync::oneshot;

use crate::folder::Folder;
use crate::mail::{LONGEST, Mail, News};

/// There is only one way to the database.
pub(crate) const LINK: Link = Link(0);

/// Brings news to the client's engine.
#[derive(Clone)]
pub(crate) struct Hearer {
    pub(crate) listener: Weak<dyn Listener>,
    pub(crate) namespace: Namespace,
}

impl fmt::Debug for Hearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hearer").field(&self.namespace).finish()
    }
}

impl Hearer {
    pub(crate) fn engine(&self) -> Option<Arc<dyn Listener>> {
        self.listener.upgrade()
    }

    fn hear(&self, news: News) {
        let Some(listener) = self.engine() else {
            return;
        };
        match news {
            // A datagram can be lost, and comes in no order with the replies.
            News::Granted { owner, token } => {
                drop(listener.granted(HandedOver::new(owner, token, Trust::Ask(LINK))));
            }
            News::Told { .. } => {
                if let Some(message) = news.message_for(&self.namespace) {
                    listener.told(message);
                }
            }
        }
    }
}

/// Receives until `closed` says so, or is dropped. An error if there can be no socket, as with a
/// path that is too long for one.
pub(crate) fn receive(
    path: &Path,
    hearer: Hearer,
    clock: &Clock,
    closed: oneshot::Receiver<()>,
) -> io::Result<()> {
    let socket = StdDatagram::bind(path)?;
    socket.set_nonblocking(true)?;
    let socket = {
        let _entered = clock.handle().enter();
        UnixDatagram::from_std(socket)?
    };
    clock.spawn(async move {
        tokio::select! {
            _ = closed => {}
            () = listen(socket, &hearer) => {}
        }
    });
    Ok(())
}

async fn listen(socket: UnixDatagram, hearer: &Hearer) {
    let mut buffer = vec![0; LONGEST];
    while let Ok(length) = socket.recv(&mut buffer).await {
        if let Some(news) = News::read(&buffer[..length]) {
            hearer.hear(news);
        }
    }
}

/// Sends mails to other clients, and hands over those to this client.
#[derive(Debug)]
pub(crate) struct Sender {
    socket: Option<StdDatagram>,
    folder: Folder,
    hearer: Hearer,
}

impl Sender {
    pub(crate) fn new(folder: Folder, hearer: Hearer) -> Self {
        let socket = StdDatagram::unbound().ok();
        // It must not wait for a client that stands still.
        let socket = socket.filter(|socket| socket.set_nonblocking(true).is_ok());
        Self {
            socket,
            folder,
            hearer,
        }
    }

    pub(crate) fn send(&self, mails: Vec<Mail>) {
        for Mail { to, news } in mails {
            let Some(file) = to else {
                self.hearer.hear(news);
                continue;
            };
            if let Some(socket) = &self.socket
                && let Some(datagram) = news.write()
            {
                // It is only a hint.
                let _ = socket.send_to(&datagram, self.folder.socket(&file));
            }
        }
    }
}
