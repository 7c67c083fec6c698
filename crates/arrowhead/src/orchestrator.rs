//! Orchestrator: what a consumer should use (reference section 5).
//!
//! Whatever the source, the registry or one of the two stores, an orchestration is a list of [`candidates`] in the order
//! they are to be tried, of which [`orchestrate`] keeps what is permitted, free and preferred. Between the two calls
//! candidates may have to be pinged, which is the host's part.

mod account;
mod decision;
pub mod flexible_store;
mod request;
pub mod reservation;
mod result;
pub mod store;
mod token;

pub use self::{account::*, decision::*, request::*, result::*};
