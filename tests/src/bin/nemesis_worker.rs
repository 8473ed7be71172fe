//! One of the processes under load of the test program `nemesis`.

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // The first word is `worker`.
    lock_testkit::nemesis::run_worker(&words[1..]).await;
}
