//! All mutants.

use lock_testkit::{LuaScripts, RedisServer};

use super::lua::LUA;
use crate::mutants::Mutant;
use crate::text_mutants::{changes, taken};

/// The mutants that Lua compiles, in the order of the files, each with the whole text of its file.
/// The others would be found without a test.
pub(super) async fn all(scripts: &LuaScripts) -> Result<Vec<(Mutant, String)>, String> {
    let server = RedisServer::start().await;
    let client = redis::Client::open(server.url()).map_err(|error| error.to_string())?;
    let mut lua = client.get_connection().map_err(|error| error.to_string())?;
    let mut compiles = |script: &str| -> Result<bool, String> {
        let loaded: redis::RedisResult<String> =
            redis::cmd("SCRIPT").arg("LOAD").arg(script).query(&mut lua);
        match loaded {
            Ok(_) => Ok(true),
            Err(error) if error.to_string().contains("compiling") => Ok(false),
            Err(error) => Err(format!("the server did not compile a script: {error}")),
        }
    };
    let mut mutants: Vec<(Mutant, String)> = Vec::new();
    for (file, text) in scripts.files() {
        let lines: Vec<&str> = text.lines().collect();
        for at in 0..lines.len() {
            let takes = async |text: &str| compiles(&scripts.with(file, text));
            for (change, text) in taken(changes(&LUA, &lines, at), &lines, takes).await? {
                let mutant = Mutant::of(mutants.len(), file, at, lines[at], change.what);
                mutants.push((mutant, text));
            }
        }
    }
    Ok(mutants)
}
