//! [`Credentials`] that change: who provides them, and when they are renewed.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{Clock, Instant, Mutex, StoreError, StoreErrorKind};
use tokio::task::JoinHandle;

use crate::secrets::Secret;
use crate::server_text::shown;

/// A longer validity counts as endless.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// However short the validity, the provider is asked no more often than this for an established
/// connection.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(500);
/// A provider that has not answered for this long is asked anew.
const ASKED_FOR: Duration = Duration::from_secs(60);
/// An answer for which nobody waited any more is used by whoever asks within this time.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// The number of a provider's latest passwords that stay hidden: an error may be late.
const KEPT: usize = 4;

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

impl Credentials {
    /// The command that authenticates an established connection.
    pub(crate) fn auth(&self) -> redis::Cmd {
        let mut auth = redis::cmd("AUTH");
        auth.arg(&self.username).arg(&self.password);
        auth
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("valid_for", &self.valid_for)
            .finish_non_exhaustive()
    }
}

type Asked = Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send>>;

/// The provider of a client's credentials.
#[derive(Clone)]
pub struct CredentialsProvider {
    ask: Arc<dyn Fn() -> Asked + Send + Sync>,
    /// Questions that nobody waits for any more. The next one who asks gets the answer.
    left: Arc<Mutex<Vec<Question>>>,
    /// The newest last.
    secrets: Arc<Mutex<VecDeque<Secret>>>,
}

/// A question to the provider, and its answer with the time at which it came.
struct Question {
    asked_at: Instant,
    answer: JoinHandle<(Result<Credentials, String>, Instant)>,
}

/// A question that somebody waits for. It is left to the next one if that ends before the answer
/// comes.
struct Waiting<'p> {
    question: Option<Question>,
    left: &'p Mutex<Vec<Question>>,
}

impl Waiting<'_> {
    /// The answer, and when it came; a panic, `now`. `None` if the client that asked has ended.
    async fn answer(mut self, now: Instant) -> Option<(Result<Credentials, String>, Instant)> {
        let answer = (&mut self.question.as_mut()?.answer).await;
        self.question = None;
        match answer {
            Err(end) if end.is_cancelled() => None,
            Err(_) => Some((Err("panicked".to_owned()), now)),
            Ok(answer) => Some(answer),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.left.lock().extend(self.question.take());
    }
}

impl fmt::Debug for CredentialsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsProvider")
    }
}

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
            Box::pin(asked) as Asked
        };
        Self {
            ask: Arc::new(ask),
            left: Arc::default(),
            secrets: Arc::default(),
        }
    }

    /// Credentials for one connection, and when to ask for the next.
    pub(crate) async fn ask(
        &self,
        clock: &Clock,
    ) -> Result<(Credentials, Option<Instant>), StoreError> {
        loop {
            let question = self.left(clock.now());
            let question = question.unwrap_or_else(|| self.question(clock));
            let asked_at = question.asked_at;
            let waiting = Waiting {
                question: Some(question),
                left: &self.left,
            };
            let Some((answer, came_at)) = waiting.answer(clock.now()).await else {
                continue;
            };
            if clock.now() > came_at + KEPT_FOR {
                continue;
            }
            let credentials = answer.map_err(|why| {
                let text = format!("the credentials provider {why}");
                StoreError::new(StoreErrorKind::Disconnected, text)
            })?;
            self.remember(&credentials);
            let pause = |validity: Duration| (validity.min(FOREVER) / 4 * 3).max(MIN_PAUSE);
            let again = credentials
                .valid_for
                .map(|validity| asked_at + pause(validity));
            return Ok((credentials, again));
        }
    }

    /// A question that nobody waits for any more, unless it is too old. A provider may be slower
    /// than the attempts that ask it: all of them together have its answer.
    fn left(&self, now: Instant) -> Option<Question> {
        let mut left = self.left.lock();
        for old in left.extract_if(.., |question| now >= question.asked_at + ASKED_FOR) {
            old.answer.abort();
        }
        left.pop()
    }

    /// Asks, in a task of its own: its panic ends no connection, and the end of a connection does
    /// not end it.
    fn question(&self, clock: &Clock) -> Question {
        let (ask, own) = (Arc::clone(&self.ask), clock.clone());
        let asked_at = clock.now();
        let answer = async move {
            let answer = ask().await;
            let answer = answer.map_err(|text| format!("failed: {}", shown(&text)));
            (answer, own.now())
        };
        let answer = clock.handle().spawn(answer);
        Question { asked_at, answer }
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
        if secrets.len() > KEPT {
            secrets.pop_front();
        }
    }
}

/// A provider, and the client's clock.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'c> {
    pub(crate) provider: &'c CredentialsProvider,
    pub(crate) clock: &'c Clock,
}

/// The identity of a connection, and how long it is valid.
pub(crate) struct Session {
    pub(crate) settings: redis::RedisConnectionInfo,
    /// True if a provider was asked.
    pub(crate) is_asked: bool,
    pub(crate) renew_at: Option<Instant>,
}

impl Session {
    /// The settings with credentials for one more connection.
    pub(crate) async fn begin(
        settings: &redis::RedisConnectionInfo,
        asking: Option<Asking<'_>>,
    ) -> Result<Self, StoreError> {
        let mut session = Self {
            settings: settings.clone(),
            is_asked: asking.is_some(),
            renew_at: None,
        };
        if let Some(Asking { provider, clock }) = asking {
            let (credentials, again) = provider.ask(clock).await?;
            let Credentials {
                username, password, ..
            } = credentials;
            let settings = session.settings.set_username(username);
            session.settings = settings.set_password(password);
            session.renew_at = again;
        }
        Ok(session)
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
