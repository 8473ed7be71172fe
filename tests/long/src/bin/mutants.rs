//! Breaks the Lua scripts, the functions in SQL, the engine, or the connection to Redis in every
//! small way, and counts the mistakes that the tests find: `bash tests/long/run scripts --jobs N`,
//! and `sql`, `engine` or `connection` instead of `scripts`.
//!
//! `--only FILE` or `--only FILE:LINE`, any number of times, takes the mutants of one file or
//! line. `--quick` leaves out the longer tests, which find a few more; a mutant whose survival is
//! explained is never tried on those. `--found FILE` keeps what was found out in a file, so that a
//! run that was cut short goes on. `--list` prints the mutants without a test. The exit status is 1
//! if fewer than 97 % were found, or if one was found whose survival is explained.

use std::process::ExitCode;

use lock_long::mutants::{Options, Report, What, until_signalled};
use lock_long::rust_mutants::Target;
use lock_long::{rust_mutants, script_mutants, sql_mutants};

#[tokio::main]
async fn main() -> Result<ExitCode, String> {
    let options = Options::read()?;
    let report = until_signalled(async {
        match options.what {
            What::Scripts => script_mutants::run(&options).await,
            What::Sql => sql_mutants::run(&options).await,
            What::Engine => rust_mutants::run(Target::ENGINE, &options).await,
            What::Connection => rust_mutants::run(Target::CONNECTION, &options).await,
        }
    });
    let report = report.await?;
    if let Some(report) = &report {
        println!("{report}");
    }
    Ok(match report.as_ref().is_none_or(Report::is_enough) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
