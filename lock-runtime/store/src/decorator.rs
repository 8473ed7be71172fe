//! The operations as a list, for stores that do the same with each, and what each store would write
//! again: methods that only forward, and futures in boxes.

/// Calls a macro with each operation that a link carries, as
/// `method(argument: Type) -> Name(Reply);`. Each gets the time limit as its last argument. What
/// stands behind the macro's name comes first.
#[doc(hidden)]
#[macro_export]
macro_rules! operations {
    ($each:ident $($first:tt)*) => {
        $each! {
            $($first)*
            acquire(request: $crate::Acquire) -> Acquire($crate::Acquired);
            acquire_all(requests: Vec<$crate::Acquire>) -> AcquireAll($crate::AcquiredAll);
            renew(holds: Vec<$crate::Renewal>) -> Renew(Vec<$crate::Renewed>);
            release(requests: Vec<$crate::Release>) -> Release(Vec<$crate::Released>);
            fence(claim: $crate::Claim) -> Fence($crate::Fenced);
            shrink(claim: $crate::Claim, permits: u32) -> Shrink($crate::Released);
            abandon(request: $crate::Acquire) -> Abandon($crate::Released);
            inspect(key: $crate::LockKey) -> Inspect(Option<$crate::LockFound>);
            holders(key: $crate::LockKey) -> Holders(Option<Vec<$crate::FoundHolder>>);
            force_release(key: $crate::LockKey) -> ForceRelease(Option<bool>);
            rate(request: $crate::RateRequest) -> Rate($crate::Rated);
            latch_set(call: $crate::LatchCall, count: u32, ttl: ::std::time::Duration)
                -> LatchSet($crate::LatchSet);
            latch_count_down(call: $crate::LatchCall) -> LatchCountDown($crate::LatchCounted);
            latch_look(key: $crate::LockKey) -> LatchLook($crate::LatchFound);
            latch_wait(place: $crate::LatchCall) -> LatchWait($crate::LatchFound);
            latch_leave(place: $crate::LatchCall) -> LatchLeave(());
            ping() -> Ping(());
        }
    };
}

/// In an `impl Store`: the methods of these names, by the store in the field `store`.
#[doc(hidden)]
#[macro_export]
macro_rules! delegate {
    ($($method:ident)+) => {
        $($crate::delegate! { @ $method })+
    };
    (@fn $method:ident($($argument:ident: $type:ty),*) -> $reply:ty) => {
        fn $method(&self $(, $argument: $type)*) -> $reply {
            self.store.$method($($argument),*)
        }
    };
    (@ capabilities) => {
        $crate::delegate! { @fn capabilities() -> $crate::Capabilities }
    };
    (@ owner_of) => {
        $crate::delegate! { @fn owner_of(shown: $crate::Owner) -> $crate::Owner }
    };
    (@ foreign_name) => {
        $crate::delegate! { @fn foreign_name(holder: $crate::Holder) -> Option<String> }
    };
    (@ foreign_lock) => {
        $crate::delegate! {
            @fn foreign_lock(key: $crate::LockKey, by: $crate::Instant)
                -> $crate::Asked<'_, Option<&'static str>>
        }
    };
    (@ tell) => {
        $crate::delegate! {
            @fn tell(to: $crate::ClientId, message: $crate::ClientMessage, by: $crate::Instant)
                -> $crate::Asked<'_, bool>
        }
    };
    (@ forget_unused_views) => {
        $crate::delegate! {
            @fn forget_unused_views(has_any: &dyn Fn(&$crate::Namespace) -> bool)
                -> bool
        }
    };
    (@ ping) => {
        $crate::delegate! { @fn ping(by: $crate::Instant) -> $crate::StoreFuture<'_, ()> }
    };
    (@ await_connection) => {
        $crate::delegate! { @fn await_connection(by: $crate::Instant) -> $crate::Asked<'_, ()> }
    };
    (@ migrate) => {
        $crate::delegate! { @fn migrate(by: $crate::Instant) -> $crate::Asked<'_, ()> }
    };
    (@ is_connected) => {
        $crate::delegate! { @fn is_connected() -> bool }
    };
    (@ log_findings) => {
        $crate::delegate! { @fn log_findings(by: $crate::Instant) -> $crate::Logged<'_> }
    };
    (@ servers) => {
        $crate::delegate! {
            @fn servers(by: $crate::Instant)
                -> $crate::Asked<'_, Vec<$crate::ServerHealth>>
        }
    };
    (@ link) => {
        $crate::delegate! { @fn link() -> $crate::Link }
    };
    (@ link_of) => {
        $crate::delegate! { @fn link_of(key: &$crate::LockKey) -> $crate::Link }
    };
    (@ finish) => {
        $crate::delegate! { @fn finish(by: $crate::Instant) -> $crate::Finished<'_> }
    };
    (@ close) => {
        $crate::delegate! { @fn close() -> () }
    };
    (@ is_closed) => {
        $crate::delegate! { @fn is_closed() -> bool }
    };
}

macro_rules! named {
    ($($method:ident($($argument:ident: $type:ty),*) -> $Name:ident($reply:ty);)*) => {
        /// An operation that a link carries.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operation {
            $(#[doc = stringify!($method)] $Name,)*
        }
    };
}

operations!(named);

// `$d` is a `$` of the macro that this one makes.
macro_rules! make_boxed {
    ($d:tt $($method:ident($($argument:ident: $type:ty),*) -> $Name:ident($reply:ty);)*) => {
        /// In an `impl Store`: operations by the asynchronous methods that are named behind them.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! boxed {
            $((@ $method $d named:ident) => {
                fn $method(&self, $($argument: $type,)* by: $crate::Instant)
                    -> $crate::StoreFuture<'_, $reply> {
                    Box::pin(self.$d named($($argument,)* by))
                }
            };)*
            ($d($d method:ident: $d named:ident),+ $d(,)?) => {
                $d($d crate::boxed! { @ $d method $d named })+
            };
        }
    };
}

operations!(make_boxed $);
