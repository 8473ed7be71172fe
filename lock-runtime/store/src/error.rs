//! [`StoreError`]: a store's refusal or silence. [`ConfigError`]: a setting that can't be used.

use std::fmt;

/// A setting or URL that a store can't be opened with. The text says what is wrong and what to
/// write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(Box<str>);

impl ConfigError {
    /// An error with this text.
    pub fn new(message: impl Into<Box<str>>) -> Self {
        Self(message.into())
    }

    /// The text: what is wrong and what to write.
    #[must_use]
    pub fn into_message(self) -> Box<str> {
        self.0
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The store's refusal, or its silence.
///
/// # Examples
/// ```
/// use lock_runtime::{LockError, StoreErrorKind};
/// fn worth_a_retry(error: &LockError) -> bool {
///     match error {
///         LockError::Unavailable { source, .. } => source.kind() != StoreErrorKind::Denied,
///         other => other.is_busy(),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    detail: Box<str>,
    /// What to do, in the engine's own terms.
    advice: Option<&'static str>,
}

crate::named! {
    "Its name in metrics and traces",
    /// The kinds of [`StoreError`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum StoreErrorKind {
        /// No connection: refused, closed, not resolved, handshake failed.
        Disconnected = "disconnected",
        /// No answer in time.
        Timeout = "timeout",
        /// The store is out of memory.
        OutOfMemory = "out_of_memory",
        /// The store does not take writes: a replica, or one that can't persist.
        ReadOnly = "read_only",
        /// The store is starting up or busy with a script.
        Loading = "loading",
        /// Wrong password, or a missing permission. Not tried again.
        Denied = "denied",
        /// Any other refusal. Not tried again.
        Refused = "refused",
        /// Too few replicas confirmed the hold; see `LockClientBuilder::replicas`.
        NotReplicated = "not_replicated",
        /// The store answers, and the requests of others for the same key kept this one from it.
        Contended = "contended",
        /// The store is not what the client's URL says, such as another kind of Redis, or no master
        /// of that name, or it is not set up as the engine needs it. Not tried again.
        Misconfigured = "misconfigured",
        /// Another version of this library is in use at the store, and the two do not understand
        /// each other. Not tried again.
        OtherVersion = "other_version",
        /// What the store has beside its locks, as for their tokens, is another program's. The text
        /// is its name there, and nothing else: users get a `KeyConflict` of it. Not tried again.
        Foreign = "foreign",
    }
}

impl StoreErrorKind {
    /// True if the error may pass within the wait, so that the engine tries again.
    #[doc(hidden)]
    #[must_use]
    pub fn is_transient(self) -> bool {
        match self {
            Self::Disconnected
            | Self::Timeout
            | Self::OutOfMemory
            | Self::ReadOnly
            | Self::Loading
            | Self::NotReplicated
            | Self::Contended => true,
            Self::Denied
            | Self::Refused
            | Self::Misconfigured
            | Self::OtherVersion
            | Self::Foreign => false,
        }
    }

    /// What it is, and what to do.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Disconnected => (
                "no connection",
                "check that it runs and that host and port are right",
            ),
            Self::Timeout => ("no answer in time", "check its load and the network"),
            Self::OutOfMemory => ("it is out of memory", "give it more, or free some"),
            Self::ReadOnly => (
                "it takes no writes",
                "connect to a server that takes them, and check its log",
            ),
            Self::Loading => ("it is not ready yet", "wait until it has started"),
            Self::Denied => ("it denied access", "check user, password and permissions"),
            Self::Refused => ("it refused the command", "see its own message"),
            Self::NotReplicated => (
                "too few replicas confirmed it",
                "check the replicas and their links to the master, or ask for fewer",
            ),
            Self::Contended => (
                "it answers, and others kept this request from the key",
                "try again, or wait for longer",
            ),
            Self::Misconfigured => ("it is not what the URL says", "correct the URL"),
            Self::Foreign => (
                "another program has a part of it",
                "choose another namespace",
            ),
            Self::OtherVersion => (
                "another version of lock-runtime is in use there",
                "use the newer one in all processes, after all older ones have ended",
            ),
        }
    }
}

impl StoreError {
    /// An error of a store, with its own words.
    pub fn new(kind: StoreErrorKind, detail: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            advice: None,
        }
    }

    /// Sets the advice that users read with this error, for an engine that knows better what to do.
    /// `None` takes it away: users read the advice of the error's kind.
    #[must_use]
    pub fn advise(self, advice: impl Into<Option<&'static str>>) -> Self {
        let advice = advice.into();
        Self { advice, ..self }
    }

    /// [Advises](Self::advise) about certificates, if the error is about one.
    #[must_use]
    pub fn advise_about_certificates(self) -> Self {
        let detail = self.detail().to_ascii_lowercase();
        match detail.contains("certificate") {
            true if detail.contains("expired") => {
                self.advise("renew the certificate that is over, and look at both clocks")
            }
            true => self.advise(
                "if it is the right server, trust the CA of its certificate (`Tls::ca_file`), \
                 connect to a name that the certificate has, and give a certificate of the \
                 client's own if the server asks for one",
            ),
            false => self,
        }
    }

    /// The store's own words, without advice.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// One error for several, as of all addresses of a server: of the kind of the most telling one,
    /// with the words of all. `None` for none.
    #[must_use]
    pub fn of_all(errors: Vec<Self>) -> Option<Self> {
        let is_telling = |error: &&Self| {
            !matches!(
                error.kind,
                StoreErrorKind::Disconnected | StoreErrorKind::Timeout
            )
        };
        let telling = errors.iter().find(is_telling).or(errors.first())?.clone();
        let mut texts: Vec<&str> = Vec::new();
        for error in &errors {
            if !texts.contains(&error.detail()) {
                texts.push(error.detail());
            }
        }
        Some(Self {
            detail: texts.join("; ").into(),
            ..telling
        })
    }

    /// The same error with a name in front, as that of its server, unless it has that already.
    #[must_use]
    pub fn of(&self, server: &str) -> Self {
        let named = self.detail.strip_prefix(server);
        if named.is_some_and(|rest| rest.starts_with(": ")) {
            return self.clone();
        }
        Self {
            detail: format!("{server}: {}", self.detail).into(),
            ..self.clone()
        }
    }

    /// That of a command whose time ended before there was a connection (`what`), after an attempt
    /// to connect had failed with this. Users read this one's advice.
    #[doc(hidden)]
    #[must_use]
    pub fn of_last_attempt(&self, what: &str) -> Self {
        let detail = format!(
            "{what}; the last attempt to connect failed: {}",
            self.detail
        );
        let advice = self.advice.unwrap_or(self.kind.words().1);
        Self::new(StoreErrorKind::Timeout, detail).advise(advice)
    }

    /// That of a command whose time ended before there was another connection, after the one before
    /// had been lost with this.
    #[must_use]
    pub(crate) fn of_lost_connection(&self, server: &str) -> Self {
        let lost = &self.detail;
        let detail =
            format!("{server}: no new connection in time; the one before was lost: {lost}");
        Self {
            kind: StoreErrorKind::Timeout,
            detail: detail.into(),
            ..*self
        }
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, todo) = self.kind.words();
        let todo = self.advice.unwrap_or(todo);
        write!(f, "{what} ({}); {todo}", self.detail)
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_for_several_tells_of_all() {
        let silent = || StoreError::new(StoreErrorKind::Timeout, "a: silent");
        let standby = StoreError::new(StoreErrorKind::ReadOnly, "b: a standby").advise("wait");
        let one = StoreError::of_all(vec![silent(), standby, silent()]).map(|one| one.to_string());
        let said = "it takes no writes (a: silent; b: a standby); wait";
        assert_eq!(one.as_deref(), Some(said));
        assert!(StoreError::of_all(Vec::new()).is_none());
    }

    #[test]
    fn what_the_last_attempt_learned_is_told_with_its_advice() {
        let replaced = StoreError::new(StoreErrorKind::ReadOnly, "a: replaced").advise("end it");
        let said = "no answer in time (slow; the last attempt to connect failed: a: replaced); ";
        let error = replaced.of_last_attempt("slow").to_string();
        assert_eq!(error, format!("{said}end it"));
        let error = replaced.advise(None).of_last_attempt("slow").to_string();
        let advice = "connect to a server that takes them, and check its log";
        assert_eq!(error, format!("{said}{advice}"));
    }

    #[test]
    fn why_the_connection_was_lost_is_told_while_there_is_no_other() {
        let reset = StoreError::new(StoreErrorKind::Disconnected, "b: reset");
        let error = reset.of_lost_connection("a,b").to_string();
        let said = "a,b: no new connection in time; the one before was lost: b: reset";
        let wanted = format!("no answer in time ({said}); check its load and the network");
        assert_eq!(error, wanted);
        let error = reset.advise("wait").of_lost_connection("a,b").to_string();
        assert_eq!(error, format!("no answer in time ({said}); wait"));
    }

    #[test]
    fn a_server_is_named_once() {
        let error = StoreError::new(StoreErrorKind::Timeout, "silent").of("h:1");
        assert_eq!(error.of("h:1").detail(), "h:1: silent");
        assert_eq!(error.of("h").detail(), "h: h:1: silent");
    }
}
