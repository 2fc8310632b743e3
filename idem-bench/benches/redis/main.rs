//! The Redis store beside the raw commands, on the same server.

mod bare;
mod footprint;
mod verbs;
mod wake;

use idem_bench::{BoxError, Options};
use idem_conformance::servers;

use crate::bare::Client;

fn main() -> Result<(), BoxError> {
    let options = &Options::from_args();
    let runtime = &tokio::runtime::Runtime::new()?;
    let server = runtime.block_on(async { servers::redis().own().await })?;
    for client in [Client::RedisRs, Client::Fred] {
        let (bare, store) = runtime.block_on(async {
            Ok::<_, BoxError>((client.bare(server.url()).await?, client.store(server.url()).await?))
        })?;
        for callers in [1, 16, 64] {
            verbs::compare(options, runtime, &bare, &store, callers)?;
        }
        let waits = runtime.block_on(client.store(server.url()))?;
        for waiters in [1, 100, options.count(1_000, 200)] {
            wake::compare(options, runtime, &bare, [&store, &waits], waiters)?;
        }
        if client == Client::RedisRs {
            footprint::compare(options, runtime, &bare, &store)?;
        }
    }
    Ok(())
}
