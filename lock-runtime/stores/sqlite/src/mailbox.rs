//! The sockets: each client receives on one of its own, and sends from a nameless one.
//!
//! All that goes through them are hints. What is lost costs time: a waiter asks again each second.

use std::cell::Cell;
use std::io;
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::sync::Weak;

use lock_store::{Clock, HandedOver, Link, Listener, Namespace, Trust};
use tokio::net::UnixDatagram;
use tokio::sync::oneshot;

use crate::client_folder::Folder;
use crate::mail::{LONGEST, Mail, News};

/// There is only one way to the database.
pub(crate) const LINK: Link = Link(0);

/// Brings news to the client's engine.
#[derive(Clone, Debug)]
pub(crate) struct Hearer {
    pub(crate) listener: Weak<dyn Listener>,
    pub(crate) namespace: Namespace,
}

impl Hearer {
    fn on_news(&self, news: News) {
        match news {
            // A datagram can be lost, and comes in no order with the replies.
            News::Granted { owner, token } => {
                drop(
                    self.listener
                        .on_granted(HandedOver::new(owner, token, Trust::Ask(LINK))),
                );
            }
            News::Told(letter) => {
                if let Some(message) = letter.message_for(&self.namespace) {
                    self.listener.on_message(message);
                }
            }
        }
    }
}

/// Receives until `closed` says so, or is dropped.
pub(crate) fn receive(
    socket: StdDatagram,
    hearer: Hearer,
    clock: &Clock,
    closed: oneshot::Receiver<()>,
) -> io::Result<()> {
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
            hearer.on_news(news);
        }
    }
}

/// Sends mails to other clients, and hands over those to this client.
#[derive(Debug)]
pub(crate) struct Sender {
    socket: Option<StdDatagram>,
    folder: Folder,
    hearer: Hearer,
    /// It was told that some can't be reached.
    warned: Cell<bool>,
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
            warned: Cell::new(false),
        }
    }

    pub(crate) fn send(&self, mails: Vec<Mail>) {
        let mut folder = None;
        for Mail { to, news } in mails {
            let Some(name) = to else {
                self.hearer.on_news(news);
                continue;
            };
            if let Some(socket) = &self.socket
                && let Some(datagram) = news.write()
            {
                let folder = folder.get_or_insert_with(|| self.folder.open());
                let sent = match folder {
                    Ok(folder) => socket.send_to(&datagram, folder.socket(&name)).map(drop),
                    Err(error) => Err(error.kind().into()),
                };
                self.warn(sent);
            }
        }
    }

    /// It is only a hint. Who has no socket says so itself, and who stands still hears nothing.
    fn warn(&self, sent: io::Result<()>) {
        if let Err(error) = sent
            && !matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::WouldBlock
            )
            && !self.warned.replace(true)
        {
            tracing::warn!(
                folder = %self.folder.path().display(), %error,
                "this client can't tell others of their grants, so they learn of them only when \
                 they ask again, each second; give all users of the database the same rights there"
            );
        }
    }
}
