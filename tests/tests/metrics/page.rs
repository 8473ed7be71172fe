//! The page's table and the metrics are the same.

use lock_runtime::observe::METRICS;

#[test]
fn the_page_lists_the_metrics_as_they_are() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../lock-runtime/docs/observability.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split("\n## ").find(|part| part.starts_with("Metrics"));
    let rows = table
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `lock_"));
    let listed: Vec<Vec<&str>> = rows
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .map(|row: Vec<&str>| row[..4].to_vec())
        .collect();
    let metrics: Vec<[String; 4]> = METRICS
        .iter()
        .map(|metric| {
            let labels: Vec<String> = metric.labels.iter().map(|one| format!("`{one}`")).collect();
            let kind = metric.kind.as_str().to_owned();
            let name = format!("`{}`", metric.name);
            [name, kind, metric.unit.to_owned(), labels.join(", ")]
        })
        .collect();
    assert_eq!(listed, metrics);
}
