//! A movable wall clock, for a server only.

use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The files with which a server is started, so that its wall clock can be moved while it runs.
#[derive(Debug)]
pub struct ClockShim {
    folder: TempDir,
    file: std::fs::File,
}

impl ClockShim {
    /// Compiles the library, or returns why that is not possible.
    ///
    /// # Errors
    /// Without a C compiler, or on a system that can't preload the library.
    pub fn compile() -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err("clocks are moved on Linux only".to_owned());
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let source = folder.path().join("clock_shim.c");
        std::fs::write(&source, include_str!("clock_shim.c")).expect("a file can be written");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(folder.path().join("clock_shim.so"))
            .arg(&source)
            .arg("-ldl")
            .stdin(Stdio::null())
            .output();
        match compiled {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                return Err(format!(
                    "the C compiler refuses: {}",
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
            Err(error) => return Err(format!("there is no C compiler (cc): {error}")),
        }
        let path = folder.path().join("shift");
        let mut file = std::fs::File::create(&path).expect("a file can be made");
        file.write_all(&0_i64.to_ne_bytes())
            .expect("it can be written");
        Ok(Self { folder, file })
    }

    /// The environment variables of the server.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let path = self.folder.path();
        [
            ("LD_PRELOAD", path.join("clock_shim.so")),
            ("CLOCK_SHIFT_FILE", path.join("shift")),
        ]
    }

    /// Sets how far the clock is ahead (or behind, if negative) from now on.
    ///
    /// # Panics
    /// If the file can't be written.
    pub fn shift(&self, millis: i64) {
        let mut file = &self.file;
        let nanos = millis * 1_000_000;
        file.rewind()
            .and_then(|()| file.write_all(&nanos.to_ne_bytes()))
            .expect("the shift can be written");
    }
}
