//! The service as its users see it: started as a program, and judged by its output and its exit
//! status.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

#[path = "support/program.rs"]
mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use program::{PASSWORD, Run};

#[test]
fn every_error_has_its_status() {
    let orders = orders(&[]);
    orders.assert_status(0);
    for (requests, answers) in [
        (
            "two payments of one order at once",
            "1 × 200, 1 × 409, retry after 1 s",
        ),
        ("another one when it is paid", "1 × 200"),
        ("payments of two tenants at once", "2 × 200"),
        ("a tenant whose name can't be", "1 × 400"),
        ("a question of another tenant", "1 × 200"),
        ("the state of the locks", "1 × 200"),
        (
            "a payment when the locks are shut down",
            "1 × 503, retry after 1 s",
        ),
    ] {
        assert_eq!(orders.find(requests), Some(answers), "{}", orders.stdout);
    }
    let crowd = orders.find("100 questions of one tenant at once").unwrap();
    for part in [" × 200, ", " × 429, retry after 1 s"] {
        assert!(crowd.contains(part), "{crowd}");
    }
}

#[test]
fn with_an_address_it_keeps_serving() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_orders"))
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(process.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let address = line
        .strip_prefix("http://")
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "POST /acme/orders/1/pay HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answers.push(answer.split(' ').nth(1).unwrap().to_owned());
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(answers, ["200", "200"]);
}

#[test]
fn bad_arguments_get_a_usage_line_and_show_no_password() {
    let url = format!("http://:{PASSWORD}@127.0.0.1/");
    for arguments in [
        &["--port", "1"][..],
        &["--listen", "here"],
        &["--listen", &url],
        &["--url", "redis://127.0.0.1/"],
        &["--url", &url, "--listen", "127.0.0.1:0"],
        &["serve"],
    ] {
        let orders = orders(arguments);
        orders.assert_status(2);
        assert!(orders.stderr.contains("Usage: "), "{}", orders.stderr);
    }
}

fn orders(arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_orders")).args(arguments))
}
