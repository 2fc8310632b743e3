//! A real server and real clients over TCP. Time is real here, and nothing is judged by it: what
//! has to come before what is said by gates.

mod disconnect;
mod http1;
mod http2;
pub(crate) mod server;
