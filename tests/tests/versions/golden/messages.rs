//! What a client says to another, and the store to a client.

use std::time::Duration;

use lock_store::{ClientMessage, LatchCall, RevokeAnswer};
use lock_testkit::{eventually, wall_micros};

use crate::clients::{A, B, Clients, LEASE, by, claim, owner};

pub(super) const MESSAGES: usize = 9;

pub(super) fn between_clients() -> [ClientMessage; 6] {
    let holds = |held_for| ClientMessage::Holds {
        key: "k".into(),
        client: A,
        name: "orders-7f9c".into(),
        held_for,
    };
    let asks = ClientMessage::WhoHolds {
        key: "k".into(),
        asker: A,
    };
    let revoke = |only| ClientMessage::Revoke {
        key: "k".into(),
        asker: A,
        owner: owner(B, 1),
        only,
    };
    let stops = ClientMessage::Revoking {
        key: "k".into(),
        owner: owner(A, 1),
        name: "orders-7f9c".into(),
        answer: RevokeAnswer::Stops,
    };
    [
        asks,
        holds(None),
        holds(Some(Duration::from_millis(4200))),
        revoke(None),
        revoke(Some("orders-7f9c".into())),
        stops,
    ]
}

/// Has the message with this number sent to `B`.
pub(super) async fn say(clients: &Clients, number: usize) {
    let release = async |client, request| {
        let claim = claim("k", owner(client, request), None);
        clients.release(claim, Duration::ZERO).await;
    };
    match number {
        // A grant, without a token and with one.
        0 => {
            clients.take(claim("k", owner(A, 1), None), 0).await;
            clients.wait(claim("k", owner(B, 1), None), 0).await;
            release(A, 1).await;
        }
        1 => {
            release(B, 1).await;
            clients.take(claim("k", owner(A, 2), None), 0).await;
            clients.wait(claim("k", owner(B, 2), None), 1).await;
            release(A, 2).await;
        }
        // A latch opens.
        2 => {
            let call = |client, request| {
                LatchCall::new("latch".into(), owner(client, request), Some(wall_micros()))
            };
            clients
                .a
                .latch_set(call(A, 3), 1, LEASE, by())
                .await
                .unwrap();
            clients.b.latch_wait(call(B, 3), by()).await.unwrap();
            clients.a.latch_count_down(call(A, 4), by()).await.unwrap();
        }
        _ => {
            let message = between_clients()[number - 3].clone();
            clients.a.tell(B, message, by()).await.unwrap();
        }
    }
}

/// `B` has heard all of them, and nothing else.
pub(super) async fn expect_heard(clients: &Clients) {
    let heard = &clients.heard_by_b;
    eventually("it has heard all", async || {
        let (granted, told) = (heard.granted.lock().unwrap(), heard.told.lock().unwrap());
        granted.len() + told.len() >= MESSAGES
    })
    .await;
    assert_eq!(*heard.told.lock().unwrap(), between_clients());
    let granted = heard.granted.lock().unwrap().clone();
    let owners: Vec<_> = granted.iter().map(|(owner, _)| *owner).collect();
    assert_eq!(owners, [owner(B, 1), owner(B, 2), owner(B, 3)]);
    let tokens: Vec<_> = granted.iter().map(|(_, token)| token.is_some()).collect();
    assert_eq!(tokens, [false, true, true]);
}
