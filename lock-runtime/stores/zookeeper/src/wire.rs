//! The requests that are used here, and their replies.
//!
//! The protocol is that of ZooKeeper 3.5 and later, as its `zookeeper.jute` has it.

use std::time::Duration;

use crate::errors::code;
use crate::jute::{JuteReader, JuteWriter};

/// What a request asks for. The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestVerb {
    Delete = 2,
    Exists = 3,
    GetData = 4,
    SetData = 5,
    Sync = 9,
    GetChildren2 = 12,
    Check = 13,
    Multi = 14,
    Create2 = 15,
    CreateContainer = 19,
    Auth = 100,
    Close = -11,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Persistent = 0,
    Ephemeral = 1,
    EphemeralSequential = 3,
    Container = 4,
}

/// Who may do what with a node that is made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acl {
    /// Everybody may do everything.
    Open,
    /// Only the users of this session.
    Creator,
}

impl RequestVerb {
    /// Whether a majority has it before it is answered without an error.
    pub(crate) fn is_write(self) -> bool {
        match self {
            Self::Delete | Self::SetData | Self::Multi | Self::Create2 | Self::CreateContainer => {
                true
            }
            Self::Exists
            | Self::GetData
            | Self::Sync
            | Self::GetChildren2
            | Self::Check
            | Self::Auth
            | Self::Close => false,
        }
    }
}

/// A request without its header.
#[derive(Clone, Debug)]
pub(crate) struct NodeRequest {
    pub(crate) verb: RequestVerb,
    pub(crate) body: Vec<u8>,
}

/// The servers' `jute.maxbuffer`, unless it was raised. They close the connection of whoever sends
/// a longer message, without an answer.
const LONGEST: usize = 0xfffff;
/// Of a request, before its body.
const HEADER_SENT: usize = 8;

impl NodeRequest {
    pub(crate) fn is_too_long(&self) -> bool {
        HEADER_SENT + self.body.len() > LONGEST
    }
}

/// Events that are sent once, for requests that asked for it.
pub(crate) const EVENT: i32 = -1;
pub(crate) const AUTH: i32 = -4;

/// Whatever has changed.
const ANY_VERSION: i32 = -1;
/// To create, read, write, delete, and to change rights.
const ALL_RIGHTS: i32 = 31;

fn jute() -> JuteWriter {
    JuteWriter::default()
}

fn request(verb: RequestVerb, body: JuteWriter) -> NodeRequest {
    let body = body.done();
    NodeRequest { verb, body }
}

fn creation(path: &str, data: &[u8], acl: Acl, kind: NodeKind) -> JuteWriter {
    let (scheme, id) = match acl {
        Acl::Open => ("world", "anyone"),
        Acl::Creator => ("auth", ""),
    };
    jute()
        .text(path)
        .bytes(data)
        .int(1)
        .int(ALL_RIGHTS)
        .text(scheme)
        .text(id)
        .int(kind as i32)
}

pub(crate) fn create(path: &str, data: &[u8], acl: Acl, kind: NodeKind) -> NodeRequest {
    let verb = match kind {
        NodeKind::Container => RequestVerb::CreateContainer,
        _ => RequestVerb::Create2,
    };
    request(verb, creation(path, data, acl, kind))
}

pub(crate) fn delete(path: &str) -> NodeRequest {
    let body = jute().text(path).int(ANY_VERSION);
    request(RequestVerb::Delete, body)
}

pub(crate) fn exists(path: &str) -> NodeRequest {
    request(RequestVerb::Exists, jute().text(path).bool(false))
}

pub(crate) fn data(path: &str, watch: bool) -> NodeRequest {
    request(RequestVerb::GetData, jute().text(path).bool(watch))
}

pub(crate) fn set_data(path: &str, data: &[u8], version: Option<i32>) -> NodeRequest {
    let version = version.unwrap_or(ANY_VERSION);
    let body = jute().text(path).bytes(data).int(version);
    request(RequestVerb::SetData, body)
}

/// For [`multi`]: the node is there.
pub(crate) fn check(path: &str) -> NodeRequest {
    let body = jute().text(path).int(ANY_VERSION);
    request(RequestVerb::Check, body)
}

pub(crate) fn children(path: &str, watch: bool) -> NodeRequest {
    request(RequestVerb::GetChildren2, jute().text(path).bool(watch))
}

pub(crate) fn sync() -> NodeRequest {
    request(RequestVerb::Sync, jute().text("/"))
}

/// A transaction that changes nothing: a majority writes it down before it is answered. It needs no
/// node and no rights.
pub(crate) fn empty_write() -> NodeRequest {
    multi(&[])
}

pub(crate) fn auth(user: &str, password: &str) -> NodeRequest {
    let body = jute()
        .int(0)
        .text("digest")
        .text(&format!("{user}:{password}"));
    request(RequestVerb::Auth, body)
}

pub(crate) fn close() -> NodeRequest {
    request(RequestVerb::Close, jute())
}

/// All of these, or none.
pub(crate) fn multi(requests: &[NodeRequest]) -> NodeRequest {
    let all = requests.iter().fold(jute(), |all, one| {
        all.int(one.verb as i32).bool(false).int(-1).raw(&one.body)
    });
    request(RequestVerb::Multi, all.int(-1).bool(true).int(-1))
}

/// What the server knows of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The transaction that made it.
    pub(crate) czxid: i64,
    /// The transaction that last changed its data.
    pub(crate) mzxid: i64,
    /// Of its data.
    pub(crate) version: i32,
    /// The session that it ends with, or zero.
    pub(crate) owner: i64,
    pub(crate) data_length: i32,
}

pub(crate) fn stat(reader: &mut JuteReader<'_>) -> Option<Stat> {
    let (czxid, mzxid) = (reader.long()?, reader.long()?);
    let (_created, _changed) = (reader.long()?, reader.long()?);
    let (version, _children, _acl) = (reader.int()?, reader.int()?, reader.int()?);
    let (owner, data_length) = (reader.long()?, reader.int()?);
    let (_count, _last_of_children) = (reader.int()?, reader.long()?);
    Some(Stat {
        czxid,
        mzxid,
        version,
        owner,
        data_length,
    })
}

/// The reply to a [`create`]: the path, which has got its number.
pub(crate) fn created(body: &[u8]) -> Option<(String, Stat)> {
    let mut reader = JuteReader::new(body);
    Some((reader.text()?, stat(&mut reader)?))
}

/// The reply to [`exists`] and [`set_data`].
pub(crate) fn only_stat(body: &[u8]) -> Option<Stat> {
    stat(&mut JuteReader::new(body))
}

/// The reply to [`data`].
pub(crate) fn found_data(body: &[u8]) -> Option<(Vec<u8>, Stat)> {
    let mut reader = JuteReader::new(body);
    Some((reader.bytes()?.to_vec(), stat(&mut reader)?))
}

/// The reply to [`children`].
pub(crate) fn found_children(body: &[u8]) -> Option<(Vec<String>, Stat)> {
    let mut reader = JuteReader::new(body);
    Some((reader.texts()?, stat(&mut reader)?))
}

/// One part of a reply to [`multi`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MultiPart {
    Created(String),
    Written(Stat),
    Done,
}

/// The reply to [`multi`]: each part, in the order of the requests, or why none was carried out.
/// The header of such a refusal has no error. Servers differ in whether they add the `Stat` of what
/// was made.
pub(crate) fn parts(body: &[u8]) -> Option<Result<Vec<MultiPart>, i32>> {
    const ERROR: i32 = -1;
    const CREATE: i32 = 1;
    const CREATE2: i32 = RequestVerb::Create2 as i32;
    const SET_DATA: i32 = RequestVerb::SetData as i32;
    let mut reader = JuteReader::new(body);
    let (mut parts, mut refused) = (Vec::new(), None);
    loop {
        let (verb, is_end, _) = (reader.int()?, reader.bool()?, reader.int()?);
        if is_end {
            return Some(refused.map_or(Ok(parts), Err));
        }
        parts.push(match verb {
            ERROR => {
                let code = reader.int()?;
                // One says why, and the others that there is one.
                if refused.is_none_or(|other| matches!(other, 0 | code::ROLLED_BACK)) {
                    refused = Some(code);
                }
                continue;
            }
            CREATE => MultiPart::Created(reader.text()?),
            CREATE2 => {
                let path = reader.text()?;
                stat(&mut reader)?;
                MultiPart::Created(path)
            }
            SET_DATA => MultiPart::Written(stat(&mut reader)?),
            _ => MultiPart::Done,
        });
    }
}

/// The first message on a connection. A session without a number is a new one.
pub(crate) fn connect(seen: i64, timeout_millis: i32, session: i64, secret: &[u8]) -> Vec<u8> {
    jute()
        .int(0)
        .long(seen)
        .int(timeout_millis)
        .long(session)
        .bytes(secret)
        .bool(false)
        .done()
}

/// The reply to [`connect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenSession {
    pub(crate) timeout: Duration,
    /// Zero: the session that was asked for is over.
    pub(crate) session: i64,
    pub(crate) secret: Vec<u8>,
}

pub(crate) fn connected(body: &[u8]) -> Option<GivenSession> {
    let mut reader = JuteReader::new(body);
    let (_version, millis) = (reader.int()?, reader.int()?);
    Some(GivenSession {
        timeout: Duration::from_millis(u64::try_from(millis).unwrap_or(0)),
        session: reader.long()?,
        secret: reader.bytes()?.to_vec(),
    })
}

/// A request with its header and its length.
pub(crate) fn framed(number: i32, request: &NodeRequest) -> Vec<u8> {
    let message = jute()
        .int(number)
        .int(request.verb as i32)
        .raw(&request.body);
    jute().bytes(&message.done()).done()
}

/// What every reply begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyHeader {
    pub(crate) number: i32,
    /// The last transaction that the server has carried out.
    pub(crate) zxid: i64,
    /// Zero, or what is wrong.
    pub(crate) error: i32,
}

/// How long it is.
pub(crate) const HEADER: usize = 16;

pub(crate) fn header(message: &[u8]) -> Option<ReplyHeader> {
    let mut reader = JuteReader::new(message);
    Some(ReplyHeader {
        number: reader.int()?,
        zxid: reader.long()?,
        error: reader.int()?,
    })
}

/// The path of an event.
pub(crate) fn event(body: &[u8]) -> Option<String> {
    let mut reader = JuteReader::new(body);
    let (_kind, _state) = (reader.int()?, reader.int()?);
    reader.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_refused_for_the_part_that_was_refused() {
        let reply = |codes: &[i32]| {
            let part = |all: JuteWriter, code: &i32| all.int(-1).bool(false).int(*code).int(*code);
            let end = codes.iter().fold(jute(), part).int(-1).bool(true);
            parts(&end.int(-1).done())
        };
        assert_eq!(reply(&[]), Some(Ok(Vec::new())));
        let (denied, gone, behind) = (code::NO_AUTH, code::NO_NODE, code::ROLLED_BACK);
        assert_eq!(reply(&[gone, behind]), Some(Err(gone)));
        assert_eq!(reply(&[0, denied]), Some(Err(denied)));
        assert_eq!(reply(&[0, 0, denied, behind, behind]), Some(Err(denied)));
    }
}
