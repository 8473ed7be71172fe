//! What the crates need that users depend on, and what they bring along. Whether an advisory
//! concerns it takes a network: CONTRIBUTING.md, "Before a release".
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "without cargo's answer there is nothing to test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

const PUBLISHED: [&str; 8] = [
    "lock-macros",
    "lock-runtime",
    "lock-store",
    "lock-store-etcd",
    "lock-store-postgres",
    "lock-store-redis",
    "lock-store-sqlite",
    "lock-store-zookeeper",
];

/// None of them asks more of a service than to keep a notice.
const LICENCES: [&str; 8] = [
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn output(program: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {error}");
    output.stdout
}

/// What cargo says of this workspace, on this platform.
fn metadata() -> Value {
    let version = String::from_utf8(output("rustc", &["-vV"])).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let json = output(
        "cargo",
        &[
            "metadata",
            "--format-version=1",
            "--locked",
            "--all-features",
            "--filter-platform",
            host.unwrap(),
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"),
        ],
    );
    serde_json::from_slice(&json).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The packages by their ids.
fn packages(metadata: &Value) -> BTreeMap<&str, &Value> {
    let packages = list(&metadata["packages"]).iter();
    packages.map(|it| (text(&it["id"]), it)).collect()
}

fn is_published(package: &Value) -> bool {
    PUBLISHED.contains(&text(&package["name"]))
}

/// A version of Rust, as `1.88`.
fn version(package: &Value) -> Vec<u32> {
    let parts = text(&package["rust_version"]).split('.').take(2);
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn who_publishes_the_crates_finds_each_complete() {
    let metadata = metadata();
    let packages = packages(&metadata);
    let ours = list(&metadata["workspace_members"]).iter();
    let ours: Vec<&Value> = ours.map(|id| packages[text(id)]).collect();
    let may_be_published = ours.iter().filter(|it| it["publish"].is_null());
    let names: BTreeSet<&str> = may_be_published.map(|it| text(&it["name"])).collect();
    assert_eq!(names, BTreeSet::from(PUBLISHED));
    for package in ours.into_iter().filter(|package| is_published(package)) {
        let name = text(&package["name"]);
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(!text(&package[field]).is_empty(), "{name} has no {field}");
        }
        for field in ["keywords", "categories"] {
            let values = list(&package[field]);
            assert!((1..=5).contains(&values.len()), "{name}: {field}");
        }
        let folder = Path::new(text(&package["manifest_path"])).parent().unwrap();
        assert!(folder.join("LICENSE").is_file(), "{name} has no LICENSE");
        let features = package["features"].as_object().unwrap();
        let own = |feature: &&str| *feature != "default" && !feature.starts_with("__");
        let own: BTreeSet<&str> = features.keys().map(String::as_str).filter(own).collect();
        let default = list(&features.get("default").cloned().unwrap_or_default())
            .iter()
            .map(|feature| text(feature).to_owned())
            .collect::<Vec<_>>();
        let built = list(&package["metadata"]["docs"]["rs"]["features"]).iter();
        let built = built.map(text).chain(default.iter().map(String::as_str));
        assert_eq!(built.collect::<BTreeSet<_>>(), own, "{name} on docs.rs");
        for dependency in list(&package["dependencies"]) {
            let is_dev = text(&dependency["kind"]) == "dev";
            if !is_dev && dependency["path"].is_string() {
                let exact = format!("={}", text(&package["version"]));
                assert_eq!(text(&dependency["req"]), exact, "{name}: {dependency}");
            }
        }
    }
}

/// The ids of what a service gets with the published crates, on this platform.
fn brought_along(metadata: &Value) -> BTreeSet<&str> {
    let packages = packages(metadata);
    let nodes = list(&metadata["resolve"]["nodes"]).iter();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let published = packages.iter().filter(|(_, it)| is_published(it));
    let mut left: Vec<&str> = published.map(|(id, _)| *id).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = left.pop() {
        if found.insert(id) {
            for dependency in list(&nodes[id]["deps"]) {
                let mut kinds = list(&dependency["dep_kinds"]).iter();
                if kinds.any(|kind| text(&kind["kind"]) != "dev") {
                    left.push(text(&dependency["pkg"]));
                }
            }
        }
    }
    found
}

#[test]
fn what_a_service_gets_may_be_used_by_anybody_and_needs_no_newer_rust() {
    let metadata = metadata();
    let packages = packages(&metadata);
    let all = brought_along(&metadata);
    assert!(all.len() > 60, "{all:?}");
    let ours = packages.values().find(|package| is_published(package));
    let newest = version(ours.unwrap());
    for package in all.iter().map(|id| packages[id]) {
        let name = text(&package["name"]);
        let licence = text(&package["license"]);
        let expression = Expression::parse_mode(licence, ParseMode::LAX);
        let expression = expression.unwrap_or_else(|error| panic!("{name}: {licence:?}: {error}"));
        let allowed = expression.evaluate(|needed| {
            let id = needed.license.id();
            id.is_some_and(|id| LICENCES.contains(&id.name)) && needed.addition.is_none()
        });
        assert!(allowed, "{name}: {licence}");
        assert!(version(package) <= newest, "{name} needs a newer Rust");
        if !is_published(package) {
            assert_eq!(text(&package["source"]), REGISTRY, "{name}");
        }
    }
}
