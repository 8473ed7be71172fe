//! `CONFIG GET`: whether a server saves snapshots, which `INFO` does not tell.
//!
//! Asked only if the user may do so anyway. The permission also covers `requirepass` and
//! `masterauth`, so no client should be given it for this.

use std::collections::HashMap;

use redis::RedisError;

use crate::commands::rights::if_allowed;
use crate::resp::Command;
use crate::transport::connected::Connected;

pub(super) const CONFIG_GET_SAVE: &str = "CONFIG GET save";

/// `None` if the user may not ask.
pub(super) async fn ask_save(up: &Connected, may: bool) -> Result<Option<bool>, RedisError> {
    let mut save = Command::new("CONFIG");
    save.arg("GET").arg("save");
    let save: Option<HashMap<String, String>> = if_allowed(up, may, &save).await?;
    Ok(save.map(|save| !save.values().all(String::is_empty)))
}
