#[allow(unused_variables)]
async fn handler(
    Path(id): Path<u64>,
    __lock_of_user: Extension<Session>,
    __lock_of_arg2: Transaction,
    unused: u8,
) -> Result<(), Error> {
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
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let id = id;
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let __lock_of_user = {
                    #[allow(clippy::used_underscore_binding)] __lock_of_user
                };
                let Extension(Session { user, .. }) = __lock_of_user;
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let __lock_of_arg2 = {
                    #[allow(clippy::used_underscore_binding)] __lock_of_arg2
                };
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let unused = unused;
                let __lock_key = {
                    let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
                        "order:<id>:<user>",
                        47usize,
                    );
                    ::lock_runtime::__private::KeyWriter::literal(
                        &mut __lock_writer,
                        "order:",
                    );
                    ::lock_runtime::__private::KeyWriter::value(
                        &mut __lock_writer,
                        "id",
                        &id,
                    );
                    ::lock_runtime::__private::KeyWriter::literal(
                        &mut __lock_writer,
                        ":",
                    );
                    ::lock_runtime::__private::KeyWriter::value(
                        &mut __lock_writer,
                        "user",
                        &user,
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
                                ..::lock_runtime::__private::Spec::DEFAULT
                            }
                        },
                    )
                    .await;
                match () {
                    () => log(user).await,
                }
            }
        },
        convert: __lock_convert,
    }
        .await
}
