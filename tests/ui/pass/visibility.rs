//! Every visibility: each function can be called from where its visibility allows.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[allow(unreachable_pub, reason = "it is a program, nothing is public")]
mod outer {
    use super::{LockError, distributed_lock};

    pub(crate) mod inner {
        use super::{LockError, distributed_lock};

        #[distributed_lock(key = "public")]
        pub async fn public() -> Result<u8, LockError> {
            private().await
        }

        #[distributed_lock(key = "of the crate")]
        pub(crate) async fn of_the_crate() -> Result<u8, LockError> {
            Ok(2)
        }

        #[distributed_lock(key = "of the parent")]
        pub(super) async fn of_the_parent() -> Result<u8, LockError> {
            Ok(3)
        }

        #[distributed_lock(key = "of a path")]
        pub(in super::super) async fn of_a_path() -> Result<u8, LockError> {
            Ok(4)
        }

        #[distributed_lock(key = "private")]
        async fn private() -> Result<u8, LockError> {
            Ok(1)
        }
    }

    #[distributed_lock(key = "outer")]
    pub(crate) async fn of_inner() -> Result<u8, LockError> {
        inner::of_the_parent().await
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(outer::inner::public().await.unwrap(), 1);
        assert_eq!(outer::inner::of_the_crate().await.unwrap(), 2);
        assert_eq!(outer::of_inner().await.unwrap(), 3);
        assert_eq!(outer::inner::of_a_path().await.unwrap(), 4);
    });
}
