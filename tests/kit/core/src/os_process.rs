//! One process that this test started, and its signals.

use std::process::{Child, Command, ExitStatus};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A child process that never outlives this value.
#[derive(Debug)]
pub struct OsProcess {
    child: Child,
    /// The exit was seen without `child`'s knowledge, so its id may already belong to another
    /// process.
    reaped: bool,
}

impl OsProcess {
    /// Starts it.
    ///
    /// # Panics
    /// If it can't be started.
    #[must_use]
    pub fn spawn(command: &mut Command) -> Self {
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.get_program()));
        Self {
            child,
            reaped: false,
        }
    }

    /// Its handle, to take its pipes from.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, or `None` while the process lives (paused or not).
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child
            .try_wait()
            .expect("a child's state can be asked for")
    }

    /// SIGKILL, even if the process is paused. Returns when the process is gone.
    pub fn kill(&mut self) {
        if !self.reaped {
            // Fails only if the process has already ended, which is the goal.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// SIGTERM: asks the process to end.
    pub fn terminate(&mut self) {
        self.signal(Signal::SIGTERM);
    }

    /// SIGSTOP. Returns when the process stands still, not when the signal is on its way.
    pub fn pause(&mut self) {
        let pid = self.signal(Signal::SIGSTOP);
        match waitpid(pid, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(..)) => {}
            Ok(ended @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => {
                self.reaped = true;
                panic!("process {pid} ended while it was to be paused: {ended:?}");
            }
            other => panic!("process {pid} could not be paused: {other:?}"),
        }
    }

    /// SIGCONT. Harmless if the process runs.
    pub fn resume(&mut self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&mut self, signal: Signal) -> Pid {
        // A child that ended keeps its id until its status is read, so this hits no other process.
        let status = self.exit_status();
        assert!(
            status.is_none(),
            "no {signal} for process {}: it has ended ({status:?})",
            self.id()
        );
        let pid = Pid::from_raw(i32::try_from(self.id()).expect("process ids fit into an i32"));
        kill(pid, signal).unwrap_or_else(|error| panic!("no {signal} for process {pid}: {error}"));
        pid
    }
}

impl Drop for OsProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
