async fn job(name: String) {
    let __lock_key = ::core::convert::Into::<
        facade::locks::LockKey,
    >::into(lock_key(&name));
    let __lock_client = ::core::option::Option::None;
    let __lock_convert = facade::locks::__private::on_error(
        ::core::marker::PhantomData::<()>,
        |error| report(error),
    );
    let __lock_skipped: fn() -> _ = <() as facade::locks::__private::Skippable>::skipped;
    let lock = match facade::locks::__private::acquire(
            __lock_client,
            __lock_key,
            const {
                &facade::locks::__private::Spec {
                    lease: ::core::option::Option::Some(
                        ::core::time::Duration::from_millis(90000u64),
                    ),
                    max_hold: ::core::option::Option::Some(
                        ::core::time::Duration::from_millis(300000u64),
                    ),
                    hold_at_least: ::core::option::Option::Some(
                        ::core::time::Duration::from_millis(5000u64),
                    ),
                    renew: ::core::option::Option::Some(true),
                    fair: true,
                    reentrant: false,
                    wait: ::core::option::Option::Some(
                        facade::locks::__private::Wait::For(
                            ::core::time::Duration::from_millis(500u64),
                        ),
                    ),
                    on_lost: facade::locks::OnLost::Continue,
                    fenced: true,
                    ..facade::locks::__private::Spec::DEFAULT
                }
            },
        )
        .await
    {
        ::core::result::Result::Ok(guard) => guard,
        ::core::result::Result::Err(
            error,
        ) if facade::locks::__private::is_busy(&error) => return __lock_skipped(),
        ::core::result::Result::Err(error) => return __lock_convert.call(error),
    };
    let __lock_token = match facade::locks::__private::fencing_token(&lock) {
        ::core::result::Result::Ok(token) => token,
        ::core::result::Result::Err(error) => return __lock_convert.call(error),
    };
    let __lock_guard_ref = &lock;
    #[allow(clippy::large_futures)]
    facade::locks::__private::Locked {
        guard: &lock,
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
                let __lock_return: () = loop {};
                return __lock_return;
            }
            #[allow(clippy::used_underscore_binding)]
            let _ = &name;
            let token = __lock_token;
            let lock = __lock_guard_ref;
            run(name, token, lock).await;
        },
        convert: __lock_convert,
    }
        .await
}
