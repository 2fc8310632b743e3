//! Which keys' actions the current task is inside of.

use std::future::Future;
use std::sync::Arc;

use super::engine::{Engine, Request};

tokio::task_local! {
    static INSIDE: Nesting;
}

/// The actions around the current point, innermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Nesting(Option<Arc<Level>>);

#[derive(Debug)]
struct Level {
    request: Arc<Request>,
    around: Nesting,
}

impl Nesting {
    /// Where the caller is. An action's own `tokio::spawn` starts outside of it.
    pub(super) fn here() -> Self {
        INSIDE.try_with(Clone::clone).unwrap_or_default()
    }

    /// Whether this is inside the action of the same key.
    pub(super) fn contains(&self, request: &Request) -> bool {
        std::iter::successors(self.0.as_deref(), |level| level.around.0.as_deref()).any(|level| {
            let same = |a: &Arc<Engine>, b: &Arc<Engine>| Arc::ptr_eq(a, b);
            same(&level.request.engine, &request.engine) && level.request.key == request.key
        })
    }

    /// Runs an action one level further in.
    pub(super) fn inside<F: Future>(
        self,
        request: Arc<Request>,
        action: F,
    ) -> impl Future<Output = F::Output> {
        INSIDE.scope(Self(Some(Arc::new(Level { request, around: self }))), action)
    }
}
