//! The dashboard and the alert rules of the example `observability` ask for metrics and labels that
//! exist.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lock_runtime::observe::{METRICS, MetricInfo, MetricKind};
use serde_json::Value;

/// What every series has besides its own labels: the bucket, and where it was scraped.
const OF_PROMETHEUS: [&str; 3] = ["le", "job", "instance"];

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("observability");
    folder.join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// The values of a name, anywhere in the document.
fn values_of(name: &str, of: &Value) -> Vec<String> {
    match of {
        Value::Object(fields) => {
            let own = fields.get(name).and_then(Value::as_str);
            let own = own.map(str::to_owned).into_iter();
            own.chain(fields.values().flat_map(|value| values_of(name, value)))
                .collect()
        }
        Value::Array(values) => values.iter().flat_map(|of| values_of(name, of)).collect(),
        _ => Vec::new(),
    }
}

/// The values of a key. Each is on one line, which `promtool` would not notice if it were not.
fn lines_of(key: &str, yaml: &str) -> Vec<String> {
    let values = yaml
        .lines()
        .map(|line| line.trim().trim_start_matches("- "));
    values
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
        .map(str::to_owned)
        .collect()
}

/// The text without what stands between quotes and between the brackets of ranges.
fn without_values(expression: &str) -> String {
    let mut kept = String::new();
    let mut until = None;
    for character in expression.chars() {
        match (until, character) {
            (Some(end), _) if character == end => until = None,
            (Some(_), _) => {}
            (None, '"') => until = Some('"'),
            (None, '[') => until = Some(']'),
            (None, _) => kept.push(character),
        }
    }
    kept
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let ends_word = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    text.split(ends_word)
        .filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// The metric with this series, such as `lock_wait_seconds_bucket`.
fn metric(series: &str) -> Option<&'static MetricInfo> {
    METRICS.iter().find(|metric| match metric.kind {
        MetricKind::Histogram => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|suffix| series.strip_suffix(suffix) == Some(metric.name)),
        _ => series == metric.name,
    })
}

/// What is wrong with an expression. Labels are named in `{…}` and after `by`.
fn faults(expression: &str) -> Vec<String> {
    let plain = without_values(expression);
    let series: Vec<_> = words(&plain)
        .filter(|word| word.starts_with("lock_"))
        .collect();
    let known: Vec<_> = series.iter().filter_map(|name| metric(name)).collect();
    let mut faults: Vec<_> = series
        .iter()
        .filter(|name| metric(name).is_none())
        .map(|name| format!("no metric has the series {name}"))
        .collect();
    if series.is_empty() {
        faults.push("no metric of locks".to_owned());
    }
    let in_braces = plain
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    let grouped = plain
        .split("by (")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    for label in in_braces.chain(grouped).flat_map(words) {
        let is_of = |metric: &&MetricInfo| metric.labels.contains(&label);
        if !OF_PROMETHEUS.contains(&label) && !known.iter().all(is_of) {
            faults.push(format!("not every metric has the label {label}"));
        }
    }
    faults
}

fn assert_right(expressions: &[String]) {
    for expression in expressions {
        let faults = faults(expression);
        assert!(faults.is_empty(), "{expression}: {faults:?}");
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let expressions = values_of("expr", &dashboard);
    assert_right(&expressions);
    let all = expressions.iter().map(|text| without_values(text));
    let all: Vec<_> = all.collect();
    let shown = all.iter().flat_map(|text| words(text)).filter_map(metric);
    let shown: BTreeSet<_> = shown.map(|metric| metric.name).collect();
    assert_eq!(shown, METRICS.iter().map(|metric| metric.name).collect());
}

#[test]
fn the_alerts_ask_for_metrics_that_exist_and_say_what_to_do() {
    let rules = read("alerts.yml");
    let alerts = lines_of("alert", &rules);
    for expected in ["LocksLost", "LocksWaitLong", "LockStoreUnavailable"] {
        assert!(alerts.iter().any(|alert| alert == expected), "{alerts:?}");
    }
    let expressions = lines_of("expr", &rules);
    assert_right(&expressions);
    for each_has in ["expr", "summary", "description"] {
        assert_eq!(lines_of(each_has, &rules).len(), alerts.len(), "{each_has}");
    }
}

#[test]
fn a_wrong_name_or_label_is_found() {
    for wrong in [
        "rate(lock_wait_seconds[5m])",
        "lock_held_bucket",
        "rate(lock_losses_total[5m])",
        "sum by (key) (lock_held)",
        r#"lock_lost_total{why="gone"}"#,
        "up == 0",
    ] {
        assert!(!faults(wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn promtool_finds_nothing() {
    let rules = file("alerts.yml");
    let checked = Command::new("promtool")
        .arg("check")
        .arg("rules")
        .arg(rules)
        .output();
    match checked {
        Ok(checked) => {
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{said}");
        }
        Err(missing) => println!("skipped: promtool is not in the PATH ({missing})"),
    }
}
