//! [`show!`](crate::show): what a type shows of itself.

/// `Debug` by a type's name and a few of its fields. The others are of no use in a log, or secret.
#[doc(hidden)]
#[macro_export]
macro_rules! show {
    ($Type:ident $(as $it:ident: $($field:ident = $value:expr),+)?) => {
        impl ::std::fmt::Debug for $Type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $(let $it = self;)?
                let mut shown = f.debug_struct(stringify!($Type));
                $($(shown.field(stringify!($field), &$value);)+)?
                shown.finish_non_exhaustive()
            }
        }
    };
}
