/// Looks something up.
#[rate_limited(key = "api:<app_id>", rate = "100/s", burst = 20)]
pub async fn search(app_id: u64, mut text: String) -> Result<u32, ApiError> {
    #![allow(clippy::unused_async)]
    text.push('x');
    find(text).await
}

#[rate_limited(
    key = KEY,
    rate = plan.rate(),
    burst = size,
    wait = "1s500ms",
    client = locks,
    on_error = |error| Reply::from(error)
)]
async fn from_expressions(plan: &Plan, size: u32, locks: &LockClient) -> Reply {
    Reply::Done
}

impl Store for Memory {
    #[rate_limited(key = "load:<self.name>:<id>", rate = "10/500ms")]
    fn load<'life0, 'async_trait>(
        &'life0 self,
        id: u32,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<Output = Result<u32, LockError>>
                + ::core::marker::Send
                + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let __self = self;
            let id = id;
            Ok(__self.value)
        })
    }
}

#[rate_limited(key = "a:<a>", rate = "1/h")]
#[tracing::instrument]
#[distributed_lock(key = "b:<b>")]
async fn behind_the_lock(a: u32, b: u32) -> Result<u32, LockError> {
    Ok(a + b)
}
