//! The messages of etcd's API (version 3), as far as they are used, and what makes them up.
//!
//! They are written by hand: the numbers are those of etcd's `rpc.proto`, `kv.proto` and
//! `auth.proto`, and no build needs `protoc`.

use prost::{Message, Oneof};

pub(crate) mod path {
    pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(crate) const PUT: &str = "/etcdserverpb.KV/Put";
    pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(crate) const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub(crate) const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    pub(crate) const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
    pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
}

/// Messages, with the kind and the number of each field.
macro_rules! messages {
    ($($(#[$doc:meta])* $Name:ident {
        $($field:ident: $type:ty = ($($kind:tt)*)),* $(,)?
    })*) => {
        $($(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Message)]
        pub(crate) struct $Name {
            $(#[prost($($kind)*)]
            pub(crate) $field: $type,)*
        })*
    };
}

messages! {
    Header {
        cluster: u64 = (uint64, tag = "1"),
        revision: i64 = (int64, tag = "3"),
        raft_term: u64 = (uint64, tag = "4"),
    }
    StoredKey {
        key: Vec<u8> = (bytes = "vec", tag = "1"),
        create_revision: i64 = (int64, tag = "2"),
        mod_revision: i64 = (int64, tag = "3"),
        value: Vec<u8> = (bytes = "vec", tag = "5"),
        lease: i64 = (int64, tag = "6"),
    }
    RangeRequest {
        key: Vec<u8> = (bytes = "vec", tag = "1"),
        end: Vec<u8> = (bytes = "vec", tag = "2"),
        revision: i64 = (int64, tag = "4"),
    }
    RangeReply {
        header: Option<Header> = (message, optional, tag = "1"),
        kvs: Vec<StoredKey> = (message, repeated, tag = "2"),
    }
    PutRequest {
        key: Vec<u8> = (bytes = "vec", tag = "1"),
        value: Vec<u8> = (bytes = "vec", tag = "2"),
        lease: i64 = (int64, tag = "3"),
    }
    /// A reply of which only the header is read.
    HeaderReply { header: Option<Header> = (message, optional, tag = "1") }
    DeleteRequest { key: Vec<u8> = (bytes = "vec", tag = "1") }
    DeleteReply { deleted: i64 = (int64, tag = "2") }
    RequestOp { op: Option<Op> = (oneof = "Op", tags = "1, 2, 3") }
    ReplyOp { done: Option<DoneOp> = (oneof = "DoneOp", tags = "1, 2, 3") }
    /// A condition: always that a number is equal to this.
    Compare {
        target: i32 = (int32, tag = "2"),
        key: Vec<u8> = (bytes = "vec", tag = "3"),
        number: Option<Number> = (oneof = "Number", tags = "5, 6"),
        end: Vec<u8> = (bytes = "vec", tag = "64"),
    }
    Txn {
        compare: Vec<Compare> = (message, repeated, tag = "1"),
        success: Vec<RequestOp> = (message, repeated, tag = "2"),
        failure: Vec<RequestOp> = (message, repeated, tag = "3"),
    }
    TxnReply {
        header: Option<Header> = (message, optional, tag = "1"),
        succeeded: bool = (bool, tag = "2"),
        replies: Vec<ReplyOp> = (message, repeated, tag = "3"),
    }
    LeaseGrant { seconds: i64 = (int64, tag = "1"), id: i64 = (int64, tag = "2") }
    LeaseReply {
        header: Option<Header> = (message, optional, tag = "1"),
        id: i64 = (int64, tag = "2"),
        seconds: i64 = (int64, tag = "3"),
    }
    /// To prolong a lease, or to end it.
    LeaseId { id: i64 = (int64, tag = "1") }
    WatchRequest { kind: Option<WatchKind> = (oneof = "WatchKind", tags = "1, 2") }
    WatchCreate {
        key: Vec<u8> = (bytes = "vec", tag = "1"),
        end: Vec<u8> = (bytes = "vec", tag = "2"),
        start: i64 = (int64, tag = "3"),
        filters: Vec<i32> = (int32, repeated, tag = "5"),
        id: i64 = (int64, tag = "7"),
    }
    WatchCancel { id: i64 = (int64, tag = "1") }
    WatchReply {
        id: i64 = (int64, tag = "2"),
        canceled: bool = (bool, tag = "4"),
        compact_revision: i64 = (int64, tag = "5"),
        reason: String = (string, tag = "6"),
        events: Vec<WatchEvent> = (message, repeated, tag = "11"),
    }
    WatchEvent { kv: Option<StoredKey> = (message, optional, tag = "2") }
    StatusRequest {}
    StatusReply {
        header: Option<Header> = (message, optional, tag = "1"),
        version: String = (string, tag = "2"),
        size: i64 = (int64, tag = "3"),
        leader: u64 = (uint64, tag = "4"),
    }
    /// Asks for all alarms.
    AlarmRequest {}
    AlarmReply { alarms: Vec<Alarm> = (message, repeated, tag = "2") }
    Alarm { kind: i32 = (int32, tag = "2") }
    AuthenticateRequest {
        name: String = (string, tag = "1"),
        password: String = (string, tag = "2"),
    }
    AuthenticateReply { token: String = (string, tag = "2") }
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum Op {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRequest),
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum DoneOp {
    #[prost(message, tag = "1")]
    Range(RangeReply),
    #[prost(message, tag = "2")]
    Put(HeaderReply),
    #[prost(message, tag = "3")]
    Delete(DeleteReply),
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub(crate) enum Number {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

const CREATE: i32 = 1;
const MOD: i32 = 2;

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum WatchKind {
    #[prost(message, tag = "1")]
    Create(WatchCreate),
    #[prost(message, tag = "2")]
    Cancel(WatchCancel),
}

/// The key was made by this revision. Zero: it is not there.
pub(crate) fn made_by(key: &str, revision: i64) -> Compare {
    Compare {
        target: CREATE,
        key: key.into(),
        number: Some(Number::CreateRevision(revision)),
        end: Vec::new(),
    }
}

/// The key was last changed by this revision.
pub(crate) fn changed_by(key: &str, revision: i64) -> Compare {
    Compare {
        target: MOD,
        number: Some(Number::ModRevision(revision)),
        ..made_by(key, 0)
    }
}

/// There is no key that begins so.
pub(crate) fn none_below(prefix: &str) -> Compare {
    Compare {
        end: end_of(prefix),
        ..made_by(prefix, 0)
    }
}

/// The first key after those that begin so. The prefix ends with a `/`.
pub(crate) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

pub(crate) fn get(key: &str) -> RequestOp {
    op(Op::Range(RangeRequest {
        key: key.into(),
        ..RangeRequest::default()
    }))
}

/// All keys that begin so.
pub(crate) fn get_below(prefix: &str) -> RequestOp {
    op(Op::Range(RangeRequest {
        key: prefix.into(),
        end: end_of(prefix),
        revision: 0,
    }))
}

pub(crate) fn put(key: &str, value: &str, lease: i64) -> RequestOp {
    op(Op::Put(PutRequest {
        key: key.into(),
        value: value.into(),
        lease,
    }))
}

pub(crate) fn delete(key: &str) -> RequestOp {
    op(Op::Delete(DeleteRequest { key: key.into() }))
}

fn op(op: Op) -> RequestOp {
    RequestOp { op: Some(op) }
}

/// What a part of a transaction has found.
pub(crate) fn found(reply: Option<ReplyOp>) -> Option<Vec<StoredKey>> {
    match reply?.done? {
        DoneOp::Range(range) => Some(range.kvs),
        DoneOp::Put(_) | DoneOp::Delete(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_the_bytes_that_etcd_reads() {
        let bytes = made_by("a", 0).encode_to_vec();
        // target = 1; key = "a"; create_revision = 0, which is written as it is one of several.
        assert_eq!(bytes, [0x10, 1, 0x1a, 1, b'a', 0x28, 0]);
        let bytes = none_below("a/").encode_to_vec();
        assert_eq!(bytes[bytes.len() - 5..], [0x82, 0x04, 2, b'a', b'0']);
    }

    #[test]
    fn a_put_has_the_bytes_that_etcd_reads() {
        let bytes = put("k", "v", 5).encode_to_vec();
        assert_eq!(bytes, [0x12, 8, 0x0a, 1, b'k', 0x12, 1, b'v', 0x18, 5]);
    }
}
