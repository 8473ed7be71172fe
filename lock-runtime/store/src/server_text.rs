//! [`escaped`]: what a server said, as users and logs may see it. The server, or whatever stands in
//! front of it, controls this text.

/// The maximum length. The rest says little and can be megabytes.
const MAX_BYTES: usize = 300;
/// Stands for what is left out.
const CUT: &str = "…";

/// The text on one line, short, with everything escaped that a terminal acts on.
#[must_use]
pub fn escaped(text: &str) -> String {
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
    fn what_a_terminal_acts_on_is_escaped() {
        assert_eq!(
            escaped("ERR \"ü\" \\ 'a'\r\nWARN forged \u{1b}[31m\u{202e}\u{7f}\0"),
            "ERR \"ü\" \\ 'a'\\r\\nWARN forged \\u{1b}[31m\\u{202e}\\u{7f}\\0"
        );
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        for said in ["x".repeat(10_000_000), "ü".repeat(301), "\n".repeat(301)] {
            let shown = escaped(&said);
            assert!(shown.len() <= MAX_BYTES && shown.len() > 290, "{shown}");
            assert!(shown.ends_with(CUT), "{shown}");
        }
    }
}
