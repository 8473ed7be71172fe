//! One library through one workload, once.

use std::time::Duration;

use crate::figures::{self, Figures, Report};
use crate::plan::{BESIDE_REDISSON, Kind, Library, Toolchain, Workload};
use crate::process::{Process, Usage};
use crate::servers::Servers;
use crate::toolchains;

/// Long enough for every request to be waiting.
const SETTLED: Duration = Duration::from_millis(3);

/// `program` are the words that start the library's program.
pub(crate) async fn measure(
    servers: &Servers,
    workload: &Workload,
    library: &Library,
    program: &[String],
    seconds: f64,
) -> Result<Figures, String> {
    let mut processes = start(servers, workload, library, program).await?;
    match workload.kind {
        Kind::Turns if library.name == "no-lock" => round_trips(&mut processes[0], seconds).await,
        Kind::Turns => turns(&mut processes, seconds).await,
        // One renewal of each lock.
        Kind::Held => watched(servers, workload.kind, &mut processes, 10.0).await,
        Kind::Crowd => watched(servers, workload.kind, &mut processes, seconds).await,
        Kind::Batch | Kind::Attribute => {
            go(&mut processes, 0.1).await?;
            Ok(figures::together(&go(&mut processes, seconds).await?))
        }
        Kind::Own | Kind::One | Kind::Sale => {
            let mut figures = cycles(servers, library.toolchain, &mut processes, seconds).await?;
            drop(processes);
            // Two chains at a time would tell each other.
            let counted = library.name != "chain";
            if let Some(program) =
                toolchains::counting(library.toolchain, program).filter(|_| counted)
            {
                let mut counting = start(servers, workload, library, &program).await?;
                let allocations = allocations_per_cycle(&mut counting).await?;
                figures.extend(allocations.map(|each| (figures::ALLOCATIONS.to_owned(), each)));
            }
            if library.name == "no-lock" {
                // It does not acquire anything.
                figures.retain(|name, _| {
                    ![figures::P50, figures::P99, figures::LONGEST].contains(&name.as_str())
                });
            }
            Ok(figures)
        }
    }
}

/// All processes of the library, on empty servers.
async fn start(
    servers: &Servers,
    workload: &Workload,
    library: &Library,
    program: &[String],
) -> Result<Vec<Process>, String> {
    servers.clear().await;
    let (count, tasks) = library.size(workload);
    let url = match workload.kind {
        Kind::Batch | Kind::Attribute => "memory:",
        _ => servers.url(),
    };
    let mut processes = Vec::new();
    for process in 0..count {
        let (name, mut words) = match library.name {
            BESIDE_REDISSON if process < count / 2 => {
                ("ours-redisson", toolchains::build(Toolchain::Ours)?)
            }
            BESIDE_REDISSON => ("redisson", program.to_vec()),
            name => (name, program.to_vec()),
        };
        words.extend([name, workload.kind.word(), url].map(str::to_owned));
        words.extend([tasks.to_string(), process.to_string()]);
        processes.push(Process::start(&words).await?);
    }
    Ok(processes)
}

async fn cycles(
    servers: &Servers,
    toolchain: Toolchain,
    processes: &mut [Process],
    seconds: f64,
) -> Result<Figures, String> {
    // A virtual machine compiles what has run often.
    let warm = if toolchain == Toolchain::Java {
        2.0
    } else {
        0.2
    };
    go(processes, warm).await?;
    let commands = count_commands(servers, processes).await?;
    let counts = servers.counts().await;
    let before = usages(servers, processes);
    let reports = go(processes, seconds).await?;
    let (client, server) = since(before, usages(servers, processes));
    let counts = servers.counts().await - counts;
    let mut figures = figures::together(&reports);
    let cycles = figures::paid(&reports).max(1.0);
    let mut each = |name: &str, sum: f64| _ = figures.insert(name.to_owned(), sum / cycles);
    each(figures::CLIENT, client.cpu_nanos / 1e3);
    each("client system µs/cycle", client.system_nanos / 1e3);
    each("server µs/cycle", server.cpu_nanos / 1e3);
    each("server system µs/cycle", server.system_nanos / 1e3);
    each("client sleeps/cycle", client.sleeps);
    if let Some(commands) = commands.each_cycle {
        figures.insert("commands/cycle".to_owned(), commands);
    }
    let commands = counts.commands * commands.of_clients;
    figures.insert(figures::READ.to_owned(), commands / counts.reads.max(1.0));
    Ok(figures)
}

/// The commands of clients.
struct Commands {
    /// `None` if no cycle ended.
    each_cycle: Option<f64>,
    /// As a part of all that the servers count, with those of scripts.
    of_clients: f64,
}

/// In a run of its own, because counting commands slows the clients down.
async fn count_commands(servers: &Servers, processes: &mut [Process]) -> Result<Commands, String> {
    let counts = servers.counts().await;
    let log = servers.requests().await;
    let reports = go(processes, 0.1).await?;
    let requests = log.count().await;
    let counts = servers.counts().await - counts;
    let cycles = figures::paid(&reports);
    Ok(Commands {
        each_cycle: (cycles > 0.0).then(|| requests / cycles),
        of_clients: requests / counts.commands.max(1.0),
    })
}

/// In processes of their own, because counting allocations slows them down.
async fn allocations_per_cycle(processes: &mut [Process]) -> Result<Option<f64>, String> {
    go(processes, 0.1).await?;
    let reports = go(processes, 0.3).await?;
    let cycles = figures::paid(&reports).max(1.0);
    Ok(figures::allocations(&reports).map(|count| count / cycles))
}

/// The usage of all clients, and of the servers.
fn usages(servers: &Servers, processes: &[Process]) -> (Usage, Usage) {
    let clients = processes.iter().map(Process::usage);
    (clients.sum(), servers.usage())
}

fn since(before: (Usage, Usage), after: (Usage, Usage)) -> (Usage, Usage) {
    (after.0 - before.0, after.1 - before.1)
}

/// A run whose commands are few enough to be counted meanwhile.
async fn watched(
    servers: &Servers,
    kind: Kind,
    processes: &mut [Process],
    seconds: f64,
) -> Result<Figures, String> {
    let log = servers.requests().await;
    let before = usages(servers, processes);
    let reports = go(processes, seconds).await?;
    let (client, server) = since(before, usages(servers, processes));
    let requests = log.count().await;
    let mut figures = figures::together(&reports);
    let seconds = reports
        .iter()
        .map(|report| report.seconds)
        .fold(0.0, f64::max);
    let mut set = |name: &str, value: f64| _ = figures.insert(name.to_owned(), value);
    let cycles = figures::paid(&reports);
    if kind == Kind::Crowd {
        // If no request was served: all commands for one.
        set("commands/cycle", requests / cycles.max(1.0));
    } else {
        set("commands/s", requests / seconds);
        set("client % of a core", client.cpu_nanos / seconds / 1e7);
        set("server % of a core", server.cpu_nanos / seconds / 1e7);
    }
    Ok(figures)
}

/// Starts all processes at the same time.
async fn go(processes: &mut [Process], seconds: f64) -> Result<Vec<Report>, String> {
    for process in processes.iter_mut() {
        process.say(&format!("go {seconds}")).await?;
    }
    let mut reports = Vec::new();
    for process in processes {
        let line = process.line().await?;
        let report = serde_json::from_str(&line);
        reports.push(report.map_err(|error| format!("it reported {line:?}: {error}"))?);
    }
    Ok(reports)
}

/// From the call of the release in one process to the lock in the other, which waits.
async fn turns(processes: &mut [Process], seconds: f64) -> Result<Figures, String> {
    let mut times = Vec::new();
    let mut until = tokio::time::Instant::now() + Duration::from_secs_f64(seconds);
    ask(&mut processes[0]).await?;
    processes[0].after("held").await?;
    let mut holder = 0;
    let mut warm = 4;
    while tokio::time::Instant::now() < until {
        let waiter = 1 - holder;
        ask(&mut processes[waiter]).await?;
        tokio::time::sleep(SETTLED).await;
        processes[holder].say("release").await?;
        let released = processes[holder].after("released").await?;
        let held = processes[waiter].after("held").await?;
        if warm == 0 {
            times.push(held - released);
        } else {
            warm -= 1;
            until = tokio::time::Instant::now() + Duration::from_secs_f64(seconds);
        }
        holder = waiter;
    }
    Ok(figures::times(times))
}

async fn ask(process: &mut Process) -> Result<(), String> {
    process.say("ask").await?;
    match process.line().await?.as_str() {
        "asking" => Ok(()),
        other => Err(format!("it said {other:?} and not that it asks")),
    }
}

/// One command and its reply, as seldom as the turns.
async fn round_trips(process: &mut Process, seconds: f64) -> Result<Figures, String> {
    let until = tokio::time::Instant::now() + Duration::from_secs_f64(seconds);
    let mut times = Vec::new();
    while tokio::time::Instant::now() < until {
        tokio::time::sleep(SETTLED).await;
        process.say("ask").await?;
        times.push(process.after("took").await?);
    }
    Ok(figures::times(times))
}
