//! The common cases send few commands.

use super::{A, B, HEARD, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn a_place_in_the_queue_of_a_held_lock_costs_six_commands() {
    let mut stage = Stage::new().await;
    stage.command("SET k holder").await;
    let me = owner(A);
    let arguments = ["5000", "join", "g:", "60000", "1000:0", &*me];
    let done = stage.run("ACQUIRE", &KEYS, arguments).await;
    assert_eq!(done.reply, "[0, -1, 1, holder]");
    let place = format!("ZADD q NX {NOW} {me}:1000:0");
    let heard = format!("ZSCORE q {A}");
    let sent = ["GET k", "TIME", &place, &heard, "PEXPIRE q 60000", "PTTL k"];
    assert_eq!(done.sent, sent);
    // Who asks again is looked for in the queue once.
    let done = stage.run("ACQUIRE", &KEYS, arguments).await;
    assert_eq!(done.reply, "[0, -1, 1, holder]");
    let looks = format!("ZSCORE q {me}:1000:0");
    assert_eq!(done.all(&looks), [&*looks]);
}

#[tokio::test]
async fn a_release_costs_three_commands_and_one_to_a_waiter_seven() {
    let mut stage = Stage::new().await;
    stage.command("SET k holder").await;
    let done = stage.run("RELEASE", &KEYS, ["g:", "holder"]).await;
    assert_eq!(done.sent, ["GET k", "PTTL q", "DEL k"]);
    assert_eq!(done.reply, "1");
    let next = owner(A);
    let listener = redis::Client::open(stage.server.url()).unwrap();
    let mut listener = listener.get_async_pubsub().await.unwrap();
    listener.subscribe(format!("g:{A}")).await.unwrap();
    let set = format!("SET k {next} PX 1000");
    let told = format!("PUBLISH g:{A} 1 granted {next} ");
    let sent = [
        "GET k",
        "PTTL q",
        "ZRANGE q 0 1 WITHSCORES",
        "TIME",
        "DEL q",
        &set,
        &told,
    ];
    // Now, and at the last moments of silence and of a wait.
    for (since, wait) in [(NOW, 0), (NOW - 2_000_000, 0), (NOW - 500_000, 500)] {
        stage.command("SET k holder").await;
        let place = format!("{next}:1000:{wait}");
        stage.queue(&[(since, &place), (HEARD + NOW, A)]).await;
        let done = stage.run("RELEASE", &KEYS, ["g:", "holder"]).await;
        assert_eq!(done.sent, sent);
    }
}

#[tokio::test]
async fn a_free_lock_with_a_token_costs_four_commands() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    for (tokens, last) in [("1", NOW), ("2", NOW + 1)] {
        let place = format!("1000:0:{tokens}");
        stage.command("DEL k f").await;
        let done = stage
            .run(
                "ACQUIRE",
                &KEYS,
                ["5000", "barge", "g:", "60000", &place, &*me],
            )
            .await;
        assert_eq!(done.reply, NOW.to_string());
        let take = format!("SET k {me} NX PX 5000");
        let count = format!("SET f {last} PX 86400000");
        assert_eq!(done.sent, [&*take, "TIME", "GET f", &count]);
        assert_eq!(stage.command("GET f").await, last.to_string());
    }
}

#[tokio::test]
async fn a_token_is_above_the_last_one_and_a_counter_that_is_none_stays() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    let last = NOW - 1;
    let ways: [&[&str]; 2] = [
        &["5000", "barge", "g:", "60000", "1000:0:2", &me],
        &["5000", "join", "g:", "60000", "1000:0:2", &me],
    ];
    for arguments in ways {
        // The short way, and two that end in the long one.
        for (counter, reply, kept) in [
            (last, NOW.to_string(), NOW + 1),
            (NOW, format!("[1, {}, nil]", NOW + 1), NOW + 2),
            (NOW + 5, format!("[1, {}, nil]", NOW + 6), NOW + 7),
        ] {
            stage.command("DEL k f").await;
            stage.command(&format!("SET f {counter}")).await;
            let done = stage.run("ACQUIRE", &KEYS, arguments.iter().copied()).await;
            assert_eq!(done.reply, reply);
            assert_eq!(stage.command("GET f").await, kept.to_string());
            assert_eq!(stage.command("GET k").await, me);
        }
        for spoilt in ["nan", "-1", "1e3", "0x1", "9007199254740990", "x"] {
            stage.command("DEL k f").await;
            stage.command(&format!("SET f {spoilt}")).await;
            let done = stage.run("ACQUIRE", &KEYS, arguments.iter().copied()).await;
            assert!(done.reply.contains("WRONGTYPE"), "{spoilt}: {done:?}");
            assert_eq!(stage.command("GET f").await, spoilt);
            assert_eq!(stage.command("EXISTS k").await, "0");
        }
    }
}

#[tokio::test]
async fn a_free_lock_that_nobody_waits_for_costs_three_commands_and_a_queue_is_never_passed() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    for mode in ["join", "respect"] {
        let arguments = ["5000", mode, "g:", "60000", "1000:0", &*me];
        stage.command("DEL k q").await;
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.reply, "1");
        let take = format!("SET k {me} PX 5000");
        assert_eq!(done.sent, ["GET k", "PTTL q", &take]);
        // Somebody waits whose client listens.
        let listener = redis::Client::open(stage.server.url()).unwrap();
        let mut listener = listener.get_async_pubsub().await.unwrap();
        listener.subscribe(format!("g:{B}")).await.unwrap();
        stage.command("DEL k").await;
        let first = format!("{}:1000:0", owner(B));
        stage.queue(&[(NOW - 1, &first)]).await;
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert!(done.reply.starts_with("[0, "), "{done:?}");
        assert_eq!(stage.command("GET k").await, owner(B));
    }
}

/// Keys of several locks are those of each, one after the other.
#[tokio::test]
async fn of_several_locks_each_is_granted_if_it_is_free_and_otherwise_left_alone() {
    let mut stage = Stage::new().await;
    let keys = [
        "a", "aq", "af", "b", "bq", "bf", "c", "cq", "cf", "d", "dq", "df",
    ];
    let (me, second, third, last) = (owner(A), owner(B), format!("{A}-2"), format!("{A}-3"));
    for (mode, rest, granted) in [
        ("join", "1000:0", "1".to_owned()),
        ("barge", "1000:0:2", NOW.to_string()),
    ] {
        stage.command("FLUSHALL").await;
        stage.command("SET b holder").await;
        stage.command("SET cf nonsense").await;
        let other_rest = format!("{}1", rest);
        let arguments = ["5000", mode, "g:", "60000"];
        let of_each = [
            rest,
            &*me,
            &*other_rest,
            &*second,
            rest,
            &*third,
            rest,
            &*last,
        ];
        let done = stage
            .run("ACQUIRE", &keys, [&arguments[..], &of_each].concat())
            .await;
        let joins = mode == "join";
        let (held, third) = match joins {
            true => ("[0, -1, 1, holder]", "1"),
            false => ("nil", "nil"),
        };
        assert_eq!(
            done.reply,
            format!("[{granted}, {held}, {third}, {granted}]")
        );
        assert_eq!(stage.command("GET a").await, me);
        assert_eq!(stage.command("GET b").await, "holder");
        let place = format!("ZSCORE bq {second}:{other_rest}");
        let since = stage.command(&place).await;
        assert_eq!(since != "nil", joins, "{since}");
        assert_eq!(stage.command("EXISTS c").await, u8::from(joins).to_string());
        assert_eq!(stage.command("GET cf").await, "nonsense");
        assert_eq!(stage.command("GET d").await, last);
    }
}

#[tokio::test]
async fn of_several_releases_each_is_what_it_would_be_alone() {
    let mut stage = Stage::new().await;
    let keys = ["a", "aq", "af", "b", "bq", "bf", "c", "cq", "cf"];
    stage.command("MSET a one b another c three").await;
    // Nobody hears of a grant, so its place is passed and the lock is free.
    let place = format!("{}:1000:0", owner(A));
    stage.command(&format!("ZADD cq {NOW} {place}")).await;
    let done = stage
        .run("RELEASE", &keys, ["g:", "one", "two", "three"])
        .await;
    assert_eq!(done.reply, "[1, 0, 1]");
    assert_eq!(stage.command("MGET a b c").await, "[nil, another, nil]");
    assert_eq!(stage.command("EXISTS aq bq cq").await, "0");
    // One is handed over.
    let next = owner(B);
    let listener = redis::Client::open(stage.server.url()).unwrap();
    let mut listener = listener.get_async_pubsub().await.unwrap();
    listener.subscribe(format!("g:{B}")).await.unwrap();
    for (third, reply) in [("three", "[1, 1, 1]"), ("four", "[1, 1, 0]")] {
        stage.command("MSET a one b two c three").await;
        let place = format!("{next}:1000:0");
        stage.command(&format!("ZADD bq {NOW} {place}")).await;
        let done = stage.run("RELEASE", &keys, ["g:", "one", "two", third]);
        assert_eq!(done.await.reply, reply);
        assert_eq!(stage.command("GET b").await, next);
    }
}

#[tokio::test]
async fn of_several_locks_each_gets_its_own_tokens_and_a_spoilt_queue_spoils_no_other() {
    let mut stage = Stage::new().await;
    let keys = ["a", "aq", "af", "b", "bq", "bf", "c", "cq", "cf"];
    stage.command("SET b holder").await;
    stage.command("RPUSH bq spoilt").await;
    let owners = [owner(A), format!("{A}-2"), format!("{A}-3")];
    let places = ["1000:0", "1000:0", "1000:0:2"];
    let of_each = places.iter().zip(&owners);
    let of_each = of_each.flat_map(|(place, owner)| [*place, owner]);
    let arguments = ["5000", "join", "g:", "60000"];
    let arguments: Vec<&str> = arguments.into_iter().chain(of_each).collect();
    let done = stage.run("ACQUIRE", &keys, arguments).await;
    assert_eq!(done.reply, format!("[1, nil, {NOW}]"));
    assert_eq!(
        stage.command("MGET af cf").await,
        format!("[nil, {}]", NOW + 1)
    );
}

/// It asks alone then, and comes behind those who were there before it, and ahead of all others.
#[tokio::test]
async fn of_several_locks_one_that_is_free_and_has_a_queue_gives_a_place_there() {
    let mut stage = Stage::new().await;
    let keys = ["a", "aq", "af", "b", "bq", "bf"];
    let first = format!("{}:1000:0", owner(B));
    stage.command(&format!("ZADD aq {} {first}", NOW - 1)).await;
    let (me, other) = (owner(A), format!("{A}-2"));
    let arguments = [
        "5000", "join", "g:", "60000", "1000:0", &*me, "1000:0", &*other,
    ];
    let done = stage.run("ACQUIRE", &keys, arguments).await;
    assert_eq!(done.reply, "[nil, 1]");
    let place = format!("{me}:1000:0");
    assert_eq!(stage.command(&format!("ZRANK aq {first}")).await, "0");
    assert_eq!(stage.command(&format!("ZRANK aq {place}")).await, "1");
    assert_eq!(stage.command("EXISTS a").await, "0");
}
