//! The figures as a picture: a panel for each workload, a bar for each library.

use std::fmt::Write as _;

use crate::figures::{CYCLES, Measured, P50, Results};
use crate::plan;
use crate::report;

const WIDTH: f64 = 940.0;
const PANEL: f64 = 460.0;
/// Room for the names, and for the figure behind the bar.
const NAMES: f64 = 130.0;
const FIGURE: f64 = 70.0;
const BAR: f64 = 16.0;
const HEAD: f64 = 44.0;

/// What each panel shows, and whether less is better.
const PANELS: [(&str, &str, bool); 7] = [
    ("solo", CYCLES, false),
    ("many", CYCLES, false),
    ("hot", CYCLES, false),
    ("hot4", CYCLES, false),
    ("sale", CYCLES, false),
    ("sale4", CYCLES, false),
    ("handoff", P50, true),
];

pub(crate) fn draw(results: &Results) -> String {
    let mut body = String::new();
    let mut top = 40.0;
    let panels: Vec<_> = PANELS
        .iter()
        .filter_map(|panel| {
            let measured = results.workloads.iter().find(|one| one.name == panel.0)?;
            Some((measured, panel.1, panel.2))
        })
        .collect();
    for pair in panels.chunks(2) {
        let mut height: f64 = 0.0;
        for (column, (measured, figure, less)) in pair.iter().enumerate() {
            let left = column as f64 * (PANEL + 20.0);
            height = height.max(panel(&mut body, left, top, measured, figure, *less));
        }
        top += height + 16.0;
    }
    let machine = |name: &str| results.machine.get(name).map_or("", String::as_str);
    let about = format!(
        "Medians of one run on {} cores, {}. \
         Orange: this library; dark: by hand, or without a lock; grey: others.",
        machine("cores"),
        machine("redis").split(" sha").next().unwrap_or_default()
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" \
         width=\"{WIDTH}\" height=\"{top}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"0\" y=\"20\" fill=\"#444444\">{}</text>\n{body}</svg>\n",
        escaped(&about)
    )
}

/// Returns its height.
fn panel(
    text: &mut String,
    left: f64,
    top: f64,
    measured: &Measured,
    figure: &str,
    less: bool,
) -> f64 {
    let bars: Vec<(&str, f64)> = measured
        .libraries
        .iter()
        .filter_map(|one| Some((one.name.as_str(), *one.median.get(figure)?)))
        .collect();
    let most = bars
        .iter()
        .map(|(_, value)| *value)
        .fold(f64::MIN_POSITIVE, f64::max);
    let better = if less {
        "less is better"
    } else {
        "more is better"
    };
    let _ = writeln!(
        text,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\" fill=\"#111111\">\
         {} · {}, {better}</text>\n\
         <text x=\"{left}\" y=\"{}\" fill=\"#666666\">{}</text>",
        top + 14.0,
        escaped(&measured.name),
        escaped(figure),
        top + 30.0,
        escaped(&measured.about)
    );
    for (index, (name, value)) in bars.iter().enumerate() {
        let y = top + HEAD + index as f64 * BAR;
        let length = (value / most * (PANEL - NAMES - FIGURE)).max(1.0);
        let color = match name {
            name if plan::is_ours(name) => "#c2410c",
            name if plan::is_peer(name) => "#94a3b8",
            _ => "#334155",
        };
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\
             <rect x=\"{}\" y=\"{}\" width=\"{length:.1}\" height=\"{}\" fill=\"{color}\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"#222222\">{}</text>",
            left + NAMES - 6.0,
            y + 11.0,
            escaped(name),
            left + NAMES,
            y + 1.0,
            BAR - 4.0,
            left + NAMES + length + 5.0,
            y + 11.0,
            report::number(*value)
        );
    }
    HEAD + bars.len() as f64 * BAR
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
