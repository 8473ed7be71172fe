//! The scripts' files, and which of them make a script.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::mutants::repository;

/// The text of each file, and the files of each script.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) files: BTreeMap<String, String>,
    parts: Vec<Vec<String>>,
}

impl Scripts {
    pub(super) fn read() -> Result<Self, String> {
        let store = repository().join("lock-runtime/stores/redis/src");
        let table = read(&store.join("scripts.rs"))?;
        // `NAME = "lib.lua", "acquire.lua";`
        let parts: Vec<Vec<String>> = table
            .lines()
            .filter(|line| line.ends_with(".lua\";"))
            .map(|line| {
                let quoted = line.split('"').skip(1).step_by(2);
                quoted.map(str::to_owned).collect()
            })
            .collect();
        let mut files = BTreeMap::new();
        for file in parts.iter().flatten() {
            let text = read(&store.join("commands").join(file))?;
            files.insert(file.clone(), text);
        }
        if files.is_empty() {
            return Err("scripts.rs names no scripts any more".to_owned());
        }
        Ok(Self { files, parts })
    }

    /// The first script that the file is a part of, with another text for that file.
    pub(super) fn assembled(&self, file: &str, text: &str) -> String {
        let is_part = |parts: &&Vec<String>| parts.iter().any(|part| part == file);
        let parts = self.parts.iter().find(is_part);
        let of = |part: &String| {
            if part == file {
                text
            } else {
                &self.files[part]
            }
        };
        parts.into_iter().flatten().map(of).collect()
    }

    /// Writes all files into a folder, with other texts where `changed` gives them.
    pub(super) fn write(
        &self,
        folder: &Path,
        changed: impl Fn(&str, &str) -> String,
    ) -> Result<(), String> {
        for (file, text) in &self.files {
            let path = folder.join(file);
            fs::write(&path, changed(file, text))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
