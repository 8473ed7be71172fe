//! Where the figures come from.

use std::collections::BTreeMap;
use std::process::Command;

pub(crate) fn describe() -> BTreeMap<String, String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    BTreeMap::from([
        ("cpu".to_owned(), cpu.to_owned()),
        ("cores".to_owned(), cores.to_string()),
        ("load before".to_owned(), load),
        ("redis".to_owned(), first_line("redis-server", "--version")),
        ("rust".to_owned(), first_line("rustc", "--version")),
        ("system".to_owned(), first_line("uname", "-sr")),
    ])
}

fn first_line(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or("unknown").trim().to_owned()
}
