//! The messages of etcd's API (version 3), as far as they are used, and what makes them up.
//!
//! They are written by hand: the numbers are those of etcd's `rpc.proto`, `kv.proto` and
//! `auth.proto`, and no build needs `protoc`.

use prost::{Message, Oneof};

/// The paths of the calls.
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

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Header {
    #[prost(uint64, tag = "1")]
    pub(crate) cluster: u64,
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
    #[prost(uint64, tag = "4")]
    pub(crate) raft_term: u64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct StoredKey {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) end: Vec<u8>,
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RangeReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<StoredKey>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

/// A reply of which only the header is read.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct HeaderReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct DeleteRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct DeleteReply {
    #[prost(int64, tag = "2")]
    pub(crate) deleted: i64,
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

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Op", tags = "1, 2, 3")]
    pub(crate) op: Option<Op>,
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

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ReplyOp {
    #[prost(oneof = "DoneOp", tags = "1, 2, 3")]
    pub(crate) done: Option<DoneOp>,
}

/// A condition: always that a number is equal to this.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "Number", tags = "5, 6")]
    number: Option<Number>,
    #[prost(bytes = "vec", tag = "64")]
    end: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
enum Number {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

const CREATE: i32 = 1;
const MOD: i32 = 2;

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Txn {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TxnReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) replies: Vec<ReplyOp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseGrant {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
    #[prost(int64, tag = "3")]
    pub(crate) seconds: i64,
}

/// To prolong a lease, or to end it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct LeaseId {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum WatchKind {
    #[prost(message, tag = "1")]
    Create(WatchCreate),
    #[prost(message, tag = "2")]
    Cancel(WatchCancel),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchRequest {
    #[prost(oneof = "WatchKind", tags = "1, 2")]
    pub(crate) kind: Option<WatchKind>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchCreate {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) start: i64,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) filters: Vec<i32>,
    #[prost(int64, tag = "7")]
    pub(crate) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct WatchCancel {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchReply {
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(crate) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(crate) reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<WatchEvent>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct WatchEvent {
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<StoredKey>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct StatusReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(int64, tag = "3")]
    pub(crate) size: i64,
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
}

/// Asks for all alarms.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct AlarmRequest {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AlarmReply {
    #[prost(message, repeated, tag = "2")]
    pub(crate) alarms: Vec<Alarm>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Alarm {
    #[prost(int32, tag = "2")]
    pub(crate) kind: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AuthenticateReply {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
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
