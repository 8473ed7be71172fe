//! [`Access`]: user, password and TLS outside the URL. [`Credentials`] that change: who provides
//! them, and when they are renewed.

use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::error::{ConfigError, StoreError, StoreErrorKind};
use crate::instant::Instant;
use crate::mutex::Mutex;
use crate::secrets::{Secret, remember, strip};
use crate::server_text::escaped;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// A longer validity counts as endless.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// However short the validity, the provider is asked no more often than this for an established
/// connection.
pub const MIN_PAUSE: Duration = Duration::from_millis(500);
/// How long an answer counts that nobody waited for, and how long it is waited for.
const ANSWER_LASTS: Duration = Duration::from_secs(60);
/// The number of a provider's latest passwords that stay hidden: an error may be late.
const MOST_REMEMBERED: usize = 4;

/// User and password outside the URL. They are for its servers, not for sentinels, which have their
/// own users.
#[derive(Clone, Default)]
pub struct Login {
    /// Default: the URL's, or that of the engine.
    pub username: Option<String>,
    /// Default: the URL's, or none.
    pub password: Option<String>,
}

// Hides user and password.
crate::show!(Login);

/// How a client gets into its servers, beside the URL.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// User and password. An error if the URL has them, too. Default: the URL's.
    pub login: Login,
    /// A provider of user and password. An error beside a user of the URL or of `login`, and on an
    /// engine whose sessions keep their users. Default: none.
    pub provider: Option<CredentialsProvider>,
    /// Whom to trust over TLS. Default: TLS if the URL asks for it, and what the system trusts.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

impl Access {
    /// Whether it says whom to trust.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}

/// A user with its password.
#[derive(Clone)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its password, which appears in no error, log or `Debug` output of this library.
    pub password: String,
}

// Hides user and password.
crate::show!(User);

/// The error of a provider beside a user or password of the URL or the builder.
#[must_use]
pub fn given_twice() -> ConfigError {
    ConfigError::new(
        "`credentials` provides user and password, and the builder or the store's URL has them as \
         well; leave one of them out",
    )
}

/// Refuses what the builder and the URL give: neither would win.
///
/// # Errors
/// If it is given twice.
pub fn given_once(what: &str, is_twice: bool) -> Result<(), ConfigError> {
    match is_twice {
        false => Ok(()),
        true => Err(ConfigError::new(format!(
            "`{what}` is given by the builder and in the store's URL; leave one of them out"
        ))),
    }
}

impl Login {
    /// Whether it says anything.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.username.is_some() || self.password.is_some()
    }

    /// The user of the URL, or this one, for an engine whose users all have passwords. `None`:
    /// nobody.
    ///
    /// # Errors
    /// For what is given here and in the URL, as neither would win, and for one without the other.
    /// That says `example`, a URL of the engine's.
    pub fn user(
        &self,
        in_url: (Option<String>, Option<String>),
        example: &str,
    ) -> Result<Option<User>, ConfigError> {
        let (name, password) = in_url;
        given_once("username", self.username.is_some() && name.is_some())?;
        given_once("password", self.password.is_some() && password.is_some())?;
        let name = name.or_else(|| self.username.clone());
        match (name, password.or_else(|| self.password.clone())) {
            (None, None) => Ok(None),
            (Some(name), Some(password)) => {
                remember(&name, &password);
                Ok(Some(User { name, password }))
            }
            _ => Err(ConfigError::new(format!(
                "this store needs both user and password, or neither; write `{example}`"
            ))),
        }
    }
}

/// User and password from a provider, and how long they are valid.
///
/// They appear in no error, log or `Debug` output of this library.
#[derive(Clone)]
pub struct Credentials {
    username: String,
    password: String,
    valid_for: Option<Duration>,
}

impl Credentials {
    /// A user and its password or token, valid as long as the connection exists. The user is
    /// `default` on servers that have no others.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            username: username.into(),
            password: password.into(),
            valid_for: None,
        }
    }

    /// Sets how long the credentials are valid, counted from the request to the provider. After
    /// three quarters of that time, the provider is asked again, and the connection authenticates
    /// anew.
    #[must_use]
    pub fn valid_for(mut self, validity: Duration) -> Self {
        self.valid_for = Some(validity);
        self
    }
}

/// For stores.
#[doc(hidden)]
impl Credentials {
    /// The user and the password.
    #[must_use]
    pub fn both(&self) -> (&str, &str) {
        (&self.username, &self.password)
    }
}

crate::show!(Credentials as it: valid_for = it.valid_for);

type Given = Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send>>;

/// The provider of a client's credentials.
#[derive(Clone)]
pub struct CredentialsProvider {
    ask: Arc<dyn Fn() -> Given + Send + Sync>,
    /// The newest last.
    secrets: Arc<Mutex<VecDeque<Secret>>>,
    /// What nobody waited for to its end.
    kept: Arc<Mutex<Option<CredentialsQuestion>>>,
}

/// The provider was asked. It goes on without somebody who waits, and ends with the last handle to
/// the provider.
struct CredentialsQuestion {
    asked: Instant,
    /// A task of its own: its panic ends no connection.
    answer: JoinSet<Result<Credentials, String>>,
}

/// A question that is kept if nobody waits for its answer.
struct Waited<'p> {
    question: CredentialsQuestion,
    kept: &'p Mutex<Option<CredentialsQuestion>>,
}

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        if self.question.answer.is_empty() {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.is_none() {
            let (asked, answer) = (
                self.question.asked,
                std::mem::take(&mut self.question.answer),
            );
            *kept = Some(CredentialsQuestion { asked, answer });
        }
    }
}

crate::show!(CredentialsProvider);

impl CredentialsProvider {
    /// A provider that calls this function for credentials.
    pub fn new<F, Fut, E>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let ask = move || {
            let asked = provider();
            let asked = async move { asked.await.map_err(|error| with_sources(&*error.into())) };
            Box::pin(asked) as Given
        };
        Self {
            ask: Arc::new(ask),
            secrets: Arc::default(),
            kept: Arc::default(),
        }
    }

    /// Credentials for one connection, and when to ask for the next.
    ///
    /// # Errors
    /// The provider's, or that it panicked.
    ///
    /// # Cancel safety
    /// If the future is dropped, the next call gets the answer, for a minute.
    #[doc(hidden)]
    pub async fn ask(&self, clock: &Clock) -> Result<(Credentials, Option<Instant>), StoreError> {
        let failed = |why: &str| {
            let text = format!("the credentials provider {why}");
            let error = StoreError::new(StoreErrorKind::Disconnected, text);
            error.advise("it is asked again at the next attempt; see its own log")
        };
        loop {
            let kept = self.kept.lock().take();
            let kept = kept.filter(|question| clock.now() < question.asked + ANSWER_LASTS);
            let is_kept = kept.is_some();
            let mut waited = Waited {
                question: kept.unwrap_or_else(|| self.begin(clock)),
                kept: &self.kept,
            };
            let asked = waited.question.asked;
            let credentials = match waited.question.answer.join_next().await {
                Some(Ok(Ok(credentials))) => credentials,
                Some(Ok(Err(text))) => {
                    return Err(failed(&format!("failed: {}", escaped(&strip(&text)))));
                }
                // Its client's runtime is gone.
                Some(Err(error)) if error.is_cancelled() && is_kept => continue,
                _ => return Err(failed("panicked")),
            };
            let pause = |validity: Duration| (validity.min(FOREVER) / 4 * 3).max(MIN_PAUSE);
            let again = credentials
                .valid_for
                .map(|validity| asked + pause(validity));
            let is_over = again.is_some_and(|again| again <= clock.now());
            if is_kept && is_over {
                continue;
            }
            self.remember(&credentials);
            return Ok((credentials, again));
        }
    }

    fn begin(&self, clock: &Clock) -> CredentialsQuestion {
        let (ask, asked) = (Arc::clone(&self.ask), clock.now());
        let mut answer = JoinSet::new();
        answer.spawn_on(async move { ask().await }, clock.handle());
        CredentialsQuestion { asked, answer }
    }

    fn remember(
        &self,
        Credentials {
            username, password, ..
        }: &Credentials,
    ) {
        let mut secrets = self.secrets.lock();
        if secrets
            .back()
            .is_some_and(|last| last.is(username, password))
        {
            return;
        }
        secrets.push_back(Secret::of(username, password));
        if secrets.len() > MOST_REMEMBERED {
            secrets.pop_front();
        }
    }
}

/// The error's text and those of its sources.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
