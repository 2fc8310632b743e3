//! Many callers at once.

use std::time::Instant;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::comparison::BoxError;

/// Microseconds for each call: one caller for each of the lists, who goes through its own.
///
/// # Errors
/// The first error of a call.
pub fn time<T, F>(
    runtime: &Runtime,
    inputs: Vec<Vec<T>>,
    call: impl Fn(T) -> F + Clone + Send + 'static,
) -> Result<f64, BoxError>
where
    T: Send + 'static,
    F: Future<Output = Result<(), BoxError>> + Send,
{
    let calls = inputs.iter().map(Vec::len).sum::<usize>();
    runtime.block_on(async {
        let began = Instant::now();
        let mut callers = JoinSet::new();
        for inputs in inputs {
            let call = call.clone();
            callers.spawn(async move {
                for input in inputs {
                    call(input).await?;
                }
                Ok::<_, BoxError>(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(calls)?))
    })
}
