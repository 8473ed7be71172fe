//! The URL: `sqlite:///path/to/file`.

use std::path::PathBuf;

use lock_store::{ConfigError, percent_decoded};

const WRITE: &str = "write `sqlite:///path/to/locks.db`, with an absolute path";

/// The path of the database file.
pub(crate) fn path_of(url: &str) -> Result<PathBuf, ConfigError> {
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return Err(ConfigError::new(format!(
            "the store's URL does not begin with `sqlite:`; {WRITE}"
        )));
    };
    if rest.contains('#') {
        return Err(ConfigError::new(
            "the store's URL has a `#`; write `%23` for one in the path",
        ));
    }
    let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
    if let Some(option) = options.split('&').find(|option| !option.is_empty()) {
        let name = option.split('=').next().unwrap_or_default();
        // Up to a `@`, it may be the password of a URL that is meant for a server.
        let which = match options.contains('@') {
            true => "something after the `?`".to_owned(),
            false => format!("`{}`", lock_store::escaped(name)),
        };
        return Err(ConfigError::new(format!(
            "{which} is no option of a `sqlite:` URL; only `?namespace=…` and `?name=…` may follow \
             the path"
        )));
    }
    let path = match path.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => {
            return Err(ConfigError::new(format!(
                "the store's URL names a host, and a SQLite database is a file of this machine; \
                 {WRITE}"
            )));
        }
        None => path,
    };
    if !path.starts_with('/') {
        return Err(ConfigError::new(format!(
            "the path in the store's URL is not absolute, so each process could mean another \
             file; {WRITE}"
        )));
    }
    let Some(path) = percent_decoded(path) else {
        return Err(ConfigError::new(
            "the path in the store's URL has a `%` without two hexadecimal digits, or is no \
             UTF-8; write `%25` for a `%`",
        ));
    };
    if path.contains('\0') {
        return Err(ConfigError::new(
            "the path in the store's URL has a zero byte; leave it out",
        ));
    }
    if path.ends_with('/') {
        return Err(ConfigError::new(format!(
            "the path in the store's URL ends with `/`, so it names no file; {WRITE}"
        )));
    }
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_absolute_and_decoded() {
        for (url, path) in [
            ("sqlite:///var/lib/locks.db", "/var/lib/locks.db"),
            ("sqlite:/var/lib/locks.db", "/var/lib/locks.db"),
            ("sqlite:///a%20b/%C3%BC%3f.db", "/a b/ü?.db"),
            ("sqlite:///a?", "/a"),
        ] {
            assert_eq!(path_of(url).unwrap(), PathBuf::from(path), "{url}");
        }
    }

    #[test]
    fn what_names_no_file_of_this_machine_is_refused() {
        for (url, says) in [
            ("redis://h", "sqlite:"),
            ("sqlite:", "not absolute"),
            ("sqlite://", "host"),
            ("sqlite:///", "ends with `/`"),
            ("sqlite:///a/", "ends with `/`"),
            ("sqlite:locks.db", "not absolute"),
            ("sqlite://locks.db", "host"),
            ("sqlite://host/locks.db", "host"),
            ("sqlite:///a?mode=ro", "`mode` is no option"),
            ("sqlite://u:a?canary@h/b", "something after the `?`"),
            ("sqlite://u:a?canary&x@h/b", "something after the `?`"),
            ("sqlite:///a#b", "%23"),
            ("sqlite:///a%2", "%25"),
            ("sqlite:///a%ff", "UTF-8"),
            ("sqlite:///a%00b", "zero byte"),
        ] {
            let error = path_of(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
