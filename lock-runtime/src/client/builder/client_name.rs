//! A client's name in the servers' lists of clients, where operators look.

use crate::error::LockError;

/// Longer names would fill every line of those lists.
const LONGEST: usize = 128;

/// A name that servers take.
pub(super) fn check(name: &str) -> Result<(), LockError> {
    let Some(what) = what_is_wrong(name) else {
        return Ok(());
    };
    let which = match name.len() > LONGEST {
        true => String::new(),
        false => format!(" {name:?}"),
    };
    Err(LockError::config(format!(
        "the client's name{which} {what}"
    )))
}

/// The same for a name in a URL. The error does not repeat it: it may be a part of a password.
pub(super) fn check_of_url(name: &str) -> Result<(), LockError> {
    what_is_wrong(name).map_or(Ok(()), |what| {
        Err(LockError::config(format!(
            "`name` in the store's URL {what}"
        )))
    })
}

fn what_is_wrong(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > LONGEST {
        return Some(format!(
            "has {} bytes; it must have from 1 to {LONGEST}, as \"orders-7f9c\"",
            name.len()
        ));
    }
    let bad = name.chars().find(|c| !c.is_ascii_graphic())?;
    Some(format!(
        "has a {bad:?}; use visible ASCII without spaces, as \"orders-7f9c\""
    ))
}

/// `host:pid`.
pub(super) fn of_this_process() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let told = told.or_else(|| std::env::var("HOSTNAME").ok());
    let told = told.or_else(|| std::env::var("COMPUTERNAME").ok());
    let mut host: String = told.unwrap_or_default();
    host.retain(|c| c.is_ascii_graphic());
    host.truncate(LONGEST / 2);
    if host.is_empty() {
        host.push_str("localhost");
    }
    format!("{host}:{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_visible_ascii_and_not_too_long() {
        let name = of_this_process();
        assert!(check(&name).is_ok() && name.contains(':'), "{name}");
        assert!(check("orders-7f9c").is_ok());
        for bad in [
            "",
            "two words",
            "line\nend",
            "naïve",
            &"x".repeat(LONGEST + 1),
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
