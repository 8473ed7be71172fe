//! [`is_failure`]: whether a body's output is an `Err`, whatever its type is.

use std::any::type_name;
use std::mem;

/// Whether it is the `Err` of a [`Result`].
///
/// A body's output has no bound that would tell, because it may be of any type. So its type is
/// known by its name, and its variant by comparing it with that of a `Result` whose variant is
/// known.
pub(super) fn is_failure<T>(output: &T) -> bool {
    is_result::<T>() && variant(output) == variant(&Err::<(), ()>(()))
}

/// Whether both names are the same up to the parameters.
fn is_result<T>() -> bool {
    let without_parameters = |name: &'static str| name.split('<').next();
    without_parameters(type_name::<T>()) == without_parameters(type_name::<Result<(), ()>>())
}

/// Which variant of its enum it is. Discriminants of two types can only be compared as texts.
fn variant<T>(of: &T) -> String {
    format!("{:?}", mem::discriminant(of))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use super::*;

    type Alias<T> = Result<T, Box<dyn std::error::Error>>;

    /// Looks like one, and is none.
    #[derive(Debug)]
    #[expect(dead_code, reason = "only its variants count")]
    enum Result2<T, E> {
        Ok(T),
        Err(E),
    }

    /// Also those that the compiler stores without a discriminant.
    #[test]
    fn the_err_of_a_result_is_a_failure_and_nothing_else_is() {
        assert!(is_failure(&Err::<(), _>("")));
        assert!(is_failure(&Err::<NonZeroU8, ()>(())));
        assert!(is_failure(&Err::<Result<(), ()>, u64>(7)));
        assert!(is_failure::<Alias<u8>>(&Err("".into())));
        assert!(is_failure(&Err::<std::convert::Infallible, u8>(1)));
        assert!(!is_failure(&Ok::<_, String>("")));
        assert!(!is_failure(&Ok::<_, ()>(NonZeroU8::MIN)));
        assert!(!is_failure(&Ok::<_, u64>(Err::<(), ()>(()))));
        assert!(!is_failure(&Ok::<_, std::convert::Infallible>(1)));
        assert!(!is_failure::<Alias<u8>>(&Ok(1)));
        assert!(!is_failure(&()) && !is_failure(&None::<u8>) && !is_failure(&Some(())));
        assert!(!is_failure(&Result2::Err::<u8, u8>(1)));
        assert!(!is_failure(&"core::result::Result"));
    }
}
