/// Looks something up.
#[allow(clippy::unused_async)]
pub async fn search(app_id: u64, mut text: String) -> Result<u32, ApiError> {
    {
        let __lock_key = {
            let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                "api:<app_id>",
                24usize,
            );
            ::lock_runtime::__private::KeyWriter::literal(&mut __lock_writer, "api:");
            ::lock_runtime::__private::KeyWriter::value(
                &mut __lock_writer,
                "app_id",
                &app_id,
            );
            ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
        };
        let __lock_client = ::core::option::Option::None;
        let __lock_rate = const {
            ::lock_runtime::Rate::burst(
                ::lock_runtime::Rate::per(
                    100u32,
                    ::core::time::Duration::from_millis(1000u64),
                ),
                20u32,
            )
        };
        let __lock_wait = ::core::time::Duration::from_millis(0u64);
        let __lock_passed = ::lock_runtime::__private::pass(
                __lock_client,
                __lock_key,
                __lock_rate,
                __lock_wait,
            )
            .await;
        if let ::core::result::Result::Err(__lock_error) = __lock_passed {
            let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
                u32,
                ApiError,
            > as ::lock_runtime::__private::FromLockError>::from_lock;
            return ::lock_runtime::__private::Convert::convert(
                __lock_convert,
                __lock_error,
            );
        }
    }
    text.push('x');
    find(text).await
}
async fn from_expressions(plan: &Plan, size: u32, locks: &LockClient) -> Reply {
    {
        let __lock_key = ::core::convert::Into::<::lock_runtime::LockKey>::into(KEY);
        let __lock_client = ::core::option::Option::Some(
            <::lock_runtime::LockClient as ::core::clone::Clone>::clone(locks),
        );
        let __lock_rate = {
            let __lock_given_rate: ::lock_runtime::Rate = plan.rate();
            let __lock_given_burst: u32 = size;
            ::lock_runtime::Rate::burst(__lock_given_rate, __lock_given_burst)
        };
        let __lock_wait = ::core::time::Duration::from_millis(1500u64);
        let __lock_passed = ::lock_runtime::__private::pass(
                __lock_client,
                __lock_key,
                __lock_rate,
                __lock_wait,
            )
            .await;
        if let ::core::result::Result::Err(__lock_error) = __lock_passed {
            let __lock_convert = ::lock_runtime::__private::on_error(
                ::core::marker::PhantomData::<Reply>,
                |error| Reply::from(error),
            );
            return ::lock_runtime::__private::Convert::convert(
                __lock_convert,
                __lock_error,
            );
        }
    }
    Reply::Done
}
impl Store for Memory {
    fn load<'life0, 'async_trait>(
        &'life0 self,
        id: u32,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<
                Output = Result<u32, LockError>,
            > + ::core::marker::Send + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            {
                let __lock_key = {
                    let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                        "load:<self.name>:<id>",
                        46usize,
                    );
                    ::lock_runtime::__private::KeyWriter::literal(
                        &mut __lock_writer,
                        "load:",
                    );
                    ::lock_runtime::__private::KeyWriter::value(
                        &mut __lock_writer,
                        "self.name",
                        &self.name,
                    );
                    ::lock_runtime::__private::KeyWriter::literal(
                        &mut __lock_writer,
                        ":",
                    );
                    ::lock_runtime::__private::KeyWriter::value(
                        &mut __lock_writer,
                        "id",
                        &id,
                    );
                    ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
                };
                let __lock_client = ::core::option::Option::None;
                let __lock_rate = const {
                    ::lock_runtime::Rate::per(
                        10u32,
                        ::core::time::Duration::from_millis(500u64),
                    )
                };
                let __lock_wait = ::core::time::Duration::from_millis(0u64);
                let __lock_passed = ::lock_runtime::__private::pass(
                        __lock_client,
                        __lock_key,
                        __lock_rate,
                        __lock_wait,
                    )
                    .await;
                if let ::core::result::Result::Err(__lock_error) = __lock_passed {
                    let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
                        u32,
                        LockError,
                    > as ::lock_runtime::__private::FromLockError>::from_lock;
                    return ::lock_runtime::__private::Convert::convert(
                        __lock_convert,
                        __lock_error,
                    );
                }
            }
            let __self = self;
            #[allow(unused_variables)]
            let id = id;
            Ok(__self.value)
        })
    }
}
#[tracing::instrument]
#[distributed_lock(key = "b:<b>")]
#[::lock_runtime::rate_limited(key = "a:<a>", rate = "1/h")]
async fn behind_the_lock(a: u32, b: u32) -> Result<u32, LockError> {
    Ok(a + b)
}
