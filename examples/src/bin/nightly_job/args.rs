//! The command line, and which options go together.

use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::job::HOLD_AT_LEAST;

/// Where a process finds the Redis URL. It is not on the command line, which every user of the
/// machine can read.
pub(crate) const URL_VARIABLE: &str = "NIGHTLY_JOB_URL";
/// The scheduler looks at its clock twice a second, so a tick comes up to this much late.
pub(crate) const LATE: Duration = Duration::from_millis(500);

/// A nightly job in three processes whose clocks differ: at every tick exactly one of them runs it.
///
/// The lock is tried once, the others skip, and the key is held for 4 s, longer than the clocks are
/// apart.
#[derive(Debug, Parser)]
#[command(
    name = "nightly_job",
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    // Not a doc comment: rustdoc would take the brackets for links.
    #[arg(
        long,
        help = "The Redis that holds the lock (redis://[user:password@]host[:port][/db]); \
                without it, a redis-server is started for this run"
    )]
    pub(crate) url: Option<String>,
    /// How many ticks to watch
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) ticks: u64,
    /// Seconds from one tick to the next: more than the 4 s that the key is held
    #[arg(long, default_value_t = 6)]
    pub(crate) every: u64,
    /// Seconds by which one clock is fast and another one slow: together less than the 4 s that the
    /// key is held
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(crate) skew: u64,
    /// Lock without `hold_at_least`, to see what it prevents
    #[arg(long)]
    pub(crate) no_hold: bool,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// What the example starts its own processes with
    #[command(hide = true)]
    Process(ProcessArgs),
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    #[arg(long)]
    pub(crate) shop: u64,
    #[arg(long)]
    pub(crate) every: u64,
    /// Seconds by which this process's clock is fast
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) fast: i32,
    #[arg(long)]
    pub(crate) no_hold: bool,
}

impl Args {
    /// Reads the command line, and checks that it makes sense as a whole.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let args: Self = lock_examples::read()?;
        args.check().map_err(usage)?;
        Ok(args)
    }

    /// The time between the fastest and the slowest clock.
    pub(crate) fn apart(&self) -> Duration {
        Duration::from_secs(2 * self.skew)
    }

    fn check(&self) -> Result<(), String> {
        let (late, hold) = (LATE.as_secs_f32(), HOLD_AT_LEAST.as_secs());
        if self.every == 0 || self.every >= 60 || 60 % self.every != 0 {
            return Err("--every has to divide a minute: 5, 6, 10, 12, 15, 20 or 30".into());
        }
        if HOLD_AT_LEAST + LATE >= Duration::from_secs(self.every) {
            return Err(format!(
                "--every {}: the key is held for {hold} s and the scheduler is up to {late} s \
                 late, so the next tick could find the lock still taken; 5 is the least",
                self.every
            ));
        }
        if self.apart() + LATE >= HOLD_AT_LEAST {
            return Err(format!(
                "--skew {}: the clocks would be {} s apart and the scheduler is up to {late} s \
                 late, but the key is held for {hold} s only, so the slowest clock could find \
                 the lock free again; 1 is the most",
                self.skew,
                self.apart().as_secs()
            ));
        }
        // A store inside a process would lock nothing outside of it.
        if self
            .url
            .as_ref()
            .is_some_and(|url| !url.starts_with("redis"))
        {
            return Err("--url needs a Redis that all processes can use: redis://…".into());
        }
        Ok(())
    }
}

/// A mistake in the options, with the usage line below it.
pub(crate) fn usage(message: impl std::fmt::Display) -> clap::Error {
    lock_examples::usage::<Args>(message)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
