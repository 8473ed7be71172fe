//! All mutants.

use std::ops::Range;

use lock_testkit::PostgresServer;

use super::sql::{SQL, unlocked};
use crate::mutants::Mutant;
use crate::text_mutants::{changes, taken};

/// A function of the migration: its name, the lines of its declaration, and those of its body.
struct Function {
    name: String,
    lines: Range<usize>,
    body: Range<usize>,
}

/// The mutants that PostgreSQL takes, in the order of the functions, each with the whole migration.
/// The others would be found without a test.
pub(super) async fn all(migration: &str) -> Result<Vec<(Mutant, String)>, String> {
    let server = PostgresServer::start().await;
    let session = server.session().await;
    let takes = async |function: &str| {
        let made = session
            .batch_execute(&format!(
                "BEGIN; SET LOCAL search_path = pg_catalog, pg_temp; {function}"
            ))
            .await;
        session
            .batch_execute("ROLLBACK")
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(made.is_ok())
    };
    let lines: Vec<&str> = migration.lines().collect();
    let mut mutants: Vec<(Mutant, String)> = Vec::new();
    for function in functions(&lines)? {
        let own = &lines[function.lines.clone()];
        if !takes(&own.join("\n")).await? {
            return Err(format!("{} is not taken without a mistake", function.name));
        }
        for at in function.body.clone() {
            let own_at = at - function.lines.start;
            let mut all = changes(&SQL, own, own_at);
            all.extend(unlocked(own[own_at], own_at).map(|change| vec![change]));
            for (change, broken) in taken(all, own, takes).await? {
                let (before, after) =
                    (&lines[..function.lines.start], &lines[function.lines.end..]);
                let text = [&before.join("\n"), &*broken, &after.join("\n")].join("\n");
                let (number, old) = (mutants.len(), lines[at]);
                let mutant = Mutant::of(number, &function.name, at, old, change.what);
                mutants.push((mutant, text));
            }
        }
    }
    Ok(mutants)
}

/// All functions. What is on one line with the quotes of a body is a part of it only if the whole
/// body is.
fn functions(lines: &[&str]) -> Result<Vec<Function>, String> {
    const BEGIN: &str = "CREATE OR REPLACE FUNCTION lock_store.";
    let mut functions = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or_default();
        let of = |wanted: fn(&str) -> bool| {
            let found = lines[first..].iter().position(|line| wanted(line));
            found
                .ok_or_else(|| format!("{name} has no body"))
                .map(|more| first + more)
        };
        let open = of(|line| line.contains("AS $$"))?;
        let last = of(|line| line.ends_with("$$;"))?;
        functions.push(Function {
            name: name.to_owned(),
            lines: first..last + 1,
            body: if open == last {
                open..last + 1
            } else {
                open + 1..last + 1
            },
        });
    }
    match functions.is_empty() {
        true => Err("the migration has no functions".to_owned()),
        false => Ok(functions),
    }
}
