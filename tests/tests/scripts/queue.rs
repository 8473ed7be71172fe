//! When clients count as standing still, and when they and what was suspended are forgotten.

use super::{A, B, HEARD, KEYS, NOW, SUSPENDED, Stage, owner};

/// A client that was not heard for this many microseconds stands still.
const UNHEARD: u64 = 2_000_000;
/// What nobody asks for is kept for this many microseconds.
const KEPT: u64 = 60_000_000;

impl Stage {
    /// Ends a hold, so that the queue has its turn. True if the place in it is granted. Nobody
    /// listens, so that the grant is undone again.
    async fn grants(&mut self, queue: &[(u64, &str)]) -> bool {
        self.command("DEL q").await;
        self.command("SET k holder").await;
        self.queue(queue).await;
        let done = self.run("RELEASE", &KEYS, ["g:", "holder"]).await;
        // The short way replies without a list.
        assert!(matches!(&*done.reply, "1" | "[1]"), "{done:?}");
        done.has_sent("PUBLISH g:")
    }

    /// Asks again for a place of A in the queue of a lock that is held.
    async fn look(&mut self) {
        self.command("SET k holder").await;
        let arguments = ["5000", "join", "g:", "60000", "1000:0", &*owner(A)];
        let done = self.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.reply, "[0, -1, 1, holder]");
    }

    async fn is_queued(&mut self, member: &str) -> bool {
        self.command(&format!("ZSCORE q {member}")).await != "nil"
    }
}

#[tokio::test]
async fn a_place_is_no_older_than_two_seconds_or_its_client_was_heard_since() {
    let mut stage = Stage::new().await;
    let long_ago = NOW - 10 * UNHEARD;
    let last = NOW - UNHEARD;
    // release_first.lua grants the one, lib.lua the other.
    for place in [
        format!("{}:1000:0", owner(A)),
        format!("{}:1000:0:1", owner(A)),
    ] {
        assert!(stage.grants(&[(last, &place)]).await);
        assert!(!stage.grants(&[(last - 1, &place)]).await);
        let heard = |at| [(long_ago, &*place), (HEARD + at, A)];
        assert!(stage.grants(&heard(last)).await);
        assert!(!stage.grants(&heard(last - 1)).await);
    }
}

#[tokio::test]
async fn a_place_that_was_suspended_is_kept_for_a_minute() {
    let mut stage = Stage::new().await;
    stage.now = 1_800_000_000_000_000;
    let since = (stage.now - KEPT) / 1000;
    let place = format!("{}:1000:0", owner(B));
    for (now, kept) in [(stage.now, true), (stage.now + 1, false)] {
        stage.now = now;
        let queue = [(SUSPENDED + 1, &*place), (HEARD + since, B)];
        assert!(!stage.grants(&queue).await);
        assert_eq!(stage.is_queued(&place).await, kept);
    }
    // Without the client's record, 1970 counts.
    stage.now = KEPT + 1000;
    assert!(!stage.grants(&[(SUSPENDED + 1, &place)]).await);
    assert!(!stage.is_queued(&place).await);
}

#[tokio::test]
async fn a_queue_whose_only_place_is_suspended_still_ends() {
    let mut stage = Stage::new().await;
    // Its client listens.
    stage.refused = "PUBSUB";
    let place = format!("{}:1000:0:1", owner(A));
    assert!(!stage.grants(&[(NOW - 2 * UNHEARD, &place)]).await);
    assert!(stage.is_queued(&place).await);
    assert_ne!(stage.command("PTTL q").await, "-1");
}

#[tokio::test]
async fn a_client_is_known_for_a_minute_after_it_was_heard_or_its_places_were_suspended() {
    let mut stage = Stage::new().await;
    let now = 1_800_000_000_000_000;
    let place = format!("{}:1000:0", owner(A));
    let (heard, suspended) = (now - KEPT, (now - KEPT) / 1000);
    for (now, record, known) in [
        (now, heard, false),
        (now, heard + 1, true),
        (now, suspended, true),
        (now + 1, suspended, false),
    ] {
        stage.now = now;
        stage.command("DEL q").await;
        stage.queue(&[(now, &place), (HEARD + record, B)]).await;
        stage.look().await;
        assert_eq!(stage.is_queued(B).await, known);
    }
}

/// Also beside the record of a client with suspended places, which stays for as long as they do.
#[tokio::test]
async fn a_client_that_is_not_heard_for_a_minute_is_forgotten_beside_suspended_places() {
    let mut stage = Stage::new().await;
    let place = format!("{}:1000:0", owner(A));
    let (suspended, long_ago) = (format!("{}:1000:0", owner(B)), "c".repeat(32));
    let queue = [
        (NOW, &*place),
        (SUSPENDED + 1, &suspended),
        (HEARD + NOW / 1000, B),
        (HEARD + NOW - KEPT - 1, &long_ago),
    ];
    stage.queue(&queue).await;
    stage.look().await;
    assert!(!stage.is_queued(&long_ago).await);
    assert!(stage.is_queued(B).await && stage.is_queued(&suspended).await);
}

#[tokio::test]
async fn a_place_with_a_part_that_is_not_known_is_not_granted() {
    let mut stage = Stage::new().await;
    let place = format!("{}:1000:0:1", owner(A));
    assert!(stage.grants(&[(NOW, &place)]).await);
    for unknown in [":x", ":1", ":1:5:x"] {
        let place = format!("{place}{unknown}");
        assert!(!stage.grants(&[(NOW, &place)]).await, "{unknown}");
        assert!(!stage.is_queued(&place).await, "{unknown}");
    }
}

#[tokio::test]
async fn a_record_of_before_march_1973_is_a_time_of_suspension() {
    let mut stage = Stage::new().await;
    let (place, suspended) = (format!("{A}-1:1000:0"), format!("{A}-2:1000:0"));
    // As microseconds, this is in 1973. As milliseconds, it is in 5138.
    let first = HEARD / 60;
    stage.now = first;
    for (heard, gets_back) in [(first - 1, true), (first, false)] {
        stage.command("DEL q").await;
        stage
            .queue(&[
                (first, &place),
                (SUSPENDED + 5, &suspended),
                (HEARD + heard, A),
            ])
            .await;
        stage.look().await;
        let score = stage.command(&format!("ZSCORE q {suspended}")).await;
        assert_eq!(score == "5", gets_back, "{score}");
    }
}

#[tokio::test]
async fn times_that_are_ahead_are_set_to_now() {
    let mut stage = Stage::new().await;
    let place = format!("{}:1000:0:0:1:5", owner(A));
    // No permit is left, so the place is looked at and not granted.
    for (since, heard) in [
        (NOW + 1, NOW),
        (NOW, NOW),
        (NOW - 10 * UNHEARD, NOW + 1),
        (NOW - 10 * UNHEARD, NOW),
    ] {
        stage.command("DEL k q").await;
        stage
            .command(&format!("ZADD k -5 used -5 of {} {B}-1:5", NOW + 1_000_000))
            .await;
        stage.queue(&[(since, &place), (HEARD + heard, A)]).await;
        let done = stage
            .run("RELEASE", &KEYS, ["g:", "nobody", "1", "0"])
            .await;
        assert_eq!(done.reply, "[0]");
        let place_is_set = done.has_sent(&format!("ZADD q {NOW} {place}"));
        assert_eq!(place_is_set, since > NOW, "{done:?}");
        let client_is_set = done.has_sent(&format!("ZADD q {} {A}", HEARD + NOW));
        assert_eq!(client_is_set, heard > NOW, "{done:?}");
    }
}
