//! [`LuaScripts`]: the scripts of the Redis store, as text.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The Lua scripts of the Redis store, and the files that each is made of. Those of Redisson's
/// layout are left out: their tests are beside Redisson itself.
#[derive(Clone, Debug)]
pub struct LuaScripts {
    files: BTreeMap<String, String>,
    parts: BTreeMap<String, Vec<String>>,
}

impl LuaScripts {
    /// As they are in the repository now. A test program has those of its build inside.
    ///
    /// # Panics
    /// If they aren't found there, or if one belongs to no script.
    #[must_use]
    pub fn in_repository() -> Self {
        let store =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lock-runtime/stores/redis");
        let table = read(&store.join("src/scripts.rs"));
        let (_, table) = table.rsplit_once("scripts! {").expect("the table");
        let parts: BTreeMap<String, Vec<String>> = table.split(';').filter_map(parts).collect();
        let files: BTreeMap<String, String> = parts
            .values()
            .flatten()
            .map(|file| (file.clone(), read(&store.join("src/commands").join(file))))
            .collect();
        let there = ["src/commands", "src/layouts"].map(|folder| {
            let there = fs::read_dir(store.join(folder)).expect("the scripts' folder");
            let names = there.map(|entry| entry.expect("a file").file_name());
            let there = names.filter(|name| Path::new(name).extension() == Some("lua".as_ref()));
            there.count()
        });
        let there: usize = there.iter().sum();
        assert_eq!(files.len(), there, "scripts.rs names others");
        Self { files, parts }
    }

    /// Those in the folder named by `LOCK_SCRIPTS`, which has every file; without that variable,
    /// those of the repository. `bash tests/long/run scripts` sets it, to have them broken.
    ///
    /// # Panics
    /// If a file is missing.
    #[must_use]
    pub fn under_test() -> Self {
        let mut scripts = Self::in_repository();
        if let Some(folder) = std::env::var_os("LOCK_SCRIPTS").map(PathBuf::from) {
            for (file, text) in &mut scripts.files {
                *text = read(&Self::place(&folder, file));
            }
        }
        scripts
    }

    /// Where a file has its place in the folder that `LOCK_SCRIPTS` names.
    #[must_use]
    pub fn place(folder: &Path, file: &str) -> PathBuf {
        folder.join(file.trim_start_matches("../"))
    }

    /// The text of each file.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// The script with this name, such as `ACQUIRE`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn script(&self, name: &str) -> String {
        let parts = self.parts.get(name).expect("a script of scripts.rs");
        parts.iter().map(|part| &*self.files[part]).collect()
    }

    /// The first script, by name, that the file is a part of, with another text for that file.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn with(&self, file: &str, text: &str) -> String {
        let mut parts = self.parts.values();
        let parts = parts.find(|parts| parts.iter().any(|part| part == file));
        let parts = parts.expect("a file of scripts.rs");
        let of = |part: &String| {
            if part == file {
                text
            } else {
                &self.files[part]
            }
        };
        parts.iter().map(of).collect()
    }
}

/// The name and the files of a script, from an entry such as `NAME = "lib.lua", "acquire.lua"`.
fn parts(entry: &str) -> Option<(String, Vec<String>)> {
    let (name, files) = entry.strip_suffix(".lua\"").and(entry.split_once('='))?;
    if files.contains("../layouts/redisson/") {
        return None;
    }
    let quoted = files.split('"').skip(1).step_by(2);
    Some((name.trim().to_owned(), quoted.map(str::to_owned).collect()))
}

fn read(path: &Path) -> String {
    let text = fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
