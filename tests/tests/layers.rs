//! The layout: arrows between the files of a crate go down only, and a name stands for one type of
//! one crate, in whichever of them.
//!
//! `SHOW_LAYERS=1 cargo test -p lock-tests --test layers -- --nocapture` prints which file uses
//! which.
#![expect(
    clippy::unwrap_used,
    reason = "without the files there is nothing to test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::UseTree;
use syn::visit::{self, Visit};

const CRATES: [&str; 8] = [
    "lock-macros/src",
    "lock-runtime/store/src",
    "lock-runtime/stores/etcd/src",
    "lock-runtime/stores/postgres/src",
    "lock-runtime/stores/redis/src",
    "lock-runtime/stores/sqlite/src",
    "lock-runtime/stores/zookeeper/src",
    "lock-runtime/src",
];

/// A file by its module's path: `["expand", "key"]`, and `[]` for `lib.rs`.
type Module = Vec<String>;

/// The crate's files that are not tests.
struct Sources {
    files: BTreeMap<Module, syn::File>,
    /// What a file re-exports from others: each name, and the path of its definition.
    re_exported: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// Tests don't count, since they use what they test. Re-exports don't count either: an arrow goes
/// to the definition of a name.
#[test]
fn no_file_is_in_a_circle() {
    for crate_ in CRATES {
        let sources = Sources::read(crate_);
        let uses: BTreeMap<Module, BTreeSet<Module>> = sources
            .files
            .iter()
            .map(|(module, file)| (module.clone(), sources.used_by(module, file)))
            .collect();
        let arrows = uses.values().map(BTreeSet::len).sum::<usize>();
        assert!(arrows > 20, "{crate_}: {uses:?}");
        if std::env::var_os("SHOW_LAYERS").is_some() {
            for (module, used) in &uses {
                let used: Vec<String> = used.iter().map(|used| used.join("::")).collect();
                println!("{crate_}: {} -> {}", module.join("::"), used.join(", "));
            }
        }
        assert_no_circle(crate_, &uses);
    }
}

/// Repeatedly removes files that use no remaining file or that no remaining file uses. Only circles
/// stay, and what lies between two of them.
fn assert_no_circle(crate_: &str, uses: &BTreeMap<Module, BTreeSet<Module>>) {
    let mut left = uses.clone();
    loop {
        let before = left.len();
        let names: BTreeSet<Module> = left.keys().cloned().collect();
        left.retain(|_, used| used.iter().any(|used| names.contains(used)));
        let used: BTreeSet<Module> = left.values().flatten().cloned().collect();
        left.retain(|name, _| used.contains(name));
        if left.len() == before {
            break;
        }
    }
    let names: BTreeSet<Module> = left.keys().cloned().collect();
    for used in left.values_mut() {
        used.retain(|used| names.contains(used));
    }
    assert!(left.is_empty(), "in a circle of {crate_}: {left:#?}");
}

/// Names that stand for one type in each of several crates, and why.
const SHARED: [(&str, &[&str]); 2] = [
    (
        "each engine has one of its own, and no file sees two engines",
        &["Connection", "Hearer", "News", "Settings", "Transport"],
    ),
    (
        "the two engines that decide by the order of requests have the same rooms",
        &[
            "AttemptsProgress",
            "Carried",
            "Child",
            "ChildPlace",
            "Dialer",
            "Fault",
            "Listing",
            "Live",
            "Own",
            "OwnDetails",
            "Session",
        ],
    ),
];

#[test]
fn no_name_stands_for_two_types() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for crate_ in CRATES {
        let before = places.len();
        for (module, file) in Sources::read(crate_).files {
            let mut types = Types::default();
            types.visit_file(&file);
            for name in types.names {
                let place = format!("{crate_} {}", module.join("::"));
                places.entry(name).or_default().push(place);
            }
        }
        assert!(places.len() > before + 20, "{crate_}: {places:?}");
    }
    places.retain(|_, places| places.len() > 1);
    for name in SHARED.iter().flat_map(|(_, names)| *names) {
        let shared = places.remove(*name).unwrap_or_default();
        assert!(shared.len() > 1, "one type only has the name {name}");
        let crates: BTreeSet<&str> = shared
            .iter()
            .filter_map(|at| at.split(' ').next())
            .collect();
        assert_eq!(crates.len(), shared.len(), "{name}: {shared:?}");
    }
    assert!(places.is_empty(), "{places:#?}");
}

#[derive(Default)]
struct Types {
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let name = match item {
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.names.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }
}

impl Sources {
    fn read(crate_: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(crate_);
        let (mut files, mut folders) = (BTreeMap::new(), vec![source.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let module = module_of(path.strip_prefix(&source).unwrap());
                    let text = fs::read_to_string(&path).unwrap();
                    files.insert(module, syn::parse_file(&text).unwrap());
                }
            }
        }
        let tests = tests_among(&files);
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        for file in files.values_mut() {
            file.items.retain(|item| !is_test(item));
        }
        let re_exported = files.iter().map(|(module, file)| {
            let mut paths = Paths::default();
            for item in &file.items {
                if let syn::Item::Use(item) = item
                    && !matches!(item.vis, syn::Visibility::Inherited)
                {
                    paths.branches(&mut Vec::new(), &item.tree);
                }
            }
            let named = paths.found.into_iter();
            let named = named.filter_map(|path| Some((path.last()?.clone(), path)));
            (module.clone(), named.collect())
        });
        let re_exported = re_exported.collect();
        Self { files, re_exported }
    }

    /// The other files that this one names.
    fn used_by(&self, module: &Module, file: &syn::File) -> BTreeSet<Module> {
        let mut paths = Paths::default();
        paths.visit_file(file);
        let is_child = |name: &String| {
            let mut child = module.clone();
            child.push(name.clone());
            self.files.contains_key(&child)
        };
        let from_here = |path: &Vec<String>| {
            let first = path.first().unwrap();
            ["crate", "super", "self"].contains(&first.as_str()) || is_child(first)
        };
        let paths = paths.found.into_iter().filter(from_here);
        let files = paths.map(|path| self.file_of(module, path));
        files.filter(|used| used != module).collect()
    }

    /// The file that defines what a path names.
    fn file_of(&self, module: &Module, path: Vec<String>) -> Module {
        let mut whole = module.clone();
        for part in path {
            match part.as_str() {
                "crate" => whole.clear(),
                "super" => drop(whole.pop()),
                "self" => {}
                _ => whole.push(part),
            }
        }
        let mut name = None;
        while !self.files.contains_key(&whole) {
            name = whole.pop();
        }
        let re_exported = name.and_then(|name| self.re_exported[&whole].get(&name));
        match re_exported {
            Some(path) => self.file_of(&whole, path.clone()),
            None => whole,
        }
    }
}

/// The modules that are declared for tests only.
fn tests_among(files: &BTreeMap<Module, syn::File>) -> BTreeSet<Module> {
    let mut tests = BTreeSet::new();
    for (module, file) in files {
        for item in file.items.iter().filter(|item| is_test(item)) {
            if let syn::Item::Mod(item) = item {
                let mut test = module.clone();
                test.push(item.ident.to_string());
                tests.insert(test);
            }
        }
    }
    tests
}

fn module_of(path: &Path) -> Module {
    let mut path: PathBuf = path.with_extension("");
    if path.ends_with("mod") {
        path.pop();
    }
    if path == Path::new("lib") {
        return Vec::new();
    }
    let parts = path.iter().map(|part| part.to_str().unwrap().to_owned());
    parts.collect()
}

/// Whether it is compiled for tests only.
fn is_test(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && (condition.starts_with("test") || condition.contains("(test"))
    })
}

/// Every path in a file, of `use` and of everything else.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited) {
            self.branches(&mut Vec::new(), &item.tree);
        }
    }

    /// A visibility names a path without using it.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let names = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string());
            self.found.push(names.collect());
        }
        visit::visit_path(self, path);
    }
}

impl Paths {
    fn branches(&mut self, stem: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                stem.push(path.ident.to_string());
                self.branches(stem, &path.tree);
                stem.pop();
            }
            UseTree::Group(group) => {
                for branch in &group.items {
                    self.branches(stem, branch);
                }
            }
            UseTree::Name(name) => self.leaf(stem, &name.ident),
            UseTree::Rename(name) => self.leaf(stem, &name.ident),
            UseTree::Glob(_) => self.found.push(stem.clone()),
        }
    }

    fn leaf(&mut self, stem: &[String], name: &syn::Ident) {
        let mut path = stem.to_vec();
        path.push(name.to_string());
        self.found.push(path);
    }
}
