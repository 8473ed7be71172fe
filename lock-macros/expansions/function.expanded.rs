/// Takes items from the stock.
#[must_use]
pub async fn deduct(product_id: u64, amount: u32) -> Result<u32, OrderError> {
    #[allow(clippy::shadow_reuse, clippy::used_underscore_binding)]
    let amount = ::lock_runtime::__private::Argument::new(amount);
    let __lock_key = {
        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
            "stock:<product_id>",
            26usize,
        );
        ::lock_runtime::__private::KeyWriter::literal(&mut __lock_writer, "stock:");
        ::lock_runtime::__private::KeyWriter::value(
            &mut __lock_writer,
            "product_id",
            &product_id,
        );
        ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
    };
    let __lock_client = ::core::option::Option::None;
    let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
        u32,
        OrderError,
    > as ::lock_runtime::__private::FromLockError>::from_lock;
    let __lock_guard = match ::lock_runtime::__private::acquire(
            __lock_client,
            __lock_key,
            const {
                &::lock_runtime::__private::Spec {
                    lease: ::core::option::Option::Some(
                        ::core::time::Duration::from_millis(10000u64),
                    ),
                    ..::lock_runtime::__private::Spec::DEFAULT
                }
            },
        )
        .await
    {
        ::core::result::Result::Ok(guard) => guard,
        ::core::result::Result::Err(error) => return __lock_convert(error),
    };
    #[allow(clippy::large_futures)]
    ::lock_runtime::__private::Locked {
        guard: &__lock_guard,
        body: async move {
            #[allow(
                unknown_lints,
                unreachable_code,
                clippy::diverging_sub_expression,
                clippy::empty_loop,
                clippy::let_unit_value,
                clippy::let_with_type_underscore,
                clippy::needless_return,
                clippy::unreachable
            )]
            if false {
                let __lock_return: Result<u32, OrderError> = loop {};
                return __lock_return;
            }
            #[allow(clippy::used_underscore_binding)]
            let _ = &product_id;
            #[allow(clippy::no_effect_underscore_binding, clippy::shadow_reuse)]
            let mut amount = ::lock_runtime::__private::Argument::into_inner(amount);
            amount += 1;
            load(product_id, amount).await
        },
        convert: __lock_convert,
    }
        .await
}
