//! What is locked: [`LockKey`], and [`KeyWriter`], which renders a key template.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::namespace::Namespace;

/// The longest key, in bytes of UTF-8, without the client's namespace.
pub const MAX_KEY_BYTES: usize = 512;

/// The name of what is locked, such as `stock:42`.
///
/// Two requests exclude each other if their keys are equal and their clients share a store and a
/// namespace. If a part of the key comes from data, make it with `lock_key!`. That escapes the
/// values, so different values never give the same key. A `&str` or `String` is used as it is.
///
/// A key is checked when it is used. An invalid one gives `LockError::InvalidKey`, and nothing is
/// locked. These are invalid:
/// - the empty key, and one with an empty value in a placeholder,
/// - more than 512 bytes,
/// - a `%` at the beginning that starts no escape (`%3A`), and a name such as `lock:%queue:…`:
///   these names are reserved for the library's helper keys,
/// - braces, unless they are one non-empty `{…}` pair (Redis Cluster's hash tag),
/// - a placeholder whose `Display` returned an error.
///
/// Cloning is cheap (a reference count). A key from a view of a client (`LockClient::namespaced`)
/// carries its namespace. It equals only keys of the same namespace.
///
/// A key from a template carries the [`template`](Self::template): metrics and traces have that as
/// their label. It is no part of what is locked.
///
/// # Examples
/// ```
/// use lock_runtime::LockKey;
/// let key = LockKey::from("stock:42");
/// assert_eq!(key.as_str(), "stock:42");
/// assert_eq!(key.to_string(), "stock:42");
/// ```
#[derive(Clone)]
pub struct LockKey(Arc<Key>);

/// Shared by the clones of a key, which many parts of a client have.
#[derive(Clone)]
struct Key {
    text: String,
    template: Option<&'static str>,
    fault: Option<KeyFault>,
    /// Present if it differs from the client's.
    namespace: Option<Namespace>,
}

/// Why a key can't be used.
///
/// The text says what is wrong with the key. `LockError::InvalidKey` contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyFault {
    /// The key is empty.
    Empty,
    /// This placeholder rendered as nothing. All its empty values would share a lock.
    EmptyPlaceholder(&'static str),
    /// The `Display` of this placeholder's value returned an error.
    DisplayFailed(&'static str),
    /// The key has this many bytes. The limit is 512, without the namespace.
    TooLong(usize),
    /// The key begins with `%` but not with an escape (`%3A`). Such names are reserved for helper
    /// keys.
    ReservedPrefix,
    /// The key has the form of a helper key of some namespace, such as `lock:%queue:…`. For a
    /// client whose own namespace is empty, it would be one.
    HelperName,
    /// The braces are not one non-empty `{…}` pair.
    Braces,
    /// The namespace of the client's view is invalid, or the store supports only the client's own.
    Namespace,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty; name what is locked, as \"stock:42\""),
            Self::EmptyPlaceholder(name) => {
                write!(
                    f,
                    "the placeholder <{name}> rendered as nothing; refuse the empty value before \
                     locking"
                )
            }
            Self::DisplayFailed(name) => {
                write!(
                    f,
                    "the `Display` of the placeholder <{name}> returned an error"
                )
            }
            Self::TooLong(bytes) => {
                write!(
                    f,
                    "it has {bytes} bytes and {MAX_KEY_BYTES} are allowed; lock on an id or a \
                     hash of the long value"
                )
            }
            Self::ReservedPrefix => f.write_str(
                "it begins with `%` and no escape, which is kept for helper keys; put a word in \
                 front, as \"stock:…\"",
            ),
            Self::HelperName => f.write_str(
                "it has the form of a helper key of a namespace (`lock:%queue:…`); leave out the \
                 `%`",
            ),
            Self::Braces => f.write_str(
                "its braces are not one non-empty `{…}` pair (a Redis Cluster hash tag); remove \
                 or complete them",
            ),
            Self::Namespace => f.write_str(
                "the namespace of its client's view can't be used: use letters, digits, `-`, `_` \
                 and `.`, at most 128 bytes, and a store that can tell namespaces apart",
            ),
        }
    }
}

impl LockKey {
    /// The key as it was written, without the namespace.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The template that it was made of, such as `stock:<product_id>`, or its
    /// [label](Self::labelled). `None` for a key from a string.
    ///
    /// # Examples
    /// ```
    /// use lock_runtime::{LockKey, lock_key};
    /// let product = 42;
    /// assert_eq!(lock_key!("stock:<product>").template(), Some("stock:<product>"));
    /// assert_eq!(LockKey::from("stock:42").template(), None);
    /// ```
    #[must_use]
    pub fn template(&self) -> Option<&'static str> {
        self.0.template
    }

    /// The same key with this instead of its template: what metrics and traces call all keys of its
    /// kind. A constant, so that there are few.
    #[must_use]
    pub fn labelled(mut self, label: &'static str) -> Self {
        Arc::make_mut(&mut self.0).template = Some(label);
        self
    }

    /// Its namespace; `None` for the client's own. A store must respect it if it
    /// [tells namespaces apart](crate::Capabilities::namespaces).
    #[doc(hidden)]
    #[must_use]
    pub fn namespace(&self) -> Option<&Namespace> {
        self.0.namespace.as_ref()
    }

    /// What people and tables call it: namespace, `:`, key. `own` is the client's namespace. In the
    /// empty one it is the key alone, as other programs name theirs.
    #[doc(hidden)]
    #[must_use]
    pub fn full_name(&self, own: &Namespace) -> String {
        match self.namespace().unwrap_or(own).as_str() {
            "" => self.as_str().to_owned(),
            namespace => format!("{namespace}:{}", self.as_str()),
        }
    }

    /// The same key in this namespace; `None` for the client's own.
    #[doc(hidden)]
    #[must_use]
    pub fn in_namespace(mut self, namespace: Option<Namespace>) -> Self {
        if self.0.namespace != namespace {
            Arc::make_mut(&mut self.0).namespace = namespace;
        }
        self
    }

    /// The same key, made invalid because its namespace is.
    #[doc(hidden)]
    #[must_use]
    pub fn in_bad_namespace(mut self) -> Self {
        Arc::make_mut(&mut self.0).fault = Some(KeyFault::Namespace);
        self
    }

    /// Why this key can't be used; `None` if it can.
    #[doc(hidden)]
    #[must_use]
    pub fn fault(&self) -> Option<KeyFault> {
        if self.0.fault.is_some() {
            return self.0.fault;
        }
        let text = self.as_str();
        if text.is_empty() {
            Some(KeyFault::Empty)
        } else if text.len() > MAX_KEY_BYTES {
            Some(KeyFault::TooLong(text.len()))
        } else if text.starts_with('%') && !begins_with_escape(text) {
            Some(KeyFault::ReservedPrefix)
        } else if is_helper_name(text) {
            Some(KeyFault::HelperName)
        } else if odd_braces(text) {
            Some(KeyFault::Braces)
        } else {
            None
        }
    }

    /// The part in braces, which decides the Redis Cluster slot. Only for a valid key.
    #[doc(hidden)]
    #[must_use]
    pub fn hash_tag(&self) -> Option<&str> {
        let (_, rest) = self.as_str().split_once('{')?;
        rest.split_once('}').map(|(tag, _)| tag)
    }

    /// The key as an error keeps it. A key that is too long may have megabytes, so it is shortened.
    #[doc(hidden)]
    #[must_use]
    pub fn for_error(&self) -> Self {
        let text = self.as_str();
        match (text.len() > MAX_KEY_BYTES, head_and_tail(text)) {
            (true, Some((head, tail))) => Self(Arc::new(Key {
                text: format!("{head}…{tail}"),
                template: self.0.template,
                fault: self.0.fault,
                namespace: self.0.namespace.clone(),
            })),
            _ => self.clone(),
        }
    }

    /// The key for a message, with its namespace: at most 80 bytes, control characters escaped.
    #[doc(hidden)]
    #[must_use]
    pub fn shortened(&self) -> Shortened<'_> {
        Shortened(self.as_str(), self.namespace())
    }
}

/// True if it begins with an escape as [`KeyWriter`] writes it. A helper key has a lower-case
/// letter after its `%`, so any value may be at the start of a template.
fn begins_with_escape(text: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    match text.as_bytes() {
        [b'%', first, second, ..] => is_digit(first) && is_digit(second),
        _ => false,
    }
}

/// True if it has the form of a namespace's helper key: `namespace:%kind:…`. A template's value
/// can't, since its `%` is escaped.
fn is_helper_name(text: &str) -> bool {
    let behind = text
        .split_once(":%")
        .filter(|(namespace, _)| !namespace.contains(':'));
    let kind = behind.and_then(|(_, rest)| rest.split_once(':'));
    kind.is_some_and(|(kind, _)| {
        !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

fn odd_braces(text: &str) -> bool {
    let mut braces = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| matches!(byte, b'{' | b'}'));
    match (braces.next(), braces.next(), braces.next()) {
        (None, _, _) => false,
        (Some((open, b'{')), Some((close, b'}')), None) => close == open + 1,
        _ => true,
    }
}

impl From<&str> for LockKey {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for LockKey {
    fn from(text: String) -> Self {
        Self(Arc::new(Key {
            text,
            template: None,
            fault: None,
            namespace: None,
        }))
    }
}

impl From<&String> for LockKey {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&LockKey> for LockKey {
    fn from(key: &LockKey) -> Self {
        key.clone()
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            None => write!(f, "LockKey({:?})", self.as_str()),
            Some(namespace) => {
                write!(
                    f,
                    "LockKey({:?} in {:?})",
                    self.as_str(),
                    namespace.as_str()
                )
            }
        }
    }
}

impl PartialEq for LockKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.as_str() == other.as_str() && self.namespace() == other.namespace())
    }
}

impl Eq for LockKey {}

impl Hash for LockKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for LockKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LockKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_text = self.as_str().cmp(other.as_str());
        by_text.then_with(|| self.namespace().cmp(&other.namespace()))
    }
}

/// A key for a message: shortened in the middle, and without characters that break a log line.
#[derive(Debug)]
pub struct Shortened<'k>(&'k str, Option<&'k Namespace>);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0;
        match head_and_tail(text) {
            None => write!(f, "\"{}\"", text.escape_debug())?,
            Some((head, tail)) => write!(
                f,
                "\"{}…{}\" ({} bytes)",
                head.escape_debug(),
                tail.escape_debug(),
                text.len()
            )?,
        }
        match self.1 {
            Some(namespace) => write!(f, " (namespace {:?})", namespace.as_str()),
            None => Ok(()),
        }
    }
}

/// The parts of a long key that a message shows: its beginning and its end.
fn head_and_tail(text: &str) -> Option<(&str, &str)> {
    const END: usize = 38;
    if text.len() <= 2 * END + 4 {
        return None;
    }
    let head = floor_char_boundary(text, END);
    let tail = floor_char_boundary(text, text.len() - END);
    Some((&text[..head], &text[tail..]))
}

/// `str::floor_char_boundary` needs Rust 1.91.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0)
}

/// Renders a key template into one buffer. Literal parts stay as they are, values are escaped.
///
/// In a value, `%`, `:`, `{`, `}`, control characters and white space become `%XX` (upper case, for
/// each UTF-8 byte). The macro demands a `:`, `{` or `}` between any two placeholders. So different
/// values give different keys.
#[derive(Debug)]
pub struct KeyWriter {
    template: &'static str,
    text: String,
    fault: Option<KeyFault>,
}

impl KeyWriter {
    /// A writer for this template, whose buffer holds `bytes` bytes before it grows.
    #[must_use]
    pub fn new(template: &'static str, bytes: usize) -> Self {
        Self {
            template,
            text: String::with_capacity(bytes),
            fault: None,
        }
    }

    /// Appends literal text of the template.
    pub fn literal(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// Appends the value of `<placeholder>`, escaped.
    pub fn value<T: KeyValue + ?Sized>(&mut self, placeholder: &'static str, value: &T) {
        value.append(self, placeholder);
    }

    /// [`value`](Self::value) for a generic type: the compiler then suggests the right bound.
    pub fn display<T: fmt::Display + ?Sized>(&mut self, placeholder: &'static str, value: &T) {
        let before = self.text.len();
        let written = write!(Escaping(&mut self.text), "{value}");
        let fault = if written.is_err() {
            Some(KeyFault::DisplayFailed(placeholder))
        } else if self.text.len() == before {
            Some(KeyFault::EmptyPlaceholder(placeholder))
        } else {
            None
        };
        self.fault = self.fault.or(fault);
    }

    /// The finished key. Its faults are reported when it is used.
    #[must_use]
    pub fn finish(self) -> LockKey {
        LockKey(Arc::new(Key {
            text: self.text,
            template: Some(self.template),
            fault: self.fault,
            namespace: None,
        }))
    }
}

/// A value that a placeholder can show: any type with `Display`.
///
/// A separate trait, so that the compiler's message says what to write instead.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a placeholder shows its value with `Display`, which `{Self}` does not have",
    label = "its type is `{Self}`",
    note = "write a field or a method of it that has `Display`, for example `<order.id>` or \
        `<path.display()>`",
    note = "for an `Option`, say what `None` locks, with this instead of the template: \
            `if let Some(id) = &id {{ lock_key!(\"stock:<id>\") }} else {{ lock_key!(\"…\") }}`"
)]
pub trait KeyValue {
    /// Appends this as the value of `<placeholder>`.
    fn append(&self, key: &mut KeyWriter, placeholder: &'static str);
}

#[diagnostic::do_not_recommend]
impl<T: fmt::Display + ?Sized> KeyValue for T {
    fn append(&self, key: &mut KeyWriter, placeholder: &'static str) {
        key.display(placeholder, self);
    }
}

struct Escaping<'t>(&'t mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, value: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, char) in value.char_indices() {
            if !(matches!(char, '%' | ':' | '{' | '}') || char.is_control() || char.is_whitespace())
            {
                continue;
            }
            self.0.push_str(&value[plain..at]);
            plain = at + char.len_utf8();
            for byte in value[at..plain].bytes() {
                write!(self.0, "%{byte:02X}")?;
            }
        }
        self.0.push_str(&value[plain..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_literals_are_not() {
        let mut writer = KeyWriter::new("a:{<x>}", 16);
        writer.literal("a:{");
        writer.value("x", "50% {ü}: \n\u{2003}");
        writer.literal("}");
        assert_eq!(
            writer.finish().as_str(),
            "a:{50%25%20%7Bü%7D%3A%20%0A%E2%80%83}"
        );
    }

    #[test]
    fn every_fault_of_a_key_is_found() {
        let fault = |text: &str| LockKey::from(text).fault();
        assert_eq!(fault(""), Some(KeyFault::Empty));
        assert_eq!(fault(&"x".repeat(512)), None);
        assert_eq!(fault(&"x".repeat(513)), Some(KeyFault::TooLong(513)));
        for reserved in ["%", "%queue", "%3", "%3a", "%aA", "%G0:k", "%granted:x"] {
            assert_eq!(
                fault(reserved),
                Some(KeyFault::ReservedPrefix),
                "{reserved}"
            );
        }
        for helper in ["lock:%queue:{lock:k}", ":%fence:{k}", "shop:%call:{t}:x"] {
            assert_eq!(fault(helper), Some(KeyFault::HelperName), "{helper}");
        }
        for odd in [
            "{", "}", "a{}", "}{", "{a", "a}", "{a}{b}", "{{a}}", "a}b{c",
        ] {
            assert_eq!(fault(odd), Some(KeyFault::Braces), "{odd}");
        }
        for fine in [
            "{a}",
            "x:{tenant}:stock:1",
            "plain",
            "a%b",
            "a:%25fe:b",
            "a:50%:b",
            "a:b:%queue:c",
            "a:%:b",
            "a:%queue",
            "%3A",
            "%25queue:x",
            "%FE",
        ] {
            assert_eq!(fault(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_key_of_another_namespace_is_another_key() {
        let of = |namespace: &str| {
            let namespace = Namespace::new(namespace).ok();
            LockKey::from("k").in_namespace(namespace)
        };
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
        assert_ne!(of("a"), LockKey::from("k"));
        assert_eq!(of("a").in_namespace(None), LockKey::from("k"));
        assert_eq!((of("a").as_str(), of("a").fault()), ("k", None));
        assert_eq!(of("a").shortened().to_string(), "\"k\" (namespace \"a\")");
        let bad = LockKey::from("k").in_bad_namespace();
        assert_eq!(bad.fault(), Some(KeyFault::Namespace));
    }

    #[test]
    fn a_long_key_is_shortened_in_messages_at_character_boundaries() {
        let text = LockKey::from("ü".repeat(200)).shortened().to_string();
        assert!(
            text.len() < 120 && text.contains('…') && text.ends_with("(400 bytes)"),
            "{text}"
        );
    }

    #[test]
    fn an_error_keeps_no_more_of_a_key_that_is_too_long() {
        let kept = LockKey::from("ü".repeat(25_000_000)).for_error();
        assert!(kept.as_str().len() < 100, "{kept}");
        let usable = LockKey::from("x".repeat(MAX_KEY_BYTES));
        assert_eq!(usable.for_error(), usable);
    }
}
