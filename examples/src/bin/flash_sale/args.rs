//! The command line: the user's options, and what the parent tells a process of the sale.

use clap::{Parser, Subcommand};

/// Where a process of the sale finds the Redis URL. It is not on the command line, which every user
/// of the machine can read.
pub(crate) const URL_VARIABLE: &str = "FLASH_SALE_URL";
const DEFAULT_PROCESSES: u32 = 4;

/// A flash sale: many buyers, few items, and a lock that keeps the count right.
///
/// Each sale reads the inventory, thinks for a moment, and writes it back: what goes wrong as soon
/// as two do it at once. One attribute on that function lets them in one after another.
#[derive(Debug, Parser)]
#[command(
    name = "flash_sale",
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    /// How many people want to buy one item each
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) buyers: u32,
    /// How many items there are
    #[arg(
        long,
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000),
    )]
    pub(crate) items: u32,
    /// Sell without the lock, to see what it prevents
    #[arg(long)]
    pub(crate) no_lock: bool,
    // Not a doc comment: rustdoc would take the brackets for links.
    #[arg(
        long,
        help = "Sell from several processes, with lock and inventory in this Redis \
                (redis://[user:password@]host[:port][/db])"
    )]
    url: Option<String>,
    /// How many processes sell; needs --url [default: 4]
    #[arg(long, requires = "url", value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: Option<u32>,
    /// Kill one of the processes with SIGKILL while it holds the lock; needs --url and --processes
    #[arg(long, requires_all = ["url", "processes"], conflicts_with = "no_lock")]
    pub(crate) crash: bool,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// What the sale starts its own processes with
    #[command(hide = true)]
    Process(ProcessArgs),
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    #[arg(long)]
    pub(crate) product_id: u64,
    #[arg(long)]
    pub(crate) buyers: u32,
    #[arg(long)]
    pub(crate) no_lock: bool,
    /// After this many buyers, the next one holds the lock until the process is killed
    #[arg(long)]
    pub(crate) hang_after: Option<u32>,
}

impl Args {
    /// Reads the command line, and checks that it makes sense as a whole.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let args: Self = lock_examples::read()?;
        args.check()?;
        Ok(args)
    }

    /// The Redis and the number of processes, if the sale is to have some.
    pub(crate) fn shared(&self) -> Option<(&str, u32)> {
        let url = self.url.as_deref()?;
        Some((url, self.processes.unwrap_or(DEFAULT_PROCESSES)))
    }

    fn check(&self) -> Result<(), clap::Error> {
        let Some((_, processes)) = self.shared() else {
            return Ok(());
        };
        if self.crash && processes < 2 {
            return Err(usage(
                "--crash needs at least --processes 2: somebody has to be left to sell on",
            ));
        }
        if self.buyers < processes {
            return Err(usage(
                "there are fewer --buyers than --processes; each process needs one",
            ));
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
