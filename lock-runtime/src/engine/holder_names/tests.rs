//! Whom a client believes, and how often it asks.

use std::pin::pin;
use std::task::{Context, Waker};

use tokio::runtime::Handle;

use super::*;

const MS: Duration = Duration::from_millis(1);
const HOLDER: ClientId = ClientId(1);
const OTHER: ClientId = ClientId(2);

fn names() -> (HolderNames, Questions, Instant) {
    let clock = Clock::simulated(Handle::current());
    let now = clock.now();
    let (names, questions) = HolderNames::new(clock, "me".into());
    (names, questions, now)
}

fn key(text: &str) -> LockKey {
    LockKey::from(text)
}

fn holds(client: ClientId, key: &LockKey, name: &str) -> ClientMessage {
    ClientMessage::Holds {
        key: key.clone(),
        client,
        name: name.into(),
        held_for: Some(5 * MS),
    }
}

/// Whether this tells those who wait for an answer.
fn is_told(names: &HolderNames, by: impl FnOnce()) -> bool {
    let mut heard = pin!(names.answer_came.notified());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(heard.as_mut().poll(&mut cx).is_pending());
    by();
    heard.poll(&mut cx).is_ready()
}

#[tokio::test(start_paused = true)]
async fn a_client_is_asked_about_a_key_once_a_second() {
    let (names, _questions, now) = names();
    let (one, two) = (key("one"), key("two"));
    let asks = |client, key, after| names.is_to_be_asked(client, key, now + after * MS);
    assert!(asks(HOLDER, &one, 0) && !asks(HOLDER, &one, 0) && !asks(HOLDER, &one, 999));
    assert!(asks(HOLDER, &two, 0) && asks(OTHER, &one, 0));
    assert!(!asks(HOLDER, &two, 1) && !asks(OTHER, &one, 1));
    assert!(asks(HOLDER, &one, 1000) && !asks(HOLDER, &one, 1999) && asks(HOLDER, &one, 2000));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_believed_of_who_was_asked_about_that_key() {
    let (names, _questions, now) = names();
    let (one, two) = (key("one"), key("two"));
    let unknown = |client, key| names.known(client, key, now) == (HeldBy::AnotherClient, false);
    assert!(unknown(HOLDER, &one));
    assert!(!is_told(&names, || names.on_message(holds(
        HOLDER,
        &one,
        "too early"
    ))));
    names.is_to_be_asked(HOLDER, &one, now);
    assert_eq!(
        names.known(HOLDER, &one, now),
        (HeldBy::AnotherClient, true)
    );
    for (client, key) in [(OTHER, &one), (HOLDER, &two)] {
        assert!(!is_told(&names, || names.on_message(holds(
            client,
            key,
            "nobody asked"
        ))));
        assert!(unknown(client, key));
    }
    assert!(is_told(&names, || names.on_message(holds(HOLDER, &one, "a name"))));
    let said = |held_for| HeldBy::Client {
        name: "a name".into(),
        held_for: Some(held_for),
    };
    assert_eq!(names.known(HOLDER, &one, now), (said(5 * MS), false));
    // It holds it since then.
    assert_eq!(
        names.known(HOLDER, &one, now + 7 * MS),
        (said(12 * MS), false)
    );
    // What it said stays while it is asked again.
    assert!(names.is_to_be_asked(HOLDER, &one, now + 1000 * MS));
    assert_eq!(names.known(HOLDER, &one, now), (said(5 * MS), false));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_listen_is_gone_until_it_is_asked_again() {
    let (names, _questions, now) = names();
    let (one, two) = (key("one"), key("two"));
    names.is_to_be_asked(HOLDER, &one, now);
    names.is_to_be_asked(HOLDER, &two, now);
    names.is_to_be_asked(OTHER, &one, now);
    assert!(is_told(&names, || names.note_asked(HOLDER, &one, true)));
    assert_eq!(
        names.known(HOLDER, &one, now),
        (HeldBy::AnotherClient, true)
    );
    assert!(is_told(&names, || names.note_asked(HOLDER, &one, false)));
    assert_eq!(
        names.known(HOLDER, &one, now),
        (HeldBy::Disconnected, false)
    );
    for (client, key) in [(HOLDER, &two), (OTHER, &one)] {
        assert_eq!(names.known(client, key, now), (HeldBy::AnotherClient, true));
    }
    assert!(names.is_to_be_asked(HOLDER, &one, now + 1000 * MS));
    assert_eq!(
        names.known(HOLDER, &one, now),
        (HeldBy::AnotherClient, true)
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_sixty_four_that_were_asked_are_remembered() {
    let (names, _questions, now) = names();
    for number in 0..=MOST_REMEMBERED {
        assert!(names.is_to_be_asked(HOLDER, &key(&number.to_string()), now));
    }
    let known = |number: usize| names.known(HOLDER, &key(&number.to_string()), now).1;
    assert!(!known(0) && known(1) && known(MOST_REMEMBERED));
    assert_eq!(names.asked.lock().len(), MOST_REMEMBERED);
}

#[tokio::test(start_paused = true)]
async fn at_most_this_many_questions_wait_for_their_answers() {
    let (names, mut questions, _) = names();
    let question = |number: usize| ClientMessage::WhoHolds {
        key: key(&number.to_string()),
        asker: OTHER,
    };
    (0..=QUESTIONS).for_each(|number| names.on_message(question(number)));
    let mut count = 0;
    while let Ok(question) = questions.try_recv() {
        assert_eq!(
            (question.key, question.asker),
            (key(&count.to_string()), OTHER)
        );
        count += 1;
    }
    assert_eq!(count, QUESTIONS);
}
