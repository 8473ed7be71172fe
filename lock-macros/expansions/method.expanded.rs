impl<T: Store> Service<T> {
    async fn place(&mut self, order: Order) -> Result<impl Iterator<Item = u8>> {
        let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
            _,
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
                        let __lock_return: Result<_> = loop {};
                        return __lock_return;
                    }
                    #[allow(clippy::used_underscore_binding)]
                    let _ = &order;
                    let __lock_key = {
                        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                            "{<self.tenant>}:order:<order.id()>",
                            49usize,
                        );
                        ::lock_runtime::__private::KeyWriter::literal(
                            &mut __lock_writer,
                            "{",
                        );
                        ::lock_runtime::__private::KeyWriter::value(
                            &mut __lock_writer,
                            "self.tenant",
                            &self.tenant,
                        );
                        ::lock_runtime::__private::KeyWriter::literal(
                            &mut __lock_writer,
                            "}:order:",
                        );
                        {
                            let __lock_root = &order;
                            ::lock_runtime::__private::KeyWriter::value(
                                &mut __lock_writer,
                                "order.id()",
                                &__lock_root.id(),
                            );
                        }
                        ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
                    };
                    let __lock_client = ::core::option::Option::Some(
                        <::lock_runtime::LockClient as ::core::clone::Clone>::clone(
                            &self.locks,
                        ),
                    );
                    ::lock_runtime::__private::acquire(
                            __lock_slot,
                            __lock_client,
                            __lock_key,
                            const {
                                &::lock_runtime::__private::Spec {
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
                    let order = order;
                    match () {
                        () => self.store.save(order).await,
                    }
                }
            },
            convert: __lock_convert,
        }
            .await
    }
}
