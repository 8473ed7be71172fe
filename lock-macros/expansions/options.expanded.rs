async fn job(name: String) {
    let __lock_convert = facade::locks::__private::on_error(
        ::core::marker::PhantomData::<()>,
        |error| report(error),
    );
    let __lock_skipped: fn() -> _ = <() as facade::locks::__private::Skippable>::skipped;
    let __lock_convert = facade::locks::__private::Skip {
        skipped: __lock_skipped,
        convert: __lock_convert,
    };
    let lock = facade::locks::__private::Slot::new();
    #[allow(clippy::large_futures)]
    facade::locks::__private::Locked {
        slot: &lock,
        body: {
            let __lock_slot = &lock;
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
                    let __lock_return: () = loop {};
                    return __lock_return;
                }
                #[allow(
                    clippy::no_effect_underscore_binding,
                    clippy::shadow_same,
                    clippy::shadow_reuse
                )]
                let name = name;
                let __lock_key = ::core::convert::Into::<
                    facade::locks::LockKey,
                >::into(lock_key(&name));
                let __lock_client = ::core::option::Option::None;
                let __lock_guard = facade::locks::__private::acquire(
                        __lock_slot,
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
                                hold_after: facade::locks::HoldAfter::Success,
                                fenced: true,
                                ..facade::locks::__private::Spec::DEFAULT
                            }
                        },
                    )
                    .await;
                let token = facade::locks::__private::fencing_token(
                        __lock_slot,
                        __lock_guard,
                    )
                    .await;
                let lock = __lock_guard;
                match () {
                    () => {
                        run(name, token, lock).await;
                    }
                }
            }
        },
        convert: __lock_convert,
    }
        .await
}
