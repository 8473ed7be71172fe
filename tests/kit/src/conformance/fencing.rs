//! Tokens rise from hold to hold, and never change within one.

use crate::Backend;
use lock_runtime::FencingToken;

super::on_every_store!(
    tokens_rise_with_every_hold_of_every_client,
    a_re_entry_has_the_token_of_its_hold,
    a_nested_request_can_ask_for_the_first_token_of_a_hold,
    a_token_is_a_plain_number_that_a_double_can_hold,
);

super::without_a_queue!(
    a_re_entry_has_the_token_of_its_hold,
    a_nested_request_can_ask_for_the_first_token_of_a_hold,
    a_token_is_a_plain_number_that_a_double_can_hold,
);

async fn tokens_rise_with_every_hold_of_every_client(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let mut last: Option<FencingToken> = None;
    for round in 0..20 {
        let client = if round % 2 == 0 { &a } else { &b };
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        assert!(
            guard.fencing_token() > last,
            "{:?} after {last:?}",
            guard.fencing_token()
        );
        last = guard.fencing_token();
        let waiter = tokio::spawn(b.lock("k").fenced().acquire());
        crate::eventually("the waiter queues", async || {
            a.inspect("k").await.unwrap().waiting == 1
        })
        .await;
        guard.release().await.unwrap();
        let handed_over = waiter.await.unwrap().unwrap();
        assert!(handed_over.fencing_token() > last);
        last = handed_over.fencing_token();
        handed_over.release().await.unwrap();
    }
}

async fn a_re_entry_has_the_token_of_its_hold(store: Backend) {
    let client = store.client().await;
    let outer = client.lock("k").fenced().acquire().await.unwrap();
    let inner = outer
        .scope(client.lock("k").fenced().acquire())
        .await
        .unwrap();
    assert!(inner.fencing_token().is_some());
    assert_eq!(inner.fencing_token(), outer.fencing_token());
}

async fn a_nested_request_can_ask_for_the_first_token_of_a_hold(store: Backend) {
    let client = store.client().await;
    let earlier = client.lock("k").fenced().acquire().await.unwrap();
    let token = earlier.fencing_token();
    earlier.release().await.unwrap();
    let outer = client.lock("k").acquire().await.unwrap();
    assert_eq!(outer.fencing_token(), None);
    outer
        .scope(async {
            let inner = client.lock("k").fenced().acquire().await.unwrap();
            assert!(inner.fencing_token() > token);
            inner.release().await.unwrap();
            let again = client.lock("k").fenced().acquire().await.unwrap();
            assert_eq!(again.fencing_token(), outer.fencing_token());
        })
        .await;
    client.force_release("k").await.unwrap();
}

async fn a_token_is_a_plain_number_that_a_double_can_hold(store: Backend) {
    let client = store.client().await;
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    let token = guard.fencing_token().unwrap();
    let number = u64::from(token);
    assert!(number < 1 << 53);
    assert_eq!(token.to_string(), number.to_string());
}
