async fn transfer(from: u64, to: Account, amount: u64) -> Result<(), BankError> {
    let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
        (),
        BankError,
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
                    let __lock_return: Result<(), BankError> = loop {};
                    return __lock_return;
                }
                #[allow(clippy::used_underscore_binding)]
                let _ = &amount;
                #[allow(clippy::used_underscore_binding)]
                let _ = &to;
                #[allow(clippy::used_underscore_binding)]
                let _ = &from;
                let __lock_keys = [
                    {
                        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                            "account:<from>",
                            28usize,
                        );
                        ::lock_runtime::__private::KeyWriter::literal(
                            &mut __lock_writer,
                            "account:",
                        );
                        ::lock_runtime::__private::KeyWriter::value(
                            &mut __lock_writer,
                            "from",
                            &from,
                        );
                        ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
                    },
                    {
                        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                            "account:<to.id>",
                            28usize,
                        );
                        ::lock_runtime::__private::KeyWriter::literal(
                            &mut __lock_writer,
                            "account:",
                        );
                        ::lock_runtime::__private::KeyWriter::value(
                            &mut __lock_writer,
                            "to.id",
                            &to.id,
                        );
                        ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
                    },
                    ::core::convert::Into::<::lock_runtime::LockKey>::into(LEDGER),
                ];
                let __lock_client = ::core::option::Option::None;
                let __lock_guard = ::lock_runtime::__private::acquire_all(
                        __lock_slot,
                        __lock_client,
                        __lock_keys,
                        const {
                            &::lock_runtime::__private::Spec {
                                fenced: true,
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
                let from = from;
                #[allow(unused_variables)]
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let to = to;
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let amount = amount;
                let tokens = ::lock_runtime::__private::fencing_tokens::<
                    3usize,
                >(__lock_slot, __lock_guard)
                    .await;
                match () {
                    () => move_money(from, to, amount, tokens).await,
                }
            }
        },
        convert: __lock_convert,
    }
        .await
}
