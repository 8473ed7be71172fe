//! Requests that meet every status once, and a table of the answers.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use lock_runtime::LockClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CROWD: usize = 100;

/// The service's answer to one request.
#[derive(Debug)]
struct Answer {
    status: u16,
    retry_after: Option<u64>,
}

/// Sends the requests, prints the table, and fails if a status is not the expected one.
pub(crate) async fn take(service: SocketAddr, locks: &LockClient) -> io::Result<ExitCode> {
    let mut right = true;
    println!("Requests to http://{service}/\n");

    let at_once = ask(service, &["POST /acme/orders/7/pay"; 2]).await?;
    right &= row("two payments of one order at once", &[200, 409], &at_once);
    let again = ask(service, &["POST /acme/orders/7/pay"]).await?;
    right &= row("another one when it is paid", &[200], &again);
    let others = ask(
        service,
        &["POST /acme/orders/8/pay", "POST /other/orders/8/pay"],
    )
    .await?;
    right &= row("payments of two tenants at once", &[200], &others);
    let nameless = ask(service, &["POST /no%20name/orders/7/pay"]).await?;
    right &= row("a tenant whose name can't be", &[400], &nameless);
    // 100 a second and 20 at once: some of these requests pass, and the others are told when to
    // come back.
    let crowd = ask(service, &["GET /acme/quote"; CROWD]).await?;
    right &= row("100 questions of one tenant at once", &[200, 429], &crowd);
    let other = ask(service, &["GET /other/quote"]).await?;
    right &= row("a question of another tenant", &[200], &other);
    let health = ask(service, &["GET /health"]).await?;
    right &= row("the state of the locks", &[200], &health);

    locks.shutdown(Duration::from_secs(1)).await;
    let late = ask(service, &["POST /acme/orders/10/pay"]).await?;
    right &= row("a payment when the locks are shut down", &[503], &late);

    if right {
        println!("\nEvery answer was the expected one.");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("\nNot every answer was the expected one.");
    Ok(ExitCode::FAILURE)
}

/// Sends these requests at the same time.
async fn ask(service: SocketAddr, requests: &[&str]) -> io::Result<Vec<Answer>> {
    let mut asking = JoinSet::new();
    for request in requests {
        asking.spawn(ask_one(service, (*request).to_owned()));
    }
    asking.join_all().await.into_iter().collect()
}

async fn ask_one(service: SocketAddr, request: String) -> io::Result<Answer> {
    let mut connection = TcpStream::connect(service).await?;
    let request = format!("{request} HTTP/1.1\r\nhost: {service}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;

    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut headers = answer.lines().take_while(|line| !line.is_empty());
    let retry_after = headers.find_map(|line| line.strip_prefix("retry-after: ")?.parse().ok());
    match status {
        Some(status) => Ok(Answer {
            status,
            retry_after,
        }),
        None => Err(io::Error::other(format!("no HTTP answer: {answer:?}"))),
    }
}

/// Prints how often each status came. Checks that the statuses are the expected ones, and that 429
/// and 503 say when to come back.
fn row(requests: &str, expected: &[u16], answers: &[Answer]) -> bool {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    let got: Vec<_> = statuses.chunk_by(|one, other| one == other).collect();
    let mut shown: Vec<_> = got
        .iter()
        .map(|same| format!("{} × {}", same.len(), same[0]))
        .collect();
    if let Some(seconds) = answers.iter().filter_map(|answer| answer.retry_after).max() {
        shown.push(format!("retry after {seconds} s"));
    }
    let as_expected = got.iter().map(|same| same[0]).eq(expected.iter().copied());
    let polite = answers
        .iter()
        .all(|answer| !matches!(answer.status, 429 | 503) || answer.retry_after.is_some());
    let right = as_expected && polite;
    let verdict = if right { "" } else { "   NOT AS EXPECTED" };
    println!("  {requests:<40}{}{verdict}", shown.join(", "));
    right
}
