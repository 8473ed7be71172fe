//! The accesses that a resource accepted. The resource checks fencing tokens.

use std::collections::HashMap;
use std::str::FromStr;

use super::disturbance::excuses_tokens;
use super::{Check, Disturbance, Violation};

/// An access that the guarded resource accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// When the sender sent it.
    pub at: u64,
    /// The key.
    pub key: String,
    /// The fencing token.
    pub token: u64,
    /// For a write: the version that its sender had read. `None` for a read.
    pub base: Option<u64>,
    /// The version at that time.
    pub version: u64,
}

impl FromStr for Access {
    type Err = ();

    /// `at key token base version`. For a read, the base is `-`.
    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, key, token, base, version] = words[..] else {
            return Err(());
        };
        let number = |word: &str| word.parse().map_err(drop);
        Ok(Self {
            at: number(at)?,
            key: key.to_owned(),
            token: number(token)?,
            base: match base {
                "-" => None,
                base => Some(number(base)?),
            },
            version: number(version)?,
        })
    }
}

/// Every access by a sender that was overtaken, in the order of the resource: a higher token had
/// been there before, or another write had come since the sender's read.
#[must_use]
pub fn stale_accesses(accesses: &[Access], disturbances: &[Disturbance]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut highest: HashMap<&str, u64> = HashMap::new();
    for access in accesses {
        let seen = highest.entry(&access.key).or_insert(access.token);
        let overtaken = access.token < *seen;
        *seen = access.token.max(*seen);
        let overwrites = access.base.is_some_and(|base| base != access.version);
        if overtaken || overwrites {
            found.push(Violation {
                check: Check::StaleAccess,
                in_model: !excuses_tokens(disturbances, 0, access.at),
                text: format!("{access:?} after token {seen}"),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Effect;
    use super::*;

    fn accesses(lines: &[&str]) -> Vec<Access> {
        lines
            .iter()
            .map(|line| line.parse().expect("an access"))
            .collect()
    }

    #[test]
    fn reads_and_writes_in_the_order_of_tokens_are_fine() {
        let fine = [
            "1 k 7 - 0",
            "2 k 7 0 0",
            "3 k 9 - 1",
            "4 j 8 - 0",
            "5 k 9 1 1",
        ];
        assert_eq!(stale_accesses(&accesses(&fine), &[]), []);
    }

    #[test]
    fn an_older_token_is_found_also_when_it_only_reads() {
        for older in ["4 k 7 0 0", "4 k 7 - 0"] {
            let found = stale_accesses(&accesses(&["1 k 7 - 0", "3 k 9 - 0", older]), &[]);
            assert_eq!(found.len(), 1, "{older}");
            assert_eq!(found[0].check, Check::StaleAccess);
        }
    }

    #[test]
    fn a_write_over_what_its_sender_did_not_see_is_found() {
        let lost = accesses(&["1 k 7 - 0", "2 k 7 - 0", "3 k 7 0 0", "4 k 7 0 1"]);
        assert_eq!(stale_accesses(&lost, &[]).len(), 1);
        let data_lost = Disturbance {
            from: 0,
            to: 0,
            effect: Effect::DataLost,
        };
        assert!(stale_accesses(&lost, &[data_lost])[0].in_model);
    }
}
