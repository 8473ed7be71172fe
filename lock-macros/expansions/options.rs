#[distributed_lock(
    key = lock_key(&name),
    lease = "1m30s",
    renew = true,
    max_hold = "5m",
    wait = "500ms",
    reentrant = false,
    fair = true,
    on_lost = "continue",
    on_busy = "skip",
    on_error = |error| report(error),
    hold_at_least = "5s",
    hold_after = "success",
    fence = token,
    guard = lock,
    crate = facade::locks,
)]
async fn job(name: String) {
    run(name, token, lock).await;
}
