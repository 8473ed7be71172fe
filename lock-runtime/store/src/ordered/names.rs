//! Parts of the names under which requests are kept.

use crate::request::Permits;

/// Of who asks for the whole lock.
const WHOLE: &str = "x";

/// The name of a lock, below which its requests are, and that of its namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyNode {
    /// With what the engine has at its end.
    pub namespace: String,
    /// Without a `/` at its end.
    pub path: String,
}

impl KeyNode {
    /// The name of a request.
    #[must_use]
    pub fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// What the name of each request begins with.
    #[must_use]
    pub fn below(&self) -> String {
        self.child("")
    }
}

/// As one part of a name. Different names never become the same, and none has a `/`. `is_plain`
/// says of which letters of ASCII that holds as they are.
pub fn escaped_part(name: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        let stays = byte.is_ascii_graphic() && !matches!(byte, b'%' | b'/') && is_plain(byte);
        match stays {
            true => text.push(byte.into()),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// For which part of a lock a request is.
#[must_use]
pub fn text_of(permits: Option<Permits>) -> String {
    match permits {
        None => WHOLE.to_owned(),
        Some(Permits { count, of }) => format!("{count:x}.{of:x}"),
    }
}

/// What [`text_of`] has written. `None`: it has not.
#[must_use]
pub fn permits_in(text: &str) -> Option<Option<Permits>> {
    if text == WHOLE {
        return Some(None);
    }
    let (count, of) = text.split_once('.')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(Some(Permits {
        count: number(count)?,
        of: number(of)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn different_names_never_meet_and_none_is_within_another() {
        let names = [
            ".",
            "%2E",
            "a/b",
            "a%2Fb",
            "a b",
            "ä",
            "\u{1F512}",
            "\u{7f}",
            "a\u{1}",
            "a",
            "A",
            "%",
            "%25",
            "a:b",
            "{a}b",
        ];
        let escaped: HashSet<_> = names.map(|name| escaped_part(name, |_| true)).into();
        assert_eq!(escaped.len(), names.len());
        for name in &escaped {
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'/')
            );
        }
    }
}
