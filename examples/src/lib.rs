//! What the examples have in common. Their command lines answer mistakes with a usage line, and
//! never show a password. And the services of the examples `orders` and `observability`.

#[cfg(feature = "observability")]
pub mod observability;
#[cfg(feature = "orders")]
pub mod orders;

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

/// What stands before the `@` where the form of a URL is explained.
const PLACEHOLDER: &str = "[user:password";

/// Reads the command line.
///
/// # Errors
/// A mistake, with the usage line below it. Also `--help`, which is no mistake; [`give_up`] tells
/// them apart.
pub fn read<Args: Parser>() -> Result<Args, clap::Error> {
    Args::try_parse().map_err(|mut error| {
        // clap leaves the usage line out when only a value is wrong.
        if error.use_stderr() && error.get(ContextKind::Usage).is_none() {
            let usage = ContextValue::StyledStr(Args::command().render_usage());
            error.insert(ContextKind::Usage, usage);
        }
        error
    })
}

/// Options that do not go together, with the usage line below the message.
pub fn usage<Args: CommandFactory>(message: impl Display) -> clap::Error {
    Args::command().error(ErrorKind::ValueValidation, message)
}

/// Prints why an example has no result. The exit status is 2 for wrong options, 1 for a failure,
/// and 0 for `--help`.
#[must_use]
pub fn give_up(example: &str, error: &(dyn Error + 'static)) -> ExitCode {
    match error.downcast_ref::<clap::Error>() {
        Some(help) if !help.use_stderr() => {
            print!("{}", help.render());
            ExitCode::SUCCESS
        }
        Some(mistake) => {
            eprint!("{}", without_passwords(&mistake.render().to_string()));
            ExitCode::from(2)
        }
        None => {
            eprintln!("{example}: {}", without_passwords(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// The text without the user and password of any URL in it. A password may have been typed where no
/// URL belongs, and is then part of clap's message. Hides too much rather than too little, since a
/// password may contain anything.
fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let secret = line.split_once("://").zip(line.rsplit_once('@'));
        match secret
            .map(|((before, _), (_, after))| (before.len() + 3, line.len() - after.len() - 1))
        {
            Some((from, to)) if from < to && &line[from..to] != PLACEHOLDER => {
                shown.push_str(&line[..from]);
                shown.push_str("***");
                shown.push_str(&line[to..]);
            }
            _ => shown.push_str(line),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_taken_out_and_the_rest_stays() {
        let said = "a://b\nunexpected 'redis://user:can@ary two@host:1/2' found\nme@example.org";
        let shown = "a://b\nunexpected 'redis://***@host:1/2' found\nme@example.org";
        assert_eq!(without_passwords(said), shown);
        let form = "write redis://[user:password@]host";
        assert_eq!(without_passwords(form), form);
    }
}
