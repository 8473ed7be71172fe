//! [`MemberProcess`]: the process of a server that is one of several.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::OsProcess;
use crate::eventually;

/// The process of a server, if it runs. It ends with this value.
#[derive(Default)]
pub(crate) struct MemberProcess(Mutex<Option<OsProcess>>);

impl MemberProcess {
    pub(crate) fn start(&self, command: &mut Command) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(OsProcess::spawn(command));
    }

    fn ask<T>(&self, what: impl FnOnce(&mut OsProcess) -> T) -> Option<T> {
        let mut process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        process.as_mut().map(what)
    }

    /// SIGSTOP.
    pub(crate) fn pause(&self) {
        self.ask(OsProcess::pause).expect("it runs");
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) {
        self.ask(OsProcess::resume).expect("it runs");
    }

    /// SIGKILL, if it runs.
    pub(crate) fn kill(&self) {
        let mut process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut process) = process.take() {
            process.kill();
        }
    }

    /// Ends it in good order.
    pub(crate) async fn stop(&self) {
        self.ask(OsProcess::terminate).expect("it runs");
        eventually("the member ends", async || self.has_ended()).await;
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        let ended = self.ask(|process| process.exit_status().is_some());
        ended.unwrap_or(false)
    }
}
