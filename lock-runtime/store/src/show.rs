//! What a type shows of itself: [`show!`](crate::show) some fields, and [`named!`](crate::named)
//! the names of its variants.

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

/// An enum whose variants have a name each, which stands behind them and is given by `as_str`. The
/// text says what the names are.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($what:literal, $(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $Variant:ident = $text:literal,)+
    }) => {
        $(#[$meta])*
        pub enum $Name {
            $($(#[$doc])* $Variant,)+
        }

        impl $Name {
            #[doc = concat!($what, ":", $(" `", $text, "`",)+ ".")]
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $text,)+
                }
            }
        }
    };
}
