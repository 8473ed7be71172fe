//! The test programs that cargo built.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A test program, and where cargo would run it.
#[derive(Debug)]
pub(crate) struct Program {
    package: String,
    target: String,
    file: PathBuf,
    folder: PathBuf,
    libraries: String,
}

impl Program {
    /// `lock-tests::faults`
    pub(crate) fn name(&self) -> String {
        format!("{}::{}", self.package, self.target)
    }

    /// It runs its tests itself, with servers that it keeps up between them.
    pub(crate) fn is_whole(&self) -> bool {
        self.target == "conformance"
    }

    /// If its tests began late, the end would wait for them.
    pub(crate) fn is_long(&self) -> bool {
        let long = ["drift", "redisson", "simulation", "topology", "ui"];
        self.is_whole() || long.contains(&self.target.as_str())
    }

    /// It computes, and promises no times.
    pub(crate) fn is_computing(&self) -> bool {
        ["key_injectivity", "lock_macros", "ui"].contains(&self.target.as_str())
    }

    /// The program, as cargo would start it. A program that computes leaves the processor to those
    /// that promise times.
    pub(crate) fn command(&self) -> Command {
        let mut command = if self.is_computing() {
            let mut command = Command::new("nice");
            command.args(["-n", "10"]).arg(&self.file);
            command
        } else {
            Command::new(&self.file)
        };
        command
            .current_dir(&self.folder)
            .env("CARGO", "cargo")
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env("CARGO_PKG_VERSION", env!("CARGO_PKG_VERSION"))
            .env("LD_LIBRARY_PATH", &self.libraries);
        command
    }
}

/// All programs that cargo's messages name.
pub(crate) fn read(messages: &Path) -> Result<Vec<Program>, String> {
    let text = std::fs::read_to_string(messages)
        .map_err(|error| format!("{}: {error}", messages.display()))?;
    let libraries = libraries()?;
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let is_test = message["profile"]["test"].as_bool()?;
        let file = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        // `path+file:///work/tests#lock-tests@0.1.0`, or without a name if the folder has the same.
        let (path, name) = message["package_id"].as_str()?.rsplit_once('#')?;
        let package = match name.split_once('@') {
            Some((name, _)) => name,
            None => path.rsplit('/').next()?,
        };
        is_test.then(|| Program {
            package: package.to_owned(),
            target: message["target"]["name"].as_str().unwrap_or("?").to_owned(),
            file,
            folder: folder.to_owned(),
            libraries: libraries.clone(),
        })
    };
    Ok(messages.filter_map(program).collect())
}

/// The folder of the standard library, which tests of a macro crate load.
fn libraries() -> Result<String, String> {
    let mut rustc = Command::new("rustc");
    let printed = rustc.args(["--print", "target-libdir"]).output();
    let printed = printed.map_err(|error| format!("rustc: {error}"))?;
    let folder = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
    let others = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    Ok(format!("{folder}:{others}"))
}
