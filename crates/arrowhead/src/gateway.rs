//! The Gateway: what a tunnel to or from another cloud is asked for with (reference section 8).

mod connection;

pub use self::connection::{ConsumerConnection, ProviderConnection, SessionForm, control_queue};
