//! Functions that `macro_rules!` writes. Parameter and key come from either side of the macro.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

macro_rules! repository {
    ($name:ident, $parameter:ident, $key:literal) => {
        #[distributed_lock(key = $key)]
        async fn $name($parameter: u32, inner: u32) -> Result<u32, LockError> {
            Ok($parameter + inner)
        }
    };
    ($name:ident, $parameter:ident) => {
        #[distributed_lock(key = "fixed:<id>")]
        async fn $name($parameter: u32) -> Result<u32, LockError> {
            Ok($parameter)
        }
    };
    ($name:ident) => {
        #[distributed_lock(key = "fixed:<inner>")]
        async fn $name(inner: u32) -> Result<u32, LockError> {
            Ok(inner)
        }
    };
}

repository!(by_macro, id, "macro:<id>");
repository!(by_macro_with_its_key, id);
repository!(by_macro_inside);

pub(crate) fn main() {
    support::run(async {
        assert_eq!(by_macro(1, 2).await.unwrap(), 3);
        assert_eq!(by_macro_with_its_key(1).await.unwrap(), 1);
        assert_eq!(by_macro_inside(1).await.unwrap(), 1);
    });
}
