//! From a URL to a store.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, mpsc};

use lock_store::{ConfigError, Mutex, Store, StoreContext};

use crate::mailbox::Hearer;
use crate::store::SqliteStore;
use crate::worker::{Worker, WorkerState};
use crate::{file_system, machine, url};

/// Opens the database of a URL such as `sqlite:///var/lib/shop/locks.db`, in the background. The
/// file is created if it does not exist.
///
/// # Errors
/// For a bad URL, a folder that does not exist or that several machines can share, a process whose
/// boot time is not that of its machine, and one that was forked from another that has used this.
/// If the file can't be used, [`Store::await_connection`] and each request say so.
pub fn open(url: &str, context: StoreContext) -> Result<Arc<dyn Store>, ConfigError> {
    let StoreContext {
        namespace,
        client,
        listener,
        clock,
        ..
    } = context;
    let path = url::path_of(url)?;
    check_process()?;
    file_system::check(&path)?;
    let hearer = Hearer {
        listener,
        namespace: namespace.clone(),
    };
    let (jobs, received) = mpsc::channel();
    let state = Arc::<WorkerState>::default();
    let worker = Worker {
        path: path.clone(),
        client,
        hearer,
        clock: clock.clone(),
        jobs: received,
        state: Arc::clone(&state),
        awaited: HashMap::new(),
        looks_at: clock.now(),
        checks_at: clock.now(),
    };
    std::thread::Builder::new()
        .name("lock-sqlite".into())
        .spawn(move || worker.run())
        .map_err(|error| {
            ConfigError::new(format!("the thread for SQLite can't be started: {error}"))
        })?;
    Ok(Arc::new(SqliteStore {
        path,
        namespace,
        clock,
        jobs: Mutex::new(Some(jobs)),
        state,
    }))
}

/// SQLite keeps the locks of this process in its memory, which a fork copies: the copy would go by
/// locks that its process does not have.
fn check_process() -> Result<(), ConfigError> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let process = std::process::id();
    if *FIRST.get_or_init(|| process) != process {
        return Err(ConfigError::new(
            "this process was forked from one that has used SQLite, and SQLite does not work in \
             both; fork before the first client connects, or start a new program",
        ));
    }
    if machine::has_own_boot_time() {
        return Err(ConfigError::new(
            "this process is in a time namespace whose boot time is not the machine's, so that \
             leases would not end at the same time for all; leave out the offset of `boottime`",
        ));
    }
    Ok(())
}
