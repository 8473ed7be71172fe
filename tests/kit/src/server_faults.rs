//! What a backend that stands on one Redis server or PostgreSQL does with it.

/// The faults of the server that a backend stands on.
macro_rules! server_faults {
    ($server:tt) => {
        fn pause(&self) -> bool {
            self.$server.pause();
            true
        }

        fn resume(&self) {
            self.$server.resume();
        }

        fn kill(&self) -> bool {
            self.$server.kill();
            true
        }

        fn restart(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + '_>> {
            Box::pin(self.$server.restart())
        }
    };
}
pub(crate) use server_faults;
