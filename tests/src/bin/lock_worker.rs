//! Another process of a service: does what it is told on its standard input, line by line, and
//! says on its standard output what happened. It ends when its input ends.

use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = commands.next_line().await? {
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match command {
            "ping" => say(&format!("pong {rest}")),
            _ => say(&format!("error: unknown command {command:?}")),
        }
    }
    Ok(())
}

/// One event, as one line, at once.
fn say(event: &str) {
    // Rust's standard output is flushed at the end of a line, also into a pipe.
    println!("{event}");
}
