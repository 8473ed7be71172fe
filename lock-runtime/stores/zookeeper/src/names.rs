//! The names of nodes: `/chroot/namespace/key`, and below it a child for each request.
//!
//! A child's name says what others go by, so that one listing decides: who asks, for which part of
//! the key, and the place in the queue, which the server appends.

use lock_store::ordered::{KeyNode, escaped_part, permits_in, text_of};
use lock_store::{ClientId, ConfigError, Layout, LockKey, Namespace, Owner, Permits};

/// The name of the node of the namespace without a name. No escaped name is like it.
const NAMELESS: &str = "%";
/// ZooKeeper's own node at the root.
const RESERVED: &str = "zookeeper";

/// As one component of a path. ZooKeeper refuses `/`, control characters, private and half
/// characters, and the names `.` and `..`.
fn escaped(name: &str) -> String {
    let is_dots = matches!(name, "." | "..");
    escaped_part(name, |_| !is_dots)
}

/// How nodes are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NodeLayout {
    /// Children say who asks for which part of the key.
    #[default]
    Native,
    /// As Curator's `InterProcessMutex` names them: both exclude each other. Only exclusive locks.
    Curator,
}

/// The node of a namespace, below the chroot.
pub(crate) fn of_namespace(layout: NodeLayout, chroot: &str, namespace: &Namespace) -> String {
    let name = match namespace.as_str() {
        "" if layout == NodeLayout::Curator => return chroot.to_owned(),
        "" => NAMELESS.to_owned(),
        RESERVED => RESERVED.replacen('z', "%7A", 1),
        name => escaped(name),
    };
    format!("{chroot}/{name}")
}

/// The node of a key.
pub(crate) fn of_key(layout: NodeLayout, chroot: &str, own: &Namespace, key: &LockKey) -> KeyNode {
    let namespace = of_namespace(layout, chroot, key.namespace().unwrap_or(own));
    let path = format!("{namespace}/{}", escaped(key.as_str()));
    KeyNode { namespace, path }
}

/// A request that holds a key or waits for it, by the name of its child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) owner: Owner,
    pub(crate) permits: Option<Permits>,
    /// It is another library's. Its owner stands for its name.
    pub(crate) is_foreign: bool,
    /// It was released, and the key stays taken for a while.
    pub(crate) kept: bool,
    pub(crate) place: ChildPlace,
}

/// The place in a key's queue: what the server appends to a name.
///
/// The server counts with 32 bits, and its counter stops at the end: from there, all children get
/// the same number, or some below zero. So the last million of them is for nobody
/// ([`is_spent`](Self::is_spent)), and the node is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildPlace(pub(crate) i32);

/// Places from here on are not used. As many as may be made before somebody has seen one.
const SPENT: i32 = i32::MAX - (1 << 20);

impl ChildPlace {
    /// Those below zero were given last.
    pub(crate) fn order(self, other: Self) -> std::cmp::Ordering {
        self.0.cast_unsigned().cmp(&other.0.cast_unsigned())
    }

    /// Whether the node's counter is so near to its end that this place says nothing reliable.
    pub(crate) fn is_spent(self) -> bool {
        self.0 < 0 || self.0 > SPENT
    }
}

impl Child {
    /// Whether it is one of ours which can hold nothing.
    pub(crate) fn is_spent(&self) -> bool {
        !self.is_foreign && self.place.is_spent()
    }
}

/// Between the parts of a name. No owner has it.
const BETWEEN: char = '~';
/// Of what stays taken after a release.
const KEPT: &str = "kept";

/// What Curator's names begin and end with.
const PROTECTED: &str = "_c_";
/// What stands before the place.
const LOCK: &str = "lock-";

impl NodeLayout {
    /// That of a client's layout, if this engine has it.
    pub(crate) fn of(layout: Layout) -> Result<Self, ConfigError> {
        match layout {
            Layout::Native => Ok(Self::Native),
            Layout::Curator => Ok(Self::Curator),
            _ => Err(layout.refused_by("ZooKeeper")),
        }
    }

    /// The name of a child without its place.
    pub(crate) fn without_place(
        self,
        owner: Owner,
        permits: Option<Permits>,
        kept: bool,
    ) -> String {
        if self == Self::Curator {
            return format!("{PROTECTED}{owner}-{LOCK}");
        }
        let kept = if kept { KEPT } else { "" };
        let part = text_of(permits);
        format!("{owner}{BETWEEN}{kept}{BETWEEN}{part}{BETWEEN}")
    }

    /// The name of a child at this place.
    pub(crate) fn at_place(
        self,
        owner: Owner,
        permits: Option<Permits>,
        kept: bool,
        ChildPlace(place): ChildPlace,
    ) -> String {
        format!("{}{place:010}", self.without_place(owner, permits, kept))
    }

    /// `None` for the name of a node that is no request of this layout.
    pub(crate) fn child(self, name: &str) -> Option<Child> {
        match self {
            Self::Native => native(name),
            Self::Curator => curator(name),
        }
    }
}

fn native(name: &str) -> Option<Child> {
    let mut parts = name.split(BETWEEN);
    let owner = Owner::parse(parts.next()?)?;
    let kept = match parts.next()? {
        "" => false,
        KEPT => true,
        _ => return None,
    };
    let permits = permits_in(parts.next()?)?;
    let place = ChildPlace(parts.next()?.parse().ok()?);
    parts.next().is_none().then(|| Child {
        name: name.to_owned(),
        owner,
        permits,
        is_foreign: false,
        kept,
        place,
    })
}

/// Curator's own is `_c_<UUID>-lock-<place>`, or `lock-<place>` without protection.
fn curator(name: &str) -> Option<Child> {
    let (before, place) = name.rsplit_once(LOCK)?;
    let place = ChildPlace(place.parse().ok()?);
    let id = before
        .strip_prefix(PROTECTED)
        .and_then(|id| id.strip_suffix('-'));
    let ours = id.and_then(Owner::parse);
    let theirs = || {
        let number = u128::from_str_radix(&id.unwrap_or_default().replace('-', ""), 16);
        Owner::new(
            ClientId(number.unwrap_or(0)),
            u64::from(place.0.cast_unsigned()),
        )
    };
    Some(Child {
        name: name.to_owned(),
        owner: ours.unwrap_or_else(theirs),
        permits: None,
        is_foreign: ours.is_none(),
        kept: false,
        place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_name_is_a_way_to_another_node() {
        let names = [".", "..", "%2E", "a.b"].map(escaped);
        let different: HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert!(!names.iter().any(|name| matches!(&**name, "." | "..")));
    }

    #[test]
    fn namespaces_have_nodes_of_their_own() {
        let nodes = ["", "shop", "zookeeper", ".", "..", "Zookeeper"].map(|name| {
            let namespace = Namespace::new(name).unwrap_or_else(|error| unreachable!("{error}"));
            of_namespace(NodeLayout::Native, "/c", &namespace)
        });
        let different: HashSet<_> = nodes.iter().collect();
        assert_eq!(different.len(), nodes.len());
        assert!(!nodes.contains(&"/c/zookeeper".to_owned()));
    }

    #[test]
    fn a_child_says_who_asks_for_what() {
        let owner = Owner::new(ClientId(7), 0x2a);
        for permits in [None, Some(Permits::READ), Some(Permits { count: 2, of: 5 })] {
            for kept in [false, true] {
                for place in [0, 12, i32::MAX, i32::MIN, -5] {
                    let layout = NodeLayout::Native;
                    let name = layout.at_place(owner, permits, kept, ChildPlace(place));
                    let child = layout.child(&name);
                    let found = child.map(|it| (it.owner, it.permits, it.kept, it.place));
                    assert_eq!(
                        found,
                        Some((owner, permits, kept, ChildPlace(place))),
                        "{name}"
                    );
                }
            }
        }
        for foreign in ["", "lock-0000000001", "a~b~c~d", "_c_1f-lock-0000000003"] {
            assert_eq!(NodeLayout::Native.child(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn places_end_before_the_servers_counter_does() {
        for place in [0, 1, 1 << 30, SPENT] {
            assert!(!ChildPlace(place).is_spent(), "{place}");
        }
        let spent = [SPENT + 1, i32::MAX, i32::MIN, -1].map(ChildPlace);
        assert!(spent.iter().all(|place| place.is_spent()));
        assert!(spent.is_sorted_by(|one, other| one.order(*other).is_lt()));
    }

    #[test]
    fn a_child_of_curator_is_one_of_its_layout_and_ours_is_sorted_as_theirs() {
        let layout = NodeLayout::Curator;
        for theirs in [
            "_c_f0e1d2c3-0000-1111-2222-333344445555-lock-0000000007",
            "lock-0000000007",
        ] {
            let child = layout.child(theirs);
            let child = child.map(|it| (it.is_foreign, it.permits, it.place));
            assert_eq!(child, Some((true, None, ChildPlace(7))), "{theirs}");
        }
        let owner = Owner::new(ClientId(7), 0x2a);
        let name = layout.at_place(owner, None, false, ChildPlace(12));
        // Curator sorts by what stands behind the last `lock-`.
        assert!(name.ends_with("-lock-0000000012"));
        let child = layout.child(&name).map(|it| (it.is_foreign, it.owner));
        assert_eq!(child, Some((false, owner)));
        for foreign in ["latch", "leases", "lock-", "_c_1-lock-x"] {
            assert_eq!(layout.child(foreign), None, "{foreign}");
        }
    }
}
