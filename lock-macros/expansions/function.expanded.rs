/// Takes items from the stock.
#[must_use]
pub async fn deduct(product_id: u64, amount: u32) -> Result<u32, OrderError> {
    let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
        u32,
        OrderError,
    > as ::lock_runtime::__private::FromLockError>::from_lock;
    let __lock_place = ::lock_runtime::__private::Slot::new();
    #[allow(clippy::large_futures)]
    ::lock_runtime::__private::Locked {
        slot: &__lock_place,
        body: {
            let __lock_slot = &__lock_place;
            async move {
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
                let _ = &amount;
                #[allow(clippy::used_underscore_binding)]
                let _ = &product_id;
                let __lock_key = {
                    let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                        "stock:<product_id>",
                        26usize,
                    );
                    ::lock_runtime::__private::KeyWriter::literal(
                        &mut __lock_writer,
                        "stock:",
                    );
                    ::lock_runtime::__private::KeyWriter::value(
                        &mut __lock_writer,
                        "product_id",
                        &product_id,
                    );
                    ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
                };
                let __lock_client = ::core::option::Option::None;
                ::lock_runtime::__private::acquire(
                        __lock_slot,
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
                    .await;
                #[allow(unused_variables)]
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let product_id = product_id;
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let mut amount = amount;
                match () {
                    () => {
                        amount += 1;
                        load(product_id, amount).await
                    }
                }
            }
        },
        convert: __lock_convert,
    }
        .await
}
