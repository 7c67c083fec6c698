//! What the tests hold in their hands: a running cloud, an HTTP client, an event stream, a push subscriber.

pub mod arrowhead;
pub mod browser;
pub mod c_program;
/// What listens is for the other target.
#[allow(dead_code)]
pub mod c_socket;
pub mod certificates;
pub mod cloud;
pub mod conditions;
pub mod double;
pub mod heat;
pub mod http;
pub mod instant;
/// Its server's end is for the other target.
#[allow(dead_code)]
pub mod link;
pub mod patience;
pub mod ports;
pub mod preload;
pub mod push;
pub mod random;
pub mod relay;
pub mod secure;
pub mod sharing;
pub mod side;
pub mod skip;
pub mod sources;
pub mod sse;
pub mod stream;
pub mod transport;
