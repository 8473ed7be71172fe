#[allow(unused_variables)]
async fn handler(
    Path(id): Path<u64>,
    user_: Extension<Session>,
    _arg2: Transaction,
    unused: u8,
) -> Result<(), Error> {
    let Extension(Session { user, .. }) = &user_;
    #[allow(clippy::shadow_reuse, clippy::used_underscore_binding)]
    let unused = ::lock_runtime::__private::Argument::new(unused);
    let __lock_key = {
        let mut __lock_writer = ::lock_runtime::__private::KeyWriter::new(
            "order:<id>:<user>",
            47usize,
        );
        ::lock_runtime::__private::KeyWriter::literal(&mut __lock_writer, "order:");
        ::lock_runtime::__private::KeyWriter::value(&mut __lock_writer, "id", &id);
        ::lock_runtime::__private::KeyWriter::literal(&mut __lock_writer, ":");
        ::lock_runtime::__private::KeyWriter::value(&mut __lock_writer, "user", &user);
        ::lock_runtime::__private::KeyWriter::finish(__lock_writer)
    };
    let __lock_client = ::core::option::Option::None;
    let __lock_convert: fn(::lock_runtime::LockError) -> _ = <Result<
        (),
        Error,
    > as ::lock_runtime::__private::FromLockError>::from_lock;
    let __lock_guard = match ::lock_runtime::__private::acquire(
            __lock_client,
            __lock_key,
            const {
                &::lock_runtime::__private::Spec {
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
                let __lock_return: Result<(), Error> = loop {};
                return __lock_return;
            }
            #[allow(clippy::used_underscore_binding)]
            let _ = &_arg2;
            #[allow(clippy::used_underscore_binding)]
            let _ = &user_;
            #[allow(clippy::used_underscore_binding)]
            let _ = &id;
            let Extension(Session { user, .. }) = user_;
            #[allow(clippy::used_underscore_binding)]
            let _ = &user;
            #[allow(clippy::no_effect_underscore_binding, clippy::shadow_reuse)]
            let unused = ::lock_runtime::__private::Argument::into_inner(unused);
            log(user).await
        },
        convert: __lock_convert,
    }
        .await
}
