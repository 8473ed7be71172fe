//! What a claim is for, and the scripts for it.

use lock_store::{Claim, LockKey, Permits};

use super::RedissonStore;
use super::names::RedissonNames;
use crate::resp::Command;
use crate::scripts::Text;
use crate::store::RedisStore;
use crate::transport::script_or_command::Request;

#[derive(Clone, Copy)]
pub(super) enum RedissonKind {
    Lock,
    ReadWrite { writes: bool },
    Semaphore(u32),
}

impl RedissonKind {
    pub(super) fn of(claim: &Claim) -> Self {
        match claim.permits {
            None => Self::Lock,
            Some(permits) if permits.is_read_write() => Self::ReadWrite {
                writes: permits == Permits::WRITE,
            },
            Some(permits) => Self::Semaphore(permits.count),
        }
    }
}

pub(super) fn word(writes: bool) -> &'static str {
    match writes {
        true => "write",
        false => "read",
    }
}

/// A script with these keys, which are all in one slot.
pub(super) fn script<const KEYS: usize>(
    store: &RedisStore,
    script: &'static Text,
    keys: [&str; KEYS],
    arguments: impl FnOnce(&mut Command),
) -> Request {
    Request::script(store.form(script), |command| {
        command.arg(KEYS);
        for key in keys {
            command.arg(key);
        }
        arguments(command);
    })
}

impl RedissonStore {
    pub(super) fn names(&self, key: &LockKey) -> RedissonNames {
        RedissonNames::of(&self.store.namespace, key)
    }

    pub(super) fn script<const KEYS: usize>(
        &self,
        text: &'static Text,
        keys: [&str; KEYS],
        arguments: impl FnOnce(&mut Command),
    ) -> Request {
        script(&self.store, text, keys, arguments)
    }
}
