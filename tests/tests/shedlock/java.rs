//! The real ShedLock from Maven, in a process of its own.

use std::path::Path;
use std::time::Duration;

use lock_testkit::{ChildProcess, java_classpath, start_java};

/// A process in Java that runs jobs under ShedLock, with this provider. `None` where there is no
/// Java.
pub(crate) async fn worker(provider: &[String]) -> Option<ChildProcess> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/shedlock"));
    let classpath = java_classpath(target, fixture, None)?;
    let mut arguments = vec!["ShedlockWorker"];
    arguments.extend(provider.iter().map(String::as_str));
    let mut worker = start_java(&classpath, &arguments);
    worker.wait_within(Duration::from_secs(60), "ready").await;
    Some(worker)
}
