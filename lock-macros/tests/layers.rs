//! The crate's own layout: arrows between its files go down only, and a name stands for one type.
#![expect(
    clippy::unwrap_used,
    reason = "without the files there is nothing to test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::UseTree;
use syn::visit::{self, Visit};

/// A file by its module's path: `["expand", "key"]`, and `[]` for `lib.rs`.
type Module = Vec<String>;

/// Tests don't count: they use what they test. With the environment variable `SHOW_LAYERS` set it
/// prints which file uses which.
#[test]
fn no_file_and_no_folder_is_in_a_circle() {
    let files = files();
    let modules: BTreeSet<Module> = files.keys().cloned().collect();
    let uses: BTreeMap<Module, BTreeSet<Module>> = files
        .iter()
        .map(|(module, file)| (module.clone(), used_by(module, file, &modules)))
        .collect();
    assert!(
        uses.values().map(BTreeSet::len).sum::<usize>() > 50,
        "{uses:?}"
    );
    if std::env::var_os("SHOW_LAYERS").is_some() {
        for (module, used) in &uses {
            let used: Vec<String> = used.iter().map(|used| used.join("::")).collect();
            println!("{} -> {}", module.join("::"), used.join(", "));
        }
    }
    assert_no_circle(&uses);
    let room = |module: &Module| module.iter().take(1).cloned().collect::<Module>();
    let mut rooms: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, used) in &uses {
        let others = used.iter().map(room).filter(|used| *used != room(module));
        rooms.entry(room(module)).or_default().extend(others);
    }
    assert_no_circle(&rooms);
}

/// Takes away, as long as there is any, what uses nothing that is left or what nothing left uses.
/// Only circles stay, and what lies between two of them.
fn assert_no_circle(uses: &BTreeMap<Module, BTreeSet<Module>>) {
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
    assert!(left.is_empty(), "in a circle: {:?}", left.keys());
}

#[test]
fn no_name_stands_for_two_types() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (module, file) in files() {
        let mut types = Types::default();
        types.visit_file(&file);
        for name in types.names {
            places.entry(name).or_default().push(module.join("::"));
        }
    }
    assert!(places.len() > 20, "{places:?}");
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "{places:?}");
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

/// Every file of `src` that is not a test, without the tests inside of it.
fn files() -> BTreeMap<Module, syn::File> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                let module = module_of(path.strip_prefix(&source).unwrap());
                let mut file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
                file.items.retain(|item| !is_tests(item));
                found.insert(module, file);
            }
        }
    }
    found
}

fn module_of(path: &Path) -> Module {
    let path: PathBuf = path.with_extension("");
    if path == Path::new("lib") {
        return Vec::new();
    }
    let parts = path.iter().map(|part| part.to_str().unwrap().to_owned());
    parts.collect()
}

fn is_tests(item: &syn::Item) -> bool {
    matches!(item, syn::Item::Mod(module) if module.ident == "tests")
}

/// The other files that this one names.
fn used_by(module: &Module, file: &syn::File, modules: &BTreeSet<Module>) -> BTreeSet<Module> {
    let mut paths = Paths::default();
    paths.visit_file(file);
    let is_child = |name: &String| {
        let mut child = module.clone();
        child.push(name.clone());
        modules.contains(&child)
    };
    let from_here = |path: &Vec<String>| {
        let first = path.first().unwrap();
        ["crate", "super", "self"].contains(&first.as_str()) || is_child(first)
    };
    let paths = paths.found.into_iter().filter(from_here);
    let files = paths.map(|path| file_of(module, path, modules));
    files.filter(|used| used != module).collect()
}

/// The file in which a path ends: the longest part of it that is one.
fn file_of(module: &Module, path: Vec<String>, modules: &BTreeSet<Module>) -> Module {
    let mut whole = module.clone();
    for part in path {
        match part.as_str() {
            "crate" => whole.clear(),
            "super" => drop(whole.pop()),
            "self" => {}
            _ => whole.push(part),
        }
    }
    while !modules.contains(&whole) {
        whole.pop();
    }
    whole
}

/// Every path in a file, of `use` and of everything else.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.branches(&mut Vec::new(), &item.tree);
    }

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
