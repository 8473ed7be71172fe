//! [`AddressMap`]: addresses that sentinels and cluster nodes announce, as they are from here.

use std::collections::HashMap;
use std::sync::Arc;

use lock_store::{ConfigError, percent_decoded};

use super::address::ServerAddress;

/// Translates announced addresses, for a client behind an address translation (NAT, port
/// forwarding, containers). Default: each is used as it is announced.
#[derive(Clone, Default)]
pub struct AddressMap(Option<Arc<Translate>>);

type Translate = dyn Fn(&str, u16) -> Option<(String, u16)> + Send + Sync;

lock_store::show!(AddressMap);

impl AddressMap {
    /// Calls this with the host and the port of each announced address. `None` leaves an address
    /// as it is.
    pub fn new(
        translate: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(translate)))
    }

    /// True if no address is translated.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of `?map=`: `announced:port>reachable:port,…`.
    pub(super) fn read(value: &str) -> Result<Self, ConfigError> {
        let bad = || {
            ConfigError::new(
                "`map` in the store's URL is not of the form \
                 `map=announced:port>reachable:port,…`, with each announced address once",
            )
        };
        let value = percent_decoded(value).ok_or_else(bad)?;
        let mut pairs = HashMap::new();
        for pair in value.split(',') {
            let (announced, reachable) = pair.split_once('>').ok_or_else(bad)?;
            let address = |text| ServerAddress::read(text).filter(ServerAddress::is_one);
            let (Some(announced), Some(reachable)) = (address(announced), address(reachable))
            else {
                return Err(bad());
            };
            if pairs.insert(announced, reachable).is_some() {
                return Err(bad());
            }
        }
        Ok(Self::new(move |host, port| {
            let host = host.to_owned();
            let found = pairs.get(&ServerAddress { host, port })?;
            Some((found.host.clone(), found.port))
        }))
    }

    /// Where the server is that announces this address.
    pub(crate) fn reachable(&self, announced: &ServerAddress) -> ServerAddress {
        let translate = self.0.as_ref();
        let found = translate.and_then(|translate| translate(&announced.host, announced.port));
        match found {
            Some((host, port)) => ServerAddress { host, port },
            None => announced.clone(),
        }
    }
}
