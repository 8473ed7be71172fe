//! What happens to the leaders, and the table.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::line::What;
use crate::replicas::Replicas;

pub(crate) async fn run(redis: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let mut replicas = Replicas::start(redis, 3).await?;
    let first = replicas.next(What::Began, |_| true).await?;
    say(&format!("replica {first} leads, {} stand by", 2));

    replicas.next(What::Mail, |one| one == first).await?;
    let since = Instant::now();
    replicas.all[first].process.kill().await?;
    let second = next_leader(&mut replicas, first).await?;
    let killed = since.elapsed();
    say(&format!(
        "replica {first} was killed, replica {second} leads"
    ));

    replicas.next(What::Mail, |one| one == second).await?;
    let since = Instant::now();
    signal(&replicas, second, "STOP")?;
    let third = next_leader(&mut replicas, second).await?;
    let stopped = since.elapsed();
    say(&format!(
        "replica {second} was stopped, replica {third} leads"
    ));
    signal(&replicas, second, "CONT")?;
    replicas.next(What::Ended, |one| one == second).await?;
    say(&format!(
        "replica {second} goes on: its body is stopped, and it stands by"
    ));

    replicas.next(What::Mail, |one| one == third).await?;
    let since = Instant::now();
    replicas.all[third].network.cut();
    replicas.next(What::Ended, |one| one == third).await?;
    say(&format!("replica {third} was cut off: its body is stopped"));
    let fourth = next_leader(&mut replicas, third).await?;
    let cut_off = since.elapsed();
    say(&format!("replica {fourth} leads"));
    replicas.all[third].network.mend();
    replicas.next(What::Mail, |one| one == fourth).await?;

    let mailbox = replicas.end().await?;
    say("");
    for (name, time) in [
        ("killed", killed),
        ("stopped", stopped),
        ("cut off", cut_off),
    ] {
        say(&format!(
            "  {name:<14}{:>5}  ms until another one led",
            millis(time)
        ));
    }
    for (name, number) in [
        ("terms", mailbox.terms()),
        ("mails", mailbox.taken),
        ("refused", mailbox.refused),
        ("side by side", mailbox.side_by_side),
    ] {
        say(&format!("  {name:<14}{number:>5}"));
    }
    if mailbox.side_by_side == 0 {
        say("\nNo mail was sent by a replica while another one led.");
        Ok(ExitCode::SUCCESS)
    } else {
        eprintln!("\nTwo replicas sent mails at once.");
        Ok(ExitCode::FAILURE)
    }
}

async fn next_leader(replicas: &mut Replicas, last: usize) -> Result<usize, Box<dyn Error>> {
    replicas.next(What::Began, |one| one != last).await
}

fn signal(replicas: &Replicas, replica: usize, name: &str) -> Result<(), Box<dyn Error>> {
    let id = replicas.all[replica].process.id();
    let id = id.ok_or("it has ended")?.to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status()?;
    sent.success()
        .then_some(())
        .ok_or_else(|| format!("kill -s {name}: {sent}").into())
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

/// Prints a line. Its reader may be gone (`| head`); that does not change the exit status.
fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}
