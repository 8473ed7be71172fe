//! An example as its users see it: started as a program, and judged by its output and its exit
//! status.

use std::process::{Command, Output};

/// Part of the URLs in these tests, and never of what a program prints.
pub(crate) const PASSWORD: &str = "canary";

/// The output of a program, and how it ended.
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    #[track_caller]
    pub(crate) fn of(program: &mut Command) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = program.output().unwrap();
        let run = Self {
            status: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        };
        assert!(!run.stdout.contains(PASSWORD), "{}", run.stdout);
        assert!(!run.stderr.contains(PASSWORD), "{}", run.stderr);
        run
    }

    #[track_caller]
    pub(crate) fn assert_status(&self, status: i32) {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert_eq!(self.status, Some(status), "{said}");
    }

    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        let mut lines = self.stdout.lines();
        let row = lines.find_map(|line| line.strip_prefix("  ")?.strip_prefix(name))?;
        Some(row.trim())
    }

    #[allow(dead_code, reason = "not every table consists of numbers")]
    #[track_caller]
    pub(crate) fn row(&self, name: &str) -> u32 {
        let said = || format!("no number for {name}: {}{}", self.stdout, self.stderr);
        let number = self.find(name).and_then(|row| row.parse().ok());
        number.unwrap_or_else(|| panic!("{}", said()))
    }
}
