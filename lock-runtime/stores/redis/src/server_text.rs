//! [`shown`]: what a server said, as users and logs may see it.
//!
//! A server, or whatever stands in front of it, controls this text. Servers also repeat what they
//! were sent: Redis repeats the arguments of an unknown command. Where `HELLO` was renamed, these
//! are user and password.

use crate::secrets;

/// The maximum length. The rest says little and can be megabytes.
const MAX_BYTES: usize = 300;
const CUT: &str = "…";

/// Here Redis begins to repeat arguments. It cuts long ones, so a search for the whole password
/// would miss them.
const ARGUMENTS: &str = "with args beginning with";

/// The text without arguments and known credentials, [`escaped`].
pub(crate) fn shown(text: &str) -> String {
    let said = text.find(ARGUMENTS).map_or(text, |at| &text[..at]);
    escaped(&secrets::strip(said.trim_end_matches([' ', ','])))
}

/// The text on one line, short, with everything escaped that a terminal acts on.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len().min(MAX_BYTES));
    let mut piece = String::new();
    for char in text.chars() {
        piece.clear();
        match char {
            '\'' | '"' | '\\' => piece.push(char),
            _ => piece.extend(char.escape_debug()),
        }
        if escaped.len() + piece.len() > MAX_BYTES - CUT.len() {
            escaped.push_str(CUT);
            break;
        }
        escaped.push_str(&piece);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_redis_repeats_are_left_out() {
        for (said, kept) in [
            (
                "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'app' 'canary",
                "ERR unknown command 'HELLO'",
            ),
            (
                "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `canary`,",
                "ERR unknown command `HELLO`",
            ),
            (
                "NOPERM No permissions to access a key",
                "NOPERM No permissions to access a key",
            ),
        ] {
            assert_eq!(shown(said), kept);
        }
    }

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        assert_eq!(
            shown("ERR \"ü\" \\ 'a'\r\nWARN forged \u{1b}[31m\u{202e}\u{7f}\0"),
            "ERR \"ü\" \\ 'a'\\r\\nWARN forged \\u{1b}[31m\\u{202e}\\u{7f}\\0"
        );
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        for said in ["x".repeat(10_000_000), "ü".repeat(301), "\n".repeat(301)] {
            let shown = shown(&said);
            assert!(shown.len() <= MAX_BYTES && shown.len() > 290, "{shown}");
            assert!(shown.ends_with(CUT), "{shown}");
        }
    }
}
