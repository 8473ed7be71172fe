//! The names of keys: `prefix/namespace/key/owner`, one for each request.
//!
//! A key's name and value say what others go by, so that one reading decides: who asks, and for
//! which part. The place in the queue is the revision that made the key.

use lock_store::ordered::{KeyNode, escaped_part, permits_in, text_of};
use lock_store::{Claim, LockKey, Namespace, Owner, Permits};

use crate::wire::StoredKey;

/// The name of the namespace without a name, and of what belongs to no lock. No escaped name is
/// like it.
const NAMELESS: &str = "%";

/// As one part of a name: none begins another's keys.
fn escaped(name: &str) -> String {
    escaped_part(name, |_| true)
}

/// What the keys of a namespace begin with. `prefix` ends with a `/`, if there is one.
pub(crate) fn of_namespace(prefix: &str, namespace: &Namespace) -> String {
    match namespace.as_str() {
        "" => format!("{prefix}{NAMELESS}/"),
        name => format!("{prefix}{}/", escaped(name)),
    }
}

/// What the names of the namespace's own keys begin with, which are no locks.
pub(crate) fn helpers(namespace: &str) -> String {
    format!("{namespace}%/")
}

/// The name that the keys of a lock begin with.
pub(crate) fn of_key(prefix: &str, own: &Namespace, key: &LockKey) -> KeyNode {
    let namespace = of_namespace(prefix, key.namespace().unwrap_or(own));
    let path = format!("{namespace}{}", escaped(key.as_str()));
    KeyNode { namespace, path }
}

/// A request that holds a key or waits for it, by its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) owner: Owner,
    pub(crate) permits: Option<Permits>,
    /// It was released, and the key stays taken for a while.
    pub(crate) kept: bool,
    pub(crate) place: ChildPlace,
    /// The revision that made it, which is its place unless it stands for an earlier one.
    pub(crate) made: i64,
    pub(crate) lease: i64,
}

impl Child {
    /// What a transaction has made for this claim.
    pub(crate) fn new(claim: &Claim, revision: i64, lease: i64) -> Self {
        Self {
            name: of_request(claim.owner),
            owner: claim.owner,
            permits: claim.permits,
            kept: false,
            place: ChildPlace(revision),
            made: revision,
            lease,
        }
    }
}

/// The place in a key's queue: a revision. Those that one transaction has made have one place, and
/// are of different locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChildPlace(pub(crate) i64);

/// Between the parts of a name. No owner has it.
const BETWEEN: char = '~';
/// Of what stays taken after a release.
const KEPT: &str = "kept";

/// The name of an owner's request.
pub(crate) fn of_request(owner: Owner) -> String {
    owner.to_string()
}

/// The name of what stays taken after an owner's release.
pub(crate) fn of_kept(owner: Owner, permits: Option<Permits>) -> String {
    let count = permits.map_or(1, |permits| permits.count);
    format!("{owner}{BETWEEN}{KEPT}{BETWEEN}{count:x}")
}

/// The value of a key that has the place of an earlier one.
pub(crate) fn value_at(permits: Option<Permits>, ChildPlace(place): ChildPlace) -> String {
    format!("{}{BETWEEN}{place:x}", text_of(permits))
}

/// `None` for a key that is not ours. `below` is what its name begins with.
pub(crate) fn child(below: &str, kv: &StoredKey) -> Option<Child> {
    let name = std::str::from_utf8(&kv.key).ok()?.strip_prefix(below)?;
    let (owner, kept) = match name.split_once(BETWEEN) {
        None => (name, false),
        Some((owner, rest)) => {
            let count = rest.strip_prefix(KEPT)?.strip_prefix(BETWEEN)?;
            u32::from_str_radix(count, 16).ok()?;
            (owner, true)
        }
    };
    let value = std::str::from_utf8(&kv.value).ok()?;
    let (part, place) = match value.split_once(BETWEEN) {
        None => (value, kv.create_revision),
        Some((part, place)) => (part, i64::from_str_radix(place, 16).ok()?),
    };
    let permits = permits_in(part)?;
    Some(Child {
        name: name.to_owned(),
        owner: Owner::parse(owner)?,
        permits,
        kept,
        place: ChildPlace(place),
        made: kv.create_revision,
        lease: kv.lease,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_store::ClientId;
    use std::collections::HashSet;

    #[test]
    fn namespaces_have_names_of_their_own() {
        let nodes = ["", "shop", "käse", "Shop"].map(|name| {
            let namespace = Namespace::new(name).unwrap_or_else(|error| unreachable!("{error}"));
            of_namespace("c/", &namespace)
        });
        let different: HashSet<_> = nodes.iter().collect();
        assert_eq!(different.len(), nodes.len());
    }

    #[test]
    fn a_key_says_who_asks_for_what() {
        let owner = Owner::new(ClientId(7), 0x2a);
        let kv = |name: String, value: String| StoredKey {
            key: format!("lock/k/{name}").into(),
            value: value.into(),
            create_revision: 9,
            mod_revision: 12,
            lease: 3,
        };
        for permits in [None, Some(Permits::READ), Some(Permits { count: 2, of: 5 })] {
            let made = kv(of_request(owner), text_of(permits));
            let found = child("lock/k/", &made);
            let found = found.map(|it| (it.owner, it.permits, it.kept, it.place, it.lease));
            assert_eq!(found, Some((owner, permits, false, ChildPlace(9), 3)));
            let kept = kv(of_kept(owner, permits), value_at(permits, ChildPlace(4)));
            let found = child("lock/k/", &kept);
            let found = found.map(|it| (it.owner, it.permits, it.kept, it.place));
            assert_eq!(found, Some((owner, permits, true, ChildPlace(4))));
        }
        for (name, value) in [
            ("theirs".to_owned(), text_of(None)),
            (of_request(owner), "theirs".to_owned()),
            (of_request(owner), String::new()),
            (format!("{owner}~theirs"), text_of(None)),
            (format!("{owner}/x"), text_of(None)),
        ] {
            assert_eq!(child("lock/k/", &kv(name, value)), None);
        }
    }
}
