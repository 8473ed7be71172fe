impl Store for Memory {
    fn save<'life0, 'async_trait>(
        &'life0 self,
        id: u32,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<
                Output = Result<(), Error>,
            > + ::core::marker::Send + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
                (),
                Error,
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
                            let __lock_return: Result<(), Error> = loop {};
                            return __lock_return;
                        }
                        let __lock_key = {
                            let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                                "store:<self.name>:<id>",
                                47usize,
                            );
                            ::lock_runtime::__private::KeyWriter::literal(
                                &mut __lock_writer,
                                "store:",
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
                        let __self = self;
                        #[allow(unused_variables)]
                        let id = id;
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
                        match () {
                            () => {
                                let __ret: Result<(), Error> = { __self.write(id).await };
                                __ret
                            }
                        }
                    }
                },
                convert: __lock_convert,
            }
                .await
        })
    }
}
