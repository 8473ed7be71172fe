//! [`Layouts`]: a client's engines, one for each layout that it or a view of it has.

use std::sync::Arc;

use lock_store::{Layout, Mutex};

use super::builder::LockClientBuilder;
use crate::engine::Engine;
use crate::error::LockError;

/// What all clones and views of a client share, whatever their layout.
pub(super) struct Layouts {
    /// As the client was built.
    settings: LockClientBuilder,
    /// Each layout is opened at its first use.
    engines: Mutex<Vec<(Layout, Arc<Engine>)>>,
}

impl Layouts {
    pub(super) fn new(settings: LockClientBuilder, own: &Arc<Engine>) -> Self {
        let engines = vec![(settings.chosen_layout(), Arc::clone(own))];
        Self {
            settings,
            engines: Mutex::new(engines),
        }
    }

    /// Whether the client's URL is `memory:`, perhaps by mistake.
    pub(super) fn are_in_process(&self) -> bool {
        self.settings.is_in_process()
    }

    /// The engine of a layout. After a shutdown, one that refuses.
    pub(super) fn engine(&self, layout: Layout) -> Result<Arc<Engine>, LockError> {
        let mut engines = self.engines.lock();
        if let Some((_, engine)) = engines.iter().find(|(one, _)| *one == layout) {
            return Ok(Arc::clone(engine));
        }
        if let Some((_, own)) = engines.first()
            && !own.may_begin()
        {
            return Ok(Arc::clone(own));
        }
        let engine = self.settings.open_layout(layout)?;
        engines.push((layout, Arc::clone(&engine)));
        Ok(engine)
    }

    /// All of them. From now on each refuses requests, and none is added.
    pub(super) fn close(&self) -> Vec<Arc<Engine>> {
        let engines = self.engines.lock();
        let close = |(_, engine): &(Layout, Arc<Engine>)| {
            engine.refuse_requests();
            Arc::clone(engine)
        };
        engines.iter().map(close).collect()
    }
}
