impl Gateway {
    async fn call(&self, app_id: u64, request: Request) -> Result<Reply, CallError> {
        let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
            Reply,
            CallError,
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
                        let __lock_return: Result<Reply, CallError> = loop {};
                        return __lock_return;
                    }
                    #[allow(clippy::used_underscore_binding)]
                    let _ = &request;
                    #[allow(clippy::used_underscore_binding)]
                    let _ = &app_id;
                    let __lock_key = {
                        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                            "api:<app_id>",
                            24usize,
                        );
                        ::lock_runtime::__private::KeyWriter::literal(
                            &mut __lock_writer,
                            "api:",
                        );
                        ::lock_runtime::__private::KeyWriter::value(
                            &mut __lock_writer,
                            "app_id",
                            &app_id,
                        );
                        ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
                    };
                    let __lock_permits: ::core::primitive::u32 = self.limits.calls;
                    let __lock_client = ::core::option::Option::Some(
                        <::lock_runtime::LockClient as ::core::clone::Clone>::clone(
                            &self.locks,
                        ),
                    );
                    ::lock_runtime::__private::acquire_permits(
                            __lock_slot,
                            __lock_client,
                            __lock_key,
                            __lock_permits,
                            const {
                                &::lock_runtime::__private::Spec {
                                    wait: ::core::option::Option::Some(
                                        ::lock_runtime::__private::Wait::For(
                                            ::core::time::Duration::from_millis(0u64),
                                        ),
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
                    let app_id = app_id;
                    #[allow(
                        clippy::no_effect_underscore_binding,
                        clippy::shadow_same,
                        clippy::shadow_reuse
                    )]
                    let request = request;
                    match () {
                        () => self.upstream.send(request).await,
                    }
                }
            },
            convert: __lock_convert,
        }
            .await
    }
    async fn config(&self) -> Result<Config, CallError> {
        let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
            Config,
            CallError,
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
                        let __lock_return: Result<Config, CallError> = loop {};
                        return __lock_return;
                    }
                    let __lock_key = {
                        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                            "config",
                            6usize,
                        );
                        ::lock_runtime::__private::KeyWriter::literal(
                            &mut __lock_writer,
                            "config",
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
                                    mode: ::lock_runtime::__private::Mode::Read,
                                    ..::lock_runtime::__private::Spec::DEFAULT
                                }
                            },
                        )
                        .await;
                    match () {
                        () => self.store.read().await,
                    }
                }
            },
            convert: __lock_convert,
        }
            .await
    }
}
