//! `on_error`: a function, and closures that own or borrow what they need.

#[path = "../support.rs"]
mod support;

use std::pin::Pin;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "job", on_busy = "error", on_error = status)]
async fn with_function() -> u16 {
    200
}

fn status(error: LockError) -> u16 {
    drop(error);
    503
}

#[distributed_lock(key = "job:<name>", on_error = { let name = name.clone(); move |error| format!("{name}: {error}") })]
async fn with_closure(name: String) -> String {
    name
}

#[distributed_lock(key = "job:<name>", on_error = |error| format!("{name}: {error}"))]
async fn with_a_borrowing_closure(name: String) -> String {
    "ran".to_owned()
}

#[async_trait::async_trait]
trait Jobs {
    async fn with_a_borrowing_closure(&self, name: String, job: String, again: String) -> String;
}

struct Named(String);

#[async_trait::async_trait]
impl Jobs for Named {
    #[distributed_lock(key = "job:<self.0>", on_error = |error| format!("{} {name}: {error}", self.0))]
    async fn with_a_borrowing_closure(&self, name: String, job: String, _again: String) -> String {
        format!("{} ran {job}", self.0)
    }
}

/// The same, as somebody writes it out.
#[distributed_lock(key = "job:<name>", on_error = |error| format!("{name}: {error}"))]
fn of_a_future_by_hand(name: String, job: String) -> Pin<Box<dyn Future<Output = String>>> {
    Box::pin(async move {
        let name = name;
        let job = job;
        job
    })
}

#[distributed_lock(key = "job", reentrant = false, on_error = |error| error.to_string())]
async fn of_a_nested_call() -> String {
    Box::pin(of_a_nested_call()).await
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(with_function().await, 200);
        assert_eq!(with_closure("name".to_owned()).await, "name");
        let name = || "name".to_owned();
        assert_eq!(with_a_borrowing_closure(name()).await, "ran");
        let named = Named("named".to_owned());
        let ran = named.with_a_borrowing_closure(name(), "job".to_owned(), name());
        assert_eq!(support::assert_send(ran).await, "named ran job");
        assert_eq!(of_a_future_by_hand(name(), "job".to_owned()).await, "job");
        assert!(of_a_nested_call().await.contains("job"));
    });
}
