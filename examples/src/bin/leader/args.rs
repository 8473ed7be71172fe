//! The command line.

use clap::{Parser, Subcommand};

/// Where a replica finds the Redis URL. It is not on the command line, which every user of the
/// machine can read.
pub(crate) const URL_VARIABLE: &str = "LEADER_URL";

/// Three replicas, of which one sends mails at a time: it leads. The leader is killed, the next one
/// is stopped, and the one after that is cut off from Redis. Each time another one goes on.
#[derive(Debug, Parser)]
#[command(
    name = "leader",
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// What the example starts its own processes with
    #[command(hide = true)]
    Replica,
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
